"""Limits on all names that begin alike, and the record that a limit is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import limit_pb2 as pb
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.limit_calls import (
    COST,
    budget,
    delete,
    limited_engine,
    listed,
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


# --- patterns ---------------------------------------------------------------------------------


def test_every_name_of_a_pattern_has_a_limit_of_its_own(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", rates=[rate(1, 2)])
    for tenant in range(20):
        send(engine, 5, key=f"tenant:{tenant}", k=str(tenant))
    send(engine, 5, key="elsewhere")

    assert went(engine) == 20 * 2 + 5
    engine.sleep(1001)
    assert went(engine) == 20


def test_the_nearest_limit_wins(engine: DrivenEngine) -> None:
    put(engine, "*", rates=[rate(1, 1)])
    put(engine, "tenant:*", rates=[rate(1, 2)])
    put(engine, "tenant:a*", rates=[rate(1, 3)])
    put(engine, "tenant:acme", rates=[rate(1, 4)])
    for key in ("x", "tenant:b", "tenant:ab", "tenant:acme"):
        send(engine, 9, key=key, k=key)

    assert went(engine) == 1 + 2 + 3 + 4
    assert [s.limit.name for s in listed(engine)] == ["*", "tenant:*", "tenant:a*", "tenant:acme"]
    assert state(engine, "tenant:abc").limit.name == "tenant:a*"


@pytest.mark.parametrize("gone", ["tenant:acme", "tenant:a*", "tenant:*"])
def test_where_a_limit_goes_the_next_shorter_one_holds(engine: DrivenEngine, gone: str) -> None:
    names = ["tenant:acme", "tenant:a*", "tenant:*"]
    for i, name in enumerate(names):
        put(engine, name, rates=[rate(0, 1 + i)])
    send(engine, 50, key="tenant:acme")
    assert went(engine) == 1

    delete(engine, gone)
    assert state(engine, "tenant:acme").limit.name == next(name for name in names if name != gone)
    engine.settle_down()
    for name in names:
        if name != gone:
            delete(engine, name)
    engine.settle_down()
    assert went(engine) == 49, "without a limit what waited goes"


def test_a_new_pattern_reaches_the_names_that_are_there_and_wait(engine: DrivenEngine) -> None:
    send(engine, 5, key="tenant:a")
    put(engine, "tenant:*", rates=[rate(1, 1)])
    assert went(engine) == 1
    put(engine, "tenant:*", rates=[rate(1, 1)], max_in_flight=3)
    put(engine, "tenant:*", rates=[rate(1000, 1000)], max_in_flight=3)
    engine.sleep(100)
    assert went(engine) == 2


def test_a_changed_pattern_reaches_many_names_over_several_passes(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", rates=[rate(0, 1)])
    for tenant in range(3000):
        send(engine, 2, key=f"tenant:{tenant}", k=str(tenant))
    total = 0
    while count := went(engine):
        total += count
    assert total == 3000
    put(engine, "tenant:*", rates=[rate(0, 1)], shadow=True)
    while count := went(engine):
        total += count
    assert total == 6000


def test_a_name_is_forgotten_when_it_is_full_and_nothing_names_it(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", rates=[rate(1, 2)])
    for tenant in range(100):
        send(engine, 1, key=f"tenant:{tenant}")
    held = engine.lease("q", most=1000)
    assert len(held) == 100
    engine.ack("q", held)
    (told,) = listed(engine)
    assert told.throttle_keys == 100, "each has used a token"

    engine.sleep(3000, step_ms=500)
    (told,) = listed(engine)
    assert (told.throttle_keys, told.passed_total) == (0, 100)


def test_what_a_name_has_used_is_not_forgotten_with_a_kill(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", rates=[rate(0.001, 2)])
    send(engine, 2, key="tenant:a")
    held = engine.lease("q")
    engine.ack("q", held)
    engine.commit()

    restart(engine)

    send(engine, 2, key="tenant:a")
    assert went(engine) == 0


@pytest.mark.parametrize("killed", [False, True])
def test_a_clock_that_is_set_back_opens_no_period_again_for_a_forgotten_name(
    engine: DrivenEngine, killed: bool
) -> None:
    put(engine, "tenant:*", budget=budget(2, period_ms=60_000, anchor_ms=engine.wall_ms))
    send(engine, 2, key="tenant:a")
    engine.ack("q", engine.lease("q", most=10))
    engine.sleep(62_000, step_ms=1000)
    (told,) = listed(engine)
    assert told.throttle_keys == 0

    engine.wall_ns -= 50_000 * 1_000_000
    if killed:
        engine.commit()
        restart(engine)
    send(engine, 5, key="tenant:a")
    assert went(engine) == 2, "of the second period"
    engine.sleep(50_000, step_ms=1000)
    assert went(engine) == 0, "the clock is back in the second period, which is spent"
    engine.sleep(59_000, step_ms=1000)
    assert went(engine) == 2, "the third one has begun"


# --- the record -------------------------------------------------------------------------------


def test_a_limit_and_its_short_form_are_one_record(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(10, 20)], max_in_flight=5, budget=budget(100))
    assert value(engine, "throttle.b") == "10,20"
    engine.set_config("throttle.b", "3,4")

    told = state(engine, "b").limit
    assert (told.rates[0].per_second, told.rates[0].burst) == (3, 4)
    assert (told.max_in_flight, told.budget.amount) == (5, 100)
    restart(engine)
    assert state(engine, "b").limit == told
    engine.set_config("throttle.b", "")
    assert not state(engine, "b").limit.rates
    restart(engine)
    assert state(engine, "b").limit.max_in_flight == 5
    delete(engine, "b")
    restart(engine)
    assert listed(engine) == []


def test_a_short_form_makes_one_rate_of_many(engine: DrivenEngine) -> None:
    put(engine, "b", rates=[rate(10, 20), rate(5, 5, COST)])
    with pytest.raises(Refused, match="CONFIG_KEY_NOT_FOUND"):
        value(engine, "throttle.b")
    engine.set_config("throttle.b", "3,4")

    assert len(state(engine, "b").limit.rates) == 1
    restart(engine)
    assert len(state(engine, "b").limit.rates) == 1
    put(engine, "b", rates=[rate(10, 20), rate(5, 5, COST)])
    restart(engine)
    assert len(state(engine, "b").limit.rates) == 2


def value(engine: DrivenEngine, key: str) -> str:
    return engine.call(commands.GET_CONFIG, admin.GetConfigRequest(key=key), admin.GetConfigResponse).value


def test_patterns_come_back_with_what_their_names_used(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", rates=[rate(0.001, 5), rate(0.001, 50, COST)], budget=budget(40, unit=COST))
    send(engine, 3, key="tenant:a", cost=10)
    assert went(engine) == 3
    engine.commit()
    restart(engine)

    told = state(engine, "tenant:a")
    assert told.limit.name == "tenant:*"
    assert list(told.tokens) == pytest.approx([2, 20], abs=0.01)
    assert told.spent == 30


def test_a_list_comes_in_pages(engine: DrivenEngine) -> None:
    names = sorted(f"n{i}" for i in range(30))
    for name in names:
        put(engine, name, rates=[rate(1, 1)])
    found: list[str] = []
    while True:
        asked = pb.ListLimitsRequest(prefix="n", after=found[-1] if found else "", max_limits=7)
        page = engine.call(commands.LIST_LIMITS, asked, pb.ListLimitsResponse)
        found += [s.limit.name for s in page.limits]
        if not page.more:
            break
    assert found == names


def test_a_reset_lets_what_waits_go(engine: DrivenEngine) -> None:
    put(engine, "b", budget=budget(2))
    send(engine, 5)
    assert went(engine) == 2
    request = pb.ResetLimitRequest(throttle_key="b", spent=1)
    assert engine.call(commands.RESET_LIMIT, request, pb.ResetLimitResponse).limit.spent == 1
    assert went(engine) == 1


@pytest.mark.parametrize(
    ("kind", "request_", "why"),
    [
        (commands.DELETE_LIMIT, pb.DeleteLimitRequest(limit_name="no"), "LIMIT_NOT_FOUND"),
        (commands.RESET_LIMIT, pb.ResetLimitRequest(throttle_key="no"), "LIMIT_NOT_FOUND"),
        (commands.RESET_LIMIT, pb.ResetLimitRequest(throttle_key="rated"), "LIMIT_WITHOUT_BUDGET"),
    ],
)
def test_what_is_not_there_is_said(engine: DrivenEngine, kind: int, request_: Any, why: str) -> None:
    put(engine, "rated", rates=[rate(1, 1)])
    with pytest.raises(Refused, match=why):
        engine.call(kind, request_, pb.DeleteLimitResponse)
