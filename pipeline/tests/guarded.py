"""A broker that asks for keys and speaks TLS alone, and keys of its own."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from broker_process import BrokerProcess
from certificates import make_authority, make_certificate

from fila.v1.auth_pb2 import CreateKeyRequest, CreateKeyResponse, GrantRequest, Permission, Right


@dataclass(frozen=True)
class Guarded:
    """Started, with what it takes to be asked."""

    broker: BrokerProcess
    key: str
    """Its admin's."""
    files: Path
    """Certificates: ca.pem, which signed the broker's, and other-ca.pem, which did not."""
    settings: dict[str, str]
    """What it is started with."""

    @property
    def options(self) -> dict[str, str]:
        """What format("fila") is told, but for the key."""
        return {"address": f"https://{self.broker.address}", "caFile": str(self.files / "ca.pem")}

    def key_of(self, name: str, **patterns: str) -> CreateKeyResponse:
        """Make a key of that name, which may do `right="pattern pattern"` and nothing beyond."""
        rights = [
            Permission(right=Right.Value(f"RIGHT_{right.upper()}"), queue=pattern)
            for right, listed in patterns.items()
            for pattern in listed.split()
        ]
        self.broker.auth.Grant(GrantRequest(name=name, permissions=rights))
        made: CreateKeyResponse = self.broker.auth.CreateKey(CreateKeyRequest(name=name))
        return made


def start_guarded(root: Path, folder: Path, address: str = "127.0.0.1:0", days: int = 2) -> Guarded:
    """Start one whose data, certificates and log lie in a folder; days: of its certificate; below 0 it is over."""
    files = folder / "certificates"
    files.mkdir()
    for name in ("ca", "other-ca"):
        make_authority(files, name)
    make_certificate(files, "server", "DNS:localhost,IP:127.0.0.1", signer="ca", days=days)
    key = f"fila_admin_{secrets.token_hex(24)}"
    bootstrap = folder / "bootstrap-key"
    bootstrap.write_text(key)
    bootstrap.chmod(0o600)
    settings = {
        "FILA_AUTH__ENABLED": "true",
        "FILA_AUTH__BOOTSTRAP_KEY_FILE": str(bootstrap),
        "FILA_TLS__CERT_FILE": str(files / "server.pem"),
        "FILA_TLS__KEY_FILE": str(files / "server.key"),
    }
    broker = BrokerProcess(root, folder, key=key, ca_file=files / "ca.pem")
    broker.start(address, **settings)
    return Guarded(broker, key, files, settings)
