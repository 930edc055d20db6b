"""Schedules at random, fired by the server's own Firing, whose clock jumps; crashes come before its answers.

The core is asked as the server asks it: a message, the moment it stands for, and the one that follows. Each
message gets a number of its own for its payload, as all that is sent here has one.

    one firing a moment                   a moment of a schedule has one message, a later message a later moment
    a message and its next moment agree   after a crash both are on the disk, or neither
    no moment that is over stays due      after a turn each schedule is due in the future, or says why not
"""

from __future__ import annotations

import asyncio
from typing import Any

from fila.v1 import messages_pb2 as messages
from fila.v1 import schedule_pb2 as pb
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.firing import DEFINITIONS, DUES, Firing, Kept, Key, change_frame, deletion_frame
from fila_server.operations.timetable import Timetable
from tests.simulation.asked import Asked
from tests.simulation.model import Entry, ScheduleModel
from tests.simulation.oracles import Broken
from tests.simulation.producers import Producers
from tests.simulation.world import World

SCHEDULES_MAX = 6
MOVED = 9
TURNS_OF_THE_LOOP = 6
"""After so many, each firing waits for its answer."""
PASSES_MAX = 5_000


class Schedules:
    """Makes, pauses and deletes schedules, sets their clock, and fires what is due."""

    def __init__(self, world: World, producers: Producers) -> None:
        self.world = world
        self.random = world.random
        self.producers = producers
        self.made = 0
        self.skew_ms = 0
        """How far the clock that schedules go by is ahead of the core's."""
        self.judged_crashes = 0
        self.judged_turns = 0
        self.firing = Firing(self, self.now_ms)
        self._waiting: dict[int, asyncio.Future[tuple[int, bytes]]] = {}

    def now_ms(self) -> int:
        return self.world.engine.wall_ms + self.skew_ms

    # --- what operators do ----------------------------------------------------------------------

    def create(self) -> None:
        self.world.quiet()
        queues = [queue for queue in self.world.model.queues.values() if not queue.is_dlq]
        if not queues or len(self.firing.kept) >= SCHEDULES_MAX:
            return
        rnd, queue = self.random, self.random.choice(queues)
        self.made += 1
        settings = pb.ScheduleSettings(
            headers=self.producers.some_headers(queue),
            ttl_ms=rnd.choice([0, 0, 0, 400]),
            missed=rnd.choice([pb.MISSED_RULE_ONE, pb.MISSED_RULE_ALL, pb.MISSED_RULE_SKIP]),
        )
        if rnd.random() < 0.2:
            settings.cron = "* * * * *"
        else:
            settings.every_ms = rnd.choice([1_000, 2_000, 7_000])
        definition = pb.Schedule(queue=queue.name, schedule=f"s{self.made}", settings=settings)
        definition.created_at.FromMilliseconds(self.now_ms())
        kept = _kept(definition)
        kept.due_ms = kept.timetable.after(self.now_ms())
        self._settle(kept)

    def pause(self) -> None:
        """Or let it go on."""
        self._quiet_and_current()
        if not self.firing.kept:
            return
        kept = self.random.choice(list(self.firing.kept.values()))
        kept.definition.settings.paused = kept.due_ms != 0
        kept.due_ms = 0 if kept.due_ms else kept.timetable.after(max(self.now_ms(), kept.last_ms))
        self._settle(kept)

    def delete(self) -> None:
        self._quiet_and_current()
        if not self.firing.kept:
            return
        key = self.random.choice(list(self.firing.kept))
        self._change(deletion_frame(key), key, None)
        self.world.quiet()
        self.firing.drop(key)

    def jump(self) -> None:
        self.skew_ms += self.random.choice([-70_000, -3_000, 2_000, 30_000, 65_000])

    def _settle(self, kept: Kept) -> None:
        self._change(change_frame(kept.key, kept.due(), kept.definition), kept.key, kept.due_ms)
        self.world.quiet()
        self.firing.put(kept)

    def _change(self, frame: bytes, key: Key, due_ms: int | None) -> Asked:
        return self.world.ask(
            commands.SCHEDULE_CHANGE, frame, self._changed, self._change_answered, key=key, due_ms=due_ms
        )

    def _changed(self, asked: Asked) -> None:
        (queue_name, name), due_ms = asked.notes["key"], asked.notes["due_ms"]
        queue = self.world.model.queues.get(queue_name)
        asked.notes["expected"] = 5 if queue is None else 0
        self.world.say(f"schedule {name} of {queue_name} is due {due_ms}")
        if queue is None:
            return
        if due_ms is None:
            queue.schedules.pop(name, None)
        else:
            queue.schedules.setdefault(name, ScheduleModel(due_ms)).due_ms = due_ms

    def _change_answered(self, asked: Asked, status: int, payload: bytes) -> None:
        if status != asked.notes["expected"]:
            raise Broken(f"a change of the schedule {asked.notes['key']} was answered {status}")
        self._answer(asked.token, status, payload)

    def _quiet_and_current(self) -> None:
        self.world.quiet()
        for queue in {key[0] for key in self.firing.kept} - set(self.world.model.queues):
            self.firing.forget(queue)
        for key in [
            key for key in self.firing.kept if key[1] not in self.world.model.queues[key[0]].schedules
        ]:
            self.firing.drop(key)  # its queue went, and another came

    # --- firing -----------------------------------------------------------------------------------

    def turn(self) -> None:
        """Fire what is due, whatever else the passes have to do meanwhile."""
        self._quiet_and_current()
        asyncio.run(self._turn())
        self.judged_turns += 1
        for kept in self.firing.kept.values():
            if kept.due_ms and kept.due_ms <= self.now_ms() and not kept.error:
                raise Broken(f"{kept.key} was due at {kept.due_ms}, it is {self.now_ms()}, and nothing came")

    def begin(self) -> None:
        """Fire what is due, and die before the answers."""
        asyncio.run(self._begin())

    async def _begin(self) -> None:
        self.firing.begin_due()
        for _ in range(TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)

    async def _turn(self) -> None:
        world = self.world
        turning = asyncio.create_task(self.firing.turn())
        for _ in range(PASSES_MAX):
            for _ in range(TURNS_OF_THE_LOOP):
                await asyncio.sleep(0)
            if turning.done():
                turning.result()
                return
            world.run_pass()
            world.engine.commit()
            world.load()
        raise Broken(f"after {PASSES_MAX} passes a turn of the schedules is not over")

    async def routed(self, kind: int, frame: bytes) -> Any:
        return frame

    async def send(self, parsed: Any) -> bytes:
        """A firing; now and then the core gets it twice."""
        firing = seam_frames.Firing.FromString(parsed)
        batch = service.EnqueueBatchRequest.FromString(firing.batch)
        queue = self.world.model.queues.get(batch.queue)
        if queue is not None and self.random.random() < 0.2 and not self.producers.may_refuse(queue):
            token = self._ask(firing, batch)
            self._ask(firing, batch)
        else:
            token = self._ask(firing, batch)
        return await self._answer_to(token)

    async def call(self, kind: int, frame: bytes) -> bytes:
        if kind == commands.SCHEDULE_CHANGE:
            change = seam_frames.ScheduleChange.FromString(frame)
            key = change.queue.decode(), change.schedule.decode()
            return await self._answer_to(self._change(frame, key, change.due_ms).token)
        asked = self.world.ask(
            kind, frame, answered=lambda asked, status, payload: self._answer(asked.token, status, payload)
        )
        return await self._answer_to(asked.token)

    async def _answer_to(self, token: int) -> bytes:
        self._waiting[token] = asyncio.get_running_loop().create_future()
        try:
            status, payload = await self._waiting[token]
        finally:
            del self._waiting[token]
        if status:
            refusal = messages.ItemStatus.FromString(payload)
            raise errors.from_reply(status, refusal.message, refusal.reason)
        return payload

    def _answer(self, token: int, status: int, payload: bytes) -> None:
        waiting = self._waiting.get(token)
        if waiting is not None and not waiting.done():
            waiting.set_result((status, payload))

    def _ask(self, firing: seam_frames.Firing, batch: service.EnqueueBatchRequest) -> int:
        world, (message,) = self.world, batch.messages
        world.messages += 1
        message.payload = b"%d|" % world.messages
        headers = dict(message.headers)
        entry = Entry(world.messages, None, headers, "", 1, 1000, frozenset())
        frame = seam_frames.Firing()
        frame.CopyFrom(firing)
        frame.batch = batch.SerializeToString()
        item = service.EnqueueMessage()
        item.CopyFrom(message)
        return world.ask(
            commands.FIRE,
            frame.SerializeToString(),
            self._carried_out,
            self._fired,
            name=batch.queue,
            entries=[entry],
            items=[(item, entry)],
            newest=world.kept.newest_id,
            schedule=firing.schedule.decode(),
            due_ms=firing.due_ms,
            next_ms=firing.next_ms,
            moment_ms=seam_frames.ScheduleDue.FromString(firing.record).last_ms,
        ).token

    def _carried_out(self, asked: Asked) -> None:
        notes = asked.notes
        queue = self.world.model.queues.get(notes["name"])
        schedule = queue.schedules.get(notes["schedule"]) if queue is not None else None
        notes["fires"] = schedule
        notes["moved"] = queue is not None and (
            schedule is None or schedule.firing is not None or schedule.due_ms != notes["due_ms"]
        )
        if notes["moved"]:
            notes["entries"] = []
            return
        self.producers.enqueued(asked)
        if schedule is not None:
            schedule.firing = notes["entries"][0]
            schedule.moment_ms, schedule.next_ms = notes["moment_ms"], notes["next_ms"]

    def _fired(self, asked: Asked, status: int, payload: bytes) -> None:
        world, schedule = self.world, asked.notes["fires"]
        world.say(f"{asked.notes['schedule']} of {asked.notes['name']} fired: {status}")
        if asked.notes["moved"]:
            if status != MOVED:
                raise Broken(f"a firing that was over was answered {status}: {asked.notes}")
        else:
            self.producers.answered(asked, status, payload)
            if schedule is not None:
                (entry,) = asked.notes["entries"]
                self._ended(schedule, asked.notes["schedule"], entry, is_stored=status == 0)
        self._answer(asked.token, status, payload)

    def _ended(self, schedule: ScheduleModel, name: str, entry: Entry, *, is_stored: bool) -> None:
        schedule.firing = None
        if not is_stored:
            return
        self.world.one_firing.seen(self.world.model.fired, entry.headers, entry.id)
        if schedule.moment_ms <= schedule.last_ms:
            raise Broken(f"{name} fired for {schedule.moment_ms}, and it had for {schedule.last_ms}")
        schedule.due_ms, schedule.last_ms = schedule.next_ms, schedule.moment_ms

    # --- after a crash ------------------------------------------------------------------------------

    def take_up(self) -> None:
        """What the store has, as after a start."""
        self.firing = Firing(self, self.now_ms)
        dues, definitions = self.records(DUES), self.records(DEFINITIONS)
        for queue in self.world.model.queues.values():
            for name, schedule in queue.schedules.items():
                key = f"{queue.name}/{name}"
                if key not in dues or key not in definitions:
                    raise Broken(f"the schedule {key} is gone")
                due = seam_frames.ScheduleDue.FromString(dues[key])
                self._judge(schedule, key, due.due_ms)
                kept = _kept(pb.Schedule.FromString(definitions.pop(key)))
                kept.take(due)
                self.firing.put(kept)
        if definitions:
            raise Broken(f"schedules came back: {list(definitions)}")

    def _judge(self, schedule: ScheduleModel, key: str, due_ms: int) -> None:
        """The record of its moment against what became of the message that a crash left without an answer."""
        self.judged_crashes += 1
        entry = schedule.firing
        has_moved = entry is not None and due_ms == schedule.next_ms
        if due_ms != (schedule.next_ms if has_moved else schedule.due_ms):
            raise Broken(f"{key} is due {due_ms}, and not {schedule}")
        if entry is None:
            return
        # What has a time to live may be over and gone.
        if has_moved != bool(entry.offset) and not (has_moved and entry.expires_ms):
            raise Broken(f"{key}: its next moment was {'' if has_moved else 'not '}written: {entry}")
        schedule.firing = None
        if has_moved:
            schedule.due_ms, schedule.last_ms = schedule.next_ms, schedule.moment_ms

    def records(self, prefix: bytes) -> dict[str, bytes]:
        pages: list[bytes] = []
        page = seam_frames.OperationRecordsPage(prefix=prefix)
        self.world.ask(
            commands.OPERATION_RECORDS_READ,
            page.SerializeToString(),
            answered=lambda _asked, _status, payload: pages.append(payload),
        )
        self.world.quiet()
        records = seam_frames.OperationRecords.FromString(pages[0]).records
        return {record.key.removeprefix(prefix).decode(): record.value for record in records}


def _kept(definition: pb.Schedule) -> Kept:
    timetable = Timetable(definition.settings, definition.created_at.ToMilliseconds())
    return Kept(definition, timetable, definition.ByteSize())
