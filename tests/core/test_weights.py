"""A key's weight: an operator's word, else the weight table's, else the newest enqueue's; for what waits, at once."""

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.native.coreprobe import store_stalls

KINDS = [commands.ENQUEUE, commands.ENQUEUE_BATCH, commands.ENQUEUE_ATOMIC]


def config(**weights: int) -> admin.QueueConfig:
    return admin.QueueConfig(fairness_key_header="key", weight_header="weight", weights=weights)


def create(engine: DrivenEngine, **weights: int) -> None:
    request = admin.CreateQueueRequest(name="q", config=config(**weights))
    engine.call(commands.CREATE_QUEUE, request, admin.CreateQueueResponse)


def set_table(engine: DrivenEngine, **weights: int) -> None:
    request = admin.UpdateQueueRequest(queue="q", config=config(**weights))
    engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)


def set_weight(engine: DrivenEngine, key: str, weight: int) -> None:
    request = admin.SetKeyPolicyRequest(queue="q", fairness_key=key, weight=weight)
    engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def weights(engine: DrivenEngine) -> dict[str, int]:
    return {row.key: row.weight for row in engine.stats("q").per_key_stats}


def enqueue(engine: DrivenEngine, key: str, count: int, weight: str = "") -> None:
    batch = service.EnqueueBatchRequest(queue="q")
    for _ in range(count):
        batch.messages.add(headers={"key": key} | ({"weight": weight} if weight else {}))
    engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)


def shares(engine: DrivenEngine, count: int) -> dict[str, int]:
    keys = [message.metadata.fairness_key for message in engine.lease("q", count)]
    return {key: keys.count(key) for key in sorted(set(keys))}


def test_a_weight_taken_out_of_the_table_is_felt_by_what_waits(engine: DrivenEngine) -> None:
    create(engine, a=9)
    enqueue(engine, "a", 100)
    enqueue(engine, "b", 100)
    assert shares(engine, 20) == {"a": 18, "b": 2}

    set_table(engine)

    assert weights(engine) == {"a": 1, "b": 1}
    # The turn that runs ends first: it was granted nine, and may spend one of them now.
    after = shares(engine, 40)
    assert abs(after["a"] - after["b"]) <= 2


def test_below_the_table_the_newest_enqueues_weight_comes_back(engine: DrivenEngine) -> None:
    create(engine, a=9, b=9)
    enqueue(engine, "a", 2, "3")
    enqueue(engine, "b", 2)
    assert weights(engine) == {"a": 9, "b": 9}

    set_table(engine, b=7)

    assert weights(engine) == {"a": 3, "b": 7}


@pytest.mark.parametrize("power_cut", [False, True])
def test_what_the_table_hides_is_kept_over_a_restart(engine: DrivenEngine, power_cut: bool) -> None:
    create(engine, a=9)
    enqueue(engine, "a", 1)
    enqueue(engine, "a", 1, "3")
    enqueue(engine, "b", 1)

    if power_cut:
        engine.cut_power()
    else:
        engine.kill()
    engine.reopen()

    assert weights(engine) == {"a": 9, "b": 1}
    set_table(engine)
    assert weights(engine) == {"a": 3, "b": 1}


def test_a_table_that_was_changed_counts_after_a_restart(engine: DrivenEngine) -> None:
    create(engine, a=9)
    enqueue(engine, "a", 1, "3")
    set_table(engine, b=5)
    enqueue(engine, "b", 1)

    engine.kill()
    engine.reopen()

    assert weights(engine) == {"a": 3, "b": 5}


def test_an_operators_word_stays_above_every_table(engine: DrivenEngine) -> None:
    create(engine, a=9)
    enqueue(engine, "a", 1, "3")
    set_weight(engine, "a", 4)

    set_table(engine)
    assert weights(engine) == {"a": 4}
    set_table(engine, a=8)
    assert weights(engine) == {"a": 4}

    set_weight(engine, "a", 0)
    assert weights(engine) == {"a": 8}


def test_a_key_that_comes_back_from_idle_finds_the_table(engine: DrivenEngine) -> None:
    create(engine, a=9)
    enqueue(engine, "a", 1)
    engine.ack("q", engine.lease("q"))

    enqueue(engine, "a", 1)

    assert weights(engine) == {"a": 9}


def weighing(
    kind: int, *weight_by_key: tuple[str, str]
) -> service.EnqueueRequest | service.EnqueueBatchRequest:
    """As many messages for `q`, each of its key and with its weight; one alone where the kind takes no more."""
    batch = service.EnqueueBatchRequest(queue="q")
    for key, weight in weight_by_key:
        batch.messages.add(queue="q", headers={"key": key, "weight": weight})
    if kind != commands.ENQUEUE:
        return batch
    return service.EnqueueRequest(queue="q", headers=batch.messages[0].headers)


@pytest.mark.parametrize("kind", [commands.ENQUEUE, commands.ENQUEUE_BATCH])
def test_a_refused_message_gives_its_key_no_weight(engine: DrivenEngine, kind: int) -> None:
    create(engine)
    full = admin.UpdateQueueRequest(queue="q", config=config())
    full.config.max_depth = 1
    engine.call(commands.UPDATE_QUEUE, full, admin.UpdateQueueResponse)
    enqueue(engine, "a", 1, "3")

    refused = service.EnqueueMessage(queue="q", headers={"key": "a", "weight": "9"})
    batch = service.EnqueueBatchRequest(messages=[refused])
    alone = service.EnqueueRequest(queue="q", headers=refused.headers)
    engine.submit(kind, alone if kind == commands.ENQUEUE else batch)
    engine.settle_down()
    assert engine.stats("q").depth == 1

    assert weights(engine) == {"a": 3}
    engine.kill()
    engine.reopen()
    assert weights(engine) == {"a": 3}


def test_a_batch_that_is_refused_for_one_of_its_messages_gives_no_key_a_weight(engine: DrivenEngine) -> None:
    create(engine)
    full = admin.UpdateQueueRequest(queue="q", config=config())
    full.config.max_depth = 3
    engine.call(commands.UPDATE_QUEUE, full, admin.UpdateQueueResponse)
    enqueue(engine, "a", 1, "3")

    three = weighing(commands.ENQUEUE_ATOMIC, ("a", "9"), ("b", "5"), ("a", "7"))
    engine.submit(commands.ENQUEUE_ATOMIC, three)
    engine.settle_down()
    assert weights(engine) == {"a": 3}
    engine.kill()
    engine.reopen()
    assert weights(engine) == {"a": 3}

    two = weighing(commands.ENQUEUE_ATOMIC, ("a", "9"), ("b", "5"))
    engine.submit(commands.ENQUEUE_ATOMIC, two)
    engine.settle_down()
    assert weights(engine) == {"a": 9, "b": 5}, "each that is taken does"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", [False, True])
def test_a_message_that_a_stall_refuses_gives_its_key_no_weight(
    engine: DrivenEngine, kind: int, operator: bool
) -> None:
    create(engine)
    enqueue(engine, "a", 1, "3")
    enqueue(engine, "b", 1)
    store_stalls(engine.core, True)
    engine.submit(kind, weighing(kind, ("a", "9"), ("b", "5"), ("a", "7"), ("new", "8")))
    if operator:  # in the same pass: the key's one record has both
        request = admin.SetKeyPolicyRequest(queue="q", fairness_key="a", max_in_flight=50)
        engine.submit(commands.SET_KEY_POLICY, request)
    for _ in range(20):
        engine.advance(100)
        engine.run_pass()
    store_stalls(engine.core, False)
    engine.settle_down()
    assert engine.stats("q").depth == 2, "it was refused"

    assert weights(engine) == {"a": 3, "b": 1}
    engine.kill()
    engine.reopen()
    assert weights(engine) == {"a": 3, "b": 1}
    enqueue(engine, "new", 1)
    assert weights(engine) == {"a": 3, "b": 1, "new": 1}


@pytest.mark.parametrize("kind", [commands.ENQUEUE_BATCH, commands.ENQUEUE_ATOMIC])
def test_of_two_weights_that_a_stall_refuses_together_neither_is_kept(
    engine: DrivenEngine, kind: int
) -> None:
    """Neither `waits` nor `new` has a record of its own before."""
    create(engine)
    enqueue(engine, "waits", 1)
    store_stalls(engine.core, True)
    engine.submit(kind, weighing(kind, ("waits", "5"), ("new", "5"), ("waits", "7"), ("new", "7")))
    for _ in range(20):
        engine.advance(100)
        engine.run_pass()
    store_stalls(engine.core, False)
    engine.settle_down()
    assert engine.stats("q").depth == 1, "it was refused"

    assert weights(engine) == {"waits": 1}
    engine.kill()
    engine.reopen()
    assert weights(engine) == {"waits": 1}
    enqueue(engine, "new", 1)
    assert weights(engine) == {"waits": 1, "new": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_that_outlasts_a_short_stall_gives_its_weight(engine: DrivenEngine, kind: int) -> None:
    create(engine)
    enqueue(engine, "a", 1, "3")
    store_stalls(engine.core, True)
    engine.submit(kind, weighing(kind, ("a", "9")))
    for _ in range(5):
        engine.advance(100)
        engine.run_pass()
    store_stalls(engine.core, False)
    engine.settle_down()

    assert weights(engine) == {"a": 9}
    engine.kill()
    engine.reopen()
    assert weights(engine) == {"a": 9}


@pytest.mark.parametrize(
    ("refused", "moved"), [(["9"], "9"), (["5", "9"], "5"), (["9", "7"], "7"), (["9"], "5")]
)
def test_a_message_that_is_moved_keeps_its_weight_where_others_are_refused_beside_it(
    engine: DrivenEngine, refused: list[str], moved: str
) -> None:
    request = admin.CreateQueueRequest(name="q", config=config())
    request.config.max_attempts = 1
    engine.call(commands.CREATE_QUEUE, request, admin.CreateQueueResponse)
    enqueue(engine, "a", 1, moved)
    engine.nack("q", engine.lease("q"))  # it is a dead letter now
    enqueue(engine, "a", 1, "3")
    store_stalls(engine.core, True)
    batch = weighing(commands.ENQUEUE_BATCH, *(("a", weight) for weight in refused))
    engine.submit(commands.ENQUEUE_BATCH, batch)
    # In the same pass, of which the disk refuses the new messages alone.
    engine.submit(commands.REDRIVE_MOVE, admin.RedriveRequest(dlq_queue="q.dlq", count=256))
    for _ in range(20):
        engine.advance(100)
        engine.run_pass()
    store_stalls(engine.core, False)
    engine.settle_down()
    assert engine.stats("q").depth == 2, "those were refused"

    assert weights(engine) == {"a": int(moved)}
    engine.kill()
    engine.reopen()
    assert weights(engine) == {"a": int(moved)}
