"""Who calls: key, certificate and peer of a gRPC call, as access/admission.py wants them."""

from __future__ import annotations

import contextlib
import ipaddress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from fila_server import errors
from fila_server.access.admission import Admission, Caller

CLAIMED_ADDRESS = "fila-client-address"
"""The metadata in which the console and the HTTP gateway say for whom they call."""

_SCHEME = "bearer "
_ADDRESS_CHARS_MAX = 64
_NAME_PROPERTIES = ("peer_dns", "peer_uri")


class Identity:
    """Asked once a call."""

    def __init__(self, admission: Admission, *, encrypted: bool = False, certificates: bool = False) -> None:
        self.admission = admission
        self._encrypted = encrypted
        self._certificates = certificates

    def enter(self, context: Any) -> Caller:
        """Say who calls. Raises Unauthenticated."""
        address = address_of(context.peer() or "")
        claimed = _claimed_by(context)
        if not self.admission.is_on:
            caller = self.admission.enter(None, address, encrypted=self._encrypted)
        else:
            names = _names_of(context) if self._certificates else ()
            caller = self.admission.enter(_key_of(context), address, encrypted=self._encrypted, names=names)
        return replace(caller, claimed_address=claimed) if claimed else caller


def _key_of(context: Any) -> bytes | None:
    """The text after "Bearer"; None where there is no such header."""
    for name, value in context.invocation_metadata() or ():
        if name == "authorization":
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            if text[: len(_SCHEME)].lower() != _SCHEME:
                raise errors.Unauthenticated('authorization: must be "Bearer " and the key')
            return bytes(text[len(_SCHEME) :].strip().encode())
    return None


def _claimed_by(context: Any) -> str:
    """The address of the caller for whom a console or a gateway calls, as it claims; what is no address is left out."""
    for name, value in context.invocation_metadata() or ():
        if name == CLAIMED_ADDRESS and len(value) <= _ADDRESS_CHARS_MAX:
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            # A zone is free text, and means nothing on another machine.
            with contextlib.suppress(ValueError):
                return str(ipaddress.ip_address(text.partition("%")[0]))
    return ""


def _names_of(context: Any) -> tuple[str, ...]:
    """DNS and URI names of the client's certificate; its common name says nothing."""
    reported = context.auth_context() or {}
    return tuple(
        name.decode("utf-8", "replace") for key in _NAME_PROPERTIES for name in reported.get(key, ())
    )


def address_of(peer: str) -> str:
    """`ipv4:10.0.0.1:80` and `ipv6:%5B::1%5D:80` without scheme and port."""
    scheme, _, rest = peer.partition(":")
    if scheme == "unix":
        return "127.0.0.1"
    return unquote(rest).rpartition(":")[0].strip("[]")
