"""Acks and nacks on their way to the broker: what is called in one turn of the loop leaves as one frame.

    ack, nack ──► open frames ──► pump ──► transport ──► answer ──► the awaiting callers
                  one a verdict    at most FRAMES_IN_FLIGHT_MAX unanswered; the rest gather

The transport is the consumer's own session while that stands, and AckBatch/NackBatch otherwise: so
a message can be settled whatever became of the stream it came by. A frame whose answer was lost is
sent again, which is safe: it names leases, and a lease is settled once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Generator
from datetime import datetime
from typing import Any, Protocol

from fila.arguments import make, require_number, require_text
from fila.connection import Connection
from fila.errors import (
    ClientClosed,
    FilaError,
    InternalError,
    LeaseLost,
    MessageNotFound,
    NotSupported,
    from_status,
)
from fila.leases import Answer, HeldLeases, LostLeases
from fila.methods import ACK_BATCH, EXTEND_LEASE, NACK_BATCH
from fila.moments import to_datetime
from fila.nack import Nack
from fila.v1 import messages_pb2, service_pb2

FRAME_LEASES_MAX = 10_000
"""The broker's bound on one frame."""

FRAMES_IN_FLIGHT_MAX = 4
"""Unanswered frames; what is settled meanwhile gathers in the next ones."""

LARGE_FRAMES_IN_FLIGHT_MAX = 2
"""As many, once FEW_LEASES or more are unanswered. The broker fills the room that a frame makes with one delivery, and
that is settled by one frame again: so the pieces of a window that circulate never grow by themselves. With more frames
in flight they are as many more and smaller, and each costs both sides a frame."""

FEW_LEASES = 64

FLUSH_TIMEOUT_S = 5.0
"""How long closing waits for settlements that are still unanswered."""

_log = logging.getLogger("fila")

Verdict = Nack | None
"""None acks."""


class SettleFrame(Answer):
    """Leases that are settled alike and together."""

    __slots__ = (
        "failure", "failure_by_index", "lease_ids", "message_ids", "repeated", "sequence",
        "verdict", "waiters",
    )  # fmt: skip

    def __init__(self, sequence: int, verdict: Verdict) -> None:
        super().__init__()
        self.sequence = sequence
        self.verdict = verdict
        self.message_ids: list[str] = []
        self.lease_ids: list[int] = []
        self.repeated = False
        """It was sent before and the answer was lost."""
        self.failure: FilaError | None = None
        """Why none of it could be settled."""
        self.failure_by_index: dict[int, FilaError] = {}
        self.waiters: list[asyncio.Future[None]] = []

    def answer(self, now_s: float, failure: FilaError | None = None) -> None:
        """Wake everybody who awaits this frame."""
        self.answered_s = now_s
        self.failure = failure
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        if not self.waiters and (failure is not None or self.failure_by_index):
            first = failure or next(iter(self.failure_by_index.values()))
            _log.info("settlement refused, and nobody awaited it: %s", first)

    def failure_of(self, status: messages_pb2.ItemStatus, index: int) -> FilaError | None:
        """Return the error an item's status means, or None where it means nothing to worry about."""
        known = {"message_id": self.message_ids[index], "lease_id": self.lease_ids[index]}
        error = from_status(status.code, status.message, status.reason, known)
        if self.repeated and self.verdict is None and isinstance(error, LeaseLost | MessageNotFound):
            # The ack whose answer was lost did its work. Or its lease had ended: then the message comes again, as it
            # may at any time. To call it refused would make the program undo work of which nobody else knows.
            return None
        return error


class Settlement(Awaitable[None]):
    """What `ack` and `nack` return: await it to know how that went."""

    __slots__ = ("_frame", "_index")

    def __init__(self, frame: SettleFrame, index: int) -> None:
        self._frame = frame
        self._index = index

    def __await__(self) -> Generator[Any, None, None]:
        frame = self._frame
        if frame.answered_s is None:
            # A future of its own: cancelling one caller must not cancel the others.
            waiter = asyncio.get_running_loop().create_future()
            frame.waiters.append(waiter)
            yield from waiter
        failure = frame.failure or frame.failure_by_index.get(self._index)
        if failure is not None:
            raise failure


class SettleTransport(Protocol):
    """A way to the broker."""

    async def send(self, frame: SettleFrame) -> None:
        """Send a frame. Its answer reaches `Settler.answered` or `Settler.refused`, now or later."""


class Settler:
    """Settles the deliveries of one consumer, or those pulled from one queue and channel."""

    def __init__(
        self, connection: Connection, queue: str, channel: str, leases: HeldLeases, lost: LostLeases
    ) -> None:
        self.queue = queue
        self.channel = channel
        self.leases = leases
        self.lost = lost
        self.knows_release = True
        """Whether the broker, as far as is known, does more with a nack than count it."""
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._by_calls = _BatchCalls(connection, self)
        self._transport: SettleTransport = self._by_calls
        self._open: dict[Verdict, SettleFrame] = {}
        self._repeat: deque[SettleFrame] = deque()
        self._in_flight: dict[int, SettleFrame] = {}
        self._sequence = 0
        self._pump: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._closed: FilaError | None = None
        self.now_s = connection.options.clock.now_s

    # What messages and clients call.

    def ack(self, message_id: str, lease_id: int) -> Settlement:
        """The message is done. As `_settle`, written out for what happens most."""
        frame = self._open.get(None)
        if frame is None or len(frame.lease_ids) >= FRAME_LEASES_MAX:
            frame = self._open_frame(None)
        self.leases.forget(message_id, lease_id, frame)
        frame.message_ids.append(message_id)
        frame.lease_ids.append(lease_id)
        return Settlement(frame, len(frame.lease_ids) - 1)

    def nack(self, message_id: str, lease_id: int, nack: Nack) -> Settlement:
        """The message failed, or is released."""
        # Here, where one caller learns of it: later it would stop the frames of all.
        require_text("error", nack.error)
        if nack.delay_ms is not None:
            require_number("delay_ms", nack.delay_ms)
        if (nack.release or nack.dead_letter) and not self.knows_release:
            raise NotSupported(
                "this broker is older than release and dead_letter: it would count a failed attempt; upgrade it"
            )
        return self._settle(message_id, lease_id, nack)

    async def extend(self, message_id: str, lease_id: int, extend_ms: int) -> datetime:
        """Move the lease's end."""
        request = make(
            service_pb2.ExtendLeaseRequest,
            queue=self.queue,
            channel=self.channel,
            message_id=message_id,
            lease_id=lease_id,
            extend_ms=extend_ms,
        )
        known = {
            "queue": self.queue,
            "message_id": message_id,
            "lease_id": lease_id,
            "channel": self.channel or "default",
        }
        response = await self._connection.call(EXTEND_LEASE, request, known)
        return to_datetime(response.lease_expires_at)

    def _settle(self, message_id: str, lease_id: int, verdict: Verdict) -> Settlement:
        frame = self._open.get(verdict)
        if frame is None or len(frame.lease_ids) >= FRAME_LEASES_MAX:
            frame = self._open_frame(verdict)
        self.leases.forget(message_id, lease_id, frame)
        index = len(frame.lease_ids)
        frame.message_ids.append(message_id)
        frame.lease_ids.append(lease_id)
        return Settlement(frame, index)

    def _open_frame(self, verdict: Verdict) -> SettleFrame:
        if self._closed is not None:
            raise self._closed
        full = self._open.pop(verdict, None)
        if full is not None:
            self._repeat.append(full)
        self._sequence += 1
        frame = self._open[verdict] = SettleFrame(self._sequence, verdict)
        if self._pump is None:
            self._pump = self._loop.create_task(self._pump_frames())
        return frame

    # On the way.

    async def _pump_frames(self) -> None:
        # A task's first step comes a turn after it was made: whatever else that turn settles joins in.
        try:
            while self._repeat or self._open:
                if self._is_full():
                    self._room.clear()
                    await self._room.wait()
                    continue
                frame = self._repeat.popleft() if self._repeat else self._open.pop(next(iter(self._open)))
                self._in_flight[frame.sequence] = frame
                await self._transport.send(frame)
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not leave callers waiting for ever
            self._fail_all(InternalError(f"settling stopped on a mistake of the SDK: {error!r}"))
        finally:
            self._pump = None

    def _is_full(self) -> bool:
        """Whether what is settled now has to gather."""
        frames = len(self._in_flight)
        if frames < LARGE_FRAMES_IN_FLIGHT_MAX:
            return False
        leases = sum(len(frame.lease_ids) for frame in self._in_flight.values())
        return leases >= FEW_LEASES or frames >= FRAMES_IN_FLIGHT_MAX

    def _fail_all(self, failure: FilaError) -> None:
        frames = [*self._open.values(), *self._repeat, *self._in_flight.values()]
        self._open.clear()
        self._repeat.clear()
        self._in_flight.clear()
        for frame in frames:
            frame.answer(self.now_s(), failure)

    def answered(self, sequence: int, failures: list[tuple[int, messages_pb2.ItemStatus]]) -> None:
        """A frame is durable, but for `failures`: (index in the frame, status)."""
        frame = self._in_flight.pop(sequence, None)
        if frame is None:
            return
        for index, status in failures:
            error = frame.failure_of(status, index)
            if error is not None:
                frame.failure_by_index[index] = error
        frame.answer(self.now_s())
        self._room.set()

    def settled(self, answer: service_pb2.ConsumeSessionResponse.Settled) -> None:
        """A session's word for `answered`: it names leases, not positions."""
        frame = self._in_flight.get(answer.sequence)
        if frame is None:
            return
        index_by_lease: dict[int, int] = {}
        if answer.failures:
            index_by_lease = {lease_id: index for index, lease_id in enumerate(frame.lease_ids)}
        failures = [
            (index_by_lease[failed.lease_id], failed.status)
            for failed in answer.failures
            if failed.lease_id in index_by_lease
        ]
        self.answered(answer.sequence, failures)

    def refused(self, sequence: int, failure: FilaError) -> None:
        """A frame could not be settled at all."""
        frame = self._in_flight.pop(sequence, None)
        if frame is not None:
            frame.answer(self.now_s(), failure)
            self._room.set()

    # Where to.

    @property
    def has_unanswered(self) -> bool:
        """Whether anything was settled that the broker has not answered."""
        return bool(self._open or self._repeat or self._in_flight)

    def unanswered_leases(self) -> list[int]:
        """Return the leases that are being settled: the broker may hold them still."""
        frames = [*self._open.values(), *self._repeat, *self._in_flight.values()]
        return [lease_id for frame in frames for lease_id in frame.lease_ids]

    def use_session(self, transport: SettleTransport) -> None:
        """From now on frames go over a session."""
        self._transport = transport

    def use_calls(self) -> None:
        """The session is over: what it left unanswered is sent again, by calls, and so is all that follows."""
        if self._transport is self._by_calls:
            return
        self._transport = self._by_calls
        for frame in self._in_flight.values():
            frame.repeated = True
            self._repeat.append(frame)
        self._in_flight.clear()
        self._room.set()
        if self._repeat and self._pump is None:
            self._pump = self._loop.create_task(self._pump_frames())

    async def close(self) -> None:
        """Wait a while for what is unanswered, then fail the rest and refuse what comes."""
        deadline_s = self.now_s() + FLUSH_TIMEOUT_S
        for frame in [*self._open.values(), *self._repeat, *self._in_flight.values()]:
            waiter = self._loop.create_future()
            if frame.answered_s is None:
                frame.waiters.append(waiter)
                await asyncio.wait([waiter], timeout=max(0.0, deadline_s - self.now_s()))
        self._closed = ClientClosed("the client was closed; the message comes back when its lease ends")
        if self._pump is not None:
            self._pump.cancel()
        self._fail_all(self._closed)
        self._by_calls.cancel()


class _BatchCalls:
    """Settles by AckBatch and NackBatch, for leases whose session is gone or never was."""

    def __init__(self, connection: Connection, settler: Settler) -> None:
        self._connection = connection
        self._settler = settler
        self._calls: set[asyncio.Task[None]] = set()

    async def send(self, frame: SettleFrame) -> None:
        # The pump goes on to the next frame while this one is under way.
        call = asyncio.get_running_loop().create_task(self._settle(frame))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)

    def cancel(self) -> None:
        for call in self._calls:
            call.cancel()

    async def _settle(self, frame: SettleFrame) -> None:
        settler = self._settler
        wishes = (frame.verdict or Nack())._asdict()
        limited = wishes.pop("limited")
        feedback = [limited.wire] if limited else []
        items = [
            service_pb2.SettleItem(message_id=message_id, lease_id=lease_id, feedback=feedback, **wishes)
            for message_id, lease_id in zip(frame.message_ids, frame.lease_ids, strict=True)
        ]
        known = {"queue": settler.queue, "channel": settler.channel or "default"}
        # Lease 0 settles whatever delivery is current: a second time it may be somebody else's.
        repeatable = 0 not in frame.lease_ids
        try:
            if frame.verdict is None:
                acks = service_pb2.AckBatchRequest(queue=settler.queue, channel=settler.channel, items=items)
                answer = await self._connection.call(ACK_BATCH, acks, known, repeatable=repeatable)
            else:
                nacks = service_pb2.NackBatchRequest(
                    queue=settler.queue, channel=settler.channel, items=items
                )
                answer = await self._connection.call(NACK_BATCH, nacks, known, repeatable=repeatable)
        except FilaError as failure:
            settler.refused(frame.sequence, failure)
            return
        if len(answer.results) != len(items):
            wrong = f"{len(items)} messages were settled, but {len(answer.results)} results came back"
            settler.refused(frame.sequence, InternalError(wrong))
            return
        settler.answered(frame.sequence, [(i, s) for i, s in enumerate(answer.results) if s.code])
