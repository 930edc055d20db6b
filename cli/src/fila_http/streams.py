"""Answers that are streams, as server-sent events.

    event: message        one message, event or response, as JSON
    event: problem        the stream ended by an error, as the problem it is
    event: end            the stream is over by itself
    : alive               nothing happened for a while; a proxy between must not take the stream for dead
    id: 7                 where to go on, as Last-Event-ID

A caller that does not read is not sent to, and the broker is not asked for more.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from google.protobuf.message import Message
from grpc.aio import EOF, AioRpcError, UnaryStreamCall

from fila.connection import unavailable_unless_said
from fila.errors import from_rpc_error
from fila_http.body import Gone
from fila_http.calls import Call, until_gone
from fila_http.events import events_of
from fila_http.problems import Problem, busy, from_error
from fila_http.route import Events
from fila_http.sending import PIECE_BYTES, send_piece, send_start
from fila_http.translators import LOOP_ANSWER_BYTES

ERRORS_FIRST_S = 0.25
"""How long the status waits for the first response: most refusals come within, and have a status of their own then."""

ALIVE_EVERY_S = 15.0
HEADERS = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
END = b"event: end\ndata: {}\n\n"


async def answer_stream(call: Call) -> None:
    """Follow the broker's stream until it ends, the caller leaves, or the gateway closes."""
    service = call.service
    if service.streams >= service.bounds.streams_max:
        raise busy(
            f"the gateway follows {service.streams} streams, and no more: end one first, or pull with POST .../lease"
        )
    service.streams += 1
    try:
        upstream = await service.upstream.open_stream(call.key, call.route, call.message())
        try:
            await _Follower(call, upstream).run()
        finally:
            upstream.cancel()
    finally:
        service.streams -= 1


class _Follower:
    """One stream on its way from the broker to the caller."""

    def __init__(self, call: Call, upstream: UnaryStreamCall[Any, Any]) -> None:
        self._call = call
        self._upstream = upstream
        self._events = cast("Events", call.route.events)
        self._leaving = asyncio.ensure_future(until_gone(call.receive))
        self._closing = asyncio.ensure_future(call.service.stopping.wait())
        self._reading: asyncio.Future[Any] = asyncio.ensure_future(upstream.read())

    async def run(self) -> None:
        try:
            await self._wait(ERRORS_FIRST_S)
            if self._reading.done():
                _result(self._reading)  # what is refused at once is refused with a status
            await send_start(self._call.send, 200, HEADERS)
            await self._follow()
        finally:
            for each in (self._leaving, self._closing, self._reading):
                each.cancel()

    async def _follow(self) -> None:
        try:
            while True:
                if not self._reading.done():
                    await self._put(b": alive\n\n")
                    await self._wait(ALIVE_EVERY_S)
                    continue
                response = _result(self._reading)
                if response is None:
                    break
                self._reading = asyncio.ensure_future(self._upstream.read())
                await self._tell(response)
                await self._wait(0 if self._reading.done() else ALIVE_EVERY_S)
            await self._put(END, more=False)
        except Problem as problem:
            await self._put(b"event: problem\ndata: " + problem.body() + b"\n\n", more=False)

    async def _wait(self, seconds: float) -> None:
        """Until the broker said something, or for so long. Raises Gone; a problem when the gateway closes."""
        await asyncio.wait(
            {self._reading, self._leaving, self._closing},
            timeout=seconds,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if self._leaving.done():
            raise Gone
        if self._closing.done():
            raise busy("the gateway is closing; connect again")

    async def _tell(self, response: Message) -> None:
        call = self._call
        if response.ByteSize() > LOOP_ANSWER_BYTES:
            said = response.SerializeToString()
            await self._put_held(await call.service.translators.tell(call.hold.holder, call.route, said))
            return
        for piece in events_of(self._events, response):
            await self._put_held(piece)

    async def _put(self, text: bytes, *, more: bool = True) -> None:
        if not text.startswith(b":") and len(text) > PIECE_BYTES:
            for start in range(0, len(text), PIECE_BYTES):
                await self._put_piece(text[start : start + PIECE_BYTES], more=True)
            return
        await self._put_piece(text, more=more)

    async def _put_piece(self, piece: bytes, *, more: bool) -> None:
        await send_piece(self._call.scope, self._call.send, self._call.service.bounds, piece, more=more)

    async def _put_held(self, text: bytes) -> None:
        budget, holder = self._call.service.budget, self._call.hold.holder
        await budget.take_in_turn(holder, len(text))
        try:
            await self._put(text)
        finally:
            budget.give_back(holder, len(text))


def _result(reading: asyncio.Future[Any]) -> Message | None:
    """The response that was read; None at the end. Raises Problem."""
    try:
        response = reading.result()
    except AioRpcError as failure:
        raise from_error(unavailable_unless_said(from_rpc_error(failure, {}))) from None
    except asyncio.CancelledError:
        raise busy("the broker ended the stream; connect again") from None
    return None if response is EOF else response
