"""One connection: HTTP/1.1 by h11, whatever else is installed, with a bound on how long a head may take.

h11 judges framing strictly and drops what stands behind a chunked body: over httptools, which uvicorn prefers where it
finds it, such a trailer becomes a header of the head, an `Origin` or a `Host` that no browser and no proxy saw there.

A head has one reading, so that a proxy before the console and the console find the same end of a body: h11 itself takes
one with two framings by the second of them, and joins lines that are folded.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from h11._receivebuffer import (
    ReceiveBuffer,
)  # the only place where a line is seen before it is joined to another
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S_MAX = 10.0
HEAD_BYTES_MAX = 64 << 10
_LATE = "The request's headers did not come within 10 s.\n"


class OneReading(ReceiveBuffer):
    """What came, of which a head that a proxy may have read in another way ends the connection."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head, or of what stands behind a chunked body. Raises RemoteProtocolError."""
        lines = super().maybe_extract_lines()
        if lines:
            said = lines[1:]
            if any(line.startswith((b" ", b"\t")) for line in said):
                raise h11.RemoteProtocolError("a line is folded")
            names = {bytes(line.partition(b":")[0]).lower() for line in said}
            is_chunked = b"transfer-encoding" in names
            if is_chunked and (b"content-length" in names or lines[0].rstrip().endswith(b"HTTP/1.0")):
                raise h11.RemoteProtocolError("a body has two framings")
        return lines


class BoundedProtocol(H11Protocol):
    """uvicorn makes one a connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn._receive_buffer = OneReading()
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """As uvicorn's; the time of the first head begins."""
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, which would wait for the rest of a head for ever."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._disarm()
        elif self._head_timer is None and not self.transport.is_closing():
            self._arm()

    def _arm(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_S_MAX, self._head_is_late)

    def _disarm(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.transport.is_closing():
            return
        head = (
            "HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
        )
        self.transport.write(f"{head}content-length: {len(_LATE)}\r\n\r\n{_LATE}".encode("ascii"))
        self.transport.close()
