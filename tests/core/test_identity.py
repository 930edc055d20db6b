"""A queue tells who it is: a reader of its log keeps an offset, which means nothing in another queue."""

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine


def test_a_queue_made_anew_under_its_name_is_another_one_and_a_restart_leaves_it_the_same(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("orders")
    engine.create_queue("parcels")
    first = engine.stats("orders").creation_id
    assert first
    assert first != engine.stats("parcels").creation_id
    engine.enqueue("orders", b"1")
    engine.kill()
    engine.reopen()
    assert engine.stats("orders").creation_id == first

    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="orders"), admin.DeleteQueueResponse)
    engine.create_queue("orders")
    assert engine.stats("orders").creation_id != first


def test_the_statistics_of_a_queue_say_how_long_it_keeps_messages(engine: DrivenEngine) -> None:
    kept = admin.Retention(soft_period_ms=1, soft_bytes=2, hard_period_ms=3, hard_bytes=4)
    engine.create_queue("orders", retention=kept)
    assert engine.stats("orders").retention == kept
    engine.create_queue("parcels")
    assert engine.stats("parcels").retention == admin.Retention()
