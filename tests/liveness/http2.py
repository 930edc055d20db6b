"""As much of HTTP/2 as it takes to ask much and read nothing."""

from __future__ import annotations

import socket
import struct

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 4, 6, 8
_END_STREAM, _END_HEADERS, _ACK = 0x1, 0x4, 0x1
_INITIAL_WINDOW_SIZE = 4
_FRAME_BYTES_MAX = 16_384
_WINDOW_BYTES = 65_535


class RawHttp2:
    """A connection whose streams have a receive window of no bytes: their answers stay with the server."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._sock = socket.create_connection((host, int(port)))
        self._authority = address.encode()
        self._next_stream = 1
        self._may_send = _WINDOW_BYTES
        self._unread = b""
        settings = struct.pack(">HI", _INITIAL_WINDOW_SIZE, 0)
        self._sock.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, settings) + _frame(_SETTINGS, _ACK, 0, b""))

    def call(self, path: str, request: bytes, encoding: str = "identity") -> None:
        """Begin a call with one message, below 64 KiB, and say that no other will follow. One with another encoding
        is compressed already. Waits, and reads, for as long as the server takes no more bytes."""
        headers = (
            (b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
            (b":authority", self._authority), (b"te", b"trailers"), (b"content-type", b"application/grpc"),
            (b"grpc-encoding", encoding.encode()),
        )  # fmt: skip
        block = b"".join(_literal(name, value) for name, value in headers)
        message = bytes((encoding != "identity",)) + struct.pack(">I", len(request)) + request
        while self._may_send < len(message):
            self._read_some()
        self._may_send -= len(message)
        frames = [_frame(_HEADERS, _END_HEADERS, self._next_stream, block)]
        for at in range(0, len(message), _FRAME_BYTES_MAX):
            piece = message[at : at + _FRAME_BYTES_MAX]
            is_last = at + _FRAME_BYTES_MAX >= len(message)
            frames.append(_frame(_DATA, _END_STREAM if is_last else 0, self._next_stream, piece))
        self._sock.sendall(b"".join(frames))
        self._next_stream += 2

    def read(self) -> None:
        """Throw away whatever came on the connection itself, and answer pings."""
        while True:
            self._read_some()

    def _read_some(self) -> None:
        piece = self._sock.recv(65536)
        if not piece:
            raise ConnectionError("the server has closed the connection")
        data = self._unread + piece
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3]):
            size = int.from_bytes(data[:3])
            payload = data[9 : 9 + size]
            if data[3] == _PING and not data[4] & _ACK:
                self._sock.sendall(_frame(_PING, _ACK, 0, payload))
            if data[3] == _WINDOW_UPDATE and not int.from_bytes(data[5:9]):
                self._may_send += int.from_bytes(payload)
            data = data[9 + size :]
        self._unread = data

    def close(self) -> None:
        self._sock.close()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def _literal(name: bytes, value: bytes) -> bytes:
    """A header field without indexing and without Huffman coding; both shorter than 127 bytes."""
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value
