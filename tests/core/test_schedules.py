"""Schedules in the core: a message and the schedule's next moment are one write, and no moment fires twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import schedule_pb2 as pb
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.firing import DEFINITIONS, DUES, change_frame, deletion_frame, firing_of
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.driven_schedules import DrivenSchedules
from tests.native.coreprobe import disk_becomes, store_stalls

MINUTE = 60_000
ROOMY, CRITICAL = 0, 2


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q")
    yield driven
    driven.remove()


@pytest.fixture
def schedules(engine: DrivenEngine) -> DrivenSchedules:
    return DrivenSchedules(engine)


def moments(engine: DrivenEngine, queue: str = "q") -> list[str]:
    """Of all messages that are there, in their order."""
    return [message.headers["fila-schedule-moment"] for message in engine.lease(queue, 1000)]


def firing(schedules: DrivenSchedules, name: str, next_ms: int) -> bytes:
    """The frame that fires its moment."""
    kept = schedules.firing.kept["q", name]
    due = seam_frames.ScheduleDue(due_ms=next_ms, last_ms=kept.due_ms, fired=1)
    return firing_of(kept.definition, kept.due_ms, kept.due_ms, due)


def test_a_schedule_enqueues_its_message_at_its_moment_and_not_before(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    schedules.create("daily", every_ms=MINUTE, payload=b"go", headers={"tenant": "a"})
    engine.advance(MINUTE - 1)
    schedules.turn()
    assert engine.lease("q") == []
    engine.advance(1)
    next_ms = schedules.turn()
    [message] = engine.lease("q")
    assert (message.payload, message.headers["tenant"]) == (b"go", "a")
    assert message.headers["fila-schedule"] == "daily"
    assert next_ms == engine.wall_ms + MINUTE


def test_a_firing_that_is_sent_twice_stores_one_message(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    schedules.create("daily", every_ms=MINUTE)
    schedules.core.repeats = True
    for _ in range(3):
        engine.advance(MINUTE)
        schedules.turn()
    found = moments(engine)
    assert len(found) == len(set(found)) == 3


def test_two_firings_of_one_moment_in_one_pass_store_one_message(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    schedules.create("daily", every_ms=MINUTE)
    frame = firing(schedules, "daily", engine.wall_ms + 2 * MINUTE)
    first, second = engine.submit(commands.FIRE, frame), engine.submit(commands.FIRE, frame)
    engine.others += engine.settle_down()
    assert engine.answer_of(first)[0] == 0
    status, payload = engine.answer_of(second)
    assert status == 9
    assert b"SCHEDULE_MOVED" in payload
    assert engine.stats("q").depth == 1


def test_a_schedule_that_was_deleted_in_the_same_pass_does_not_fire(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    schedules.create("daily", every_ms=MINUTE)
    frame = firing(schedules, "daily", engine.wall_ms + 2 * MINUTE)
    engine.submit(commands.SCHEDULE_CHANGE, deletion_frame(("q", "daily")))
    token = engine.submit(commands.FIRE, frame)
    engine.others += engine.settle_down()
    assert engine.answer_of(token)[0] == 9
    engine.kill()
    engine.reopen()
    schedules.take_up()
    assert schedules.firing.kept == {}
    assert engine.stats("q").depth == 0


def test_a_change_behind_a_firing_of_the_same_pass_is_what_the_disk_has(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    kept = schedules.create("daily", every_ms=MINUTE)
    engine.submit(commands.FIRE, firing(schedules, "daily", engine.wall_ms + 2 * MINUTE))
    later = seam_frames.ScheduleDue(due_ms=engine.wall_ms + 10 * MINUTE)
    engine.submit(commands.SCHEDULE_CHANGE, change_frame(kept.key, later))
    engine.settle_down()
    engine.kill()
    engine.reopen()
    schedules.take_up()
    assert schedules.firing.kept["q", "daily"].due_ms == later.due_ms


def test_after_a_kill_a_schedule_goes_on_with_the_moment_that_follows(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    schedules.create("daily", every_ms=MINUTE)
    for _ in range(4):
        engine.advance(MINUTE)
        schedules.turn()
        engine.kill()
        engine.reopen()
        schedules.take_up()
        schedules.turn()
    found = moments(engine)
    assert len(found) == len(set(found)) == 4
    assert schedules.firing.kept["q", "daily"].fired == 4


def test_what_the_disk_refuses_is_due_as_before(engine: DrivenEngine, schedules: DrivenSchedules) -> None:
    schedules.create("daily", every_ms=MINUTE)
    frame = firing(schedules, "daily", engine.wall_ms + 2 * MINUTE)
    store_stalls(engine.core, True)
    token = engine.submit(commands.FIRE, frame)
    for _ in range(20):
        engine.advance(100)
        engine.run_pass()
        engine.others += engine.core.drain()
    assert engine.answer_of(token)[0] == 8
    store_stalls(engine.core, False)
    engine.call(commands.FIRE, frame, service.EnqueueResponse)
    assert engine.stats("q").depth == 1


def test_a_full_queue_is_tried_again_and_the_moment_fires_once(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    engine.create_queue("small", max_depth=1)
    engine.enqueue("small")
    schedules.create("daily", queue="small", every_ms=MINUTE)
    engine.advance(MINUTE)
    schedules.turn()
    kept = schedules.firing.kept["small", "daily"]
    assert "max_depth" in kept.error
    assert kept.failures == 1
    engine.ack("small", engine.lease("small"))
    engine.advance(1_000)
    schedules.turn()
    assert kept.error == ""
    assert engine.stats("small").depth == 1
    assert [(each.fired, each.failed) for each in schedules.firing.readings()] == [(1, 1)]


def test_schedules_go_with_their_queue_in_one_write(engine: DrivenEngine, schedules: DrivenSchedules) -> None:
    schedules.create("daily", every_ms=MINUTE)
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), admin.DeleteQueueResponse)
    assert schedules.records(DUES) == schedules.records(DEFINITIONS) == {}
    engine.create_queue("q")
    with pytest.raises(Refused, match="SCHEDULE_MOVED"):
        engine.call(commands.FIRE, firing(schedules, "daily", engine.wall_ms), service.EnqueueResponse)


def test_only_the_schedules_of_the_queue_go(engine: DrivenEngine, schedules: DrivenSchedules) -> None:
    for queue in ("q.a", "q-", "q0"):
        engine.create_queue(queue)
        schedules.create("daily", queue=queue, every_ms=MINUTE)
    schedules.create("daily", every_ms=MINUTE)
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), admin.DeleteQueueResponse)
    assert sorted(schedules.records(DUES)) == ["q-/daily", "q.a/daily", "q0/daily"]


def test_a_clock_set_back_fires_no_moment_again(engine: DrivenEngine, schedules: DrivenSchedules) -> None:
    schedules.create("daily", every_ms=MINUTE)
    for _ in range(3):
        engine.advance(MINUTE)
        schedules.turn()
    engine.wall_ns -= 3 * MINUTE * 1_000_000
    for _ in range(4):
        engine.advance(MINUTE)
        schedules.turn()
    found = moments(engine)
    assert len(found) == len(set(found)) == 4


@pytest.mark.parametrize(
    ("rule", "messages", "missed"),
    [(pb.MISSED_RULE_ONE, 1, 9), (pb.MISSED_RULE_ALL, 10, 0), (pb.MISSED_RULE_SKIP, 0, 10)],
)
def test_a_clock_that_jumps_forward_asks_the_rule_of_missed_moments(
    engine: DrivenEngine, schedules: DrivenSchedules, rule: pb.MissedRule, messages: int, missed: int
) -> None:
    kept = schedules.create("often", every_ms=2 * MINUTE, missed=rule)
    engine.wall_ns += (20 * MINUTE + 61_000) * 1_000_000
    schedules.turn()
    found = moments(engine)
    assert len(found) == len(set(found)) == messages
    assert (kept.fired, kept.missed) == (messages, missed)
    engine.advance(MINUTE)
    schedules.turn()
    assert kept.fired == messages + 1


def test_at_most_a_hundred_missed_moments_are_made_up(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    kept = schedules.create("often", every_ms=MINUTE, missed=pb.MISSED_RULE_ALL)
    engine.advance(500 * MINUTE)
    schedules.turn()
    assert kept.fired == 100
    assert kept.last_ms == engine.wall_ms


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
def test_many_schedules_due_at_one_moment_fire_in_pieces(
    engine: DrivenEngine, schedules: DrivenSchedules, count: int
) -> None:
    for number in range(count):
        schedules.create(f"s{number}", cron="0 0 * * *")
    engine.advance(schedules.firing.kept["q", "s0"].due_ms - engine.wall_ms)
    begun: list[int] = []
    before = schedules.firing.begin_due

    def counted() -> int:
        next_ms = before()
        begun.append(len(schedules.firing._under_way))
        return next_ms

    schedules.firing.begin_due = counted  # type: ignore[method-assign]
    schedules.turn()
    assert max(begun) <= 32
    assert engine.stats("q").depth == count
    work = engine.core.counters()["pass_work_max"]
    assert isinstance(work, int)
    assert work < 1_000
    assert len({message.headers["fila-schedule"] for message in engine.lease("q", count)}) == count


def test_a_queue_on_a_full_disk_fires_when_there_is_room(
    engine: DrivenEngine, schedules: DrivenSchedules
) -> None:
    kept = schedules.create("daily", every_ms=MINUTE)
    disk_becomes(engine.core, CRITICAL)
    engine.advance(MINUTE)
    schedules.turn()
    assert kept.failures == 1
    disk_becomes(engine.core, ROOMY)
    engine.advance(1_000)
    schedules.turn()
    assert kept.fired == 1
    assert engine.stats("q").depth == 1
