"""What a queue says of each fairness key holds for those that nobody registered, until an operator says otherwise."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2 as events
from fila.v1 import service_pb2 as service
from fila.v1 import watch_pb2 as watch
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    made = DrivenEngine()
    yield made
    made.remove()


def configured(**defaults: Any) -> dict[str, Any]:
    return {"fairness_key_header": "k", "key_defaults": defaults}


def create(engine: DrivenEngine, **defaults: Any) -> None:
    engine.create_queue("q", **configured(**defaults))


def update(engine: DrivenEngine, **defaults: Any) -> None:
    config = admin.QueueConfig(**configured(**defaults))
    engine.call(
        commands.UPDATE_QUEUE, admin.UpdateQueueRequest(queue="q", config=config), admin.UpdateQueueResponse
    )


def say(engine: DrivenEngine, key: str, **policy: Any) -> admin.SetKeyPolicyResponse:
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key=key, **policy)
    return engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def explained(engine: DrivenEngine, key: str) -> admin.ExplainKeyResponse:
    request = admin.ExplainKeyRequest(queue="q", fairness_key=key)
    return engine.call(commands.EXPLAIN_KEY, request, admin.ExplainKeyResponse)


def policies(engine: DrivenEngine, key: str = "") -> list[events.KeyPolicy]:
    request = events.ListKeyPoliciesRequest(queue="q", fairness_key=key)
    return list(engine.call(commands.KEY_POLICIES, request, events.ListKeyPoliciesResponse).policies)


def enqueue(engine: DrivenEngine, count: int, *keys: str) -> None:
    for key in keys:
        for _ in range(count):
            engine.enqueue("q", key.encode(), {"k": key})


def enqueue_many(engine: DrivenEngine, keys: Iterable[str]) -> None:
    items = [service.EnqueueMessage(payload=b"x", headers={"k": key}) for key in keys]
    request = service.EnqueueBatchRequest(queue="q", messages=items)
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


def keys_known(engine: DrivenEngine) -> int:
    keys = engine.core.counters()["keys"]
    assert isinstance(keys, int)
    return keys


def test_keys_that_nobody_registered_have_the_queues_rate_each(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=2, burst=3)
    enqueue(engine, 20, "a", "b")

    assert sorted(engine.payloads("q")) == [b"a"] * 3 + [b"b"] * 3
    engine.sleep(1000)
    assert sorted(engine.payloads("q")) == [b"a"] * 2 + [b"b"] * 2
    enqueue(engine, 5, "new")
    assert engine.payloads("q") == [b"new"] * 3


def test_a_burst_that_is_left_out_is_one_seconds_worth(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=4)
    enqueue(engine, 10, "a")
    assert len(engine.lease("q")) == 4
    update(engine, rate_per_second=0.5)
    engine.sleep(60_000)
    assert len(engine.lease("q")) == 1


def test_the_queues_cap_is_of_each_key_and_each_channel(engine: DrivenEngine) -> None:
    engine.create_queue("q", **configured(max_in_flight=2), channels=["default", "other"])
    enqueue(engine, 5, "a", "b")

    held = engine.lease("q")

    assert sorted(m.payload for m in held) == [b"a"] * 2 + [b"b"] * 2
    assert len(engine.lease("q", channel="other")) == 4
    engine.ack("q", held[:1])
    assert len(engine.lease("q")) == 1


def test_an_operators_word_wins_field_by_field(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=1, burst=1, max_in_flight=2)
    answer = say(engine, "a", rate_per_second=100, burst=100)
    enqueue(engine, 5, "a")

    assert (answer.rate_by_default, answer.max_in_flight, answer.cap_by_default) == (False, 2, True)
    engine.sleep(1000)
    held = engine.lease("q")
    assert len(held) == 2, "the cap is still the queue's"
    say(engine, "a", max_in_flight=3)
    assert len(engine.lease("q")) == 1


def test_an_operators_none_is_a_word_too_and_can_be_taken_back(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=0.001, burst=1, max_in_flight=1)
    enqueue(engine, 6, "a")
    assert len(engine.lease("q")) == 1

    answer = say(engine, "a", rate_per_second=0, max_in_flight=0)

    assert (answer.rate_per_second, answer.max_in_flight) == (0, 0)
    (listed,) = policies(engine)
    assert (listed.fairness_key, listed.rate_by_default, listed.cap_by_default) == ("a", False, False)
    assert len(engine.lease("q", most=3)) == 3
    answer = say(engine, "a", rate_by_default=True, cap_by_default=True)
    assert (answer.rate_per_second, answer.rate_by_default) == (0.001, True)
    assert (answer.max_in_flight, answer.cap_by_default) == (1, True)
    assert len(engine.lease("q")) == 0
    assert not policies(engine)


def test_a_key_that_nobody_named_yet_shows_what_it_would_have(engine: DrivenEngine) -> None:
    defaults = configured(rate_per_second=2, burst=3, max_in_flight=4, committed_per_second=0.5)
    engine.create_queue("q", **defaults, weights={"a": 5})
    (unseen,) = policies(engine, "a")
    enqueue(engine, 1, "a")

    (seen,) = policies(engine, "a")

    assert (unseen.rate_per_second, unseen.burst, unseen.rate_by_default) == (2, 3, True)
    assert (unseen.max_in_flight, unseen.cap_by_default) == (4, True)
    assert (unseen.committed_per_second, unseen.committed_by_default) == (0.5, True)
    assert (unseen.pending, unseen.effective_weight) == (0, 5)
    seen.pending = 0
    assert seen == unseen


def test_without_defaults_a_key_that_nobody_named_yet_shows_none(engine: DrivenEngine) -> None:
    create(engine)
    assert policies(engine, "a") == [events.KeyPolicy(fairness_key="a", effective_weight=1)]


def test_without_a_default_no_cap_and_no_rate_are_nothing_to_remember(engine: DrivenEngine) -> None:
    create(engine)
    say(engine, "a", rate_per_second=0, max_in_flight=0)
    say(engine, "b", rate_by_default=True, cap_by_default=True)
    assert not policies(engine)
    assert keys_known(engine) == 0


def test_what_changes_of_a_queues_defaults_reaches_what_waits(engine: DrivenEngine) -> None:
    create(engine)
    keys = [f"k{i}" for i in range(50)]
    enqueue(engine, 3, *keys)
    say(engine, "k0", max_in_flight=2)

    update(engine, max_in_flight=1)
    held = engine.lease("q", most=1000)
    assert len(held) == 51
    update(engine, rate_per_second=0.001, burst=1)
    assert len(engine.lease("q", most=1000)) == 49, "each has the one token of a new rate, and k0 its own cap"
    update(engine)
    assert len(engine.lease("q", most=1000)) == 49


def test_many_keys_learn_of_new_defaults_in_pieces_while_keys_come_and_go(engine: DrivenEngine) -> None:
    create(engine)
    for i in range(10):
        enqueue_many(engine, (f"k{1000 * i + j}" for _ in range(2) for j in range(1000)))
    config = admin.QueueConfig(**configured(max_in_flight=1))
    request = admin.UpdateQueueRequest(queue="q", config=config)
    engine.submit(commands.UPDATE_QUEUE, request)
    assert engine.run_pass() == engine.mono_ns, "there is more to do"
    for i in range(0, 3_000, 3):
        purge = admin.PurgeQueueRequest(queue="q", fairness_key=f"k{i}")
        engine.call(commands.PURGE_QUEUE, purge, admin.PurgeQueueResponse)
    engine.others += engine.settle_down()

    taken = sum(len(engine.lease("q", most=1000)) for _ in range(30))

    assert taken == 9_000


def test_a_key_without_messages_is_remembered_until_its_bucket_is_full(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=1, burst=2)
    enqueue(engine, 2, "a")
    engine.ack("q", engine.lease("q"))
    assert keys_known(engine) == 1
    enqueue(engine, 2, "a")
    assert engine.lease("q") == [], "it would begin anew with a full bucket, did its messages' end forget it"
    engine.sleep(1000)
    engine.ack("q", engine.lease("q"))
    update(engine)
    engine.ack("q", engine.lease("q"))
    assert keys_known(engine) == 0, "without a rate there is nothing to remember"


def test_a_key_whose_bucket_is_full_again_is_forgotten(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=1, burst=2)
    before = engine.core.counters()["index_bytes"]
    enqueue(engine, 2, "a")
    engine.ack("q", engine.lease("q"))

    engine.sleep(1900)
    assert keys_known(engine) == 1
    engine.sleep(200)
    assert keys_known(engine) == 0
    assert engine.core.counters()["index_bytes"] == before


def test_a_restart_is_no_second_burst_for_known_keys_nor_for_new_ones(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=1, burst=5)
    enqueue(engine, 8, "a")
    assert len(engine.lease("q")) == 5
    say(engine, "free", rate_per_second=0)
    engine.kill()
    engine.reopen(away_ms=100)

    assert len(engine.lease("q")) == 0
    enqueue(engine, 8, "seen-before")
    enqueue(engine, 8, "free")
    assert engine.payloads("q") == [b"free"] * 8
    engine.sleep(2000)
    assert sorted(engine.payloads("q")) == [b"a"] * 2 + [b"seen-before"] * 2
    engine.sleep(60_000)
    enqueue(engine, 8, "new")
    assert engine.payloads("q").count(b"new") == 5


def test_a_resting_key_leaves_no_record_and_no_weight_behind(engine: DrivenEngine) -> None:
    engine.create_queue("q", **(configured(rate_per_second=0.001, burst=1) | {"weight_header": "w"}))
    engine.enqueue("q", b"x", {"k": "a", "w": "7"})
    engine.ack("q", engine.lease("q"))
    assert keys_known(engine) == 1
    engine.stop()
    engine.reopen()

    assert keys_known(engine) == 0
    enqueue(engine, 1, "a")
    assert explained(engine, "a").weight == 1


def test_explain_late_and_watchers_say_that_the_default_holds_a_key(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=0.001, burst=1)
    enqueue(engine, 3, "a", "b")
    say(engine, "b", rate_per_second=0.001)
    assert len(engine.lease("q")) == 2

    told = explained(engine, "a")
    assert (told.state, told.by_default) == (admin.ExplainKeyResponse.STATE_RATE_LIMITED, True)
    assert not explained(engine, "b").by_default
    page = seam_frames.WaitingLongestPage(queue=b"q", most=10)
    found = engine.call(commands.WAITING_LONGEST_PAGE, page, seam_frames.WaitingLongestKeys).keys
    assert {row.fairness_key: row.by_default for row in map(events.LateKey.FromString, found)} == {
        "a": True, "b": False,
    }  # fmt: skip
    rows = engine.call(
        commands.FIND_KEYS, seam_frames.FindPage(queue=b"q", most=10), seam_frames.KeyRows
    ).keys
    assert {row.fairness_key: row.rate_by_default for row in map(watch.KeyState.FromString, rows)} == {
        "a": True, "b": False,
    }  # fmt: skip
    update(engine, max_in_flight=1)
    assert explained(engine, "a").by_default


def test_a_key_that_rests_goes_with_its_queue(engine: DrivenEngine) -> None:
    create(engine, rate_per_second=0.001, burst=1)
    enqueue(engine, 1, "a", "b")
    engine.ack("q", engine.lease("q"))
    assert keys_known(engine) == 2
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), admin.DeleteQueueResponse)
    engine.sleep(1000)
    assert keys_known(engine) == 0


def test_a_flood_of_names_is_remembered_up_to_a_bound(engine: DrivenEngine) -> None:
    engine.create_queue("q", fairness_key_header="k", key_defaults={"rate_per_second": 1e-6, "burst": 1})
    for flood in range(101):
        enqueue_many(engine, (f"{flood}-{i}" for i in range(1000)))
        engine.ack("q", engine.lease("q", most=1000))
        engine.sleep(1)

    assert keys_known(engine) == 100_000
    enqueue(engine, 2, "0-0", "100-0")
    assert engine.payloads("q") == [b"0-0"], "the oldest were forgotten, and begin anew"
