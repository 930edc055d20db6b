"""What a burst took in memory goes back to the system once it is over, and no sooner."""

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.core.test_bounded_work import count
from tests.native.coreprobe import array_capacities


def rounds(engine: DrivenEngine, number: int) -> int:
    """How often free memory was given back in so many rounds of upkeep."""
    before = count(engine, "trims")
    for _ in range(number):
        engine.core.upkeep()
    return count(engine, "trims") - before


def test_free_memory_is_given_back_once_after_a_second_without_a_write(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    engine.enqueue("q")

    assert rounds(engine, 1) == 0, "something was written since the last round"
    assert rounds(engine, 1) == 1
    assert rounds(engine, 60) == 0, "nothing was written since"


def test_free_memory_is_given_back_at_most_every_ten_seconds(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    trims = 0
    for _ in range(20):
        engine.enqueue("q")
        trims += rounds(engine, 3)

    assert trims == 6


def test_while_messages_flow_memory_is_given_back_once_in_ten_minutes(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    given_back = []
    for number in range(1, 1_300):
        engine.enqueue("q")
        if rounds(engine, 1):
            given_back.append(number)

    assert given_back == [590, 1190]


def test_much_that_was_freed_is_given_back_while_messages_flow(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for _ in range(40):
        engine.enqueue("q", b"x" * 1_000_000)
    engine.listen(1_000)
    rounds(engine, 12)
    for _ in range(40):
        engine.ack("q", engine.lease("q", 1))
    engine.listen(1_000)

    assert [rounds(engine, int(bool(engine.enqueue("q")))) for _ in range(30)].count(1) == 1


def test_what_a_deleted_queue_had_is_given_back_after_it_is_taken_apart(engine: DrivenEngine) -> None:
    engine.create_queue("q")
    for _ in range(50):
        engine.enqueue("q")
    engine.submit(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q", force=True))
    while count(engine, "taken_apart") == 0:
        rounds(engine, 12)
        engine.run_pass()

    assert rounds(engine, 20) == 1


BURST = 12_000
OWN_FRAMES = 5_000
KEPT_MAX = 4_096
BUILT_KEPT_MAX = 16_384
"""Places in one array that goes round."""


def send(engine: DrivenEngine, first: int, end: int) -> None:
    """Each with a key, a weight and a cost of its own."""
    messages = [
        service.EnqueueMessage(queue="q", headers={"k": str(at), "w": "3", "c": str(1 + at)}, payload=b"x")
        for at in range(first, end)
    ]
    request = service.EnqueueBatchRequest(queue="q", messages=messages)
    engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)


def test_each_array_that_a_burst_made_large_is_small_again_when_all_of_it_is_done(
    engine: DrivenEngine,
) -> None:
    engine.create_queue("q", fairness_key_header="k", weight_header="w", cost_header="c")
    for number in range(OWN_FRAMES):
        send(engine, number, number + 1)
    most = array_capacities(engine.core, b"q")
    send(engine, OWN_FRAMES, BURST)
    leased = []
    while got := engine.lease("q", 1_000):
        leased += got
        sizes = array_capacities(engine.core, b"q")
        most = {name: max(size, sizes[name]) for name, size in most.items()}
    for first in range(0, BURST, 1_000):
        engine.ack("q", leased[first : first + 1_000])
    engine.others += engine.settle_down()

    kept = array_capacities(engine.core, b"q")
    assert {name for name, size in most.items() if size > KEPT_MAX} >= {
        "frames", "keys", "deferred turns", "leases", "timers", "messages built"
    }  # fmt: skip
    assert kept.pop("messages built") <= BUILT_KEPT_MAX
    assert {name: size for name, size in kept.items() if size > KEPT_MAX} == {}
