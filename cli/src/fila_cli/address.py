"""Where a broker is, and where a program listens, as people write it."""

from __future__ import annotations

from urllib.parse import urlsplit

import click

DEFAULT_ADDRESS = "http://localhost:5555"
DEFAULT_PORT = 5555


def target_of(address: str) -> tuple[str, bool]:
    """Return (host:port, whether by TLS) of `http://host:port`, `https://host`, `host:port` or `host`."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        port = parts.port or DEFAULT_PORT
    except ValueError:  # of a port that is none, or of half a bracket
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not port or parts.path.strip("/"):
        raise click.BadParameter(
            f"{address!r} is no address; write it like {DEFAULT_ADDRESS}", param_hint="'--addr'"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}", parts.scheme == "https"


def targets_of(addresses: str) -> tuple[list[str], bool]:
    """The same of several with commas between them, those of a group's nodes; by TLS if one of them says so."""
    parsed = [target_of(address.strip()) for address in addresses.split(",")]
    return list(dict.fromkeys(target for target, _ in parsed)), any(by_tls for _, by_tls in parsed)


class Listen(click.ParamType[tuple[str, int]]):
    """`HOST:PORT`, an address to listen on; port 0 takes a free one."""

    name = "HOST:PORT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Return the host, without the brackets of an IPv6 address, and the port."""
        host, _, port = str(value).rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal() or int(port) > 65535:
            self.fail(f"{value!r} is no place to listen; write it like 127.0.0.1:8081", param, ctx)
        return host, int(port)
