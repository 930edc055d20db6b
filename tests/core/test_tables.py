"""What the core keeps for each key and each frame is small, and looked through once: counted, never timed."""

from collections.abc import Callable, Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server import commands
from tests.core.driven_engine import DrivenEngine

KEYS = 1000
BYTES_A_KEY_MAX = 224
"""Its text of 8 bytes and its place in the table of keys are in it."""


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


def tail(engine: DrivenEngine) -> int:
    return engine.stats("q", "default").tail_offset


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


def test_the_tail_of_a_channel_that_is_brought_back_stands_where_its_seek_went_in_the_midst_of_a_frame(
    open_one: Callable[[], DrivenEngine],
) -> None:
    engine = open_one()
    engine.create_queue("q", retention=admin.Retention(soft_period_ms=60_000))
    request = service.EnqueueBatchRequest(queue="q", messages=[service.EnqueueMessage()] * 1000)
    for _ in range(10):
        engine.call(commands.ENQUEUE_BATCH, request, service.EnqueueBatchResponse)
        assert set(engine.ack("q", engine.lease("q", 1000))) == {0}
    assert tail(engine) == 10_001

    seek = admin.SeekChannelRequest(queue="q", channel="default", offset=1500)
    engine.submit(commands.SEEK_CHANNEL, seek)
    asked = engine.submit(commands.GET_STATS, admin.GetStatsRequest(queue="q", channel="default"))
    engine.others += engine.settle_down()
    told = admin.GetStatsResponse.FromString(engine.answer_of(asked)[1])
    assert told.tail_offset == 1500, "while nothing of it is back"
    assert tail(engine) == 1500
