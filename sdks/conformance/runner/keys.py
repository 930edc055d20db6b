"""What an admin does beside a scenario: makes keys with rights, and takes them away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc

from fila.v1 import auth_pb2, auth_pb2_grpc

from .certificates import NAME

RIGHTS = {
    "produce": auth_pb2.RIGHT_PRODUCE,
    "consume": auth_pb2.RIGHT_CONSUME,
    "manage": auth_pb2.RIGHT_MANAGE,
    "admin": auth_pb2.RIGHT_ADMIN,
}


class Admin:
    """The holder of a broker's first key."""

    def __init__(self, address: str, data_dir: Path, certificates: Path | None = None) -> None:
        """`certificates`: where they are, when the broker speaks TLS."""
        self._address = address
        self._key_file = data_dir / "bootstrap-key"
        self._certificates = certificates

    async def make_key(self, name: str, grants: list[str]) -> dict[str, str]:
        """Make a key; each grant is a right and a pattern, such as "produce orders.*"."""
        return await asyncio.to_thread(self._make_key, name, grants)

    async def revoke_key(self, key_id: str) -> None:
        """Take a key away."""
        await asyncio.to_thread(
            self._call,
            lambda stub, sent: stub.RevokeKey(auth_pb2.RevokeKeyRequest(key_id=key_id), metadata=sent),
        )

    def _make_key(self, name: str, grants: list[str]) -> dict[str, str]:
        permissions = []
        for grant in grants:
            right, _, pattern = grant.partition(" ")
            permissions.append(auth_pb2.Permission(right=RIGHTS[right], queue=pattern))
        made = self._call(
            lambda stub, sent: stub.CreateKey(auth_pb2.CreateKeyRequest(name=name), metadata=sent)
        )
        self._call(
            lambda stub, sent: stub.Grant(
                auth_pb2.GrantRequest(name=name, permissions=permissions), metadata=sent
            )
        )
        return {"key": made.key, "key_id": made.key_id}

    def _call(self, call: Any) -> Any:
        with self._channel() as channel:
            sent = (("authorization", f"Bearer {self._key_file.read_text().strip()}"),)
            return call(auth_pb2_grpc.FilaAuthStub(channel), sent)

    def _channel(self) -> grpc.Channel:
        if self._certificates is None:
            return grpc.insecure_channel(self._address)
        ca, key, certificate = (
            (self._certificates / name).read_bytes() for name in ("ca.pem", "nobody.key", "nobody.pem")
        )
        credentials = grpc.ssl_channel_credentials(ca, key, certificate)
        options = [("grpc.ssl_target_name_override", NAME)]
        return grpc.secure_channel(self._address, credentials, options=options)
