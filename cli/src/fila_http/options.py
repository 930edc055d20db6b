"""Every setting of the gateway, with its default, unit and reason."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

PORT = 8081

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much of anything the gateway takes on."""

    body_bytes_max: int = 8 << 20
    """One request's body."""

    held_bytes_max: int = 64 << 20
    """Bodies and answers of all requests together."""

    batch_messages_max: int = 10_000
    """Members of one list or object of a body; the broker's own bound of a batch (`limits.batch_messages_max`)."""

    connections_max: int = 1_000
    """Open connections; one more is closed at once."""

    streams_max: int = 200
    """Event streams at a time."""

    head_bytes_max: int = 32 << 10
    """A request's line and headers."""

    head_s_max: float = 10.0
    """From a request's first byte, or the connection's start, to the end of its headers."""

    body_s_max: float = 30.0
    """From the end of the headers to the end of the body."""

    send_s_max: float = 30.0
    """How long a caller may take for the next piece (64 KiB) of an answer."""

    wait_ms_max: int = 30_000
    """How long a pull may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Where the gateway stands, and whom it lets in."""

    host: str = "127.0.0.1"
    port: int = PORT
    cert_file: str = ""
    """With `key_file`: serve by TLS."""

    key_file: str = ""
    allow_plaintext: bool = False
    """Other machines may send their keys without TLS: a proxy in front ends it."""

    hosts: frozenset[str] = frozenset()
    """What `Host` may say, beside the address that it listens on."""

    origins: tuple[str, ...] = ()
    """Web pages of these origins may call it; none but its own unless listed."""

    bounds: Bounds = field(default_factory=Bounds)

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def hosts_allowed(self) -> frozenset[str]:
        """What `Host` may say, without a port, in lower case."""
        own = self.host.lower()
        own = f"[{own}]" if ":" in own else own
        return self.hosts | (LOOPBACK_NAMES | {own} if self.is_local else frozenset({own}))

    def check(self) -> None:
        """Raises ValueError, in a sentence, where the settings would open what must not be open."""
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("--cert-file and --key-file go together; give both, or neither")
        if self.is_local:
            return
        if not (self.cert_file or self.allow_plaintext):
            raise ValueError(
                f"{self.host} is reached from other machines, and their keys would travel unencrypted: give "
                "--cert-file and --key-file, or --allow-plaintext where a proxy in front ends TLS"
            )
        if self.host in ("", "0.0.0.0", "::") and not self.hosts:  # noqa: S104 - only compared
            raise ValueError(
                f"{self.host} is every address of this machine: name what callers call it by with --allow-host"
            )
