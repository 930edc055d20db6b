"""What many queues cost a broker in which nothing happens, one that stops, and one that deletes them."""

import time
from pathlib import Path

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.runtime.scheduler_thread import Engine
from tests.core.conftest import Make
from tests.core.driven_engine import DrivenEngine
from tests.core.test_bounded_work import count
from tests.core.test_expiring import queues

MANY = 300
DAY_MS = 86_400_000


def fill(engine: DrivenEngine, queues: int, **config: object) -> None:
    """So many queues, each with its dead-letter queue and three messages, of which one is done."""
    for number in range(queues):
        engine.create_queue(f"q{number}", **config)
        for _ in range(3):
            engine.enqueue(f"q{number}", b"m")
        engine.ack(f"q{number}", engine.lease(f"q{number}", 1))
    engine.sleep(500)


def looked_at(engine: DrivenEngine, ms: int) -> int:
    before = count(engine, "visits")
    engine.listen(ms)
    return count(engine, "visits") - before


# --- an idle broker -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"retention": admin.Retention(hard_period_ms=7 * DAY_MS)},
        {"retention": admin.Retention(soft_period_ms=7 * DAY_MS)},
        {"retention": admin.Retention(soft_bytes=1 << 30, hard_bytes=1 << 31)},
        {"expires_after_idle_ms": 3_600_000},
    ],
    ids=["plain", "hard", "soft", "bytes", "unused"],
)
def test_no_queue_is_looked_at_while_nothing_happens_and_nothing_is_due(
    config: dict[str, object], engine: DrivenEngine
) -> None:
    fill(engine, MANY, **config)

    assert looked_at(engine, 20_000) == 0


def test_queues_that_wait_for_their_time_cost_no_look_for_one_that_is_busy(engine: DrivenEngine) -> None:
    fill(engine, MANY, retention=admin.Retention(hard_period_ms=7 * DAY_MS))
    before = count(engine, "visits")
    for _ in range(20):
        engine.enqueue("q5", b"m")
        engine.sleep(100)

    assert count(engine, "visits") - before <= 20


def test_an_idle_broker_passes_hardly_more_often_than_the_edge_says_that_it_listens(
    engine: DrivenEngine,
) -> None:
    fill(engine, 3)
    before = count(engine, "passes")
    end_ns = engine.mono_ns + 20_000 * 1_000_000
    while engine.mono_ns < end_ns:
        engine.mono_ns = max(engine.run_pass() or end_ns, engine.mono_ns + 1)

    assert count(engine, "passes") - before <= 25


def test_what_is_due_is_found_within_a_moment(engine: DrivenEngine) -> None:
    fill(engine, 20, retention=admin.Retention(hard_period_ms=60_000))
    engine.sleep(59_000, 200)
    assert engine.stats("q7").depth == 2
    engine.sleep(1_500, 100)
    assert [engine.stats(f"q{number}").depth for number in range(20)] == [0] * 20


def test_a_queue_that_is_done_with_gives_its_frames_back_when_they_were_kept_long_enough(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", retention=admin.Retention(soft_period_ms=60_000))
    for _ in range(5):
        engine.enqueue("q", b"m" * 1_000)
        engine.sleep(1_000)
    engine.ack("q", engine.lease("q", 5))
    engine.sleep(50_000, 1_000)
    assert engine.stats("q").stored_bytes > 5_000
    engine.sleep(12_000, 500)
    assert engine.stats("q").stored_bytes == 0


def test_retention_follows_a_wall_clock_that_is_set_forward(engine: DrivenEngine) -> None:
    fill(engine, 5, retention=admin.Retention(hard_period_ms=DAY_MS))
    engine.wall_ns += 2 * DAY_MS * 1_000_000
    engine.sleep(1_500, 100)

    assert engine.stats("q3").depth == 0


def test_a_queue_whose_consumer_came_and_left_between_two_looks_is_unused_since_then(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("reply", expires_after_idle_ms=10_000)
    engine.listen(5_000)
    waiting = service.LeaseRequest(queue="reply", wait_ms=4_000)
    engine.submit(commands.LEASE, waiting)
    engine.listen(4_000)
    engine.listen(9_500)
    assert "reply" in queues(engine)
    engine.listen(1_000)
    assert "reply" not in queues(engine)


def test_a_dead_letter_queue_that_was_needed_is_unused_from_the_end_of_its_queue_on(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q")
    request = admin.UpdateQueueRequest(queue="q.dlq", config=admin.QueueConfig(expires_after_idle_ms=5_000))
    request.update_mask.paths.append("expires_after_idle_ms")
    engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)
    assert looked_at(engine, 20_000) <= 2
    assert "q.dlq" in queues(engine)


def test_what_stirs_is_a_request_a_consumer_or_what_is_due_and_no_question_of_our_own(
    engine: DrivenEngine,
) -> None:
    fill(engine, 3, retention=admin.Retention(hard_period_ms=60_000))
    engine.sleep(1_000)
    still = engine.core.stirs
    for kind in (commands.METRICS, commands.LISTENED, commands.OPERATION_RECORDS_READ):
        engine.submit(kind)
    engine.listen(5_000)
    assert engine.core.stirs == still

    engine.stats("q0")
    assert engine.core.stirs > still
    still = engine.core.stirs
    engine.sleep(60_000, 1_000)
    assert engine.core.stirs > still, "what was over has been dropped"
    engine.enqueue("q0")
    assert engine.lease("q0")
    still = engine.core.stirs
    engine.sleep(3_000, 1_000)
    assert engine.core.stirs > still, "a lease is held"


# --- the end --------------------------------------------------------------------------------------


def test_a_stop_takes_no_queue_apart(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path), {}, mono_ns=time.monotonic_ns(), wall_ns=time.time_ns(), seed=7)
    for number in range(50):
        request = admin.CreateQueueRequest(name=f"q{number}").SerializeToString()
        engine.submit(commands.CREATE_QUEUE, number + 1, request)
    engine.start()
    engine.stop()
    assert engine.counters()["taken_apart"] == 0

    engine = Engine(str(tmp_path), {}, mono_ns=time.monotonic_ns(), wall_ns=time.time_ns(), seed=7)
    engine.close()
    assert engine.counters()["taken_apart"] == 100, "a process that goes on gets its memory back"


def test_to_take_many_queues_apart_is_linear_in_their_number(opened: Make) -> None:
    walked = {}
    for number in (MANY // 10, MANY):
        engine = opened()
        for each in range(number):
            engine.create_queue(f"q{each}")
        before = count(engine, "walked")
        engine.kill()
        walked[number] = count(engine, "walked") - before
        engine.remove()

    assert walked[MANY] <= 14 * walked[MANY // 10]
