"""Why does nobody answer there? Asks the port itself, when a call found no broker.

A connection is opened and greeted as gRPC greets. What comes back tells a broker without TLS from one with it, and the
broker's Redis and metrics ports from other programs'.
"""

from __future__ import annotations

import socket
import ssl

_WAIT_S = 1.0
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_SETTINGS_FRAME = 4
_START = "start one with 'fila-server', or point --addr or FILA_ADDR at it"


def diagnosis(host: str, port: int, *, by_tls: bool) -> str:
    """What is there, and what to do about it."""
    try:
        answer = _greeted(host, port)
    except socket.gaierror:
        return f"there is no machine called {host}; check the name, --addr says where the broker is"
    except TimeoutError:
        return f"{host}:{port} does not answer: a firewall, a wrong address, or a machine that is down; check --addr"
    except OSError as error:
        return f"nobody listens on {host}:{port} ({(error.strerror or str(error)).lower()}); {_START}"
    if (
        len(answer) > _SETTINGS_FRAME
        and answer[3] == _SETTINGS_FRAME
        and not answer.startswith((b"HTTP", b"-"))
    ):
        if by_tls:
            return f"the broker at {host}:{port} speaks without TLS: write http:// instead of https://"
        return f"the broker at {host}:{port} accepts connections and does not answer; it may be starting or stopping"
    if answer.startswith(b"\x15\x03"):
        return _about_tls(host, port, by_tls=by_tls)
    if answer.startswith((b"-", b"+", b"$")):
        return f"{host}:{port} speaks the Redis protocol; the command line wants the gRPC port, 5555 unless changed"
    if answer.startswith(b"HTTP/1"):
        return (
            f"{host}:{port} is a web server, such as the metrics page; the gRPC port is 5555 unless changed"
        )
    # Some servers with TLS say nothing to what is no handshake.
    return _about_tls(host, port, by_tls=by_tls)


def _greeted(host: str, port: int) -> bytes:
    with socket.create_connection((host, port), timeout=_WAIT_S) as connection:
        try:
            connection.sendall(_GREETING)
            return connection.recv(64)
        except (TimeoutError, ConnectionError):
            return b""


def _about_tls(host: str, port: int, *, by_tls: bool) -> str:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((host, port), timeout=_WAIT_S) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return _spoken(host, port, by_tls=by_tls)
    except ssl.SSLCertVerificationError as error:
        if not by_tls:
            return _spoken(host, port, by_tls=False)
        return f"the certificate of {host}:{port} is not accepted: {error.verify_message}"
    except (OSError, ValueError):
        return f"what listens on {host}:{port} does not answer as a broker; check the port of --addr"


def _spoken(host: str, port: int, *, by_tls: bool) -> str:
    if by_tls:
        return f"the broker at {host}:{port} accepts connections and does not answer; it may be starting or stopping"
    return f"{host}:{port} speaks TLS: write https:// instead of http://"
