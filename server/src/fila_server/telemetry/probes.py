"""What /healthz, /readyz and /ownerz say on the metrics port, from before the store opens until after it was closed.

    standing by  LoadingPage too, where a group has another owner
    opening      LoadingPage, on a thread: nothing else of the server answers yet, for minutes where a store is large
                 or a damaged one is copied, and a supervisor that hears nothing would end it in the midst of that
    from then    MetricsPage (prometheus.py) takes the sockets over; none of those who knock meanwhile is refused

It imports next to nothing, for every start waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable

from fila_server.config.kinds import Address, AddressOrOff

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Of metrics."""
HEAD_BYTES_MAX = 16 * 1024
LOADING = "loading: the store is being opened"
STANDBY = "standby: another node of the group serves"
STARTING = "starting"
DRAINING = "draining: what is in hand is finished, nothing new is taken"
HEAD_S_MAX = 1.0
"""From a probe's first byte to its answer. One after the other is answered here: who says nothing, or sends its bytes
one by one, must not keep the next probe waiting, nor the start."""
_BACKLOG = 100


def response(
    status: str,
    body: bytes,
    *,
    content_type: str = "text/plain; charset=utf-8",
    length: int = -1,
    extra: str = "",
) -> bytes:
    """An HTTP answer that ends its connection."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {length if length >= 0 else len(body)}\r\n{extra}Connection: close\r\n\r\n"
    )
    return head.encode() + body


def unavailable(why: str) -> bytes:
    return response("503 Service Unavailable", f"{why}\n".encode())


def asked_for(head: bytes) -> tuple[bytes, bytes]:
    """Method and path of a request."""
    method, _, rest = head.partition(b" ")
    return method, rest.partition(b" ")[0].partition(b"?")[0]


def bound(address: AddressOrOff) -> list[socket.socket]:
    """Sockets that listen there, one for each address that the host's name has. Raises OSError."""
    place = Address(address)
    found = socket.getaddrinfo(
        place.host or None, place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    for family, (host, port, *rest) in dict.fromkeys((each[0], each[4]) for each in found):
        taken = port or (sockets[0].getsockname()[1] if sockets else 0)
        try:
            sockets.append(socket.create_server((host, taken, *rest), family=family, backlog=_BACKLOG))
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                missing = error  # "localhost" on a machine without IPv6
                continue
            for each in sockets:
                each.close()
            raise
    if missing is not None and not sockets:
        raise missing
    return sockets


def read_head(
    connection: socket.socket, seconds: float, now_s: Callable[[], float] = time.monotonic
) -> bytes:
    """A request's head, and what came with it; b"" where the other side ended before. What is left of the seconds is
    the connection's timeout from then on. Raises TimeoutError after so many seconds, however the bytes came."""
    ends_s = now_s() + seconds
    head = b""
    while True:
        if (left_s := ends_s - now_s()) <= 0.0:
            raise TimeoutError
        connection.settimeout(left_s)  # holds for one call, which any byte ends
        if b"\r\n\r\n" in head or len(head) >= HEAD_BYTES_MAX:
            return head
        if not (more := connection.recv(HEAD_BYTES_MAX)):
            return b""
        head += more


class LoadingPage:
    """Answers probes while nothing else does: alive, and not ready."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self._sockets = sockets
        self._wake, self._waker = socket.socketpair()
        self._is_over = threading.Event()
        self.stands_by: Callable[[], str] | None = None
        """Of a standby: what it lacks to take over at once; empty: nothing."""
        self.metrics: Callable[[], bytes] | None = None
        """Of a node of a group: its own page of metrics."""
        self._thread = threading.Thread(target=self._run, name="fila-loading", daemon=True)
        self._thread.start()

    @classmethod
    def at(cls, address: AddressOrOff) -> LoadingPage | None:
        """None where the page is off, and where the port is taken, which is told once the store is open: a data
        directory in use explains it better."""
        if address:
            with contextlib.suppress(OSError):
                return cls(bound(address))
        return None

    @property
    def port(self) -> int:
        """The port that is held."""
        return int(self._sockets[0].getsockname()[1])

    def hand_over(self) -> list[socket.socket]:
        """Stop to answer, and return the sockets, which listen on. Waits for the one probe that is being answered, for
        HEAD_S_MAX at most."""
        self._is_over.set()
        self._waker.close()
        self._thread.join()
        self._wake.close()
        return self._sockets

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in (*self._sockets, self._wake):
                each.setblocking(False)
                selector.register(each, selectors.EVENT_READ)
            while True:
                selector.select()
                for listener in self._sockets:
                    if self._is_over.is_set():  # between any two, so that the start waits for one of them
                        return
                    with contextlib.suppress(
                        OSError
                    ):  # nobody knocks here, or they went away, or say nothing
                        self._answer(listener.accept()[0])

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            if head := read_head(connection, HEAD_S_MAX):
                connection.sendall(self._said(asked_for(head)[1]))

    def _said(self, path: bytes) -> bytes:
        if path == b"/healthz":
            return response("200 OK", b"alive\n")
        if path == b"/metrics" and self.metrics is not None:
            return response("200 OK", self.metrics(), content_type=CONTENT_TYPE)
        if self.stands_by is None:
            return unavailable(LOADING)
        if path != b"/readyz":
            return unavailable(STANDBY)
        lacks = self.stands_by()
        return unavailable(f"standby: {lacks}") if lacks else response("200 OK", b"standby: in sync\n")
