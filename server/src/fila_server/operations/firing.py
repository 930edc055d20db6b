"""Fires schedules: looks at the clock, plans, and hands each message to the core with the moment that follows.

    heap of next moments ──due──► Timetable.plan ──FIRE──► the core: message and next moment in one batch
                                        │
                                        └──nothing to make up──SCHEDULE_CHANGE──► the core

The core takes a firing only while its moment is the schedule's (core/index/schedules.pxd), so whatever happens to this
process, a moment fires once. What waits here is bounded: AT_ONCE firings are under way, and the rest stay in the heap.
All of it belongs to the loop's thread. Clocks are arguments.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from fila.v1 import schedule_pb2 as pb
from fila.v1 import service_pb2
from fila_server import errors
from fila_server.core.protocol import commands, seam_frames
from fila_server.events import emit
from fila_server.operations.timetable import Plan, Timetable
from fila_server.telemetry.series import ScheduleReading

log = structlog.get_logger("fila_server.operations.firing")

AT_ONCE = 32
LOOK_EVERY_S = 1.0
"""How soon a clock that was set is noticed, while there are schedules."""
SCRIPT_S = 1.0
"""How long a firing waits for an on_enqueue script that fails; then others have its place, and it is tried again."""
RETRY_MS_MIN, RETRY_MS_MAX = 1_000, 60_000
NAME_HEADER, MOMENT_HEADER = "fila-schedule", "fila-schedule-moment"
DEFINITIONS, DUES = b"schedule/", b"due/"
"""How the keys of the two records begin; queue, slash and name follow."""

Key = tuple[str, str]
"""A queue and a schedule's name."""


class Core(Protocol):
    """The broker, as far as firing needs it."""

    async def routed(self, kind: int, frame: bytes) -> Any: ...
    def send(self, parsed: Any) -> Awaitable[bytes]: ...
    def call(self, kind: int, frame: bytes) -> Awaitable[bytes]: ...


@dataclass(slots=True)
class Kept:
    """One schedule: its definition, and how it stands."""

    definition: pb.Schedule
    timetable: Timetable
    size: int
    """Of its record, in bytes."""
    due_ms: int = 0
    last_ms: int = 0
    fired: int = 0
    missed: int = 0
    is_made: bool = True
    """False until its record is written for the first time."""
    error: str = ""
    failures: int = 0
    """In a row."""
    heap_ms: int = 0
    """Where it stands in the heap; 0 = nowhere, or under way."""
    changes: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a command that moves it is on its way to the core and back."""

    @property
    def key(self) -> Key:
        return self.definition.queue, self.definition.schedule

    def due(self) -> seam_frames.ScheduleDue:
        """The record of how it stands."""
        return seam_frames.ScheduleDue(
            due_ms=self.due_ms, last_ms=self.last_ms, fired=self.fired, missed=self.missed
        )

    def take(self, due: seam_frames.ScheduleDue) -> None:
        """Stand as the record says."""
        self.due_ms, self.last_ms, self.fired, self.missed = due.due_ms, due.last_ms, due.fired, due.missed


def record_key(prefix: bytes, key: Key) -> bytes:
    """Where a schedule's record is kept."""
    return prefix + f"{key[0]}/{key[1]}".encode()


class Firing:
    """All schedules, and when each is due."""

    def __init__(self, core: Core, now_ms: Callable[[], int]) -> None:
        self._core = core
        self._now_ms = now_ms
        self.kept: dict[Key, Kept] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._order = itertools.count()
        self._stirred = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        """Of each queue, since the start: fired, missed, failed."""

    # --- what is due --------------------------------------------------------------------------

    def put(self, kept: Kept) -> None:
        """It is new, or its moment has changed."""
        self.kept[kept.key] = kept
        kept.failures, kept.error = 0, ""
        self._line_up(kept, kept.due_ms)

    def drop(self, key: Key) -> None:
        """It is gone. What the heap says of it is passed by."""
        self.kept.pop(key, None)

    def forget(self, queue: str) -> None:
        """Its queue is gone, and in the core its schedules went with it."""
        for key in [key for key in self.kept if key[0] == queue]:
            self.drop(key)
        self._counts.pop(queue, None)

    async def run(self) -> None:
        """Fire what is due, until cancelled."""
        try:
            while True:
                self._stirred.clear()
                next_ms = self.begin_due()
                wait_s = None
                if next_ms and len(self._under_way) < AT_ONCE:
                    wait_s = min(LOOK_EVERY_S, max(0.0, (next_ms - self._now_ms()) / 1000))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._stirred.wait()
        finally:
            for task in self._under_way:
                task.cancel()

    async def turn(self) -> int:
        """Fire all that is due now and wait for it; when the next is due, 0 = none is."""
        while ((next_ms := self.begin_due()) and next_ms <= self._now_ms()) or self._under_way:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        return next_ms

    def begin_due(self) -> int:
        """Begin as many as there is room for; when the next is due, 0 = none is."""
        while self._heap:
            at_ms, _, key = self._heap[0]
            kept = self.kept.get(key)
            if kept is None or kept.heap_ms != at_ms:  # gone, or it stands elsewhere by now
                heapq.heappop(self._heap)
                continue
            if at_ms > self._now_ms() or len(self._under_way) >= AT_ONCE:
                return at_ms
            heapq.heappop(self._heap)
            kept.heap_ms = 0
            task = asyncio.create_task(self._fire(kept))
            self._under_way.add(task)
            task.add_done_callback(self._over)
        return 0

    def _over(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._stirred.set()

    def _line_up(self, kept: Kept, at_ms: int) -> None:
        kept.heap_ms = at_ms
        if at_ms:
            heapq.heappush(self._heap, (at_ms, next(self._order), kept.key))
            self._stirred.set()

    # --- one schedule -------------------------------------------------------------------------

    async def _fire(self, kept: Kept) -> None:
        changes, now_ms = kept.changes, self._now_ms()
        settings = kept.definition.settings
        plan = kept.timetable.plan(kept.due_ms, now_ms, settings.missed)
        if settings.paused:  # it was due when it was paused
            plan = replace(plan, next_ms=0)
        try:
            await self._carry_out(kept, plan, changes)
        except errors.Unavailable:
            return  # the broker stops: what was not written is due at the next start
        except Exception as error:  # noqa: BLE001 - also what only we can be wrong in: it is tried again
            if kept.changes == changes:
                await self._failed(kept, error, now_ms)
            return
        if kept.changes == changes and self.kept.get(kept.key) is kept:
            kept.failures, kept.error = 0, ""
            self._line_up(kept, kept.due_ms)

    async def _carry_out(self, kept: Kept, plan: Plan, changes: int) -> None:
        if not plan.moments:
            await self._pass_by(kept, plan, changes)
            return
        missed = plan.missed
        for moment_ms, next_ms in zip(plan.moments, (*plan.moments[1:], plan.next_ms), strict=True):
            due = seam_frames.ScheduleDue(
                due_ms=next_ms, last_ms=moment_ms, fired=kept.fired + 1, missed=kept.missed + missed
            )
            frame = firing_of(kept.definition, kept.due_ms, moment_ms, due)
            async with asyncio.timeout(SCRIPT_S):
                parsed = await self._core.routed(commands.FIRE, frame)
            async with kept.lock:
                if kept.changes != changes:
                    return
                await self._core.send(parsed)
                kept.take(due)
            self._count(kept, 1, missed)
            missed = 0

    async def _pass_by(self, kept: Kept, plan: Plan, changes: int) -> None:
        """All that is over is skipped."""
        due = kept.due()
        due.due_ms, due.missed = plan.next_ms, kept.missed + plan.missed
        async with kept.lock:
            if kept.changes != changes:
                return
            await self._core.call(commands.SCHEDULE_CHANGE, change_frame(kept.key, due))
            kept.take(due)
        self._count(kept, 0, plan.missed)

    def _count(self, kept: Kept, fired: int, missed: int) -> None:
        counts = self._counts[kept.key[0]]
        counts[0] += fired
        counts[1] += missed
        if missed:
            queue, name = kept.key
            emit("schedule.missed", queue=queue, count=missed, schedule=name, next_ms=kept.due_ms)

    async def _failed(self, kept: Kept, error: Exception, now_ms: int) -> None:
        queue, name = kept.key
        if isinstance(error, errors.QueueNotFound):
            self.drop(kept.key)
            return
        if isinstance(error, errors.FilaServerError):
            if error.reason == "SCHEDULE_MOVED":
                await self._read_again(kept)
                return
            why = error.message
        elif isinstance(error, TimeoutError):
            why = _SCRIPT_WAITS
        else:
            log.error("schedule.broken", queue=queue, schedule=name, exc_info=error)
            why = "the server failed on it; its log says how"
        kept.failures += 1
        kept.error = why
        self._counts[queue][2] += 1
        if kept.failures == 1:
            emit("schedule.failed", queue=queue, level="warning", schedule=name, error=why)
        self._line_up(kept, now_ms + min(RETRY_MS_MAX, RETRY_MS_MIN << min(kept.failures - 1, 6)))

    async def _read_again(self, kept: Kept) -> None:
        """The core knows another moment, or none."""
        key = record_key(DUES, kept.key)
        page = seam_frames.OperationRecordsPage(prefix=key, below=key + b"\0", most=1)
        try:
            reply = await self._core.call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
        except errors.FilaServerError:
            self._line_up(kept, self._now_ms() + RETRY_MS_MAX)
            return
        found = [
            record.value
            for record in seam_frames.OperationRecords.FromString(reply).records
            if record.key == key
        ]
        if not found:
            self.drop(kept.key)
            return
        kept.take(seam_frames.ScheduleDue.FromString(found[0]))
        self._line_up(kept, kept.due_ms)

    # --- what is told -------------------------------------------------------------------------

    def readings(self) -> list[ScheduleReading]:
        """Counts since the start, for metrics."""
        return [ScheduleReading(queue, *counts) for queue, counts in self._counts.items()]


_SCRIPT_WAITS = "its queue's on_enqueue script fails, and messages are held until it works; repair the script"


def message_of(definition: pb.Schedule, moment_ms: int) -> service_pb2.EnqueueMessage:
    """The message that stands for a moment of a schedule."""
    settings = definition.settings
    message = service_pb2.EnqueueMessage(payload=settings.payload, headers=settings.headers)
    message.headers[NAME_HEADER] = definition.schedule
    message.headers[MOMENT_HEADER] = _utc(moment_ms)
    if settings.ttl_ms:
        message.options.ttl_ms = settings.ttl_ms
    return message


def firing_of(definition: pb.Schedule, due_ms: int, moment_ms: int, due: seam_frames.ScheduleDue) -> bytes:
    """The command that fires a moment of a schedule that is due at `due_ms`; `due` is how it stands then."""
    message = message_of(definition, moment_ms)
    batch = service_pb2.EnqueueBatchRequest(queue=definition.queue, messages=[message])
    return bytes(
        seam_frames.Firing(
            schedule=definition.schedule.encode(),
            batch=batch.SerializeToString(),
            due_ms=due_ms,
            next_ms=due.due_ms,
            record=due.SerializeToString(),
        ).SerializeToString()
    )


def change_frame(key: Key, due: seam_frames.ScheduleDue, definition: pb.Schedule | None = None) -> bytes:
    """The command that changes how a schedule stands, and its definition where that is given."""
    change = seam_frames.ScheduleChange(queue=key[0].encode(), schedule=key[1].encode(), due_ms=due.due_ms)
    records = seam_frames.OperationRecordsChange()
    records.records.add(key=record_key(DUES, key), value=due.SerializeToString())
    if definition is not None:
        records.records.add(key=record_key(DEFINITIONS, key), value=definition.SerializeToString())
    return bytes(change.SerializeToString() + records.SerializeToString())


def deletion_frame(key: Key) -> bytes:
    """The command that deletes a schedule."""
    change = seam_frames.ScheduleChange(queue=key[0].encode(), schedule=key[1].encode(), gone=True)
    records = seam_frames.OperationRecordsChange()
    for prefix in (DUES, DEFINITIONS):
        records.records.add(key=record_key(prefix, key))
    return bytes(change.SerializeToString() + records.SerializeToString())


def _utc(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds" if at_ms % 1000 else "seconds").replace("+00:00", "Z")
