"""Schedules over the compiled core under a simulated clock: what fires them in the server, without its waits."""

from __future__ import annotations

import asyncio
from typing import Any

from fila.v1 import messages_pb2 as messages
from fila.v1 import schedule_pb2 as pb
from fila_server import errors
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.firing import DEFINITIONS, DUES, Firing, Kept, change_frame, deletion_frame
from fila_server.operations.timetable import Timetable
from tests.core.driven_engine import DrivenEngine


class DrivenCore:
    """The engine as firing asks it; each command is answered before the next one is looked at."""

    def __init__(self, engine: DrivenEngine) -> None:
        self.engine = engine
        self.repeats = False
        """Each firing is sent twice."""

    async def routed(self, kind: int, frame: bytes) -> Any:
        return kind, frame

    async def send(self, parsed: Any) -> bytes:
        if self.repeats:
            self.engine.submit(*parsed)
        return await self.call(*parsed)

    async def call(self, kind: int, frame: bytes) -> bytes:
        token = self.engine.submit(kind, frame)
        self.engine.others += self.engine.settle_down()
        status, payload = self.engine.answer_of(token)
        if status:
            refusal = messages.ItemStatus.FromString(payload)
            raise errors.from_reply(status, refusal.message, refusal.reason)
        return payload


class DrivenSchedules:
    """Schedules of one engine; they outlive it, by its store alone."""

    def __init__(self, engine: DrivenEngine) -> None:
        self.engine = engine
        self.core = DrivenCore(engine)
        self.firing = Firing(self.core, lambda: engine.wall_ms)
        self.take_up()

    def take_up(self) -> None:
        """What the store has, as after a start."""
        self.firing = Firing(self.core, lambda: self.engine.wall_ms)
        dues = self.records(DUES)
        for key, value in self.records(DEFINITIONS).items():
            definition = pb.Schedule.FromString(value)
            kept = self._kept(definition)
            kept.take(seam_frames.ScheduleDue.FromString(dues[key]))
            self.firing.put(kept)

    def records(self, prefix: bytes) -> dict[str, bytes]:
        page = seam_frames.OperationRecordsPage(prefix=prefix)
        reply = asyncio.run(self.core.call(commands.OPERATION_RECORDS_READ, page.SerializeToString()))
        records = seam_frames.OperationRecords.FromString(reply).records
        return {record.key.removeprefix(prefix).decode(): record.value for record in records}

    def create(self, name: str, queue: str = "q", **settings: Any) -> Kept:
        definition = pb.Schedule(queue=queue, schedule=name, settings=pb.ScheduleSettings(**settings))
        definition.created_at.FromMilliseconds(self.engine.wall_ms)
        kept = self._kept(definition)
        kept.due_ms = kept.timetable.after(self.engine.wall_ms)
        frame = change_frame(kept.key, kept.due(), definition)
        asyncio.run(self.core.call(commands.SCHEDULE_CHANGE, frame))
        self.firing.put(kept)
        return kept

    def delete(self, name: str, queue: str = "q") -> None:
        asyncio.run(self.core.call(commands.SCHEDULE_CHANGE, deletion_frame((queue, name))))
        self.firing.drop((queue, name))

    def turn(self) -> int:
        """Fire what is due; when the next is due."""
        return asyncio.run(self.firing.turn())

    @staticmethod
    def _kept(definition: pb.Schedule) -> Kept:
        timetable = Timetable(definition.settings, definition.created_at.ToMilliseconds())
        return Kept(definition, timetable, definition.ByteSize())
