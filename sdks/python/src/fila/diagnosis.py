"""Why does nobody answer there? Asks the port itself when gRPC's attempts fail: gRPC tells a program no reason.

A connection is opened and greeted as gRPC greets, by TLS where the client speaks it. Only what waiting cannot mend is
told: a broker that is not started yet, or stops, says nothing of this kind.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

from fila.tls import CannotBeRead, context

if TYPE_CHECKING:
    from fila.options import ClientOptions

_WAIT_S = 0.4
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_SETTINGS_FRAME = 4

_VERIFICATION = {
    9: "it is not valid yet",
    10: "it has expired",
    **dict.fromkeys((18, 19, 20, 21), "no authority that this client trusts has signed it"),
}
"""What OpenSSL's numbers mean."""

_OTHER_NAME = (62, 64)


def diagnosis(target: str, options: ClientOptions, *, by_tls: bool, judges: bool) -> str:
    """Return the sentence that says what is wrong with the client's settings; empty where none is found wrong. With
    `judges` the broker's certificate is looked at, which needs the files in `options`."""
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit():
        return ""  # one of gRPC's other ways to write an address
    try:
        if by_tls:
            return _asked_by_tls(host, int(port), options, judges=judges)
        return _asked_in_plain(host, int(port), by_tls=False)
    except (OSError, ValueError, CannotBeRead):
        return ""


def _asked_by_tls(host: str, port: int, options: ClientOptions, *, judges: bool) -> str:
    place, name = _place(host, port), options.server_name or host
    try:
        with (
            socket.create_connection((host, port), timeout=_WAIT_S) as plain,
            (context(options) if judges else _trusting()).wrap_socket(
                plain, server_hostname=name
            ) as connection,
        ):
            # A broker that wants another certificate of the client says so only here, and closes: a client that
            # writes then loses what it said.
            connection.recv(64)
    except ssl.SSLCertVerificationError as error:
        why = (
            f"it is not made out to {name}"
            if error.verify_code in _OTHER_NAME
            else _VERIFICATION.get(error.verify_code, error.verify_message)
        )
        return f"the certificate of {place} is not accepted: {why}"
    except ssl.SSLError as error:
        return _of_alert(place, options, error.reason or "") or _asked_in_plain(host, port, by_tls=True)
    except ConnectionError:
        return _asked_in_plain(host, port, by_tls=True)
    return ""


def _of_alert(place: str, options: ClientOptions, reason: str) -> str:
    """What a broker's alert says of the certificate that the client showed, or did not show."""
    alert = reason.lower().replace("_", " ")
    if "certificate required" in alert or ("handshake failure" in alert and not options.cert_file):
        return f"the broker at {place} asks for a client certificate: give one, with its key"
    if "unknown ca" in alert:
        return (
            f"the broker at {place} does not accept the client certificate: "
            "no authority that the broker trusts has signed it"
        )
    if "alert" in alert and "certificate" in alert:
        why = alert.rpartition("alert ")[2]
        return f"the broker at {place} does not accept the client certificate: {why}"
    return ""


def _asked_in_plain(host: str, port: int, *, by_tls: bool) -> str:
    place = _place(host, port)
    answer = _greeted(host, port)
    if answer.startswith((b"-", b"+", b"$")):
        return f"{place} speaks the Redis protocol; the client wants the gRPC port, 5555 unless changed"
    if answer.startswith(b"HTTP/1"):
        return f"{place} is a web server, such as the metrics page; the gRPC port is 5555 unless changed"
    if len(answer) > _SETTINGS_FRAME and answer[3] == _SETTINGS_FRAME:
        wrong = f"the broker at {place} speaks without TLS: write http:// instead of https://"
        return wrong if by_tls else ""
    if not by_tls and (answer.startswith(b"\x15\x03") or (not answer and _shakes_hands(host, port))):
        return f"{place} speaks TLS: write https:// instead of http://"
    return ""


def _greeted(host: str, port: int) -> bytes:
    with socket.create_connection((host, port), timeout=_WAIT_S) as connection:
        try:
            connection.sendall(_GREETING)
            return connection.recv(64)
        except (TimeoutError, ConnectionError):
            return b""


def _shakes_hands(host: str, port: int) -> bool:
    try:
        with (
            socket.create_connection((host, port), timeout=_WAIT_S) as connection,
            _trusting().wrap_socket(connection, server_hostname=host),
        ):
            return True
    except (OSError, ValueError):
        return False


def _trusting() -> ssl.SSLContext:
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    anybody.set_alpn_protocols(["h2"])
    return anybody


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
