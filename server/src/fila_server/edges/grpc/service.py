"""FilaService: the hot calls. Request bytes go to the core as they came, reply bytes come back.

No message is deserialized here. A handler sees bytes, submits them, and writes bytes, so
what a call costs is grpc.aio's own price and one future. Handlers end in one of three
ways: a reply, a status from status.py, or cancellation, which frees what they held.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import grpc
from grpc import aio

from fila.v1.service_pb2 import ConsumeRequest, ConsumeSessionRequest, LeaseRequest
from fila_server import commands, errors
from fila_server.access.door import Caller
from fila_server.access.rights import CONSUME
from fila_server.broker.calls import OPENING_BYTES_MAX, Broker, shutting_down
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.broker.stream import Stream
from fila_server.broker.unwritten import COUNTED_FROM_BYTES, Unwritten
from fila_server.edges.grpc.identity import Identity
from fila_server.edges.grpc.status import abort, hidden
from fila_server.events import emit
from fila_server.telemetry.tracing import with_trace_context

SERVICE = "fila.v1.FilaService"

ENQUEUE_STREAM_FRAMES_MAX = 32
"""Frames of one producer's stream that may wait for their answers; then its socket is not read."""

FULL_MAILBOX_RETRY_S = 0.002

CANCELLATION_TURNS = 3
"""Turns of the loop from a cancellation's byte in grpc's own socket to the CancelledError in a handler: the socket is
read, the coroutine that waits for the end of the call goes on, the handler is cancelled."""

# Field 15 of ConsumeRequest and of a session's first frame is ours: the peer's address, for ListConsumers. Behind what
# the client sent, so that what it may have put there does not count.
_PEER_TAG = b"\x7a"
_PEER_BYTES_MAX = 127

# What is read is bytes, or aio.EOF.
Context = aio.ServicerContext[Any, bytes]
UnaryHandler = Callable[[bytes, Context], Awaitable[bytes]]


def handlers(broker: Broker, headers_max: int, identity: Identity) -> grpc.GenericRpcHandler:
    """Every method of the service, registered on raw bytes."""
    service = _Service(broker, identity)
    unary = {
        "EnqueueBatch": commands.ENQUEUE_BATCH,
        "Ack": commands.ACK,
        "Nack": commands.NACK,
        "AckBatch": commands.ACK_BATCH,
        "NackBatch": commands.NACK_BATCH,
        "ExtendLease": commands.EXTEND_LEASE,
    }
    methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(unary_handler(broker, kind, identity))
        for name, kind in unary.items()
    }
    methods["Enqueue"] = grpc.unary_unary_rpc_method_handler(enqueue_handler(broker, headers_max, identity))
    methods["Lease"] = grpc.unary_unary_rpc_method_handler(service.lease)
    methods["EnqueueStream"] = grpc.stream_stream_rpc_method_handler(service.enqueue_stream)
    methods["Consume"] = grpc.unary_stream_rpc_method_handler(service.consume)
    methods["ConsumeSession"] = grpc.stream_stream_rpc_method_handler(service.consume_session)
    return grpc.method_handlers_generic_handler(SERVICE, methods)


def unary_handler(broker: Broker, kind: int, identity: Identity) -> UnaryHandler:
    """Return the handler of a unary call that is one command."""
    call, unwritten, enter = broker.call, broker.unwritten, identity.enter

    async def handle(request: bytes, context: Context) -> bytes:
        try:
            caller = enter(context)
            unwritten.check_write()
            reply = await call(kind, request, caller.number)
            if len(reply) >= COUNTED_FROM_BYTES:
                unwritten.add(len(reply))
                until_written(context, unwritten, len(reply))
            return reply
        except Exception as error:
            request = b""  # see abort()
            await abort(context, error)

    return handle


def enqueue_handler(broker: Broker, headers_max: int, identity: Identity) -> UnaryHandler:
    """As `unary_handler`; the trace context of the call goes with the message."""
    call, enter = broker.call, identity.enter

    async def handle(request: bytes, context: Context) -> bytes:
        try:
            caller = enter(context)
            metadata = context.invocation_metadata()
            if metadata is not None:
                request = with_trace_context(request, metadata, headers_max)
            return await call(commands.ENQUEUE, request, caller.number)
        except Exception as error:
            request = b""  # see abort()
            await abort(context, error)

    return handle


def until_written(context: Context, unwritten: Unwritten, size: int, peer: str = "") -> None:
    """Give the budget back what an answer took of it, when its call is over: written, or its client gone."""
    written: Any = lambda _: unwritten.give(size, peer)  # noqa: E731 - grpc's own type of it is too narrow
    context.add_done_callback(written)


class _Service:
    """The calls that are more than one command."""

    def __init__(self, broker: Broker, identity: Identity) -> None:
        self._broker = broker
        self._enter = identity.enter
        self._door = identity.door

    async def lease(self, request: bytes, context: Context) -> bytes:
        try:
            caller = self._enter(context)
            if caller.number is None:
                reply = await self._broker.lease(request)
            else:
                reply = await self._held_lease(request, caller)
            if reply:
                await self._unless_gone(reply)
            if len(reply) >= COUNTED_FROM_BYTES:
                until_written(context, self._broker.unwritten, len(reply))
            return reply
        except Exception as error:
            await abort(context, error)

    async def _unless_gone(self, reply: bytes) -> None:
        """Let a cancellation that is on its way arrive, and give back what its caller will never see.

        Once a handler has returned, grpc.aio tells nobody that the client was gone by then: its messages would be
        leased to nobody until the visibility timeout.
        """
        try:
            for _ in range(CANCELLATION_TURNS):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._broker.unwritten.give(len(reply))
            self._broker.give_back(reply)
            raise

    async def _held_lease(self, request: bytes, caller: Caller) -> bytes:
        """A pull that ends when its caller may no longer wait for messages."""
        give_back = self._door.take_stream(caller)
        asked = LeaseRequest.FromString(request) if len(request) <= OPENING_BYTES_MAX else LeaseRequest()
        pull = asyncio.ensure_future(self._broker.lease(request, caller.number))
        why: list[errors.FilaServerError] = []

        def end(error: errors.FilaServerError) -> None:
            why.append(error)
            pull.cancel()

        release = self._door.hold(caller, CONSUME, asked.queue, asked.channel or DEFAULT_CHANNEL, end)
        try:
            return await pull
        except asyncio.CancelledError:
            pull.cancel()
            if why:
                raise why[0] from None
            raise
        finally:
            release()
            give_back()

    async def consume(self, request: bytes, context: Context) -> None:
        try:
            with self._stream_of(context) as caller:
                asked = partial(ConsumeRequest.FromString, request)
                async with self._consumer(commands.CONSUME_OPEN, request, asked, context, caller) as stream:
                    async for frame in stream:
                        await context.write(frame)
        except aio.InternalError:
            # grpc.aio's way of saying that the client went away during a write.
            pass
        except Exception as error:
            await abort(context, error)

    async def consume_session(self, _requests: object, context: Context) -> None:
        try:
            with self._stream_of(context) as caller:
                first = await context.read()
                if first is aio.EOF:
                    raise errors.Invalid("open", "must be the first frame of a session")
                asked = partial(_opening, first)
                async with self._consumer(commands.SESSION_OPEN, first, asked, context, caller) as stream:
                    reading = asyncio.ensure_future(_read_session(context, stream))
                    try:
                        await context.write(stream.opened)
                        async for frame in stream:
                            await context.write(frame)
                    finally:
                        reading.cancel()
        except aio.InternalError:
            pass
        except Exception as error:
            await abort(context, error)

    @contextmanager
    def _stream_of(self, context: Context) -> Iterator[Caller]:
        """Let somebody in with a stream, which counts among its name's until this is left."""
        caller = self._enter(context)
        leave = self._door.take_stream(caller)
        try:
            yield caller
        finally:
            leave()

    @asynccontextmanager
    async def _consumer(
        self, kind: int, request: bytes, asked: Callable[[], Any], context: Context, caller: Caller
    ) -> AsyncIterator[Stream]:
        """A consumer that `request` opens, until this is left or its right to the queue is withdrawn.

        `asked` parses the request; it is called once the core has found it sound.
        """
        stream = await self._broker.open_stream(kind, _from_peer(request, context), caller.number)
        try:
            opening = asked()
            about = _told_of(opening, context, caller)
            place = (opening.queue, opening.channel or DEFAULT_CHANNEL)
            release = self._door.hold(caller, CONSUME, *place, stream.revoke)
            emit("consumer.joined", **about)
            try:
                yield stream
            finally:
                release()
                emit("consumer.left", **about)
        finally:
            await stream.close()

    async def enqueue_stream(self, _requests: object, context: Context) -> None:
        try:
            with self._stream_of(context) as caller:
                await self._answer_enqueues(context, caller)
        except aio.InternalError:
            pass
        except Exception as error:
            await abort(context, error)

    async def _answer_enqueues(self, context: Context, caller: Caller) -> None:
        """Write the answers to a producer's frames, in their order, until it has no more to say."""
        admitted: asyncio.Queue[asyncio.Future[bytes] | Exception | None] = asyncio.Queue(
            ENQUEUE_STREAM_FRAMES_MAX
        )
        ended: list[errors.FilaServerError] = []
        reading = asyncio.ensure_future(_read_enqueues(context, self._broker, admitted, caller, ended))

        def end(error: errors.FilaServerError) -> None:
            ended.append(error)
            reading.cancel()

        release = self._door.hold(caller, 0, "", "", end)
        stay = self._broker.at_drain(reading.cancel)
        try:
            while (answer := await admitted.get()) is not None:
                if isinstance(answer, Exception):
                    raise answer
                await context.write(await answer)
        finally:
            stay()
            release()
            reading.cancel()
            while not admitted.empty():
                # Stored or not, nobody is left to be told.
                left = admitted.get_nowait()
                if isinstance(left, asyncio.Future):
                    left.cancel()


def _opening(first: bytes) -> Any:
    """What a session's first frame opens."""
    return ConsumeSessionRequest.FromString(first).open


def _told_of(opening: Any, context: Context, caller: Caller) -> dict[str, Any]:
    """Who consumes what, for the event that tells of it."""
    about: dict[str, Any] = {
        "queue": opening.queue,
        "channel": opening.channel or "default",
        "peer": context.peer() or "",
    }
    if name := getattr(opening, "name", ""):
        about["name"] = name
    if caller.number is not None:
        about["principal"] = caller.name
    return about


def _from_peer(request: bytes, context: Context) -> bytes:
    peer = (context.peer() or "").encode()[:_PEER_BYTES_MAX]
    return request + _PEER_TAG + bytes((len(peer),)) + peer


async def _read_session(context: Context, stream: Stream) -> None:
    """Pass a session's later frames on, in order, until the client has no more to say."""
    try:
        while (frame := await context.read()) is not aio.EOF:
            await stream.send(frame)
        stream.half_close()
    except (aio.InternalError, aio.AbortError):
        # The client went away, or its session has just been ended by us.
        pass
    except Exception as error:
        stream.end(hidden(error))


async def _read_enqueues(
    context: Context,
    broker: Broker,
    admitted: asyncio.Queue[asyncio.Future[bytes] | Exception | None],
    caller: Caller,
    ended: list[errors.FilaServerError],
) -> None:
    """Admit a producer's frames in order; `admitted` being full is what slows it down."""
    last: Exception | None = None
    try:
        while (frame := await context.read()) is not aio.EOF:
            await admitted.put(await _admit(broker, frame, caller))
    except (aio.InternalError, aio.AbortError):
        return
    except asyncio.CancelledError:
        if not (ended or broker.is_draining):
            raise
        last = ended[0] if ended else shutting_down()
    except Exception as error:
        last = error
    await admitted.put(last)


async def _admit(broker: Broker, frame: bytes, caller: Caller) -> asyncio.Future[bytes]:
    while True:
        try:
            return await broker.admit(commands.ENQUEUE_STREAM, frame, caller.number)
        except (errors.HooksFull, errors.QuotaExceeded) as full:
            await asyncio.sleep(full.retry_after_ms / 1000)
        except errors.Overloaded:
            # A stream can be slowed down, so it is, rather than refused.
            await asyncio.sleep(FULL_MAILBOX_RETRY_S)
