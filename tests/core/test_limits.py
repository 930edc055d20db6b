"""The parts of a limit: rates in messages and in costs, slots, budgets, a shadow; taken as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2 as events
from fila.v1 import limit_pb2 as pb
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila.v1 import watch_pb2 as watch
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession
from tests.core.limit_calls import (
    COST,
    budget,
    limited_engine,
    put,
    rate,
    restart,
    send,
    state,
    went,
)


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = limited_engine()
    yield made
    made.remove()


# --- the parts ------------------------------------------------------------------------------


def test_a_message_takes_from_every_rate_and_the_slower_one_decides(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(10, 5), rate(1, 2)])
    send(engine, 10)

    assert went(engine) == 2
    engine.sleep(1001)
    assert went(engine) == 1
    assert state(engine, "b").tokens[0] == pytest.approx(5 - 2 + 3 - 1, abs=1), "the faster one paid as well"


def test_a_rate_in_costs_lets_a_message_of_more_than_its_burst_go_when_it_is_full(
    engine: DrivenEngine,
) -> None:
    put(engine, "b", rates=[rate(10, 10, COST)])
    send(engine, 2, cost=25)

    assert went(engine) == 1
    assert state(engine, "b").tokens == [-15]
    engine.sleep(2400)
    assert went(engine) == 0, "it owes 15 and has to be full again"
    engine.sleep(200)
    assert went(engine) == 1


def test_requests_and_tokens_a_second_are_one_limit(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(100, 100), rate(10, 20, COST)])
    send(engine, 10, cost=8)

    assert went(engine) == 2
    engine.sleep(401)
    assert went(engine) == 1
    assert state(engine, "b").tokens[0] > 90


def test_the_dear_message_whose_turn_it_is_is_not_overtaken_by_cheap_ones(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(10, 10, COST)])
    send(engine, 1, cost=10)
    assert went(engine) == 1
    send(engine, 3, cost=10, k="dear")
    send(engine, 60, cost=1, k="cheap")
    keys = []
    for _ in range(120):
        engine.sleep(100)
        keys += [message.metadata.fairness_key for message in engine.lease("q", most=1000)]
    assert keys.count("dear") == 3


def test_slots_count_leases_of_all_queues_and_an_ack_frees_one_at_once(engine: DrivenEngine) -> None:
    put(engine, "b", max_in_flight=3)
    send(engine, 5)
    send(engine, 5, queue="r")

    first = engine.lease("q", most=2)
    second = engine.lease("r", most=10)
    assert (len(first), len(second), went(engine)) == (2, 1, 0)
    assert state(engine, "b").in_flight == 3
    engine.ack("q", first[:1])
    assert went(engine) + went(engine, "r") == 1
    assert state(engine, "b").in_flight == 3


def test_slots_are_counted_anew_after_a_kill_and_are_never_more(engine: DrivenEngine) -> None:
    put(engine, "b", max_in_flight=3)
    send(engine, 10)
    held = engine.lease("q", most=10)
    engine.commit()

    restart(engine)

    assert state(engine, "b").in_flight == 3
    assert went(engine) == 0
    engine.ack("q", held)
    assert went(engine) == 3


def test_fewer_slots_than_leases_drain_and_more_let_what_waits_go(engine: DrivenEngine) -> None:
    put(engine, "b", max_in_flight=4)
    send(engine, 20)
    held = engine.lease("q", most=20)
    put(engine, "b", max_in_flight=2)

    engine.ack("q", held[:2])
    assert went(engine) == 0
    engine.ack("q", held[2:3])
    assert went(engine) == 1
    put(engine, "b", max_in_flight=6)
    assert went(engine) == 4


def test_a_budget_is_spent_for_its_period_and_whole_in_the_next_one(engine: DrivenEngine) -> None:
    put(engine, "b", budget=budget(3, period_ms=60_000, anchor_ms=engine.wall_ms))
    send(engine, 10)

    assert went(engine) == 3
    engine.sleep(59_000)
    assert went(engine) == 0
    engine.sleep(1_100, step_ms=100)
    assert went(engine) == 3


def test_what_is_spent_stays_spent_over_a_kill(engine: DrivenEngine) -> None:
    put(engine, "b", budget=budget(10, unit=COST), rates=[rate(1000, 1000)])
    send(engine, 10, cost=4)
    assert went(engine) == 2
    engine.commit()

    restart(engine)

    assert state(engine, "b").spent == 8
    assert went(engine) == 0


def test_a_clock_that_is_set_back_opens_no_period_again(engine: DrivenEngine) -> None:
    put(engine, "b", budget=budget(2, period_ms=60_000, anchor_ms=engine.wall_ms))
    send(engine, 10)
    engine.sleep(60_100)
    assert went(engine) == 2

    engine.wall_ns -= 61_000 * 1_000_000
    engine.sleep(50_000, step_ms=1000)
    assert went(engine) == 0, "the first period is over, whatever the clock says"
    engine.sleep(71_000, step_ms=1000)
    assert went(engine) == 2


def test_a_shadow_counts_what_it_would_have_held_and_holds_nothing(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(1, 2)], max_in_flight=100, shadow=True)
    send(engine, 10)

    assert went(engine) == 10
    told = state(engine, "b")
    assert (told.would_hold_total, told.passed_total, told.held_total) == (8, 10, 0)
    put(engine, "b", rates=[rate(1, 2)], max_in_flight=100)
    send(engine, 1)
    assert went(engine) == 0, "what the shadow was charged counts when it becomes a limit"


def test_an_ack_frees_the_slot_and_gives_back_nothing_else(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(1, 5)], max_in_flight=5, budget=budget(50, unit=COST))
    send(engine, 5, cost=10)
    held = engine.lease("q", most=5)
    engine.ack("q", held)
    told = state(engine, "b")
    assert (told.in_flight, told.spent, list(told.tokens)) == (0, 50, [0])


# --- one step ---------------------------------------------------------------------------------


def test_what_waits_for_one_limit_holds_nothing_of_the_other(engine: DrivenEngine) -> None:
    put(engine, "b", max_in_flight=1)
    put(engine, "other", max_in_flight=1)
    send(engine, 1, key="b")
    assert went(engine) == 1
    send(engine, 5, key="b", u="other", k="both")

    assert went(engine) == 0
    assert state(engine, "other").in_flight == 0
    send(engine, 1, key="other", k="single")
    assert went(engine) == 1, "those that wait for the first limit keep nobody from the second"


# --- those that need several ------------------------------------------------------------------


@pytest.mark.parametrize("part", ["a rate", "a budget"])
def test_a_delivery_that_was_never_written_gives_back_once_what_it_took(
    engine: DrivenEngine, part: str
) -> None:
    put(engine, "b", rates=[rate(0.001, 10)], budget=budget(10))
    send(engine, 3)
    assert went(engine) == 3
    session = DrivenSession(engine, "q", tracks_begun=False, max_in_flight=10)
    send(engine, 2)
    session.read(written=False)
    taken = state(engine, "b")
    session.breaks()
    engine.settle_down()
    back = state(engine, "b")
    if part == "a rate":
        assert [round(each.tokens[0], 2) for each in (taken, back)] == [5, 7]
    else:
        assert [each.spent for each in (taken, back)] == [5, 3]


def cancelled(engine: DrivenEngine) -> None:
    dear, *_ = (message for message in peeked(engine) if message.metadata.fairness_key == "dear")
    request = service.CancelMessagesRequest(queue="q", message_ids=[dear.id])
    engine.call(commands.CANCEL_MESSAGES, request, service.CancelMessagesResponse)


def paused(engine: DrivenEngine) -> None:
    policy = admin.SetKeyPolicyRequest(queue="q", fairness_key="dear", paused=True)
    engine.call(commands.SET_KEY_POLICY, policy, admin.SetKeyPolicyResponse)


def peeked(engine: DrivenEngine) -> list[messages.Message]:
    request = admin.PeekMessagesRequest(queue="q", max_messages=10)
    return list(engine.call(commands.PEEK_MESSAGES, request, admin.PeekMessagesResponse).messages)


@pytest.mark.parametrize("away", [cancelled, paused])
@pytest.mark.parametrize("behind", [0, 1])
def test_who_waits_behind_a_dear_message_goes_at_once_when_that_waits_no_more(
    engine: DrivenEngine, away: Callable[[DrivenEngine], None], behind: int
) -> None:
    """The line waits until the limit has enough for the dear one, which is a day."""
    put(engine, "b", rates=[rate(1000, 1000)], budget=budget(10, unit=COST))
    session = DrivenSession(engine, "q", tracks_begun=False, max_in_flight=100)
    send(engine, 1, k="first")
    session.read()
    send(engine, 1, k="dear", cost=40)
    send(engine, behind, k="dear")
    send(engine, 1, k="cheap")
    session.read()
    assert len(session.payloads) == 1

    away(engine)
    session.read()

    assert len(session.payloads) == 2 + (behind if away is cancelled else 0)


def test_a_budget_is_told_at_four_fifths_and_when_it_is_spent_ten_times_a_second_at_most(
    engine: DrivenEngine,
) -> None:
    put(engine, "tenant:*", budget=budget(10))
    for tenant in range(20):
        send(engine, 10, key=f"tenant:{tenant}")
    engine.others.clear()
    assert went(engine) == 200
    told = notices(engine)
    assert len(told) == 10
    assert told[0] == (8, b"tenant:0", b"tenant:*", 80, 0)
    engine.sleep(1100)
    send(engine, 10, key="tenant:last")
    engine.others.clear()
    assert went(engine) == 10
    assert notices(engine) == [
        (8, b"tenant:last", b"tenant:*", 80, 30),
        (8, b"tenant:last", b"tenant:*", 100, 0),
    ]


def notices(engine: DrivenEngine) -> list[tuple[int, bytes, bytes, int, int]]:
    frames = [
        seam_frames.Notice.FromString(payload)
        for _, kind, _, payload in engine.others
        if kind == commands.NOTICE
    ]
    return [(n.what, n.queue, n.channel, n.number, n.unreported) for n in frames]


@pytest.mark.parametrize(
    ("terms", "part", "number", "knows_when"),
    [
        ({"rates": [rate(1)]}, pb.LIMIT_PART_RATE, 0, True),
        ({"rates": [rate(1), rate(100, 100, COST)]}, pb.LIMIT_PART_RATE, 1, True),
        ({"rates": [rate(100, 100), rate(50, 50), rate(1, 1, COST)]}, pb.LIMIT_PART_RATE, 3, True),
        ({"rates": [rate(1), rate(0.5), rate(0.8)]}, pb.LIMIT_PART_RATE, 2, True),
        ({"max_in_flight": 1}, pb.LIMIT_PART_SLOTS, 0, False),
        ({"rates": [rate(5, 5), rate(6, 6)], "budget": budget(1)}, pb.LIMIT_PART_BUDGET, 0, True),
    ],
)
def test_explain_late_watchers_and_the_message_say_which_part_holds_a_key(
    engine: DrivenEngine, terms: dict[str, Any], part: int, number: int, knows_when: bool
) -> None:
    put(engine, "b", **terms)
    send(engine, 3)
    assert went(engine) == 1
    assert went(engine) == 0
    asked = admin.ExplainKeyRequest(queue="q", fairness_key="x")
    told = engine.call(commands.EXPLAIN_KEY, asked, admin.ExplainKeyResponse)

    assert told.state == admin.ExplainKeyResponse.STATE_THROTTLED
    assert told.HasField("until") == knows_when
    page = seam_frames.WaitingLongestPage(queue=b"q", most=10)
    (late,) = engine.call(commands.WAITING_LONGEST_PAGE, page, seam_frames.WaitingLongestKeys).keys
    find = seam_frames.FindPage(queue=b"q", most=10)
    (row,) = engine.call(commands.FIND_KEYS, find, seam_frames.KeyRows).keys
    (waits, *_) = engine.call(
        commands.PEEK_MESSAGES,
        admin.PeekMessagesRequest(queue="q", max_messages=1),
        admin.PeekMessagesResponse,
    ).messages
    one = admin.GetMessageRequest(queue="q", message_id=waits.id)
    for each in (
        told,
        events.LateKey.FromString(late),
        watch.KeyState.FromString(row),
        engine.call(commands.GET_MESSAGE, one, admin.GetMessageResponse),
    ):
        assert (each.blocking_bucket, each.blocking_part, each.blocking_rate) == ("b", part, number)
