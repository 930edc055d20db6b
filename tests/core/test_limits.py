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


def work(
    engine: DrivenEngine, held: list[tuple[int, messages.Message]], total: dict[str, int], *, steps: int
) -> None:
    """Steps of 50 ms: take what goes, count it by its fairness key, and ack each after two to four of them."""
    for step in range(steps):
        engine.sleep(50)
        for message in engine.lease("q", most=100):
            held.append((step + 2 + step % 3, message))
            total[message.metadata.fairness_key] = total.get(message.metadata.fairness_key, 0) + 1
        over = [message for end, message in held if end <= step]
        held[:] = [each for each in held if each[0] > step]
        if over:
            engine.ack("q", over)


@pytest.mark.parametrize("needs", ["rates", "a rate and slots", "slots"])
def test_nobody_starves_who_needs_two_limits_that_others_always_use_up(
    engine: DrivenEngine, needs: str
) -> None:
    """Tokens of both come at other moments, and others take each as it comes."""
    known: dict[str, list[dict[str, Any]]] = {
        "rates": [{"rates": [rate(5)]}, {"rates": [rate(3)]}],
        "a rate and slots": [{"rates": [rate(5)]}, {"max_in_flight": 1}],
        "slots": [{"max_in_flight": 1}, {"max_in_flight": 1}],
    }
    terms = known[needs]
    put(engine, "b", **terms[0])
    put(engine, "other", **terms[1])
    send(engine, 1500, key="b", k="first")
    send(engine, 1500, key="other", k="second")
    total: dict[str, int] = {}
    held = [(2, message) for message in engine.lease("q", most=100)]
    send(engine, 30, key="b", u="other", k="both")
    work(engine, held, total, steps=1200)
    assert total["both"] == 30, total
    assert total["first"] > 60, total
    assert total["second"] > 60, total


@pytest.mark.parametrize(
    "other", [{"rates": [rate(3)]}, {"max_in_flight": 1}], ids=["rates", "a rate and slots"]
)
def test_of_many_who_need_two_limits_the_one_that_waits_for_longest_comes_first(
    engine: DrivenEngine, other: dict[str, Any]
) -> None:
    """A younger one that keeps something gives way, and one that is younger than the keeper keeps nothing."""
    put(engine, "b", rates=[rate(5)])
    put(engine, "other", **other)
    send(engine, 1500, key="b", k="first")
    send(engine, 1500, key="other", k="second")
    held = [(2, message) for message in engine.lease("q", most=100)]
    for number in range(12):
        send(engine, 4, key="b", u="other", k=f"both {number}")
    total: dict[str, int] = {}
    work(engine, held, total, steps=500)
    assert [total.get(f"both {number}", 0) for number in range(12)] == [4] * 12, total


def test_what_a_younger_one_kept_goes_on_at_once_where_an_older_one_keeps_something(
    engine: DrivenEngine,
) -> None:
    for name, per_second in (("x", 0.4), ("p", 1 / 3), ("y", 0.0001), ("q", 0.0001)):
        put(engine, name, rates=[rate(per_second)])
    send(engine, 1, key="x")
    send(engine, 1, key="p")
    assert went(engine) == 2
    send(engine, 1, key="p", u="q", k="older")
    send(engine, 1, key="x", u="y", k="younger")
    send(engine, 1, key="x", k="needs x alone")
    send(engine, 1, key="q", k="takes q")
    send(engine, 1, key="y", k="takes y")
    assert went(engine) == 2
    engine.sleep(2_600)
    assert went(engine) == 0, "the younger one keeps the token of x while it waits for y"
    engine.sleep(500)
    went_now = [each.metadata.fairness_key for each in engine.lease("q")]
    assert went_now == ["needs x alone"], "the next token of x comes in two seconds"


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


def test_who_keeps_something_gives_it_back_when_it_may_not_go_any_more(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(1)])
    put(engine, "other", rates=[rate(0.1)])
    send(engine, 1, key="other")
    send(engine, 1, key="b")
    assert went(engine) == 2
    send(engine, 5, key="other", k="others")
    send(engine, 5, key="b", u="other", k="both")
    send(engine, 50, key="b", k="single")
    engine.sleep(9_000, step_ms=100)
    pause = admin.SetKeyPolicyRequest(queue="q", fairness_key="both", paused=True)
    engine.call(commands.SET_KEY_POLICY, pause, admin.SetKeyPolicyResponse)
    for _ in range(5):
        engine.sleep(1001)
        assert went(engine) >= 1, "nobody keeps a token of the first limit"


def test_who_waits_for_the_budget_of_a_limit_keeps_no_slot_of_it(engine: DrivenEngine) -> None:
    """It would wait for the slot that it keeps itself."""
    put(engine, "b", max_in_flight=1, budget=budget(2, period_ms=60_000, anchor_ms=engine.wall_ms))
    put(engine, "other", max_in_flight=1)
    send(engine, 1, key="other", k="others")
    send(engine, 1, key="b", k="single")
    held = engine.lease("q", most=10)
    assert len(held) == 2
    send(engine, 1, key="b", u="other", k="both")
    engine.ack("q", [message for message in held if message.metadata.fairness_key == "single"])
    assert went(engine) == 0
    reset = pb.ResetLimitRequest(throttle_key="b", spent=2)
    engine.call(commands.RESET_LIMIT, reset, pb.ResetLimitResponse)
    engine.ack("q", [message for message in held if message.metadata.fairness_key == "others"])
    assert went(engine) == 0, "the budget is spent"
    engine.sleep(61_000, step_ms=1000)
    assert went(engine) == 1


@pytest.mark.parametrize("when", ["before its turn", "while it is kept"])
@pytest.mark.parametrize("how", ["its budget is spent", "its rate is 0"])
def test_no_slot_is_kept_for_one_that_needs_more_of_another_limit_than_a_slot(
    how: str, when: str, engine: DrivenEngine
) -> None:
    """Until the next period, or until somebody changes the rate, it would stand idle."""

    def stop() -> None:
        if how == "its rate is 0":
            put(engine, "other", max_in_flight=1, rates=[rate(0)], budget=spends)
            return
        reset = pb.ResetLimitRequest(throttle_key="other", spent=3)
        engine.call(commands.RESET_LIMIT, reset, pb.ResetLimitResponse)

    spends = budget(3, period_ms=3_600_000, anchor_ms=engine.wall_ms)
    put(engine, "b", max_in_flight=1)
    put(engine, "other", max_in_flight=1, rates=[rate(0.001)], budget=spends)
    send(engine, 1, key="b", k="single")
    send(engine, 1, key="other", k="others")
    held = {message.metadata.fairness_key: message for message in engine.lease("q", most=10)}
    assert set(held) == {"single", "others"}
    send(engine, 1, key="b", u="other", k="both")
    assert went(engine) == 0
    if when == "before its turn":
        stop()
    engine.ack("q", [held["single"]])
    assert went(engine) == 0
    if when == "while it is kept":
        assert state(engine, "b").in_flight == 1, "it waits for a slot alone"
        stop()
        engine.ack("q", [held["others"]])
        assert went(engine) == 0

    assert state(engine, "b").in_flight == 0
    send(engine, 1, key="b", k="single")
    assert went(engine) == 1


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
