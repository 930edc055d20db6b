"""Which queue takes whose dead letters, and for how long: one that is needed does not go."""

import pytest

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused
from tests.native.storeprobe import StoreProbe

FAMILY_COUNT = 11


def delete(engine: DrivenEngine, queue: str) -> None:
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue=queue), admin.DeleteQueueResponse)


def queues(engine: DrivenEngine) -> set[str]:
    listed = engine.call(commands.LIST_QUEUES, b"", admin.ListQueuesResponse)
    return {queue.name for queue in listed.queues}


def fail_for_good(engine: DrivenEngine, payload: bytes) -> None:
    """One message of `orders`, whose queue lets a message fail once."""
    engine.enqueue("orders", payload)
    engine.nack("orders", engine.lease("orders"))
    engine.sleep(200)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_dead_letter_queue_that_was_there_before_stays_while_its_queue_is_there(
    engine: DrivenEngine, restarted: bool
) -> None:
    engine.create_queue("orders.dlq")
    engine.create_queue("orders", max_attempts=1)
    if restarted:
        engine.kill()
        engine.reopen()

    with pytest.raises(Refused, match=r"DLQ_IN_USE(.|\n)*delete that one first"):
        delete(engine, "orders.dlq")

    fail_for_good(engine, b"poison")
    assert engine.stats("orders").depth == 0
    assert engine.payloads("orders.dlq") == [b"poison"]


def test_a_dead_letter_queue_made_with_its_queue_goes_with_it_and_not_before(engine: DrivenEngine) -> None:
    engine.create_queue("orders")

    with pytest.raises(Refused, match="goes with that one"):
        delete(engine, "orders.dlq")
    delete(engine, "orders")

    assert queues(engine) == set()


def test_a_dead_letter_queue_that_was_there_before_may_go_after_its_queue(engine: DrivenEngine) -> None:
    engine.create_queue("orders.dlq")
    engine.create_queue("orders")

    delete(engine, "orders")
    assert queues(engine) == {"orders.dlq"}
    delete(engine, "orders.dlq")

    assert queues(engine) == set()


def test_a_dead_letter_queue_does_not_expire_while_its_queue_is_there(engine: DrivenEngine) -> None:
    engine.create_queue("orders.dlq", expires_after_idle_ms=1_000)
    engine.create_queue("orders", max_attempts=1)

    engine.listen(5_000)
    fail_for_good(engine, b"poison")
    assert engine.stats("orders.dlq").depth == 1

    delete(engine, "orders")
    engine.listen(500)
    assert queues(engine) == {"orders.dlq"}
    engine.listen(1_000)
    assert queues(engine) == set()


def test_a_queue_that_lost_its_dead_letter_queue_has_it_again_once_that_is_made_again(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("orders", max_attempts=1)
    engine.stop()
    lose(engine, b"orders.dlq")
    engine.reopen()
    assert queues(engine) == {"orders"}
    fail_for_good(engine, b"poison")
    assert engine.stats("orders").depth == 1, "it has nowhere to go, and stays"

    engine.create_queue("orders.dlq")
    for _ in range(2):
        engine.kill()
        engine.reopen()
    engine.sleep(120_000)
    engine.nack("orders", engine.lease("orders"))
    engine.sleep(200)

    assert engine.stats("orders").depth == 0
    assert engine.payloads("orders.dlq") == [b"poison"]
    with pytest.raises(Refused, match="delete that one first"):
        delete(engine, "orders.dlq")


def test_a_queue_that_expires_takes_no_dead_letter_queue_by_its_name(engine: DrivenEngine) -> None:
    engine.create_queue("orders", max_attempts=1, expires_after_idle_ms=60_000)
    engine.create_queue("orders.dlq")

    fail_for_good(engine, b"dropped")

    assert engine.stats("orders").dead_letters_dropped_total == 1
    delete(engine, "orders.dlq")


def lose(engine: DrivenEngine, name: bytes) -> None:
    """As damage would: the records of a queue of that name are gone, in both families that have them."""
    probe = StoreProbe(str(engine.directory))
    lost: list[tuple[int, bytes, bytes | None] | tuple[int, bytes, bytes, str]] = [
        (family, key, None)
        for family in range(FAMILY_COUNT)
        for key, value in probe.scan(family)
        if name in value
    ]
    assert len(lost) >= 2
    probe.write(lost)
    probe.sync()
    probe.close()
