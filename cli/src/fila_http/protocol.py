"""One connection: uvicorn's protocol over httptools, with bounds on what comes before a request is whole.

connections     one beyond the bound is told so and closed
head            in time, and within its bytes: uvicorn itself would wait and gather for ever
pipelining      a few requests ahead, no more
leaving         a caller that does not take its last answer is cut off, not waited for
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fila_http.options import Bounds
from fila_http.problems import Problem, busy, invalid

PIPELINED_MAX = 16


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn makes one a connection."""

    def __init__(self, *args: Any, bounds: Bounds, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bounds = bounds
        self._in_head = True
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """As uvicorn's, within the number of connections."""
        super().connection_made(transport)
        most = self._bounds.connections_max
        if len(self.connections) > most:
            self._refuse(
                busy(f"the door has {most:,} connections open, and takes no more; try again in a second")
            )
            return
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, with the head's bytes counted."""
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self._bounds.head_bytes_max:
            self._refuse(
                invalid(
                    f"the request's line and headers may have {self._bounds.head_bytes_max:,} bytes",
                    status=431,
                    reason="LIMIT_EXCEEDED",
                )
            )

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._arm()
        # What is closed waits until the caller took what is written; this does not.
        self.scope["state"]["abort"] = self.transport.abort

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._disarm()
        self._in_head = False
        if len(self.pipeline) >= PIPELINED_MAX:
            self.transport.abort()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        if self.cycle is not None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole."""
        self._in_head = True
        self._head_bytes = 0
        if self.cycle is not None:
            super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """No further request came."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP."""
        self._refuse(invalid(msg, reason="INVALID_HTTP"))

    # The head's time.

    def _arm(self) -> None:
        self._disarm()
        self._head_timer = self.loop.call_later(self._bounds.head_s_max, self._head_is_late)

    def _disarm(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        said = f"the request's headers did not arrive within {self._bounds.head_s_max:g} s"
        self._refuse(invalid(said, status=408, reason="HEAD_TOO_SLOW"))

    def _refuse(self, problem: Problem) -> None:
        if self.transport.is_closing():
            return
        body = problem.body()
        lines = [
            f"HTTP/1.1 {problem.status} {problem.members()['title']}",
            "content-type: application/problem+json",
            f"content-length: {len(body)}",
            "connection: close",
            *(f"{name}: {value}" for name, value in problem.headers.items()),
        ]
        self.transport.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        self._disarm()
        self.transport.close()
