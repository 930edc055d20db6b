"""What the core keeps for each key and each frame is small, and looked through once: counted, never timed."""

from collections.abc import Callable, Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine
from tests.core.test_bounded_work import WORK_PER_STAGE

KEYS = 1000
BYTES_A_KEY_MAX = 224
"""Its text of 8 bytes and its place in the table of keys are in it."""
MESSAGES_MAX = 1000
"""Of a request."""


@pytest.fixture
def open_one() -> Iterator[Callable[[], DrivenEngine]]:
    made: list[DrivenEngine] = []

    def make() -> DrivenEngine:
        made.append(DrivenEngine())
        return made[-1]

    yield make
    for engine in made:
        engine.remove()


def count(engine: DrivenEngine, name: str) -> int:
    number = engine.core.counters()[name]
    assert isinstance(number, int)
    return number


def leased_one_a_frame(engine: DrivenEngine, total: int) -> list[messages.Message]:
    """So many messages, each a frame of its own, all of them leased."""
    for _ in range(total):
        engine.enqueue("q")
    return engine.lease("q", total)


def tail(engine: DrivenEngine, queue: str = "q") -> int:
    return engine.stats(queue, "default").tail_offset


def fill(engine: DrivenEngine, queue: str, count: int) -> None:
    """So many messages, in as few frames as they fit into; nothing runs."""
    for left in range(count, 0, -MESSAGES_MAX):
        messages_ = [service.EnqueueMessage()] * min(left, MESSAGES_MAX)
        engine.submit(commands.ENQUEUE_BATCH, service.EnqueueBatchRequest(queue=queue, messages=messages_))


def take_up_a_stage(engine: DrivenEngine, queue: str, but: int) -> None:
    """Commands of so much work that those behind them in their pass have this much left."""
    batches = -(-WORK_PER_STAGE // MESSAGES_MAX)
    fill(engine, queue, WORK_PER_STAGE - but - batches)  # a command is work, and so is each of its messages


def test_a_fairness_key_takes_few_bytes_of_the_index(open_one: Callable[[], DrivenEngine]) -> None:
    taken = []
    for keys in (1, KEYS):
        engine = open_one()
        engine.create_queue("q", fairness_key_header="tenant")
        request = service.EnqueueBatchRequest(queue="q")
        for i in range(KEYS):
            request.messages.add(payload=b"x", headers={"tenant": f"{i % keys:08}"})
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
        taken.append(count(engine, "index_bytes"))
    assert taken[1] - taken[0] <= (KEYS - 1) * BYTES_A_KEY_MAX


def test_what_few_keys_have_goes_with_them(open_one: Callable[[], DrivenEngine]) -> None:
    engine = open_one()
    engine.create_queue("q", fairness_key_header="tenant")
    before = count(engine, "index_bytes")
    for cap, rate in ((3, 5.0), (0, 0.0)):
        request = admin.SetKeyPolicyRequest(
            queue="q", fairness_key="t", max_in_flight=cap, rate_per_second=rate
        )
        engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)
        assert (count(engine, "index_bytes") > before) is bool(cap)
    assert (count(engine, "index_bytes"), count(engine, "keys")) == (before, 0)


def test_what_is_kept_and_done_is_looked_through_once_for_the_tail_of_a_channel(
    open_one: Callable[[], DrivenEngine],
) -> None:
    engine = open_one()
    engine.create_queue("q", retention=admin.Retention(soft_period_ms=60_000))
    leased = leased_one_a_frame(engine, 300)
    assert set(engine.ack("q", leased[:200])) == {0}
    assert tail(engine) == 201
    assert set(engine.ack("q", leased[250:])) == {0}
    before = count(engine, "walked")
    assert tail(engine) == 201
    assert count(engine, "walked") - before <= 10
    assert set(engine.ack("q", leased[200:250])) == {0}
    assert tail(engine) == 301
    seek = admin.SeekChannelRequest(queue="q", channel="default", offset=100)
    engine.call(commands.SEEK_CHANNEL, seek, admin.SeekChannelResponse)
    assert tail(engine) == 100


def behind_a_seek(engine: DrivenEngine, offset: int) -> str:
    """A queue of 12,000 messages, all of them done and kept, whose channel was told to begin at `offset` and has
    brought nothing back when the command that follows this runs."""
    engine.create_queue("elsewhere")
    for name in ("one", "other"):
        engine.create_queue(name, retention=admin.Retention(soft_period_ms=60_000))
        fill(engine, name, 12 * MESSAGES_MAX)
        for _ in range(12):
            assert set(engine.ack(name, engine.lease(name, MESSAGES_MAX))) == {0}
        assert tail(engine, name) == 12_001

    # The core goes through its queues in this order. What the first one brings back takes several passes, and the
    # second one's command comes when there is nothing left of its stage.
    listed = engine.call(commands.LIST_QUEUES, admin.ListQueuesRequest(), admin.ListQueuesResponse).queues
    first, second = (queue.name for queue in listed if queue.name in {"one", "other"})
    engine.submit(commands.SEEK_CHANNEL, admin.SeekChannelRequest(queue=first, channel="default", offset=1))
    take_up_a_stage(engine, "elsewhere", but=1)
    seek = admin.SeekChannelRequest(queue=second, channel="default", offset=offset)
    engine.submit(commands.SEEK_CHANNEL, seek)
    return second


def test_the_tail_of_a_channel_that_is_brought_back_stands_where_its_seek_went_in_the_midst_of_a_frame(
    open_one: Callable[[], DrivenEngine],
) -> None:
    engine = open_one()
    queue = behind_a_seek(engine, 1500)
    told = engine.stats(queue, "default")
    assert (told.depth, told.tail_offset) == (0, 1500), "while nothing of it is back"
    assert tail(engine, queue) == 1500


@pytest.mark.parametrize(
    "expected",
    [
        {1: (1499, 0), 1200: (300, 0), 1500: (0, 0)},
        {1800: (0, 300), 2000: (0, 500), 2001: (0, 501), 2500: (0, 1000)},
    ],
    ids=["back", "forward"],
)
def test_what_another_seek_would_do_counts_what_the_last_one_has_yet_to_bring_back(
    open_one: Callable[[], DrivenEngine], expected: dict[int, tuple[int, int]]
) -> None:
    engine = open_one()
    queue = behind_a_seek(engine, 1500)
    for _ in ("nothing is back", "all is back"):
        asked = {
            engine.submit(
                commands.SEEK_PREVIEW, seam_frames.SeekPart(queue=queue.encode(), offset=target)
            ): target
            for target in expected
        }
        engine.others += engine.settle_down()
        told = {
            target: seam_frames.SeekCount.FromString(engine.answer_of(token)[1])
            for token, target in asked.items()
        }
        assert {target: (count.replayed, count.skipped) for target, count in told.items()} == expected
    assert engine.stats(queue, "default").depth == 10_501
