"""One consumer's stream, kept alive: deliveries come down it, settlements go up, and it is reopened when it breaks.

    connecting ──► open ──► leaving ──► over
        ▲           │          as soon as nothing you were given is unsettled:
        └─ backoff ◄┘          close, which gives back what was prefetched and never handed out

Messages that were prefetched when a stream broke stay good: their leases run on, and a lease is
settled by its number, whichever stream it came by.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from grpc.aio import EOF, AioRpcError, StreamStreamCall, UsageError

from fila.connection import Connection, raise_if_cancelled, unavailable_unless_said
from fila.errors import ClientClosed, FilaError, Overloaded, Unavailable, from_rpc_error
from fila.messages import LeasedMessage
from fila.methods import CONSUME_SESSION
from fila.settle import SettleFrame, Settler
from fila.v1 import messages_pb2
from fila.v1.service_pb2 import ConsumeSessionRequest, ConsumeSessionResponse, Settle

CLOSE_TIMEOUT_S = 2.0
"""How long a closing session waits for the broker to end the stream."""

MessageT = TypeVar("MessageT", bound=LeasedMessage)
SessionStream = StreamStreamCall[ConsumeSessionRequest, ConsumeSessionResponse]
MakeMessage = Callable[[messages_pb2.Message, Settler, float], MessageT]

_log = logging.getLogger("fila")


class Session(Generic[MessageT]):
    """Keeps `ready` filled until `leave`; `failure` says why it ended before."""

    def __init__(
        self, connection: Connection, settler: Settler, prefetch: int, make_message: MakeMessage[MessageT]
    ) -> None:
        self.ready: deque[MessageT] = deque()
        self.arrived = asyncio.Event()
        self.failure: FilaError | None = None
        self._connection = connection
        self._settler = settler
        self._prefetch = prefetch
        self._make_message = make_message
        self.leaving = False
        self._close_sent = False
        self._opened = False
        self._stream: SessionStream | None = None
        self._writing = asyncio.Lock()  # gRPC takes one write of a stream at a time
        self._held_until_s = 0.0
        self._leave_timer: asyncio.TimerHandle | None = None
        self.task = asyncio.get_running_loop().create_task(self._run())

    # Life.

    async def _run(self) -> None:
        options = self._connection.options
        attempt = 0
        outage_began_at_s = options.clock.now_s()
        try:
            while not self.leaving:
                give_up_at_s = (
                    None if options.reconnect_for_s is None else outage_began_at_s + options.reconnect_for_s
                )
                try:
                    await self._connection.ready(give_up_at_s)
                    await self._follow_stream()
                    return
                except (Unavailable, Overloaded) as error:
                    if self._opened:
                        self._opened = False
                        attempt = 0
                        outage_began_at_s = options.clock.now_s()
                    wait_s = options.backoff.wait_s(attempt)
                    if give_up_at_s is not None and options.clock.now_s() + wait_s > give_up_at_s:
                        raise
                    _log.warning(
                        "consumer of %s lost its stream, reopening it: %s", self._settler.queue, error
                    )
                    attempt += 1
                    await options.clock.sleep(wait_s)
        except FilaError as error:
            self.failure = error
        finally:
            self._stream = None
            if self._leave_timer is not None:
                self._leave_timer.cancel()
            self._settler.use_calls()
            self.arrived.set()

    async def _follow_stream(self) -> None:
        """Open a stream and take in what comes; return when it ends because we left."""
        known = {"queue": self._settler.queue, "channel": self._settler.channel}
        stream: SessionStream = self._connection.open_stream(CONSUME_SESSION)
        self._stream = stream
        try:
            await stream.write(
                ConsumeSessionRequest(
                    open=ConsumeSessionRequest.Open(
                        queue=self._settler.queue,
                        channel=self._settler.channel,
                        max_in_flight=self._prefetch,
                    )
                )
            )
            while (response := await stream.read()) is not EOF:
                self._take_in(cast("ConsumeSessionResponse", response))
            if not self._close_sent:
                raise Unavailable("the broker ended the consumer's stream")
        except AioRpcError as failure:
            if not self._close_sent:
                raise unavailable_unless_said(from_rpc_error(failure, known)) from failure
        except (UsageError, asyncio.InvalidStateError) as failure:
            # What grpc.aio says of a stream that ended under a write.
            raise Unavailable(f"the consumer's stream broke: {failure!r}") from failure
        except asyncio.CancelledError:
            raise_if_cancelled()
            raise Unavailable("the consumer's stream was cancelled") from None
        finally:
            self._stream = None
            stream.cancel()
            self._settler.use_calls()

    def _take_in(self, response: ConsumeSessionResponse) -> None:
        kind = response.WhichOneof("response")
        if kind == "delivery":
            self._deliver(response.delivery.messages)
        elif kind == "settled":
            self._settler.settled(response.settled)
            if self.leaving:
                self._close_when_settled()
        elif kind == "opened":
            self._opened = True
            self._settler.use_session(self)

    def _deliver(self, messages: RepeatedCompositeFieldContainer[messages_pb2.Message]) -> None:
        if self.leaving or not messages:
            return  # given back with the close
        first = messages[0].timestamps
        # The broker's clock tells how long the lease is; ours, from when it runs.
        lease_s = (first.lease_expires_at.ToNanoseconds() - first.leased_at.ToNanoseconds()) / 1e9
        held_until_s = self._settler.now_s() + lease_s if lease_s > 0 else float("inf")
        make, settler = self._make_message, self._settler
        self.ready.extend([make(message, settler, held_until_s) for message in messages])
        self.arrived.set()

    # Handing out.

    def take(self) -> MessageT | None:
        """Return the next message whose lease still runs, or None. It is yours to settle now."""
        ready, now_s = self.ready, self._settler.now_s()
        while ready:
            message = ready.popleft()
            # One that waited here past its lease is, or will be, delivered to somebody else.
            if message.held_until_s > now_s:
                self._settler.leases.remember(message.id, message.lease_id)
                self._held_until_s = message.held_until_s
                return message
        self.arrived.clear()
        return None

    def give_back(self, messages: Sequence[MessageT]) -> None:
        """Undo `take` for messages that were not looked at."""
        for message in messages:
            self._settler.leases.forget(message.id, message.lease_id)
        if not self.leaving:
            self.ready.extendleft(reversed(messages))
            self.arrived.set()

    # Settling: this is a SettleTransport.

    async def send(self, frame: SettleFrame) -> None:
        """Write a frame of settlements; if the stream is broken, its end sends the frame another way."""
        if frame.verdict is None:
            ack = Settle(sequence=frame.sequence, lease_ids=frame.lease_ids)
            await self._write(ConsumeSessionRequest(ack=ack))
        else:
            error, delay_ms = frame.verdict
            nack = Settle(sequence=frame.sequence, lease_ids=frame.lease_ids, error=error, delay_ms=delay_ms)
            await self._write(ConsumeSessionRequest(nack=nack))

    async def _write(self, request: ConsumeSessionRequest) -> None:
        async with self._writing:
            stream = self._stream
            if stream is None:
                return
            try:
                await stream.write(request)
            except Exception as failure:  # noqa: BLE001 - whatever grpc.aio says here, the stream is over
                # The reader meets the same end, and knows what to do about it.
                _log.debug("write on a broken stream: %r", failure)
            except asyncio.CancelledError:
                raise_if_cancelled()

    # Leaving.

    def leave(self) -> None:
        """Take nothing more. The stream closes once all that was handed out is settled, or past its lease."""
        if self.leaving:
            return
        self.leaving = True
        self.ready.clear()
        self.arrived.set()
        if self._stream is None or not self._opened:
            self.task.cancel()
            return
        remaining_s = self._held_until_s - self._settler.now_s()
        if remaining_s < float("inf"):
            self._leave_timer = self.task.get_loop().call_later(max(0.0, remaining_s), self._close_now)
        self._close_when_settled()

    def _close_when_settled(self) -> None:
        if not self._settler.leases and not self._settler.has_unanswered:
            self._close_now()

    def _close_now(self) -> None:
        if not self._close_sent:
            self._close_sent = True
            self._closing = asyncio.get_running_loop().create_task(self._write_close())

    async def _write_close(self) -> None:
        await self._write(ConsumeSessionRequest(close=ConsumeSessionRequest.Close(release=True)))
        await asyncio.wait([self.task], timeout=CLOSE_TIMEOUT_S)
        self.task.cancel()

    async def close(self) -> None:
        """Leave at once, giving back every lease, also of messages in the caller's hands."""
        self.leave()
        if not self.task.done() and self._stream is not None:
            self._close_now()
            await self._closing
        self.task.cancel()
        await asyncio.wait([self.task])
        if self.failure is None:
            self.failure = ClientClosed("the client was closed while this consumer was in use")
