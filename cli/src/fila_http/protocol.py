"""One connection: uvicorn's protocol over httptools, with bounds on what comes before a request is whole.

connections     one beyond the bound is told so and closed
head            in time, and within its bytes: uvicorn itself would wait and gather for ever
trailers        fields behind a body are dropped: uvicorn takes those that come together with the head for headers of
                the head, past every proxy that looked at it
pipelining      a few requests ahead, no more
leaving         a caller that does not take its last answer is cut off, not waited for; and the request that is
                worked on is told that its caller has gone, where uvicorn would tell the one that came last
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
        self._running: Any = None
        """uvicorn's cycle of the request that is worked on; `cycle` is that of the one that came last."""
        self._in_head = True
        self._head_bytes = 0
        self._told_bytes = 0
        """Of a head, by the parser: it may have come in one piece with its body."""
        self._framing_bytes = 0
        """Of a body since its last piece: chunk extensions, trailers."""
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """As uvicorn's, within the number of connections."""
        super().connection_made(transport)
        most = self._bounds.connections_max
        if len(self.connections) > most:
            self._refuse(
                busy(f"the gateway has {most:,} connections open, and takes no more; try again in a second")
            )
            return
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """As uvicorn's."""
        self._disarm()
        self._tell_gone()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As uvicorn's, with the head's bytes counted."""
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
        else:
            self._framing_bytes += len(data)
        super().data_received(data)
        most = self._bounds.head_bytes_max
        if self._in_head and self._head_bytes > most:
            self._refuse(self._head_too_large())
        elif not self._in_head and self._framing_bytes > most:
            said = f"between the pieces of a chunked body, and behind the last one, may stand {most:,} bytes"
            self._refuse(invalid(said, status=431, reason="LIMIT_EXCEEDED"))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header of its head; a trailer is none."""
        if self._in_head:
            self._told_bytes += len(name) + len(value) + 4
            super().on_header(name, value)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head = True
        self._told_bytes = 0
        self._arm()
        # What is closed waits until the caller took what is written; this does not.
        self.scope["state"]["abort"] = self.transport.abort

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._disarm()
        if self._told_bytes + len(self.url) > self._bounds.head_bytes_max:
            self._refuse(self._head_too_large())
        elif len(self.pipeline) >= PIPELINED_MAX:
            self._tell_gone()
            self.transport.abort()
        self._in_head = False
        self._framing_bytes = 0
        if self.transport.is_closing():
            return
        self.scope["state"]["target"] = self.url
        super().on_headers_complete()
        if self.parser.should_upgrade():
            # HTTP/1.1 is all that is spoken here, and the parser loses what came behind this request.
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._framing_bytes = 0
        # What follows a request that was refused by its head is no body of the one before it.
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole."""
        self._in_head = True
        self._head_bytes = 0
        if not self.transport.is_closing():
            super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """No further request came."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP."""
        del msg  # uvicorn's own, which says no more
        said = (
            "what came is no request of HTTP/1.1: a line like GET /v1/status HTTP/1.1, headers, and a body as long as "
            "they say. TLS is spoken where the gateway has a certificate"
        )
        self._refuse(invalid(said, reason="INVALID_HTTP"))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _tell_gone(self) -> None:
        """The running request's answer goes nowhere any more: uvicorn would write it, and log that it can't."""
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

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

    def _head_too_large(self) -> Problem:
        said = f"the request's line and headers may have {self._bounds.head_bytes_max:,} bytes"
        return invalid(said, status=431, reason="LIMIT_EXCEEDED")

    def _refuse(self, problem: Problem) -> None:
        if self.transport.is_closing():
            return
        self._disarm()
        may_answer = self._may_answer()
        self._tell_gone()
        if not may_answer:
            self.transport.close()
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
        self.transport.close()

    def _may_answer(self) -> bool:
        """Whether an answer that is written now is taken for that of the refused request, and of none before it."""
        cycle: Any = self.cycle  # None before the connection's first request
        if cycle is None:
            return True
        if self._in_head:
            return bool(cycle.response_complete)
        return not self.pipeline and not cycle.response_started
