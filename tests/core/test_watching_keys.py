"""What a screen asks the core each second: the keys that lead, those that are named, and what a seek would do."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2
from fila.v1 import service_pb2 as service
from fila.v1 import watch_pb2 as watch
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession

BACKLOG, LATE, ARRIVING, SERVED, OFF_SHARE = 1, 2, 4, 8, 16


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", fairness_key_header="k", channels=["default", "other"])
    yield made
    made.remove()


def enqueue(engine: DrivenEngine, key: str, count: int = 1) -> None:
    for _ in range(count):
        engine.enqueue("q", b"x", {"k": key})


def rows(engine: DrivenEngine, **page: Any) -> tuple[dict[str, watch.KeyState], Any]:
    request = seam_frames.WatchPage(queue=b"q", **{"most": 10, "cells": 1000, **page})
    got = engine.call(commands.WATCH_ROWS, request, seam_frames.WatchedRows)
    states = [watch.KeyState.FromString(row) for row in got.keys]
    assert len({state.fairness_key for state in states}) == len(states), "each is told once"
    return {state.fairness_key: state for state in states}, got


def find(engine: DrivenEngine, prefix: str, **page: Any) -> tuple[list[str], int]:
    request = seam_frames.FindPage(queue=b"q", prefix=prefix.encode(), **{"most": 10, **page})
    got = engine.call(commands.FIND_KEYS, request, seam_frames.KeyRows)
    return sorted(watch.KeyState.FromString(row).fairness_key for row in got.keys), got.matched


def test_keys_are_found_by_how_they_begin_also_those_that_have_nothing(engine: DrivenEngine) -> None:
    for key in ("acme", "acme-eu", "bravo", "ac"):
        enqueue(engine, key)
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key="acme-idle", weight=3)
    engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)

    assert find(engine, "acme") == (["acme", "acme-eu", "acme-idle"], 3)
    assert find(engine, "") == (["ac", "acme", "acme-eu", "acme-idle", "bravo"], 5)
    assert find(engine, "nobody") == ([], 0)


def test_most_pending_are_told_where_more_match_than_may_be_told(engine: DrivenEngine) -> None:
    for count, key in enumerate(("a1", "a2", "a3", "a4"), start=1):
        enqueue(engine, key, count)

    assert find(engine, "a", most=2) == (["a3", "a4"], 4)


def test_those_are_found_from_whose_turns_a_rival_would_take_most(engine: DrivenEngine) -> None:
    for key, count in (("short", 2), ("middle", 10), ("long", 40)):
        enqueue(engine, key, count)
    enqueue(engine, "rival", 20)

    # Granted 1 a round, and 2 then: the rival has sent its 20 messages in round 20, and would have in round 10.
    page = {"rival_work": 20_000.0, "rival_grant_before": 1000.0, "rival_grant_after": 2000.0}
    request = seam_frames.FindPage(queue=b"q", most=3, **page)
    got = engine.call(commands.FIND_KEYS, request, seam_frames.KeyRows)
    ranks = {
        watch.KeyState.FromString(row).fairness_key: rank
        for row, rank in zip(got.keys, got.ranks, strict=True)
    }

    # A key that outlasts it both times loses nothing.
    assert ranks == {"middle": 10_000, "short": 2_000}


def test_an_outlook_tells_one_rival_apart(engine: DrivenEngine) -> None:
    for key, count in (("acme", 3), ("bravo", 5), ("rival", 7)):
        enqueue(engine, key, count)

    def answered(apart: bytes = b"") -> Any:
        asked = seam_frames.ExplainKey(queue=b"q", fairness_key=b"acme", with_forecast=True)
        if apart:
            asked.apart = apart
        return engine.call(commands.EXPLAIN_KEY, asked, seam_frames.Explained).forecast

    whole, without = answered(), answered(b"rival")

    assert sum(rivals.work for rivals in whole.rivals) == 12_000
    assert sum(rivals.work for rivals in without.rivals) == 5_000
    assert (without.apart.weight, without.apart.work) == (1, 7_000)
    assert not whole.HasField("apart")
    assert not answered(b"acme").HasField("apart"), "a key is no rival of its own"
    assert without.before_its_turn == whole.before_its_turn


def test_the_longest_backlogs_and_waits_lead(engine: DrivenEngine) -> None:
    enqueue(engine, "first")
    engine.sleep(2000)
    enqueue(engine, "large", 5)
    engine.sleep(1000)

    by_backlog, _ = rows(engine, orders=BACKLOG, most=1)
    by_wait, _ = rows(engine, orders=LATE, most=1)

    assert list(by_backlog) == ["large"]
    assert by_backlog["large"].ready == 5
    assert list(by_wait) == ["first"]
    assert by_wait["first"].waiting_ms == 3000
    assert by_wait["first"].state == watch.KeyState.STATE_NO_CONSUMER


def test_that_nobody_consumes_is_told_from_consumers_that_are_full(engine: DrivenEngine) -> None:
    enqueue(engine, "a", 3)
    nobody, _ = rows(engine, orders=BACKLOG)
    DrivenSession(engine, "q", max_in_flight=1)
    full, _ = rows(engine, orders=BACKLOG)

    assert [each["a"].state for each in (nobody, full)] == [watch.KeyState.STATE_NO_CONSUMER] * 2
    assert (nobody["a"].nobody_consumes, full["a"].nobody_consumes) == (True, False)


def test_rates_are_of_the_time_since_the_look_before(engine: DrivenEngine) -> None:
    enqueue(engine, "busy", 4)
    enqueue(engine, "idle", 1)
    engine.sleep(1000)
    rows(engine, orders=ARRIVING)
    enqueue(engine, "busy", 10)
    engine.lease("q", 6)
    engine.sleep(2000)

    told, _ = rows(engine, orders=ARRIVING | SERVED, most=1)

    assert told["busy"].arriving_per_second == pytest.approx(5, abs=0.1)
    assert told["busy"].arrived_total == 14
    assert told["busy"].delivered_per_second == pytest.approx(2.5, abs=0.1)
    assert told["busy"].served_per_second == pytest.approx(2.5, abs=0.1)


def test_what_a_key_that_was_idle_has_in_flight_is_served_at_once(engine: DrivenEngine) -> None:
    """Else it would be told later, as a part of what others were served then."""
    enqueue(engine, "now-and-then")
    engine.sleep(1000)
    engine.ack("q", engine.lease("q", 1))
    before, _ = rows(engine, keys=[b"now-and-then"])
    enqueue(engine, "now-and-then")
    engine.lease("q", 1)

    told, got = rows(engine, keys=[b"now-and-then"])

    assert before["now-and-then"].served_total == 1
    assert told["now-and-then"].served_total == 2
    assert watch.QueueState.FromString(got.channel).served_total == 2


def test_what_goes_within_a_committed_rate_is_a_part_of_the_due(engine: DrivenEngine) -> None:
    for key in ("first", "other"):
        enqueue(engine, key, 50)
    committed = admin.SetKeyPolicyRequest(queue="q", fairness_key="first", committed_per_second=3)
    engine.call(commands.SET_KEY_POLICY, committed, admin.SetKeyPolicyResponse)
    engine.sleep(1000)
    rows(engine, orders=SERVED)
    for _ in range(6):
        engine.lease("q", 6)  # three of the first within its rate, and the rest by turns
        engine.sleep(1000)

    told, _ = rows(engine, orders=SERVED, most=5)

    assert told["first"].served_total > 2.5 * told["other"].served_total
    for state in told.values():
        assert state.due_total == pytest.approx(state.served_total, rel=0.1)


def test_a_key_that_gets_less_than_its_due_leads_off_share(engine: DrivenEngine) -> None:
    for key in ("heavy", "light"):
        enqueue(engine, key, 50)
    engine.sleep(1000)
    rows(engine, orders=OFF_SHARE)
    cap = admin.SetKeyPolicyRequest(queue="q", fairness_key="light", max_in_flight=1)
    engine.call(commands.SET_KEY_POLICY, cap, admin.SetKeyPolicyResponse)
    engine.lease("q", 20)
    engine.sleep(1000)

    told, _ = rows(engine, orders=OFF_SHARE, most=2)

    assert told["heavy"].served_per_second > told["light"].served_per_second
    assert told["light"].due_per_second > told["light"].served_per_second


def test_named_keys_are_told_whatever_they_have(engine: DrivenEngine) -> None:
    enqueue(engine, "large", 9)
    enqueue(engine, "small", 1)

    told, _ = rows(engine, orders=BACKLOG, most=1, keys=[b"small", b"never", b"large", b"small"])

    assert set(told) == {"large", "small", "never"}
    assert told["never"].state == watch.KeyState.STATE_EMPTY
    assert told["small"].ready == 1


def test_slices_come_by_every_key_and_begin_anew_when_the_table_has_grown(engine: DrivenEngine) -> None:
    for i in range(100):
        enqueue(engine, f"key{i}")  # fresh: none has a row among the clocks yet
    seen: set[str] = set()
    cursor = capacity = 0
    for _ in range(100):
        told, got = rows(engine, orders=BACKLOG, cells=16, most=16, cursor=cursor, capacity=capacity)
        seen |= set(told)
        cursor, capacity = got.cursor, got.capacity
        if not cursor:
            break
    assert len(seen) == 100
    assert rows(engine, orders=BACKLOG, cells=16, cursor=90, capacity=capacity + 1)[1].cursor < 60


def test_the_channel_is_told_with_its_keys(engine: DrivenEngine) -> None:
    enqueue(engine, "a", 3)
    engine.lease("q", 1)
    engine.sleep(700)

    _, got = rows(engine, channel=b"default")
    told = watch.QueueState.FromString(got.channel)

    assert (told.queue, told.channel, told.ready, told.in_flight) == ("q", "default", 2, 1)
    assert (told.enqueued_total, told.leased_total, told.delivered_total, told.active_keys) == (3, 1, 1, 1)
    assert told.oldest_age_ms == 700


def test_what_is_served_failed_and_returned_is_counted_apart(engine: DrivenEngine) -> None:
    enqueue(engine, "a", 6)
    session = DrivenSession(engine)
    acked, nacked, rejected, returned = session.messages[:4]
    engine.ack("q", [acked])
    engine.nack("q", [nacked], 60_000)
    item = service.SettleItem(message_id=rejected.id, lease_id=rejected.metadata.lease_id, dead_letter=True)
    request = service.NackBatchRequest(queue="q", items=[item])
    engine.call(commands.NACK_BATCH, request, service.SettleBatchResponse)
    session.say(window={"size": 2, "give_back": [returned.metadata.lease_id]})

    told = watch.QueueState.FromString(rows(engine)[1].channel)

    assert (told.acked_total, told.failed_total, told.returned_total) == (1, 2, 1)


def test_statistics_are_counted_without_a_walk_over_the_keys_where_it_is_left_out(
    engine: DrivenEngine,
) -> None:
    enqueue(engine, "a", 3)
    engine.lease("q", 1)
    asked = seam_frames.StatsAsked(queue=b"q", without_keys=True)

    told = engine.call(commands.GET_STATS, asked, admin.GetStatsResponse)
    whole = engine.stats("q")

    assert whole.active_fairness_keys == 1
    assert len(whole.per_key_stats) == 1
    for walked in ("active_fairness_keys", "per_key_stats", "per_throttle_stats"):
        whole.ClearField(walked)
    assert told == whole


def test_of_keys_that_wait_those_above_a_bound_are_told_and_all_are_counted(engine: DrivenEngine) -> None:
    enqueue(engine, "old")
    engine.sleep(1_000)
    enqueue(engine, "new")
    engine.sleep(100)

    def names(above_ms: int) -> set[str]:
        page = seam_frames.WaitingLongestPage(queue=b"q", most=10, above_ms=above_ms)
        got = engine.call(commands.WAITING_LONGEST_PAGE, page, seam_frames.WaitingLongestKeys)
        assert [each.count for each in got.waiting] == [2, 2], "in both channels"
        return {events_pb2.LateKey.FromString(row).fairness_key for row in got.keys}

    assert (names(0), names(500), names(1_100)) == ({"old", "new"}, {"old"}, set())


# --- what a seek would do --------------------------------------------------------------------


def would(engine: DrivenEngine, offset: int, from_offset: int = 0) -> tuple[int, int, int, int]:
    part = seam_frames.SeekPart(queue=b"q", offset=offset, from_offset=from_offset)
    got = engine.call(commands.SEEK_PREVIEW, part, seam_frames.SeekCount)
    return got.offset, got.replayed, got.skipped, got.leases


@pytest.mark.parametrize("target", [0, 1, 4, 5, 8, 11, 99])
def test_a_seek_does_what_its_preview_says(engine: DrivenEngine, target: int) -> None:
    config = admin.QueueConfig(
        fairness_key_header="k",
        channels=["default", "other"],
        retention=admin.Retention(soft_period_ms=3_600_000),
    )
    update = admin.UpdateQueueRequest(queue="q", config=config)
    engine.call(commands.UPDATE_QUEUE, update, admin.UpdateQueueResponse)
    enqueue(engine, "a", 10)
    done = engine.lease("q", 5)
    engine.ack("q", done[:3])
    before = engine.stats("q", "default")
    pending = {message.metadata.offset for message in done[3:]} | set(range(6, 11))

    offset, replayed, skipped, leases = would(engine, target)
    request = admin.SeekChannelRequest(queue="q", offset=target)
    moved = engine.call(commands.SEEK_CHANNEL, request, admin.SeekChannelResponse)
    after = engine.stats("q", "default")

    assert (offset, leases) == (moved.offset, 2)
    assert skipped == len([each for each in pending if each < offset])
    assert after.depth == before.depth + before.in_flight + replayed - skipped


@pytest.mark.parametrize("target", [1, 3, 6])
def test_a_preview_counts_no_message_whose_time_to_live_is_over(engine: DrivenEngine, target: int) -> None:
    engine.create_queue("short", retention=admin.Retention(soft_period_ms=3_600_000))
    for ttl_ms in (100, 0, 100, 0, 60_000):
        request = service.EnqueueBatchRequest(queue="short")
        for _ in range(2):
            request.messages.add(options={"ttl_ms": ttl_ms} if ttl_ms else {})
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
    engine.sleep(200)
    engine.ack("short", engine.lease("short", 10))

    part = seam_frames.SeekPart(queue=b"short", offset=target)
    told = engine.call(commands.SEEK_PREVIEW, part, seam_frames.SeekCount)
    request_seek = admin.SeekChannelRequest(queue="short", offset=target)
    engine.call(commands.SEEK_CHANNEL, request_seek, admin.SeekChannelResponse)

    assert told.replayed == {1: 6, 3: 6, 6: 4}[target]
    assert engine.stats("short").depth == told.replayed


# --- what it costs ---------------------------------------------------------------------------

LOOKS_MAX = 100_000
"""Steps of the walks that tell what holds keys back, of one command."""


def walked(engine: DrivenEngine) -> int:
    steps = engine.core.counters()["walked"]
    assert isinstance(steps, int)
    return steps


def fill_keys(engine: DrivenEngine, keys: int, each: int, **options: int) -> None:
    request = service.EnqueueBatchRequest(queue="q")
    for number in range(keys * each):
        request.messages.add(headers={"k": f"k{number % keys}"}, options=options)
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


def test_a_screen_of_keys_that_are_all_delayed_looks_at_so_many_timers_and_no_more(
    engine: DrivenEngine,
) -> None:
    fill_keys(engine, 1_000, 6, delay_ms=60_000)
    before = walked(engine)

    found, _ = rows(engine, orders=BACKLOG, most=256, cells=8192)

    assert walked(engine) - before <= LOOKS_MAX + 1_000
    assert len(found) == 256
    assert {state.state for state in found.values()} == {watch.KeyState.STATE_DELAYED}
    timed = [state for state in found.values() if state.until.seconds]
    assert 0 < len(timed) < 256, "when they go on is told of as many as the steps were enough for"


def test_a_screen_of_keys_looks_at_the_consumers_of_their_channel_once(engine: DrivenEngine) -> None:
    for _ in range(100):
        DrivenSession(engine, "q", max_in_flight=1)
    fill_keys(engine, 200, 1)
    before = walked(engine)

    found, _ = rows(engine, orders=BACKLOG, most=256, cells=8192)

    assert [state.state for state in found.values()].count(watch.KeyState.STATE_NO_CONSUMER) == 100
    assert walked(engine) - before <= 500
