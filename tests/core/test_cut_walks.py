"""What is told of keys whose messages name very many buckets: within bounds that are counted, never timed."""

from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine
from tests.core.test_bounded_work import count, run_dry

LOOKS_MAX = 100_000
"""Steps of one command's walks."""
SUBQUEUES_MAX = 10_000
"""Of a flow."""
ALL_AT_ONCE = admin.GetStatsRequest(queue="q")


@pytest.fixture
def held(engine: DrivenEngine) -> DrivenEngine:
    """A queue whose messages wait for one bucket without tokens; each may name another beside it."""
    engine.create_queue("q", fairness_key_header="k", throttle_key_headers=["t", "u"])
    engine.set_config("throttle.none", "1e-12,1")
    fill(engine, "first", 1)  # it takes the one token
    return engine


def fill(engine: DrivenEngine, key: str, messages: int) -> None:
    """So many messages of a key, each in a sub-queue of its own, which have tried their bucket."""
    for began in range(0, messages, 10_000):
        request = service.EnqueueBatchRequest(queue="q")
        for number in range(began, min(began + 10_000, messages)):
            request.messages.add(headers={"k": key, "t": "none", "u": f"u{number}"})
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
    engine.lease("q")


def explained(engine: DrivenEngine, key: str) -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def late(engine: DrivenEngine) -> dict[str, int]:
    """How long keys wait, page by page."""
    waiting: dict[str, int] = {}
    page = seam_frames.WaitingLongestPage(queue=b"q", most=100)
    while True:
        told = engine.call(commands.WAITING_LONGEST_PAGE, page, seam_frames.WaitingLongestKeys)
        for row in told.keys:
            key = events_pb2.LateKey.FromString(row)
            waiting[key.fairness_key] = key.waiting_ms
        page.cursor, page.capacity = told.cursor, told.capacity
        if not told.cursor:
            return waiting


def parts(engine: DrivenEngine) -> list[Any]:
    """What a walk over all keys is told, page by page."""
    found = []
    page = seam_frames.StatsPage(queue=b"q", most=100)
    while True:
        part = engine.call(commands.STATS_PAGE, page, seam_frames.StatsPart)
        found.append(part)
        page.cursor, page.capacity = part.cursor, part.capacity
        if not part.cursor:
            return found


def test_what_lies_in_lines_is_as_old_as_its_oldest(held: DrivenEngine) -> None:
    fill(held, "k", 3)
    held.sleep(5_000)
    fill(held, "k", 5)
    held.sleep(1_000)

    assert explained(held, "k").oldest_age_ms == 6_000
    assert late(held) == {"k": 6_000}
    assert held.stats("q").oldest_age_ms == 6_000


def test_a_key_whose_messages_name_very_many_buckets_is_told_of_in_bounded_steps(held: DrivenEngine) -> None:
    fill(held, "k", 30_000)
    held.sleep(1_000)
    before = count(held, "walked")

    told = explained(held, "k")

    assert told.state == admin.ExplainKeyResponse.STATE_THROTTLED
    assert told.oldest_age_ms == 1_000
    assert count(held, "walked") - before <= 3 * SUBQUEUES_MAX + 1_000


def test_one_command_walks_no_further_for_many_such_keys(held: DrivenEngine) -> None:
    for number in range(12):
        fill(held, f"k{number}", 9_000)
    held.sleep(1_000)

    for kind, asked, walks in (
        (commands.WAITING_LONGEST_PAGE, seam_frames.WaitingLongestPage(queue=b"q", most=100), 1),
        (commands.STATS_PAGE, seam_frames.StatsPage(queue=b"q", most=100), 2),
        (commands.GET_STATS, ALL_AT_ONCE, 2),
        (commands.METRICS, b"", 1),
    ):
        before = count(held, "walked")
        held.submit(kind, asked)
        held.others += held.settle_down()
        assert count(held, "walked") - before <= walks * LOOKS_MAX, kind


def test_pages_that_end_where_there_is_enough_to_look_at_tell_all_the_same(held: DrivenEngine) -> None:
    keys = 3
    for number in range(keys):
        fill(held, f"k{number}", 9_000)
    held.sleep(1_000)

    assert len(late(held)) == keys
    found = parts(held)
    assert len(found) > 1
    assert sum(part.active for part in found) == keys
    buckets = [admin.PerThrottleKeyStats.FromString(row) for part in found for row in part.buckets]
    assert sum(bucket.waiting for bucket in buckets if bucket.key == "none") == keys * 9_000
    at_once = held.call(commands.GET_STATS, ALL_AT_ONCE, seam_frames.StatsLeft)
    assert at_once.keys_left, "the edge asks for the pages"


def test_many_who_ask_for_such_a_key_share_the_bounds_of_a_pass(held: DrivenEngine) -> None:
    fill(held, "k", 15_000)
    asked = admin.ExplainKeyRequest(queue="q", fairness_key="k")
    tokens = [held.submit(commands.EXPLAIN_KEY, asked) for _ in range(20)]

    held.run_pass()

    held.others += held.core.drain()
    assert len(held.others) < 5, "the others wait for the next pass"
    run_dry(held)
    assert [held.answer_of(token)[0] for token in tokens] == [0] * 20
