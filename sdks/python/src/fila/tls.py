"""How a client's options become what gRPC needs to speak TLS, and what is wrong with its files."""

from __future__ import annotations

import dataclasses
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

if TYPE_CHECKING:
    from fila.options import ClientOptions


class CannotBeRead(ValueError):
    """A file of the client's is not what it should be."""


def is_wanted(options: ClientOptions) -> bool:
    """Whether an option asks for TLS, whatever the address says."""
    return bool(options.ca_file or options.cert_file or options.server_name)


def with_environment(options: ClientOptions) -> ClientOptions:
    """Return the options with the files that FILA_CA_FILE, FILA_CERT_FILE and FILA_KEY_FILE name, where the program
    names none. They say nothing of whether TLS is spoken. Raises ValueError where one of a pair is missing."""
    ca_file, cert_file, key_file = options.ca_file, options.cert_file, options.key_file
    if not ca_file:
        ca_file = os.environ.get("FILA_CA_FILE", "")
    if not cert_file:
        cert_file, key_file = os.environ.get("FILA_CERT_FILE", ""), os.environ.get("FILA_KEY_FILE", "")
    return dataclasses.replace(options, ca_file=ca_file, cert_file=cert_file, key_file=key_file)


def context(options: ClientOptions) -> ssl.SSLContext:
    """Return the same for Python's own TLS. Raises CannotBeRead, naming the file and what is wrong with it, and OSError
    where there is none."""
    try:
        trusting = ssl.create_default_context(cafile=options.ca_file or None)
    except ssl.SSLError:
        raise CannotBeRead(f"{options.ca_file} holds no certificate in PEM form") from None
    trusting.set_alpn_protocols(["h2"])
    if options.cert_file:
        try:
            trusting.load_cert_chain(options.cert_file, options.key_file)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                why = f"the key in {options.key_file} is not that of the certificate in {options.cert_file}"
            else:
                why = f"{options.cert_file} and {options.key_file} hold no certificate and key in PEM form"
            raise CannotBeRead(why) from None
    return trusting


def credentials(options: ClientOptions) -> grpc.ChannelCredentials:
    """Return gRPC's credentials. Raises CannotBeRead and OSError, as `context`."""
    context(options)
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
