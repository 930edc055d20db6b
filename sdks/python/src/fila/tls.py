"""How a client's options become what gRPC needs to speak TLS."""

from __future__ import annotations

from pathlib import Path

import grpc

from fila.options import ClientOptions


def is_wanted(options: ClientOptions) -> bool:
    """Whether an option asks for TLS, whatever the address says."""
    return bool(options.ca_file or options.cert_file or options.server_name)


def credentials(options: ClientOptions) -> grpc.ChannelCredentials:
    """Return gRPC's credentials. Raises OSError where a file cannot be read."""
    return grpc.ssl_channel_credentials(
        root_certificates=_contents(options.ca_file),
        private_key=_contents(options.key_file),
        certificate_chain=_contents(options.cert_file),
    )


def channel_options(options: ClientOptions) -> tuple[tuple[str, str], ...]:
    """Return what the channel must be told besides."""
    return (("grpc.ssl_target_name_override", options.server_name),) if options.server_name else ()


def _contents(file: str) -> bytes | None:
    return Path(file).read_bytes() if file else None
