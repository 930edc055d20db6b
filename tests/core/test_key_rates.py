"""An operator's rate for one fairness key: as many messages a second as it says, whatever its queue's headers name."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2 as events
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", fairness_key_header="k", channels=["default", "other"])
    yield made
    made.remove()


def slow(engine: DrivenEngine, key: str = "slow", **policy: Any) -> admin.SetKeyPolicyResponse:
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key=key, **policy)
    return engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def explained(engine: DrivenEngine, key: str = "slow") -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def enqueue(engine: DrivenEngine, count: int, key: str = "slow") -> None:
    for _ in range(count):
        engine.enqueue("q", key.encode(), {"k": key})


def leased(engine: DrivenEngine, channel: str = "") -> int:
    return len(engine.lease("q", channel=channel))


def test_a_rate_holds_back_what_waits_already_and_no_other_key(engine: DrivenEngine) -> None:
    enqueue(engine, 10)
    enqueue(engine, 3, "other")
    slow(engine, rate_per_second=2, burst=1)

    assert sorted(engine.payloads("q")) == [b"other"] * 3 + [b"slow"]
    assert leased(engine) == 0
    engine.sleep(500)
    assert leased(engine) == 1
    engine.sleep(1000)
    assert leased(engine) == 1, "what nobody took while there was a token is not saved up beyond the burst"


def test_a_burst_is_what_may_go_at_once_after_a_pause(engine: DrivenEngine) -> None:
    enqueue(engine, 20)
    assert slow(engine, rate_per_second=1, burst=5).burst == 5

    assert leased(engine) == 5
    engine.sleep(3000)
    assert leased(engine) == 3
    engine.sleep(60_000)
    assert leased(engine) == 5


def test_over_ten_seconds_who_asks_all_the_time_gets_exactly_the_rate(engine: DrivenEngine) -> None:
    enqueue(engine, 100)
    slow(engine, rate_per_second=7, burst=1)

    got = leased(engine)
    for _ in range(1000):
        engine.sleep(10)
        got += leased(engine)

    assert got == 71


def test_the_rate_is_of_all_channels_together(engine: DrivenEngine) -> None:
    enqueue(engine, 10)
    slow(engine, rate_per_second=1, burst=4)

    assert leased(engine) + leased(engine, "other") == 4
    engine.sleep(1000)
    assert leased(engine, "other") + leased(engine) == 1


def test_what_came_back_unseen_gives_its_token_back(engine: DrivenEngine) -> None:
    enqueue(engine, 5)
    slow(engine, rate_per_second=0.001, burst=1)
    stream = engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=1))
    engine.others += engine.settle_down()
    assert engine.stats("q").in_flight == 1

    engine.submit(commands.CONSUMER_CLOSE, token=stream)
    engine.others += engine.settle_down()

    assert leased(engine) == 1


def test_taking_the_rate_away_lets_all_go_at_once_and_forgets_the_key(engine: DrivenEngine) -> None:
    enqueue(engine, 5)
    slow(engine, rate_per_second=0.001, burst=1)
    assert leased(engine) == 1

    answer = slow(engine, rate_per_second=0)

    assert (answer.rate_per_second, answer.burst) == (0, 0)
    waiting = engine.lease("q")
    assert len(waiting) == 4
    slow(engine, "unused", rate_per_second=1)
    slow(engine, "unused", rate_per_second=0)
    listed = engine.call(
        commands.KEY_POLICIES, events.ListKeyPoliciesRequest(queue="q"), events.ListKeyPoliciesResponse
    )
    assert not listed.policies


def test_a_rate_outlives_a_restart_which_is_no_second_burst(engine: DrivenEngine) -> None:
    enqueue(engine, 20)
    slow(engine, rate_per_second=1, burst=5)
    assert leased(engine) == 5
    engine.stop()
    engine.reopen(away_ms=100)

    assert leased(engine) == 0
    engine.sleep(2000)
    assert leased(engine) == 2
    (key,) = engine.stats("q").per_key_stats
    assert (key.rate_per_second, key.burst) == (1, 5)


def test_explain_says_that_the_rate_holds_it_and_until_when(engine: DrivenEngine) -> None:
    enqueue(engine, 5)
    slow(engine, rate_per_second=0.5, burst=1)
    assert leased(engine) == 1
    engine.sleep(500)

    told = explained(engine)

    assert told.state == admin.ExplainKeyResponse.STATE_RATE_LIMITED
    assert abs(told.until.ToMilliseconds() - engine.wall_ms - 1500) <= 1
    engine.sleep(1000)
    told = explained(engine)
    assert told.waits.held_ms >= 4 * 1400
    assert told.waits.throttle_ms == 0


def test_what_is_left_out_stays_and_a_burst_alone_is_refused(engine: DrivenEngine) -> None:
    assert slow(engine, rate_per_second=20).burst == 20
    assert slow(engine, rate_per_second=0.5).burst == 20
    assert slow(engine, burst=3).rate_per_second == 0.5
    assert slow(engine, paused=True).burst == 3
    with pytest.raises(Refused, match="the key has no rate"):
        slow(engine, "another", burst=3)


def test_pause_cap_and_rate_hold_together(engine: DrivenEngine) -> None:
    enqueue(engine, 20)
    slow(engine, rate_per_second=10, burst=10, max_in_flight=3)
    first = engine.lease("q")
    assert len(first) == 3
    engine.ack("q", first)
    assert leased(engine) == 3
    slow(engine, paused=True)
    engine.sleep(5000)
    assert leased(engine) == 0


def test_a_queue_with_rates_is_deleted_whole(engine: DrivenEngine) -> None:
    enqueue(engine, 5)
    slow(engine, rate_per_second=1)
    leased(engine)
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), admin.DeleteQueueResponse)
    engine.sleep(5000)
    engine.create_queue("q", fairness_key_header="k")
    enqueue(engine, 5)
    assert leased(engine) == 5


def test_a_key_whose_turn_comes_late_has_no_second_burst(engine: DrivenEngine) -> None:
    slow(engine, rate_per_second=10, burst=3)
    enqueue(engine, 20)
    engine.sleep(60_000)

    assert leased(engine) == 3
