"""A queue's `key_limit`: each message of any sender also names the limit of its fairness key."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.core.limit_calls import COST, budget, put, rate, restart, state
from tests.core.sink_client import SinkClient

SETTINGS: dict[str, Any] = {
    "fairness_key_header": "k",
    "cost_header": "c",
    "throttle_key_headers": ["t", "u"],
    "visibility_timeout_ms": 3_600_000,
}


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    made.create_queue("q", key_limit="tenant:", **SETTINGS)
    yield made
    made.remove()


def update(engine: DrivenEngine, **changed: Any) -> None:
    config = admin.QueueConfig(**{**SETTINGS, **changed})
    request = admin.UpdateQueueRequest(queue="q", config=config)
    engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)


def send(engine: DrivenEngine, count: int, key: str, queue: str = "q", **headers: str) -> None:
    sent = service.EnqueueBatchRequest()
    for _ in range(count):
        sent.messages.add(queue=queue, payload=key.encode(), headers={"k": key} | headers)
    engine.call(commands.ENQUEUE_BATCH, sent, service.EnqueueBatchResponse)


def named(engine: DrivenEngine, queue: str = "q") -> list[list[str]]:
    return [list(message.metadata.throttle_keys) for message in engine.lease(queue, most=1000)]


# --- what it names ---------------------------------------------------------------------------


def test_keys_that_nobody_registered_are_held_by_one_pattern_each_for_itself(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", rates=[rate(1, 2)])
    for key in ("a", "b", "c"):
        send(engine, 10, key)

    assert sorted(engine.payloads("q")) == [b"a"] * 2 + [b"b"] * 2 + [b"c"] * 2
    engine.sleep(1001)
    assert sorted(engine.payloads("q")) == [b"a", b"b", b"c"]


def test_a_message_without_a_key_names_the_limit_of_the_default_one(engine: DrivenEngine) -> None:
    engine.enqueue("q")

    assert named(engine) == [["tenant:default"]]


def test_queues_of_one_beginning_share_the_limit_of_a_key(engine: DrivenEngine) -> None:
    engine.create_queue("r", key_limit="tenant:", **SETTINGS)
    put(engine, "tenant:*", max_in_flight=3)
    send(engine, 5, "a")
    send(engine, 5, "a", queue="r")

    assert len(engine.lease("q", most=2)) + len(engine.lease("r")) == 3
    assert state(engine, "tenant:a").in_flight == 3


def test_it_holds_a_message_whose_sender_is_bound_to_a_tenant(engine: DrivenEngine) -> None:
    send(engine, 1, "other", t="x", **{"fila-tenant": "acme"})

    assert named(engine) == [["tenant:acme"]], "its headers name neither a key nor a throttle key"


def test_it_stands_beside_the_throttle_keys_and_all_are_taken_in_one_step(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", budget=budget(5, unit=COST))
    put(engine, "openai", rates=[rate(0, 3)])
    send(engine, 9, "a", t="openai", c="2")

    assert named(engine) == [["openai", "tenant:a"]] * 2
    assert (state(engine, "openai").tokens[0], state(engine, "tenant:a").spent) == (1, 4)


def test_a_limit_that_a_header_names_too_counts_once(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", rates=[rate(0, 3)])
    send(engine, 9, "a", t="tenant:a")

    assert named(engine) == [["tenant:a"]] * 3


# --- bounds ----------------------------------------------------------------------------------


def test_a_message_that_names_as_many_limits_as_it_may_is_refused_unless_this_is_one_of_them() -> None:
    engine = DrivenEngine({"limits.throttle_keys_max": 2})
    engine.create_queue("q", key_limit="tenant:", **SETTINGS)

    with pytest.raises(Refused, match="at most 2 a message, together with that of the queue's key_limit"):
        engine.enqueue("q", headers={"k": "a", "t": "x", "u": "y"})
    engine.enqueue("q", headers={"k": "a", "t": "x", "u": "tenant:a"})
    engine.enqueue("q", headers={"k": "a", "t": "x"})

    assert named(engine) == [["tenant:a", "x"]] * 2
    engine.remove()


def test_a_key_that_is_too_long_for_the_name_of_a_limit_is_refused_with_the_bound(
    engine: DrivenEngine,
) -> None:
    longest = "x" * (256 - len("tenant:"))
    engine.enqueue("q", headers={"k": longest})
    with pytest.raises(Refused, match="key_limit before it are at most 256 bytes together; send a shorter"):
        engine.enqueue("q", headers={"k": longest + "x"})

    assert named(engine) == [["tenant:" + longest]]


def test_a_staged_message_that_no_limit_can_be_named_for_any_more_is_published_under_the_default_key(
    engine: DrivenEngine,
) -> None:
    update(engine)
    sink = SinkClient(engine)
    sink.open()
    staged = sink.staged(0, [service.EnqueueMessage(payload=b"x", headers={"k": "x" * 256})])
    update(engine, key_limit="tenant:")

    sink.publish(0, [staged])

    assert named(engine) == [["tenant:default"]]


# --- changes, ends and restarts --------------------------------------------------------------


def test_what_waits_keeps_the_limits_that_it_named_when_the_setting_changes_and_over_a_kill(
    engine: DrivenEngine,
) -> None:
    put(engine, "tenant:*", budget=budget(3))
    send(engine, 5, "a")
    update(engine)
    send(engine, 2, "a")
    engine.commit()

    restart(engine)

    assert sorted(named(engine)) == [[]] * 2 + [["tenant:a"]] * 3
    assert state(engine, "tenant:a").spent == 3


def test_what_was_spent_of_a_keys_budget_stays_spent_over_a_kill(engine: DrivenEngine) -> None:
    put(engine, "tenant:*", budget=budget(3))
    send(engine, 5, "a")
    assert len(engine.lease("q", most=2)) == 2
    engine.commit()

    restart(engine)

    assert len(engine.lease("q")) == 1
    send(engine, 5, "b")
    assert len(engine.lease("q")) == 3, "the setting is there again, too"


def test_a_dead_letter_needs_no_limit_and_a_redriven_one_that_of_the_settings_of_now(
    engine: DrivenEngine,
) -> None:
    put(engine, "tenant:*", rates=[rate(0, 2)])
    update(engine, key_limit="tenant:", max_attempts=1)
    send(engine, 2, "a")
    engine.nack("q", engine.lease("q"))
    engine.sleep(200)
    update(engine, key_limit="other:")

    assert len(engine.lease("q.dlq", most=1)) == 1, "no token is left"
    request = admin.RedriveRequest(dlq_queue="q.dlq", count=256)
    engine.call(commands.REDRIVE_MOVE, request, admin.RedriveResponse)

    assert named(engine) == [["other:a"]]


# --- the slow twin: a header that says the same ------------------------------------------------


def lived(seed: int, *, by_header: bool) -> list[Any]:
    """What happens in one random life; each message's limit named by the queue, or by a header that says the same."""
    chance = random.Random(seed)
    engine = DrivenEngine()
    own = {} if by_header else {"key_limit": "tenant:"}
    headers = ["t", "own"] if by_header else ["t"]
    engine.create_queue("q", **{**SETTINGS, "throttle_key_headers": headers, "max_attempts": 3}, **own)
    seen: list[Any] = []
    held: list[Any] = []
    put(engine, "tenant:*", rates=[rate(chance.choice([0.5, 2]), 3)], max_in_flight=chance.randint(1, 4))
    put(engine, "shared", rates=[rate(5, 2, COST)])
    for _ in range(40):
        act = chance.randrange(7)
        if act < 3:
            key = chance.choice("abc")
            more = {"t": "shared"} if chance.random() < 0.4 else {}
            more |= {"own": f"tenant:{key}"} if by_header else {}
            send(engine, chance.randint(1, 6), key, c=str(chance.choice([1, 2, 5])), **more)
        elif act == 3:
            engine.sleep(chance.choice([100, 1000, 30_000]))
        elif act == 4 and held:
            engine.ack("q", [held.pop(chance.randrange(len(held)))])
        elif act == 5 and held:
            engine.nack("q", [held.pop(chance.randrange(len(held)))], delay_ms=500)
        elif act == 6 and chance.random() < 0.3:
            engine.commit()
            restart(engine)
        went = engine.lease("q", most=chance.randint(1, 5))
        held += went
        seen.append([(each.metadata.offset, list(each.metadata.throttle_keys)) for each in went])
    engine.remove()
    return seen


@settings(max_examples=40)
@given(st.integers(0, 10_000))
@pytest.mark.costly("two whole cores for each history")
def test_a_queue_decides_as_if_each_message_named_the_limit_in_a_header(seed: int) -> None:
    assert lived(seed, by_header=False) == lived(seed, by_header=True)
