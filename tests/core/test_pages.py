"""What a peek shows, and what it costs the others while it looks for it."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

LOOKS_PER_PASS = 65_536  # as in peek.pyx
U64_MAX = 2**64 - 1


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.create_queue("q", fairness_key_header="key")
    yield engine
    engine.remove()


def peek(engine: DrivenEngine, most: int = 10, after: int = 0, key: str = "") -> list[int]:
    """Return the offsets it shows."""
    request = admin.PeekMessagesRequest(queue="q", max_messages=most, after_offset=after, fairness_key=key)
    answer = engine.call(commands.PEEK_MESSAGES, request, admin.PeekMessagesResponse)
    return [message.metadata.offset for message in answer.messages]


def fill(engine: DrivenEngine, count: int, key: str) -> None:
    """As many as possible a frame."""
    for start in range(0, count, 10_000):
        batch = service.EnqueueBatchRequest(queue="q")
        for _ in range(min(10_000, count - start)):
            batch.messages.add(headers={"key": key})
        engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)


def test_nothing_comes_after_the_highest_offset_there_is(engine: DrivenEngine) -> None:
    fill(engine, 3, "a")

    assert peek(engine, after=U64_MAX - 1) == []
    assert peek(engine, after=U64_MAX) == []


def test_pages_of_one_key_show_each_message_once_and_in_order(engine: DrivenEngine) -> None:
    for i in range(40):
        engine.enqueue("q", headers={"key": "ab"[i % 2]}, delay_ms=60_000 if i % 5 == 0 else 0)
    held = {m.metadata.offset for m in engine.lease("q", most=7)}

    shown: list[int] = []
    while found := peek(engine, most=4, after=shown[-1] if shown else 0, key="b"):
        shown += found

    assert shown == [offset for offset in range(2, 41, 2) if offset not in held]
    assert peek(engine, key="b", most=1000) == shown
    assert peek(engine, key="nobody") == []


def test_a_peek_for_a_rare_key_takes_its_turn_among_the_deliveries(engine: DrivenEngine) -> None:
    engine.enqueue("q", headers={"key": "other"})
    fill(engine, LOOKS_PER_PASS + 20_000, "many")
    rare = [engine.enqueue("q", headers={"key": "rare"}) for _ in range(3)]
    request = admin.PeekMessagesRequest(queue="q", max_messages=10, fairness_key="rare")
    peeking = engine.submit(commands.PEEK_MESSAGES, request)
    leasing = engine.submit(commands.LEASE, service.LeaseRequest(queue="q"))

    next_ns = engine.run_pass()

    assert [token for token, *_ in engine.core.drain()] == [leasing]
    assert next_ns == engine.mono_ns, "it goes on at once"
    [(token, _, _, payload)] = engine.settle_down()
    assert token == peeking
    found = admin.PeekMessagesResponse.FromString(payload).messages
    assert [message.metadata.offset for message in found] == rare


def test_what_is_acked_while_a_peek_looks_is_not_shown_and_others_take_its_place(
    engine: DrivenEngine,
) -> None:
    early = [engine.enqueue("q", headers={"key": "rare"}) for _ in range(2)]
    fill(engine, LOOKS_PER_PASS + 20_000, "many")
    late = [engine.enqueue("q", headers={"key": "rare"}) for _ in range(2)]
    request = admin.PeekMessagesRequest(queue="q", max_messages=3, fairness_key="rare")
    peeking = engine.submit(commands.PEEK_MESSAGES, request)
    engine.run_pass()
    assert engine.core.drain() == []

    first = engine.lease("q", most=1)
    assert [m.metadata.offset for m in first] == early[:1]

    status, payload = engine.answer_of(peeking)
    assert status == 0
    found = admin.PeekMessagesResponse.FromString(payload).messages
    assert [message.metadata.offset for message in found] == [early[1], *late]


def test_a_peek_that_is_under_way_when_its_queue_is_deleted_says_so(engine: DrivenEngine) -> None:
    fill(engine, LOOKS_PER_PASS + 20_000, "many")
    engine.enqueue("q", headers={"key": "rare"}, delay_ms=1000)
    request = admin.PeekMessagesRequest(queue="q", max_messages=3, fairness_key="rare")
    peeking = engine.submit(commands.PEEK_MESSAGES, request)
    engine.run_pass()
    assert engine.core.drain() == []

    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="q"), admin.DeleteQueueResponse)

    status, _ = engine.answer_of(peeking)
    assert status == 5
