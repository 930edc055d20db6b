"""What the core finds that may trouble somebody: which queues and buckets it tells of, and of which it keeps silent."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import limit_pb2
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine

QUEUES, BUCKETS = 0, 1
HOUR_MS = 3_600_000


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", fairness_key_header="k", channels=["default"], throttle_key_headers=["t"])
    yield made
    made.remove()


def enqueue(
    engine: DrivenEngine, count: int = 1, key: str = "a", throttle: str = "", queue: str = "q"
) -> None:
    for _ in range(count):
        engine.enqueue(queue, b"x", {"k": key, **({"t": throttle} if throttle else {})})


def page(engine: DrivenEngine, part: int = QUEUES, **asked: Any) -> Any:
    request = seam_frames.TroublesPage(part=part, **asked)
    return engine.call(commands.TROUBLES_PAGE, request, seam_frames.TroublesFound)


def pause(engine: DrivenEngine, key: str, *, paused: bool = True, queue: str = "q") -> None:
    request = admin.SetKeyPolicyRequest(queue=queue, fairness_key=key, paused=paused)
    engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def paused(engine: DrivenEngine) -> list[tuple[bytes, bytes, int, bool]]:
    return [(row.queue, row.fairness_key, row.ready, row.is_queue) for row in page(engine).paused]


def limits(engine: DrivenEngine) -> dict[bytes, Any]:
    return {row.throttle_key: row for row in page(engine, BUCKETS).limits}


def test_a_channel_with_something_ready_and_nobody_who_consumes_is_told(engine: DrivenEngine) -> None:
    enqueue(engine, 3)

    [row] = page(engine).unserved
    assert (row.queue, row.channel, row.ready, row.delivered) == (b"q", b"default", 3, 0)

    waiting = engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=9, wait_ms=60_000))
    engine.others += engine.settle_down()
    assert engine.answer_of(waiting)
    assert not page(engine).unserved, "all is leased, and nothing is ready"


def test_a_waiting_pull_is_somebody(engine: DrivenEngine) -> None:
    engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=1, wait_ms=60_000))
    engine.others += engine.settle_down()
    pause(engine, "a")
    enqueue(engine, 2)

    assert not page(engine).unserved
    engine.sleep(61_000)
    assert len(page(engine).unserved) == 1


def test_what_is_delayed_needs_nobody_yet(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"x", {"k": "a"}, delay_ms=HOUR_MS)

    assert not page(engine).unserved
    engine.sleep(HOUR_MS + 1000)
    assert len(page(engine).unserved) == 1


def test_dead_letters_need_no_consumer(engine: DrivenEngine) -> None:
    engine.create_queue("short", fairness_key_header="k", channels=["default"], max_attempts=1)
    enqueue(engine, queue="short")
    engine.nack("short", engine.lease("short"))

    assert engine.stats("short.dlq").depth == 1
    found = page(engine)
    assert not found.unserved
    assert [row.queue for row in found.failing] == [b"short"], "and its queue is told to fail"


def test_a_dead_letter_that_fails_again_is_no_trouble_of_its_queue(engine: DrivenEngine) -> None:
    engine.create_queue("short", fairness_key_header="k", channels=["default"], max_attempts=1)
    enqueue(engine, queue="short")
    engine.nack("short", engine.lease("short"))
    engine.sleep(901_000)
    engine.nack("short.dlq", engine.lease("short.dlq"))

    assert not page(engine).failing


def test_paused_keys_are_told_with_what_waits_and_after_a_restart(engine: DrivenEngine) -> None:
    for key in ("a", "b", "idle"):
        pause(engine, key)
    enqueue(engine, 2, "a")
    enqueue(engine, 1, "b")
    enqueue(engine, 1, "free")

    assert sorted(paused(engine)) == [(b"q", b"a", 2, False), (b"q", b"b", 1, False)]
    engine.kill()
    engine.reopen()
    assert sorted(paused(engine)) == [(b"q", b"a", 2, False), (b"q", b"b", 1, False)]
    pause(engine, "b", paused=False)
    assert paused(engine) == [(b"q", b"a", 2, False)]
    pause(engine, "a", paused=False)
    assert paused(engine) == []


def test_keys_leave_the_list_in_any_order_and_with_their_queue(engine: DrivenEngine) -> None:
    engine.create_queue("other", fairness_key_header="k", channels=["default"])
    for key in ("a", "b", "c"):
        pause(engine, key)
        enqueue(engine, 1, key)
        pause(engine, key, queue="other")
        enqueue(engine, 1, key, queue="other")

    pause(engine, "b", paused=False)
    pause(engine, "b", paused=False)
    engine.call(
        commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="other", force=True), admin.DeleteQueueResponse
    )
    engine.sleep(1000)
    assert sorted(row[:2] for row in paused(engine)) == [(b"q", b"a"), (b"q", b"c")]
    pause(engine, "c", paused=False)
    pause(engine, "b")
    assert sorted(row[:2] for row in paused(engine)) == [(b"q", b"a"), (b"q", b"b")]


def test_each_of_many_paused_keys_is_told_once_and_the_one_paused_first_comes_first(
    engine: DrivenEngine,
) -> None:
    keys = [f"k{number * 37 % 100}" for number in range(100)]
    for key in keys:
        engine.advance(10)
        pause(engine, key)
        enqueue(engine, 1, key)
    for key in keys[::3]:
        pause(engine, key, paused=False)
    left = [key.encode() for key in keys if key not in keys[::3]]

    told = [row[1] for row in paused(engine)]
    assert (told[0], sorted(told)) == (left[0], sorted(left))
    engine.kill()
    engine.reopen()
    told = [row[1] for row in paused(engine)]
    assert (told[0], sorted(told)) == (left[0], sorted(left))


def test_a_paused_queue_is_told_apart_from_its_keys_and_needs_no_consumer(engine: DrivenEngine) -> None:
    engine.create_queue("held", channels=["default"], paused=True)
    assert paused(engine) == [], "nothing of it waits"
    enqueue(engine, 2, queue="held")

    assert paused(engine) == [(b"held", b"", 2, True)]
    assert not page(engine).unserved


def test_failures_of_late_are_told_apart_from_what_ever_failed(engine: DrivenEngine) -> None:
    enqueue(engine, 3)
    engine.nack("q", engine.lease("q", 1))
    engine.sleep(901_000)
    assert not page(engine).failing, "the last one is a quarter of an hour ago"

    engine.ack("q", engine.lease("q", 1))
    engine.nack("q", engine.lease("q", 1), delay_ms=1)
    engine.sleep(2000)
    [row] = page(engine).failing
    assert (row.failed, row.failed_before, row.acked, row.acked_before) == (2, 1, 1, 1)
    assert row.began_ago_ms == 2000


def test_a_lease_that_runs_out_is_a_failure(engine: DrivenEngine) -> None:
    enqueue(engine)
    engine.lease("q")
    engine.sleep(60_000)

    [row] = page(engine).failing
    assert (row.failed, row.failed_before) == (1, 0)
    engine.sleep(901_000)
    assert not page(engine).failing


def test_a_bucket_is_told_with_all_messages_that_wait_for_it_and_where(engine: DrivenEngine) -> None:
    engine.create_queue("mail", fairness_key_header="k", channels=["default"], throttle_key_headers=["t"])
    engine.set_config("throttle.full", "1,1")
    engine.set_config("throttle.roomy", "100,100")
    enqueue(engine, 5, "a", "full")
    enqueue(engine, 3, "b", "full")
    enqueue(engine, 2, "c", "full", queue="mail")
    enqueue(engine, 4, "d", "roomy")
    engine.lease("q")
    engine.lease("mail")
    row = limits(engine)[b"full"]
    assert list(limits(engine)) == [b"full"], "what has tokens is no limit"
    assert (row.rate, row.burst, row.passed, row.messages) == (1.0, 1.0, 1, 9)
    assert sorted((at.queue, at.messages) for at in row.places) == [(b"mail", 2), (b"q", 7)]

    enqueue(engine, 1, "a", "full")
    assert limits(engine)[b"full"].messages == 10
    engine.sleep(1100)  # a token comes, wakes somebody, and nobody takes it
    assert limits(engine)[b"full"].messages == 10
    for _ in range(20):
        engine.lease("q")
        engine.lease("mail")
        engine.sleep(1000)
    assert not limits(engine)


def set_limit(engine: DrivenEngine, name: str, **parts: Any) -> None:
    asked = limit_pb2.SetLimitRequest(limit=limit_pb2.Limit(name=name, **parts))
    engine.call(commands.SET_LIMIT, asked, limit_pb2.SetLimitResponse)


def test_a_limit_of_several_parts_is_told_with_the_part_that_holds_and_what_lasts_longest(
    engine: DrivenEngine,
) -> None:
    day_ms = 24 * HOUR_MS
    set_limit(engine, "full", max_in_flight=1, budget=limit_pb2.Budget(amount=2, period_ms=day_ms))
    enqueue(engine, 5, "a", "full")
    [first] = engine.lease("q", 1)
    engine.lease("q", 1)
    row = limits(engine)[b"full"]
    assert (row.is_compound, row.part, row.slots) == (True, limit_pb2.LIMIT_PART_SLOTS, 1)
    assert (row.amount, row.in_cost, row.period_ms, row.messages) == (2.0, False, day_ms, 4)

    engine.ack("q", [first])
    engine.lease("q", 1)
    row = limits(engine)[b"full"]
    assert row.part == limit_pb2.LIMIT_PART_BUDGET, "its slot is taken, too, and comes back sooner"
    assert row.ends_ms == (engine.wall_ms // day_ms + 1) * day_ms
    engine.sleep(day_ms)
    row = limits(engine)[b"full"]
    assert row.part != limit_pb2.LIMIT_PART_BUDGET


def test_messages_that_end_while_they_wait_for_a_bucket_leave_its_count(engine: DrivenEngine) -> None:
    engine.set_config("throttle.full", "0.001,1")
    enqueue(engine, 3, "a", "full")
    engine.lease("q", 1)
    engine.lease("q", 1)
    assert limits(engine)[b"full"].messages == 2

    engine.call(commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue="q"), admin.PurgeQueueResponse)
    assert not limits(engine)
    enqueue(engine, 2, "a", "full")
    engine.lease("q", 1)
    assert limits(engine)[b"full"].messages == 2


def test_a_sub_queue_that_a_token_woke_is_counted_until_it_is_served(engine: DrivenEngine) -> None:
    engine.set_config("throttle.full", "1,1")
    enqueue(engine, 3, "a", "full")
    engine.lease("q", 1)
    engine.lease("q", 1)
    engine.sleep(1100)

    assert limits(engine)[b"full"].messages == 2
    assert len(engine.lease("q")) == 1
    assert limits(engine)[b"full"].messages == 1


def test_pages_come_by_each_queue_once_and_a_table_that_grew_begins_anew(engine: DrivenEngine) -> None:
    for number in range(600):
        engine.create_queue(f"q{number}", channels=["default"], expires_after_idle_ms=HOUR_MS)
        enqueue(engine, queue=f"q{number}")

    found: list[bytes] = []
    first = page(engine)
    assert len(first.unserved) == 512, "a page ends after so many"
    rest = page(engine, cursor=first.cursor, capacity=first.capacity)
    found = [row.queue for row in (*first.unserved, *rest.unserved)]
    assert len(found) == len(set(found)) == 600
    assert rest.cursor == 0
    assert len(page(engine, cursor=first.cursor, capacity=first.capacity // 2).unserved) == 512
