"""The key a command sends, and whom it trusts: from a file or the environment, never from the command line, which
every user of the machine can read in the list of processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import grpc

KEY_VARIABLE = "FILA_API_KEY"
KEY_BYTES_MAX = 512


def key_of(file: str) -> str:
    """The key in `file`, else the environment's; "" for none."""
    if not file:
        return os.environ.get(KEY_VARIABLE, "").strip()
    try:
        key = Path(file).read_bytes()[:KEY_BYTES_MAX].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise click.BadParameter(f"{file} cannot be read: {why}", param_hint="'--api-key-file'") from None
    if not key or len(key.split()) != 1:
        raise click.BadParameter(f"{file} holds no key on a line of its own", param_hint="'--api-key-file'")
    return key


def channel_credentials(ca_file: str) -> grpc.ChannelCredentials:
    """Trust the authorities in `ca_file`, or those gRPC trusts by itself; show the certificate in the file that
    FILA_CERT_FILE names, with the key that FILA_KEY_FILE names."""
    from fila import tls
    from fila.options import ClientOptions

    try:
        return tls.credentials(tls.with_environment(ClientOptions(ca_file=ca_file)))
    except OSError as error:
        hint = "'--ca-file'" if error.filename in (None, ca_file) else "FILA_CERT_FILE, FILA_KEY_FILE"
        raise click.BadParameter(
            f"{error.filename or ca_file} cannot be read: {error.strerror}", param_hint=hint
        ) from None
    except tls.CannotBeRead as error:
        raise click.BadParameter(str(error), param_hint="'--ca-file'") from None


def with_key(channel: grpc.Channel, key: str) -> grpc.Channel:
    """The channel, sending the key with every call."""
    import grpc

    class Sender(
        grpc.UnaryUnaryClientInterceptor,
        grpc.UnaryStreamClientInterceptor,
        grpc.StreamStreamClientInterceptor,
    ):
        def _keyed(self, details: Any) -> Any:
            metadata = (*(details.metadata or ()), ("authorization", f"Bearer {key}"))
            return details._replace(metadata=metadata)

        def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
            return continuation(self._keyed(client_call_details), request)

        def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
            return continuation(self._keyed(client_call_details), request)

        def intercept_stream_stream(
            self, continuation: Any, client_call_details: Any, request_iterator: Any
        ) -> Any:
            return continuation(self._keyed(client_call_details), request_iterator)

    return grpc.intercept_channel(channel, Sender()) if key else channel
