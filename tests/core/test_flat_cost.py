"""What one message costs does not depend on how many others wait: counted in frames looked at and steps walked."""

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.limit_calls import put, rate
from tests.core.test_bounded_work import count

SMALL, LARGE = 500, 50_000
ROUNDS = 50
KEYS = 2_000


def fill(engine: DrivenEngine, queue: str, waiting: int) -> None:
    """So many messages of many keys, a thousand a frame at most."""
    for first in range(0, waiting, 1_000):
        request = service.EnqueueBatchRequest(queue=queue)
        for number in range(first, min(first + 1_000, waiting)):
            request.messages.add(payload=b"m", headers={"k": f"k{number % KEYS}", "t": f"t{number % 3}"})
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


def spent(engine: DrivenEngine) -> int:
    return count(engine, "work") + count(engine, "walked")


def rounds(engine: DrivenEngine, queue: str) -> int:
    """Everything that becomes of a message: it comes, fails, returns, is extended, and is acked late and in time."""
    before = spent(engine)
    for number in range(ROUNDS):
        engine.enqueue(queue, b"m", {"k": f"k{number}", "t": "t1"})
        engine.nack(queue, engine.lease(queue, 1))
        back = service.Settle(lease_ids=[m.metadata.lease_id for m in engine.lease(queue, 3)])
        engine.submit(commands.CANCEL, back)
        held = engine.lease(queue, 2)
        engine.ack(queue, held)
        engine.ack(queue, held)
    return spent(engine) - before


def test_a_message_costs_the_same_whatever_waits_beside_it(engine: DrivenEngine) -> None:
    for queue, waiting in (("few", SMALL), ("many", LARGE)):
        engine.create_queue(queue, fairness_key_header="k", throttle_key_headers=["t"])
        fill(engine, queue, waiting)
    few = rounds(engine, "few")

    assert rounds(engine, "many") <= 1.1 * few
    assert few <= ROUNDS * 40, "a handful for each message and call"


def test_time_that_passes_costs_the_same_whatever_waits(engine: DrivenEngine) -> None:
    cost = {}
    for queue, waiting in (("few", SMALL), ("many", LARGE)):
        engine.create_queue(queue, fairness_key_header="k", retention=admin.Retention(soft_period_ms=10**9))
        fill(engine, queue, waiting)
        before = spent(engine)
        engine.sleep(5_000, 100)
        cost[queue] = spent(engine) - before

    assert cost["many"] <= cost["few"] + 200, "housekeeping looks along the queue in steps, and at frames"


def test_a_pull_costs_the_same_however_many_names_have_a_token_for_who_waits(engine: DrivenEngine) -> None:
    put(engine, "t*", rates=[rate(1)])
    cost = {}
    for queue, names in (("few", 10), ("many", 2_000)):
        engine.create_queue(queue, fairness_key_header="k", throttle_key_headers=["t"])
        for _ in range(2):
            request = service.EnqueueBatchRequest(queue=queue)
            for number in range(names):
                request.messages.add(headers={"k": f"{queue}{number}", "t": f"t-{queue}{number}"})
            engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
        for _ in range(names // 100 + 1):
            engine.lease(queue, 100)
        engine.sleep(5_000, 1_000)
        before = spent(engine)
        assert len(engine.lease(queue, 1)) == 1
        cost[queue] = spent(engine) - before

    assert cost["many"] <= cost["few"] + 20
