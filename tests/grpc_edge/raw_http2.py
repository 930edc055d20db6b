"""HTTP/2 frames by hand: a client that can do what no library would."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable
from typing import NamedTuple, Self

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9,
)  # fmt: skip
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 3, 4, 5, 6
NO_ERROR, PROTOCOL_ERROR, CANCEL, ENHANCE_YOUR_CALM = 0, 1, 8, 11

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WAIT_S = 10.0
IDLE_LOOKS = 1500
"""A millisecond each: so many that find nothing in a row, and nothing more comes."""
NOT_NOW = (BlockingIOError, TimeoutError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Frame(NamedTuple):
    """One frame of the server."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def number(self) -> int:
        """The code of an RST_STREAM or GOAWAY."""
        return int.from_bytes(self.payload[:4] if self.kind == RST_STREAM else self.payload[4:8])


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One of ours, as bytes."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def literal(name: bytes, value: bytes) -> bytes:
    """A header field without indexing and without Huffman coding; both shorter than 127 bytes."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


def headers(path: str, *more: tuple[bytes, bytes], without: bytes = b"") -> bytes:
    """The header block of a gRPC call."""
    fields = (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"raw"),
        (b"te", b"trailers"), (b"content-type", b"application/grpc"), *more,
    )  # fmt: skip
    return b"".join(literal(name, value) for name, value in fields if name != without)


def message(payload: bytes, compressed: int = 0) -> bytes:
    """With gRPC's length prefix."""
    return bytes((compressed,)) + struct.pack(">I", len(payload)) + payload


class RawClient:
    """One connection. `settings` go with its preface; `tls` encrypts it."""

    def __init__(
        self, address: str, settings: dict[int, int] | None = None, *, tls: ssl.SSLContext | None = None
    ) -> None:
        host, _, port = address.rpartition(":")
        self._sock: socket.socket = socket.create_connection((host, int(port)))
        if tls is not None:
            self._sock = tls.wrap_socket(self._sock, server_hostname=host)
        self._unread = b""
        self._input_ended = False
        self.is_closed = False
        """The server has closed the connection."""
        packed = b"".join(struct.pack(">HI", key, value) for key, value in (settings or {}).items())
        self.send(PREFACE + frame(SETTINGS, 0, 0, packed))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def send(self, data: bytes) -> None:
        """Send all of it; what the server thinks of it shows when it is read."""
        try:
            self._sock.sendall(data)
        except OSError:
            self.is_closed = True

    def begin(self, stream: int, path: str, *more: tuple[bytes, bytes], without: bytes = b"") -> None:
        """Send the headers of a call."""
        self.send(frame(HEADERS, END_HEADERS, stream, headers(path, *more, without=without)))

    def pour(self, data: bytes, looks: int = IDLE_LOOKS) -> list[Frame]:
        """Send and read at a time, until the server closes the connection, or `looks` in a row find that nothing can
        be sent and nothing came. They are counted and not timed: who stands still with the whole machine makes none."""
        frames: list[Frame] = []
        sent, idle = 0, 0
        self._sock.setblocking(False)
        while not self.is_closed and idle < looks:
            idle += 1
            try:
                if sent < len(data):
                    sent += self._sock.send(data[sent : sent + 65536])
                    idle = 0
            except NOT_NOW:
                pass
            except OSError:
                sent = len(data)
            if found := self._take():
                frames += found
                idle = 0
            if idle:
                time.sleep(0.001)
        return frames

    def until(self, wanted: Callable[[Frame], bool], wait_s: float = WAIT_S) -> Frame:
        """Read up to the frame that is wanted; answers settings and pings on the way."""
        ends = time.monotonic() + wait_s
        self._sock.setblocking(True)
        seen: list[Frame] = []
        while (left_s := ends - time.monotonic()) > 0 and not self.is_closed:
            self._sock.settimeout(left_s)
            while (found := self._next()) is not None:
                seen.append(found)
                self._be_polite(found)
                if wanted(found):
                    return found
            self._receive()
        raise AssertionError(f"it never came; there were {[(f.kind, f.flags, f.stream) for f in seen]}")

    def end_input(self) -> None:
        """Close our side; the server's stays open."""
        self._sock.shutdown(socket.SHUT_WR)
        self._input_ended = True

    def until_closed(self, wait_s: float = WAIT_S) -> None:
        """Read until the server closes the connection."""
        ends = time.monotonic() + wait_s
        self._sock.settimeout(wait_s)
        while not self.is_closed:
            assert time.monotonic() < ends, "it stays open"
            self._take()

    def _be_polite(self, found: Frame) -> None:
        if self._input_ended:
            return
        if found.kind == PING and not found.flags & ACK:
            self.send(frame(PING, ACK, 0, found.payload))
        elif found.kind == SETTINGS and not found.flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))

    def _take(self) -> list[Frame]:
        self._receive()
        frames = []
        while (found := self._next()) is not None:
            frames.append(found)
        return frames

    def _receive(self) -> None:
        try:
            piece = self._sock.recv(1 << 20)
        except NOT_NOW:
            return
        except OSError:
            piece = b""
        self.is_closed = not piece
        self._unread += piece

    def _next(self) -> Frame | None:
        size = int.from_bytes(self._unread[:3]) if len(self._unread) >= 9 else 0
        if len(self._unread) < 9 + size or len(self._unread) < 9:
            return None
        head, payload = self._unread[:9], self._unread[9 : 9 + size]
        self._unread = self._unread[9 + size :]
        return Frame(head[3], head[4], int.from_bytes(head[5:9]) & 0x7FFFFFFF, payload)
