"""A key within its committed rate goes before those that are not within theirs; beyond it all share by weight."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2 as events
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession

LONG_MS = 3_600_000
BEYOND = admin.ExplainKeyResponse.STATE_BEYOND_COMMITTED


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    yield made
    made.remove()


def configured(**defaults: Any) -> dict[str, Any]:
    settings = {"fairness_key_header": "k", "weight_header": "w", "cost_header": "c"}
    return settings | {"visibility_timeout_ms": LONG_MS, "key_defaults": defaults}


def create(engine: DrivenEngine, **defaults: Any) -> None:
    engine.create_queue("q", **configured(**defaults))


def say(engine: DrivenEngine, key: str, **policy: Any) -> admin.SetKeyPolicyResponse:
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key=key, **policy)
    return engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def policies(engine: DrivenEngine, key: str = "") -> list[events.KeyPolicy]:
    request = events.ListKeyPoliciesRequest(queue="q", fairness_key=key)
    return list(engine.call(commands.KEY_POLICIES, request, events.ListKeyPoliciesResponse).policies)


def explained(engine: DrivenEngine, key: str) -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def send(engine: DrivenEngine, count: int, *keys: str, **headers: str) -> None:
    for key in keys:
        for _ in range(count):
            engine.enqueue("q", key.encode(), {"k": key, **headers})


def served(engine: DrivenEngine, seconds: int, a_second: int) -> Counter[bytes]:
    """Who was served so much a second, evenly."""
    went: Counter[bytes] = Counter()
    for _ in range(seconds * a_second):
        engine.sleep(1000 // a_second)
        went.update(engine.payloads("q", most=1))
    return went


def test_a_key_within_its_committed_rate_goes_before_all_others(engine: DrivenEngine) -> None:
    create(engine)
    say(engine, "a", committed_per_second=3)
    send(engine, 10, "b", "c", "a")

    went = engine.payloads("q", most=6)

    assert went[:3] == [b"a"] * 3, "what it may save up is one second's worth"
    assert Counter(went[3:]) == {b"a": 1, b"b": 1, b"c": 1}


def test_beyond_committed_rates_all_keys_share_by_weight_what_is_left(engine: DrivenEngine) -> None:
    create(engine)
    say(engine, "a", committed_per_second=10)
    send(engine, 600, "a", "b")
    send(engine, 600, "c", w="2")
    served(engine, 1, 50)  # what a saved up is spent

    went = served(engine, 10, 50)

    # Of 500 a hundred are committed to a; the rest is 1 to 1 to 2.
    assert {key: pytest.approx(count, abs=3) for key, count in went.items()} == {
        b"a": 200, b"b": 100, b"c": 200,
    }  # fmt: skip


def test_a_key_keeps_its_place_among_all_while_it_goes_first_now_and_then(engine: DrivenEngine) -> None:
    create(engine)
    say(engine, "a", committed_per_second=10)
    others = [f"k{i}" for i in range(40)]
    send(engine, 400, "a")
    send(engine, 20, *others)
    served(engine, 1, 20)

    went = served(engine, 20, 20)

    # Ten a second are left for 41 keys: a round takes longer than a's next token, and it has its turn in each.
    assert went[b"a"] - 200 == pytest.approx(200 / 41, abs=2)


def test_keys_that_committed_more_than_there_is_share_it_by_weight(engine: DrivenEngine) -> None:
    create(engine, committed_per_second=100)
    say(engine, "free", committed_per_second=0)
    send(engine, 300, "a", "free")
    send(engine, 300, "b", w="3")

    went = served(engine, 10, 20)

    assert went == {b"a": 50, b"b": 150}


def test_costs_count_among_those_within_their_committed_rates(engine: DrivenEngine) -> None:
    create(engine, committed_per_second=1000)
    send(engine, 200, "a")
    send(engine, 200, "b", c="5")

    went = Counter(engine.payloads("q", most=60))

    assert went == {b"a": 50, b"b": 10}


def test_its_hard_rate_stays(engine: DrivenEngine) -> None:
    create(engine, committed_per_second=50, rate_per_second=2, burst=1)
    send(engine, 100, "a")

    assert served(engine, 10, 20) == {b"a": 20}


def test_a_queues_committed_rate_holds_for_keys_that_nobody_registered_until_an_operator_says_otherwise(
    engine: DrivenEngine,
) -> None:
    create(engine, committed_per_second=0.001)
    none = say(engine, "b", committed_per_second=0)
    send(engine, 3, "b", "c")
    assert (none.committed_per_second, none.committed_by_default) == (0, False)
    assert engine.payloads("q", most=2) == [b"c", b"b"]

    back = say(engine, "b", committed_by_default=True)

    assert (back.committed_per_second, back.committed_by_default) == (0.001, True)
    assert engine.payloads("q", most=1) == [b"b"]
    assert not policies(engine)


def test_an_operators_committed_rate_survives_a_restart_and_is_no_second_burst(engine: DrivenEngine) -> None:
    create(engine, committed_per_second=5)
    say(engine, "a", committed_per_second=2.5, paused=True)
    say(engine, "b", committed_per_second=0)
    engine.kill()
    engine.reopen()

    listed = {policy.fairness_key: policy for policy in policies(engine)}

    assert (listed["a"].committed_per_second, listed["a"].committed_by_default) == (2.5, False)
    assert listed["a"].paused
    assert (listed["b"].committed_per_second, listed["b"].committed_by_default) == (0, False)
    say(engine, "a", paused=False)
    send(engine, 4, "b", "a")
    assert engine.payloads("q", most=2) == [b"b", b"a"], "it saved nothing up while the broker was away"
    engine.sleep(1000)
    assert engine.payloads("q", most=2) == [b"a"] * 2


def test_a_change_of_the_queues_default_counts_for_what_waits_already(engine: DrivenEngine) -> None:
    create(engine)
    send(engine, 4, "b", "a")
    say(engine, "b", committed_per_second=0.001)
    assert engine.payloads("q", most=1) == [b"b"]
    config = admin.QueueConfig(**configured(committed_per_second=2))

    request = admin.UpdateQueueRequest(queue="q", config=config)
    engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)

    assert engine.payloads("q", most=2) == [b"a"] * 2


def test_a_key_that_is_paused_or_at_its_cap_holds_nobody_up(engine: DrivenEngine) -> None:
    create(engine)
    say(engine, "a", committed_per_second=10, paused=True)
    say(engine, "b", committed_per_second=10, max_in_flight=1)
    send(engine, 3, "a", "b", "c")

    assert engine.payloads("q", most=9) == [b"b", b"c", b"c", b"c"]


def test_a_delivery_that_was_never_written_takes_nothing_of_the_committed_rate(engine: DrivenEngine) -> None:
    create(engine)
    say(engine, "a", committed_per_second=0.001)
    say(engine, "b", paused=True)
    session = DrivenSession(engine, tracks_begun=False, max_in_flight=1)
    send(engine, 1, "b", "a")
    say(engine, "b", paused=False)  # it stands before what comes back
    assert [message.payload for message in session.read(written=False)] == [b"a"]

    session.breaks()

    assert engine.payloads("q", most=2) == [b"a", b"b"]


def test_a_second_channel_shares_the_committed_rate(engine: DrivenEngine) -> None:
    create(engine)
    request = admin.CreateChannelRequest(queue="q", channel="audit")
    engine.call(commands.CREATE_CHANNEL, request, admin.CreateChannelResponse)
    say(engine, "a", committed_per_second=2)
    send(engine, 4, "b", "a")

    first = engine.payloads("q", most=1) + engine.payloads("q", most=1, channel="audit")

    assert first == [b"a", b"a"]
    assert engine.payloads("q", most=1) + engine.payloads("q", most=1, channel="audit") == [b"b", b"b"]


def test_a_key_that_went_first_and_has_nothing_more_is_remembered_until_that_is_forgotten(
    engine: DrivenEngine,
) -> None:
    create(engine, committed_per_second=2)
    say(engine, "b", committed_per_second=0)
    before = engine.core.counters()["index_bytes"]
    send(engine, 2, "a")
    engine.ack("q", engine.lease("q"))
    send(engine, 1, "b", "a")

    went = engine.lease("q")

    assert [message.payload for message in went] == [b"b", b"a"], "a new key would have two to go first"
    engine.ack("q", went)
    engine.sleep(900)
    assert engine.core.counters()["keys"] == 2
    engine.sleep(200)
    assert (engine.core.counters()["keys"], engine.core.counters()["index_bytes"]) == (1, before)


def test_a_channel_and_a_queue_go_with_keys_that_stand_first_there(engine: DrivenEngine) -> None:
    create(engine, committed_per_second=5)
    request = admin.CreateChannelRequest(queue="q", channel="audit")
    engine.call(commands.CREATE_CHANNEL, request, admin.CreateChannelResponse)
    send(engine, 3, "a", "b")
    gone = admin.DeleteChannelRequest(queue="q", channel="audit")

    engine.call(commands.DELETE_CHANNEL, gone, admin.DeleteChannelResponse)
    engine.sleep(100)
    assert Counter(engine.payloads("q")) == {b"a": 3, b"b": 3}
    engine.call(
        commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q", force=True), admin.DeleteQueueResponse
    )
    engine.sleep(100)

    assert engine.core.counters()["keys"] == 0


def test_explain_says_that_others_within_their_committed_rates_go_first(engine: DrivenEngine) -> None:
    create(engine, committed_per_second=0.5)
    send(engine, 4, "a", "b")
    DrivenSession(engine, tracks_begun=False, max_in_flight=1)  # takes one of a, and is full
    say(engine, "none", committed_per_second=0)
    send(engine, 1, "none")

    told = explained(engine, "a")

    assert (told.state, told.by_default) == (BEYOND, True)
    assert told.until.ToMilliseconds() - engine.wall_ms == pytest.approx(2000, abs=2)
    other = explained(engine, "none")
    assert (other.state, other.by_default, other.HasField("until")) == (BEYOND, False, False)
    assert explained(engine, "b").state == admin.ExplainKeyResponse.STATE_NO_CONSUMER
