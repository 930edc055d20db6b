"""The keys whose last hour is kept for explain: so many of a channel, and of all, whatever number comes."""

from __future__ import annotations

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

OF_A_CHANNEL, OF_ALL = 10_000, 20_000
ENQUEUED_AT_ONCE = 1_000


def _keys_wait(engine: DrivenEngine, queue: str, count: int) -> None:
    """So many keys have a message that waits for a while, and are served."""
    for first in range(0, count, ENQUEUED_AT_ONCE):
        messages = [
            service.EnqueueMessage(payload=b"x", headers={"tenant": f"{queue} {number}"})
            for number in range(first, min(first + ENQUEUED_AT_ONCE, count))
        ]
        request = service.EnqueueBatchRequest(queue=queue, messages=messages)
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
    engine.sleep(1_000)
    while leased := engine.lease(queue, ENQUEUED_AT_ONCE):
        engine.ack(queue, leased)


def test_a_channel_remembers_its_bound_of_keys_and_all_together_theirs() -> None:
    engine = DrivenEngine()
    remembered = []
    for queue in ("one", "two", "three"):
        engine.create_queue(queue, fairness_key_header="tenant")
        _keys_wait(engine, queue, OF_A_CHANNEL + 50)
        remembered.append(engine.core.counters()["remembered_keys"])
    engine.remove()

    assert remembered == [OF_A_CHANNEL, OF_ALL, OF_ALL]
