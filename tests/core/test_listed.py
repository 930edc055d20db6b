"""What is not done is listed with what it is doing, without its bytes, and costs the others no more than a peek."""

from collections.abc import Iterator

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused

State = admin.GetMessageResponse
LOOKS_PER_PASS = 65_536  # as in peek.pyx


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.create_queue("q", fairness_key_header="key", max_attempts=2)
    yield engine
    engine.remove()


def listed(
    engine: DrivenEngine, queue: str = "q", most: int = 0, after: int = 0, before: int = 0, key: str = ""
) -> list[admin.PendingMessage]:
    request = admin.ListPendingRequest(
        queue=queue, max_messages=most, after_offset=after, before_offset=before, fairness_key=key
    )
    return list(engine.call(commands.LIST_PENDING, request, admin.ListPendingResponse).messages)


def states(engine: DrivenEngine, queue: str = "q") -> list[tuple[int, str]]:
    return [
        (each.offset, State.State.Name(each.state).removeprefix("STATE_").lower())
        for each in listed(engine, queue)
    ]


def test_each_message_says_what_it_is_doing_until_when_and_since_when(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"first", headers={"key": "a"})
    [held] = engine.lease("q")
    engine.enqueue("q", b"second", headers={"key": "b"})
    engine.enqueue("q", b"third", headers={"key": "a"}, delay_ms=60_000)
    engine.advance(2_000)

    first, second, third = listed(engine)

    assert (first.message_id, first.fairness_key, first.state) == (held.id, "a", State.STATE_LEASED)
    assert first.due_at == held.timestamps.lease_expires_at
    assert first.enqueued_at == held.timestamps.enqueued_at
    assert (second.state, second.fairness_key, second.cost) == (State.STATE_WAITING, "b", 1.0)
    assert not second.HasField("due_at")
    assert (third.state, third.age_ms) == (State.STATE_DELAYED, 0)
    assert 57_000 <= third.due_at.ToMilliseconds() - engine.wall_ms <= 60_000
    assert 2_000 <= second.age_ms <= 3_000
    assert b"first" not in first.SerializeToString()


def test_a_message_that_failed_tells_how_often_and_a_dead_one_is_in_the_queue_of_the_dead(
    engine: DrivenEngine,
) -> None:
    engine.enqueue("q", headers={"key": "a"})
    engine.nack("q", engine.lease("q"), delay_ms=60_000)
    [failed] = listed(engine)
    assert (failed.state, failed.attempts) == (State.STATE_DELAYED, 1)

    engine.sleep(600_000, 10_000)
    engine.nack("q", engine.lease("q"))
    engine.settle_down()

    assert listed(engine) == []
    assert states(engine, "q.dlq") == [(1, "dead")]
    assert listed(engine, "q.dlq")[0].fairness_key == "a"
    engine.lease("q.dlq")
    assert states(engine, "q.dlq") == [(1, "leased")]


def test_pages_show_each_message_once_and_what_is_acked_no_more(engine: DrivenEngine) -> None:
    for i in range(40):
        engine.enqueue("q", headers={"key": "ab"[i % 2]}, delay_ms=60_000 if i % 5 == 0 else 0)
    done = engine.lease("q", most=7)
    engine.ack("q", done)
    engine.lease("q", most=5)
    there = sorted(set(range(1, 41)) - {message.metadata.offset for message in done})

    shown: list[int] = []
    while page := listed(engine, most=4, after=shown[-1] if shown else 0):
        shown += [each.offset for each in page]

    assert shown == there
    assert [each.offset for each in listed(engine, key="b")] == [each for each in there if each % 2 == 0]
    assert [each.offset for each in listed(engine, after=10, before=20)] == [
        each for each in there if 10 < each < 20
    ]
    assert listed(engine, before=1) == []


def test_a_list_of_a_rare_key_takes_its_turn_among_the_deliveries(engine: DrivenEngine) -> None:
    batch = service.EnqueueBatchRequest(queue="q", messages=[service.EnqueueMessage()] * 10_000)
    for _ in range(LOOKS_PER_PASS // 10_000 + 2):
        engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    rare = engine.enqueue("q", headers={"key": "rare"})
    listing = engine.submit(commands.LIST_PENDING, admin.ListPendingRequest(queue="q", fairness_key="rare"))
    leasing = engine.submit(commands.LEASE, service.LeaseRequest(queue="q"))

    next_ns = engine.run_pass()

    assert [token for token, *_ in engine.core.drain()] == [leasing]
    assert next_ns == engine.mono_ns, "it goes on at once"
    [(token, _, _, payload)] = engine.settle_down()
    assert token == listing
    assert [each.offset for each in admin.ListPendingResponse.FromString(payload).messages] == [rare]


def test_a_list_of_no_queue_or_channel_says_so(engine: DrivenEngine) -> None:
    with pytest.raises(Refused, match="does not exist"):
        listed(engine, "nowhere")
    request = admin.ListPendingRequest(queue="q", channel="nowhere")
    with pytest.raises(Refused, match="channel"):
        engine.call(commands.LIST_PENDING, request, admin.ListPendingResponse)


def test_a_list_needs_no_bytes_that_are_cold(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"x" * 1000, headers={"key": "a"})
    engine.kill()
    engine.reopen()
    engine.settle_down()
    listing = engine.submit(commands.LIST_PENDING, admin.ListPendingRequest(queue="q"))

    engine.run_pass()

    [(token, _, _, payload)] = engine.core.drain()
    assert token == listing
    assert len(admin.ListPendingResponse.FromString(payload).messages) == 1
    assert engine.core.load() == 0, "nothing was asked of the disk"
