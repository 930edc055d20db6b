"""What the message that waits for longest keeps of the limits that it needs; nobody who needs several starves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import limit_pb2 as pb
from fila.v1 import messages_pb2 as messages
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.limit_calls import COST, budget, limited_engine, put, rate, send, state, went
from tests.core.test_limits import cancelled


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = limited_engine()
    yield made
    made.remove()


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


def test_what_was_kept_for_a_dear_message_fills_a_limit_up_to_its_burst_when_a_cheap_one_goes_instead(
    engine: DrivenEngine,
) -> None:
    put(engine, "b", rates=[rate(10, 10, COST)])
    put(engine, "other", rates=[rate(1 / 60)])
    send(engine, 1, cost=10)
    assert went(engine) == 1
    send(engine, 1, u="other", k="dear", cost=9)
    send(engine, 1, u="other", k="dear")
    send(engine, 1, key="other", k="others")
    assert went(engine) == 1
    engine.sleep(1_001)
    assert went(engine) == 0
    assert state(engine, "b").tokens[0] == pytest.approx(1, abs=0.1), (
        "9 are kept while it waits for the other"
    )
    cancelled(engine)
    send(engine, 30)
    engine.sleep(59_000, step_ms=1_000)
    assert went(engine) == 1 + 10, "the burst, and what was kept takes one of it"
