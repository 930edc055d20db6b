"""What operators ask of schedules: make, change, pause, delete, list. Firing has them (firing.py); the core keeps them.

A record each of definition and next moment (core/index/schedules.pxd) is written before anything is answered. They go
with their queue, in the batch that deletes it.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from fila.v1 import schedule_pb2 as pb
from fila.v1 import service_pb2
from fila_server import errors
from fila_server.access.admission import Admission, Caller
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations import rules
from fila_server.operations.audit import carry_out
from fila_server.operations.firing import (
    DEFINITIONS,
    DUES,
    Firing,
    Kept,
    Key,
    change_frame,
    deletion_frame,
    message_of,
)  # fmt: skip
from fila_server.operations.requests import COMMENT_BYTES_MAX
from fila_server.operations.timetable import Timetable

SCHEDULES_MAX = 10_000
SCHEDULES_BYTES_MAX = 64 * 1024 * 1024
"""Of their definitions, which stay in memory."""
LISTED_MAX, LISTED_DEFAULT = 1_000, 100
LISTED_BYTES_MAX = 4 * 1024 * 1024
NEXT_REPORTED = 5
TTL_MS_MAX = 2**52


def wall_ms() -> int:
    """The wall clock, which schedules go by."""
    return time.time_ns() // 1_000_000


class Schedules:
    """Answers CreateSchedule, UpdateSchedule, PauseSchedule, DeleteSchedule, GetSchedule and ListSchedules."""

    def __init__(
        self, broker: Broker, limits: Limits, admission: Admission, now_ms: Callable[[], int] = wall_ms
    ) -> None:
        self._broker = broker
        self._limits = limits
        self._admission = admission
        self._now_ms = now_ms
        self.firing = Firing(broker, now_ms)
        self._bytes = 0
        self._running: asyncio.Task[None] | None = None
        broker.at_drain(self._stop)

    async def start(self) -> None:
        """Take in what is kept, and fire from now on."""
        dues = dict(await self._read(DUES))
        for key, value in await self._read(DEFINITIONS):
            definition = pb.Schedule.FromString(value)
            if definition.queue not in self._broker.queue_configs:
                continue  # damage took it; the core has dropped the other record
            kept = self._kept(definition)
            if key in dues:
                kept.take(seam_frames.ScheduleDue.FromString(dues[key]))
            else:  # damage took the record of its moment
                kept.due_ms = self._first(kept)
                await self._broker.call(commands.SCHEDULE_CHANGE, change_frame(key, kept.due()))
            self._bytes += kept.size
            self.firing.put(kept)
        self._broker.mirror.listen(self._hear)
        self._running = asyncio.create_task(self.firing.run())

    def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def _hear(self, queue: str, config: Any) -> None:
        if config is None:
            self._bytes -= sum(kept.size for key, kept in self.firing.kept.items() if key[0] == queue)
            self.firing.forget(queue)

    async def _read(self, prefix: bytes) -> list[tuple[Key, bytes]]:
        found: list[tuple[Key, bytes]] = []
        below = b""
        while True:
            page = seam_frames.OperationRecordsPage(prefix=prefix, below=below)
            reply = await self._broker.call(commands.OPERATION_RECORDS_READ, page.SerializeToString())
            records = seam_frames.OperationRecords.FromString(reply).records
            if not records:
                return found
            below = records[-1].key
            for record in records:
                queue, _, name = record.key.removeprefix(prefix).decode().partition("/")
                found.append(((queue, name), record.value))

    # --- changes ------------------------------------------------------------------------------

    async def create(self, request: pb.CreateScheduleRequest, caller: Caller) -> bytes:
        key = self._named(request)
        rules.check_name("schedule", request.schedule, bytes_max=rules.NAME_BYTES_MAX)
        if key in self.firing.kept:
            raise errors.Exists(
                f'queue "{key[0]}" has a schedule "{key[1]}" already; change it, or choose another name',
                reason="SCHEDULE_EXISTS",
            )
        definition = pb.Schedule(queue=key[0], schedule=key[1], settings=request.settings)
        definition.created_at.FromMilliseconds(self._now_ms())
        self._sign(definition, None, caller)
        kept = self._kept(definition)
        self._check_room(1, kept.size)
        kept.is_made = False
        self.firing.kept[key] = kept  # its name is taken
        self._bytes += kept.size
        try:
            due = kept.due()
            due.due_ms = self._first(kept)
            await self._change("CreateSchedule", request, caller, change_frame(key, due, definition))
        except BaseException:
            self._bytes -= kept.size
            self.firing.drop(key)
            raise
        kept.is_made = True
        kept.take(due)
        self.firing.put(kept)
        return pb.CreateScheduleResponse(schedule=self._reported(kept, caller)).SerializeToString()

    async def update(self, request: pb.UpdateScheduleRequest, caller: Caller) -> bytes:
        kept = self._find(request)
        await self._settle(kept, lambda: request.settings, "UpdateSchedule", request, caller)
        return pb.UpdateScheduleResponse(schedule=self._reported(kept, caller)).SerializeToString()

    async def pause(self, request: pb.PauseScheduleRequest, caller: Caller) -> bytes:
        if len(request.comment.encode()) > COMMENT_BYTES_MAX:
            raise errors.LimitExceeded("comment", f"must be at most {COMMENT_BYTES_MAX} bytes; say less")
        kept = self._find(request)

        def as_asked() -> pb.ScheduleSettings:
            settings = pb.ScheduleSettings()
            settings.CopyFrom(kept.definition.settings)
            settings.paused = request.paused
            return settings

        await self._settle(kept, as_asked, "PauseSchedule", request, caller)
        return pb.PauseScheduleResponse(schedule=self._reported(kept, caller)).SerializeToString()

    async def _settle(
        self, kept: Kept, wanted: Callable[[], pb.ScheduleSettings], act: str, request: Any, caller: Caller
    ) -> None:
        """Give it the settings that are wanted of it, as the change before this one left it. A firing that is on its
        way comes first, and counts."""
        self._changed(kept, wanted(), request, caller)  # what is refused disturbs no firing
        kept.changes += 1
        try:
            async with kept.lock:
                self._check_there(kept)
                changed = self._changed(kept, wanted(), request, caller)
                due = kept.due()
                changed.take(due)
                before, settings = kept.definition.settings, changed.definition.settings
                if _moments(before) != _moments(settings) and not self._fires_first(kept, settings):
                    due.due_ms = self._first(changed)
                frame = change_frame(kept.key, due, changed.definition)
                await self._change(act, request, caller, frame)
                self._bytes += changed.size - kept.size
                kept.definition, kept.timetable = changed.definition, changed.timetable
                kept.size = changed.size
                kept.take(due)
        finally:
            if self.firing.kept.get(kept.key) is kept:
                self.firing.put(kept)

    def _changed(self, kept: Kept, settings: pb.ScheduleSettings, request: Any, caller: Caller) -> Kept:
        """It with these settings, checked; nothing of `kept` is touched."""
        definition = pb.Schedule(queue=kept.key[0], schedule=kept.key[1], settings=settings)
        definition.created_at.CopyFrom(kept.definition.created_at)
        self._sign(definition, kept.definition, caller, getattr(request, "comment", ""))
        changed = self._kept(definition)
        self._check_room(0, changed.size - kept.size)
        return changed

    def _sign(
        self, definition: pb.Schedule, before: pb.Schedule | None, caller: Caller, comment: str = ""
    ) -> None:
        """Say of one that is paused since when, by whom and why; of one that was before, only why."""
        if not definition.settings.paused:
            return
        if before is not None and before.settings.paused:
            definition.pause.CopyFrom(before.pause)
        else:
            definition.pause.since.FromMilliseconds(self._now_ms())
            definition.pause.by = caller.name if caller.number is not None else caller.peer
        definition.pause.comment = comment or definition.pause.comment

    async def delete(self, request: pb.DeleteScheduleRequest, caller: Caller) -> bytes:
        kept = self._find(request)
        kept.changes += 1
        try:
            async with kept.lock:
                self._check_there(kept)
                await self._change("DeleteSchedule", request, caller, deletion_frame(kept.key))
                self._bytes -= kept.size
                self.firing.drop(kept.key)
        finally:
            if self.firing.kept.get(kept.key) is kept:
                self.firing.put(kept)
        return pb.DeleteScheduleResponse().SerializeToString()

    async def _change(self, act: str, request: Any, caller: Caller, frame: bytes) -> None:
        await carry_out(self._broker.call, act, commands.SCHEDULE_CHANGE, request, caller, frame)

    # --- looks --------------------------------------------------------------------------------

    async def get(self, request: pb.GetScheduleRequest, caller: Caller) -> bytes:
        reported = self._reported(self._find(request), caller)
        return pb.GetScheduleResponse(schedule=reported).SerializeToString()

    async def list(self, request: pb.ListSchedulesRequest, caller: Caller) -> bytes:
        if request.queue:
            rules.check_name("queue", request.queue)
            if request.queue not in self._broker.queue_configs:
                raise errors.QueueNotFound(request.queue)
        if request.page_size > LISTED_MAX:
            raise errors.LimitExceeded("page_size", f"must be at most {LISTED_MAX}, got {request.page_size}")
        listed = pb.ListSchedulesResponse()
        keys = sorted(key for key, kept in self.firing.kept.items() if self._is_meant(request, kept, caller))
        at = bisect_right(keys, _after(request.page_token)) if request.page_token else 0
        size = 0
        for key in keys[at : at + (request.page_size or LISTED_DEFAULT)]:
            kept = self.firing.kept.get(key)
            if kept is None:
                continue
            if size > LISTED_BYTES_MAX:
                break
            size += kept.size
            listed.schedules.append(self._reported(kept, caller))
            at += 1
            await asyncio.sleep(0)  # five moments of a rare cron line take milliseconds
        if at < len(keys) and listed.schedules:
            last = listed.schedules[-1]
            listed.next_page_token = f"{last.queue}/{last.schedule}"
        return listed.SerializeToString()

    def _is_meant(self, request: pb.ListSchedulesRequest, kept: Kept, caller: Caller) -> bool:
        queue = kept.key[0]
        return (
            kept.is_made
            and request.queue in ("", queue)
            and (caller.number is None or self._admission.may_manage(caller, queue))
        )

    def _reported(self, kept: Kept, caller: Caller) -> pb.Schedule:
        reported = pb.Schedule()
        reported.CopyFrom(kept.definition)
        if (
            reported.pause.by
            and caller.number is not None
            and not self._admission.may_name(caller, reported.pause.by)
        ):
            reported.pause.by = ""
        for moment_ms in kept.timetable.coming(kept.due_ms, NEXT_REPORTED):
            reported.next_at.add().FromMilliseconds(moment_ms)
        if kept.last_ms:
            reported.last_at.FromMilliseconds(kept.last_ms)
        reported.fired, reported.missed, reported.error = kept.fired, kept.missed, kept.error
        return reported

    # --- checks -------------------------------------------------------------------------------

    def _named(self, request: Any) -> Key:
        rules.check_name("queue", request.queue)
        if request.queue not in self._broker.queue_configs:
            raise errors.QueueNotFound(request.queue)
        return request.queue, request.schedule

    def _find(self, request: Any) -> Kept:
        key = self._named(request)
        kept = self.firing.kept.get(key)
        if kept is None or not kept.is_made:
            raise _no_schedule(key)
        return kept

    def _check_there(self, kept: Kept) -> None:
        if self.firing.kept.get(kept.key) is not kept:
            raise _no_schedule(kept.key)

    def _check_room(self, count: int, size: int) -> None:
        if count and len(self.firing.kept) >= SCHEDULES_MAX:
            raise errors.LimitExceeded(
                "schedule", f"a broker has at most {SCHEDULES_MAX}; delete some that are not needed"
            )
        if size > 0 and self._bytes + size > SCHEDULES_BYTES_MAX:
            raise errors.LimitExceeded(
                "settings.payload",
                f"all schedules of a broker have at most {SCHEDULES_BYTES_MAX} bytes together; let the message "
                "name where its payload is",
            )

    def _kept(self, definition: pb.Schedule) -> Kept:
        """Checked as an enqueue is. Raises Invalid."""
        settings = definition.settings
        settings.missed = settings.missed or pb.MISSED_RULE_ONE
        if settings.missed not in pb.MissedRule.values():
            raise errors.Invalid("settings.missed", f"is no MissedRule, got {settings.missed}")
        if settings.ttl_ms > TTL_MS_MAX:
            raise errors.Invalid("settings.ttl_ms", f"must be at most {TTL_MS_MAX}, got {settings.ttl_ms}")
        created_ms = definition.created_at.ToMilliseconds()
        kept = Kept(definition, Timetable(settings, created_ms), definition.ByteSize())
        # The parse of an enqueue knows all bounds of a message.
        message = message_of(definition, created_ms)
        asked = service_pb2.EnqueueRequest(
            queue=definition.queue, payload=message.payload, headers=message.headers, options=message.options
        )
        self._broker.check_frame(commands.ENQUEUE, asked.SerializeToString())
        return kept

    def _fires_first(self, kept: Kept, settings: pb.ScheduleSettings) -> bool:
        """Whether a moment that is due comes before the new ones: nobody can say whether the change or the moment was
        there first. To pause one that fails is to give its moment up."""
        return 0 < kept.due_ms <= self._now_ms() and not (settings.paused and kept.failures)

    def _first(self, kept: Kept) -> int:
        """Its next moment from now on. One that has fired is over, even where the clock was set back since."""
        if kept.definition.settings.paused:
            return 0
        return kept.timetable.after(max(self._now_ms(), kept.last_ms))


def _moments(settings: pb.ScheduleSettings) -> tuple[object, ...]:
    return settings.cron, settings.every_ms, settings.time_zone, settings.paused


def _no_schedule(key: Key) -> errors.NotFound:
    return errors.NotFound(
        f'schedule: queue "{key[0]}" has no "{key[1][:251]}"; ListSchedules tells which there are',
        reason="SCHEDULE_NOT_FOUND",
    )


def _after(page_token: str) -> Key:
    queue, _, name = page_token.partition("/")
    return queue, name
