"""A schedule is changed while one of its moments is due: the moment fires, once, and then the new ones."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from fila.v1 import schedule_pb2 as pb
from fila.v1 import service_pb2
from fila_server import errors
from fila_server.access.admission import Caller
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.firing import DUES, MOMENT_HEADER, record_key
from fila_server.operations.schedules import Schedules

START_MS = 1_800_000_000_000 - 1_800_000_000_000 % 3_600_000
HOURLY, MINUTELY = pb.ScheduleSettings(cron="0 * * * *"), pb.ScheduleSettings(cron="* * * * *")


class TakingBroker:
    """Keeps one schedule's moment as the core does, and says which messages were fired."""

    def __init__(self) -> None:
        self.queue_configs = {"q": None}
        self.fired: list[str] = []
        self.is_full = False
        self._due = seam_frames.ScheduleDue()

    def at_drain(self, _stop: Any) -> None: ...

    def check_frame(self, _kind: int, _frame: bytes) -> None: ...

    async def routed(self, kind: int, frame: bytes) -> tuple[int, bytes]:
        await asyncio.sleep(0)  # a script decides
        return kind, frame

    async def send(self, parsed: tuple[int, bytes]) -> bytes:
        return await self.call(*parsed)

    async def call(self, kind: int, frame: bytes) -> bytes:
        await asyncio.sleep(0)
        if kind == commands.FIRE:
            self._fire(seam_frames.Firing.FromString(frame))
        elif kind == commands.SCHEDULE_CHANGE:
            (record, *_) = seam_frames.OperationRecordsChange.FromString(frame).records
            self._due = seam_frames.ScheduleDue.FromString(record.value)
        else:
            answer = seam_frames.OperationRecords()
            answer.records.add(key=record_key(DUES, ("q", "s")), value=self._due.SerializeToString())
            return bytes(answer.SerializeToString())
        return b""

    def _fire(self, firing: seam_frames.Firing) -> None:
        if self.is_full:
            raise errors.Overloaded("queue: holds max_depth messages", reason="QUEUE_FULL")
        if firing.due_ms != self._due.due_ms:
            raise errors.FilaServerError("due_ms: it fires at another moment", reason="SCHEDULE_MOVED")
        self._due = seam_frames.ScheduleDue.FromString(firing.record)
        batch = service_pb2.EnqueueBatchRequest.FromString(firing.batch)
        self.fired += [message.headers[MOMENT_HEADER] for message in batch.messages]


class Clock:
    def __init__(self) -> None:
        self.ms = START_MS + 1

    def __call__(self) -> int:
        return self.ms


def caller(peer: str) -> Caller:
    """Where no keys are asked for."""
    return Caller(None, "", key_id="", tenant="", is_admin=True, peer=peer)


ANNA, BOB = caller("10.0.0.1"), caller("10.0.0.2")


class Changed:
    """One schedule that fires at each full hour, and was due a moment ago."""

    def __init__(self) -> None:
        self.clock, self.broker = Clock(), TakingBroker()
        self.schedules = Schedules(cast("Any", self.broker), Limits(), cast("Any", None), self.clock)

    async def create(self) -> None:
        asked = pb.CreateScheduleRequest(queue="q", schedule="s", settings=HOURLY)
        await self.schedules.create(asked, ANNA)
        self.clock.ms = START_MS + 3_600_005

    async def update(self, settings: pb.ScheduleSettings) -> None:
        asked = pb.UpdateScheduleRequest(queue="q", schedule="s", settings=settings)
        await self.schedules.update(asked, ANNA)

    async def pause(self, *, paused: bool, by: Caller = ANNA, comment: str = "") -> pb.Schedule:
        asked = pb.PauseScheduleRequest(queue="q", schedule="s", paused=paused, comment=comment)
        return pb.PauseScheduleResponse.FromString(await self.schedules.pause(asked, by)).schedule

    @property
    def due_ms(self) -> int:
        return self.schedules.firing.kept["q", "s"].due_ms


def moments(*at_ms: int) -> list[str]:
    due = [each - START_MS for each in at_ms]
    return [f"2027-01-15T{8 + ms // 3_600_000:02}:{ms // 60_000 % 60:02}:00Z" for ms in due]


HOUR_MS = START_MS + 3_600_000


@pytest.mark.parametrize("is_begun", [False, True], ids=["before it fires", "while it fires"])
def test_a_moment_that_is_due_when_the_schedule_gets_other_moments_fires_once(is_begun: bool) -> None:
    async def run() -> None:
        made = Changed()
        await made.create()
        if is_begun:
            made.schedules.firing.begin_due()
            await asyncio.sleep(0)
        await made.update(MINUTELY)
        await made.schedules.firing.turn()

        assert made.broker.fired == moments(HOUR_MS)
        assert made.due_ms == HOUR_MS + 60_000
        made.clock.ms = HOUR_MS + 60_001
        await made.schedules.firing.turn()
        assert made.broker.fired == moments(HOUR_MS, HOUR_MS + 60_000)

    asyncio.run(run())


def test_a_moment_that_is_due_when_the_schedule_is_paused_fires_and_none_after_it() -> None:
    async def run() -> None:
        made = Changed()
        await made.create()
        await made.pause(paused=True)
        await made.schedules.firing.turn()

        assert made.broker.fired == moments(HOUR_MS)
        assert made.due_ms == 0
        made.clock.ms += 7_200_000
        await made.schedules.firing.turn()
        assert made.broker.fired == moments(HOUR_MS)
        await made.pause(paused=False)
        assert made.due_ms == START_MS + 4 * 3_600_000

    asyncio.run(run())


def test_to_pause_a_schedule_that_fails_gives_its_moment_up() -> None:
    async def run() -> None:
        made = Changed()
        await made.create()
        made.broker.is_full = True
        await made.schedules.firing.turn()
        await made.pause(paused=True)
        made.broker.is_full = False
        await made.schedules.firing.turn()

        assert made.broker.fired == []
        assert made.due_ms == 0

    asyncio.run(run())


def test_a_moment_that_is_yet_to_come_gives_way_to_the_new_ones() -> None:
    async def run() -> None:
        made = Changed()
        await made.create()
        made.clock.ms = START_MS + 30_000
        await made.update(MINUTELY)

        assert made.due_ms == START_MS + 60_000

    asyncio.run(run())


async def test_a_pause_says_since_when_by_whom_and_why_until_it_goes_on():
    made = Changed()
    await made.create()
    assert not (await made.pause(paused=False)).HasField("pause")
    first = (await made.pause(paused=True, comment="nobody reads it")).pause
    assert (first.since.ToMilliseconds(), first.by, first.comment) == (
        made.clock.ms,
        "10.0.0.1",
        "nobody reads it",
    )

    made.clock.ms += 5_000
    again = (await made.pause(paused=True, by=BOB)).pause
    assert again == first, "who pauses what is paused changes nothing"
    other = (await made.pause(paused=True, by=BOB, comment="in August")).pause
    assert (other.since, other.by, other.comment) == (first.since, first.by, "in August")
    kept = made.schedules.firing.kept["q", "s"].definition
    assert kept.pause == other, "as it is stored"
    assert not (await made.pause(paused=False)).HasField("pause")


async def test_a_reason_that_is_too_long_is_refused():
    made = Changed()
    await made.create()
    with pytest.raises(errors.LimitExceeded, match="comment must be at most 1024 bytes"):
        await made.pause(paused=True, comment="x" * 1025)


async def test_a_pause_while_a_change_is_on_its_way_keeps_what_that_changes():
    made = Changed()
    await made.create()
    await asyncio.gather(made.update(MINUTELY), made.pause(paused=True))
    kept = made.schedules.firing.kept["q", "s"].definition
    assert (kept.settings.cron, kept.settings.paused) == (MINUTELY.cron, True)


async def test_of_two_pauses_at_once_the_first_says_since_when_and_by_whom():
    made = Changed()
    await made.create()
    first, second = await asyncio.gather(
        made.pause(paused=True, comment="nobody reads it"), made.pause(paused=True, by=BOB)
    )
    assert second.pause == first.pause
