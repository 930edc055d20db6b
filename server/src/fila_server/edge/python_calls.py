"""Calls that the threads leave to Python: admin, health, reflection, unknown methods, and frames for scripts.

    CALL, MESSAGE, HALF_CLOSED ──► a task that runs the method's handler ──► send(), end()
    UNWELCOME ──► a task that says why ──► end()
    FRAME ──► a task that routes it ──► the scheduler, under the threads' own token
    REDIS_... ──► redis_port.py

A task ends with its call: a client that hangs up ends it (GONE).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

import grpc
import structlog
from google.protobuf.message import DecodeError

from fila_server import errors
from fila_server.broker.calls import Broker
from fila_server.edge.call_limits import CallLimits
from fila_server.edge.context import Aborted, CallContext, Metadatum, Orders, Reported
from fila_server.edge.redis.port import REDIS_COMMAND, REDIS_GONE, REDIS_OPENED
from fila_server.hooks.stage import ParsedFrame
from fila_server.services.status import abort, hidden, status_of

log = structlog.get_logger("fila_server.edge")

CALL: Final = 1
MESSAGE: Final = 2
HALF_CLOSED: Final = 3
SENT: Final = 4
GONE: Final = 5
FRAME: Final = 6
STOPPED: Final = 7
UNWELCOME: Final = 8

FULL_MAILBOX_RETRY_S = 0.002
_LENGTH = struct.Struct(">I")
_CERTIFICATE_NAMES = {":dns": "peer_dns", ":uri": "peer_uri"}


_Event = tuple[int, int, int, bytes, ParsedFrame | None]
"""What, of whom, a number, bytes, and a frame that was parsed (bridge.pxd)."""


class Edge(Orders, Protocol):
    """The threads, as this module talks to them (edge.pyi)."""

    def take(self) -> Sequence[_Event]: ...
    def refuse(self, token: int, status: int, message: bytes, details: bytes) -> None: ...
    def routed(self, token: int) -> None: ...


@dataclass
class _Details:
    """What grpc's own handlers are asked with."""

    method: str
    invocation_metadata: tuple[Metadatum, ...]


class PythonCalls:
    """Runs them. Belongs to the loop's thread."""

    def __init__(
        self,
        edge: Edge,
        broker: Broker,
        handlers: Sequence[grpc.GenericRpcHandler],
        calls_max: int,
        enter: Callable[[Any], object],
    ) -> None:
        self._edge = edge
        self._broker = broker
        self._handlers = handlers
        self._places = CallLimits(calls_max)
        self._enter = enter
        self.redis: Callable[[int, int, int, bytes], None] = _nobody
        """Takes what the threads say of Redis clients."""
        self._contexts: dict[int, CallContext] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take_events(self) -> None:
        """Do what the threads ask for. Call it when their descriptor is readable."""
        for event in _without_those_who_left(self._edge.take()):
            try:
                self._take_event(*event)
            except Exception:
                # The others of this turn are other clients', and are told only once.
                log.exception("edge.event_failed", what=event[0])

    def _take_event(self, what: int, token: int, number: int, payload: bytes, parsed: Any) -> None:
        context = self._contexts.get(token)
        if what == CALL:
            self._begin(token, payload)
        elif what == UNWELCOME:
            self._turn_away(token, payload)
        elif what == FRAME:
            assert parsed is not None
            self._run(token, self._route(token, parsed, may_wait=bool(number)))
        elif what == GONE:
            self._gone(token)
        elif what in (REDIS_OPENED, REDIS_COMMAND, REDIS_GONE):
            self.redis(what, token, number, payload)
        elif context is None:
            return
        elif what == MESSAGE:
            context.requests.put_nowait(payload)
        elif what == HALF_CLOSED:
            context.requests.put_nowait(None)
        elif what == SENT:
            context.written()

    # --- tasks ----------------------------------------------------------------------------

    def _run(self, token: int, work: Any) -> None:
        task = self._tasks[token] = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda _: self._tasks.pop(token, None))

    def _gone(self, token: int) -> None:
        self._places.give(token)
        context = self._contexts.pop(token, None)
        if context is not None:
            context.gone()
        task = self._tasks.pop(token, None)
        if task is not None:
            task.cancel()

    # --- calls ----------------------------------------------------------------------------

    def _begin(self, token: int, packed: bytes) -> None:
        reported = _unpacked(packed)
        handler = self._handler_of(_Details(reported.path, tuple(reported.metadata)))
        serialize = handler.response_serializer if handler is not None else None
        context = self._new_context(token, reported, len(packed), serialize)
        if context is None:
            return
        if handler is None:
            self._refuse(context, errors.Unimplemented(f"there is no method {reported.path}"))
        else:
            self._run(token, self._serve(context, handler))

    def _turn_away(self, token: int, packed: bytes) -> None:
        context = self._new_context(token, _unpacked(packed), len(packed), None)
        if context is not None:
            self._run(token, self._say_why(context))

    def _new_context(self, token: int, reported: Reported, size: int, serialize: Any) -> CallContext | None:
        """None where there is no place for the call: it is refused."""
        context = self._contexts[token] = CallContext(self._edge, token, reported, serialize, self._ended)
        try:
            in_the_way = self._places.take(token, reported, size)
        except errors.Overloaded as error:
            self._refuse(context, error)
            return None
        if in_the_way:
            self._end_for_others(in_the_way)
        return context

    def _ended(self, context: CallContext) -> None:
        """Its client may never read the end, so what Python has of the call goes now."""
        self._places.ended(context.token)
        if not context.is_awaited:
            self._contexts.pop(context.token, None)

    def _end_for_others(self, token: int) -> None:
        full = errors.Overloaded(
            "many calls of the health service are open, and this was the oldest; call again"
        )
        context = self._contexts.get(token)
        if context is not None:
            self._refuse(context, full)
        task = self._tasks.pop(token, None)
        if task is not None:
            task.cancel()

    async def _say_why(self, context: CallContext) -> None:
        """End a call that the threads did not let in, as slowly as its failure asks for."""
        refusal: Exception = errors.Unavailable("the key came into force this moment; send the call again")
        try:
            self._enter(context)
        except Exception as error:
            refusal = error
        with contextlib.suppress(Aborted):
            await abort(cast("Any", context), refusal)

    def _handler_of(self, details: _Details) -> Any:
        for handler in self._handlers:
            found = handler.service(details)
            if found is not None:
                return found
        return None

    def _refuse(self, context: CallContext, error: errors.FilaServerError) -> None:
        status = status_of(error)
        context.end(error.status, status.message, status.SerializeToString())

    async def _serve(self, context: CallContext, handler: Any) -> None:
        try:
            await self._answer(context, handler)
            context.end(errors.OK)
        except Aborted:
            pass
        except DecodeError:
            self._refuse(context, errors.Invalid("request", "is not a valid message of its kind"))
        except Exception as error:
            self._refuse(context, hidden(error))

    async def _answer(self, context: CallContext, handler: Any) -> None:
        request: Any
        if handler.request_streaming:
            request = _requests(context, handler.request_deserializer)
        else:
            message = await context.next_request()
            if message is None:
                raise errors.Unimplemented("this method takes one message a call, and there was none")
            if await context.next_request() is not None:
                raise errors.Unimplemented("this method takes one message a call")
            request = handler.request_deserializer(message) if handler.request_deserializer else message
        method = handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
        answer = method(request, context)
        if not handler.response_streaming:
            await context.send_only(await answer)
        elif hasattr(answer, "__aiter__"):
            await _write_all(context, answer)
        else:
            await answer

    # --- frames for scripts ---------------------------------------------------------------

    async def _route(self, token: int, parsed: ParsedFrame, *, may_wait: bool) -> None:
        while True:
            try:
                await self._broker.route(token, parsed)
                self._edge.routed(token)
                return
            except errors.Overloaded as full:
                # A stream can be slowed down, so it is, rather than refused.
                if not may_wait:
                    self._refuse_frame(token, full)
                    return
                full_hooks = isinstance(full, errors.HooksFull)
                await asyncio.sleep(full.retry_after_ms / 1000 if full_hooks else FULL_MAILBOX_RETRY_S)
            except Exception as error:
                self._refuse_frame(token, hidden(error))
                return

    def _refuse_frame(self, token: int, error: errors.FilaServerError) -> None:
        status = status_of(error)
        self._edge.refuse(token, error.status, status.message.encode(), status.SerializeToString())


def _without_those_who_left(events: Sequence[_Event]) -> Iterator[_Event]:
    """Nothing is begun for clients that asked and left since the last turn, however many do."""
    came = {token for what, token, *_ in events if what in (CALL, UNWELCOME, REDIS_OPENED)}
    left = {token for what, token, *_ in events if what in (GONE, REDIS_GONE) and token in came}
    return (event for event in events if event[1] not in left)


def _nobody(_what: int, _token: int, _number: int, _payload: bytes) -> None:
    """There is no Redis port."""


async def _write_all(context: CallContext, answer: Any) -> None:
    async with contextlib.aclosing(answer):
        async for message in answer:
            try:
                await context.write(message)
            except asyncio.CancelledError as cancelled:
                # An admin who takes back the right ends the call from inside, also while its client does not read.
                await answer.athrow(cancelled)
                raise


async def _requests(context: CallContext, deserialize: Any) -> AsyncIterator[Any]:
    while (message := await context.next_request()) is not None:
        yield deserialize(message) if deserialize else message


def _unpacked(packed: bytes) -> Reported:
    """What the threads tell of a call, from u32 length, name, u32 length, value, ..."""
    reported = Reported()
    at = 0
    while at < len(packed):
        pair = []
        for _ in range(2):
            (length,) = _LENGTH.unpack_from(packed, at)
            at += _LENGTH.size
            pair.append(packed[at : at + length])
            at += length
        name, value = pair[0].decode("latin-1"), pair[1]
        if name == ":path":
            reported.path = value.decode("latin-1")
        elif name == ":caller":
            reported.caller = int(value)
        elif name == ":peer":
            reported.peer = value.decode("latin-1")
        elif name in _CERTIFICATE_NAMES:
            reported.names.setdefault(_CERTIFICATE_NAMES[name], []).append(value)
        elif name.endswith("-bin"):
            reported.metadata += [(name, piece) for piece in _binary(value)]
        else:
            reported.metadata.append((name, value.decode("latin-1")))
    return reported


def _binary(value: bytes) -> list[bytes]:
    """Binary metadata: base64 with or without padding, several joined by commas; what is none is left out."""
    found = []
    for piece in value.split(b","):
        try:
            found.append(base64.b64decode(piece + b"=" * (-len(piece) % 4), validate=True))
        except binascii.Error:
            log.debug("call.metadata_not_base64")
    return found
