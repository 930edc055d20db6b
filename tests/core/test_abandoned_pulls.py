"""What a pull was given and nobody read comes back as if it had never been given."""

from collections.abc import Iterator

import pytest

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.create_queue("q")
    yield engine
    engine.remove()


def give_back(engine: DrivenEngine, lease_ids: list[int]) -> None:
    engine.submit(commands.CANCEL, service.Settle(lease_ids=lease_ids[::-1]))
    engine.others += engine.settle_down()


def test_messages_given_back_come_again_in_their_old_order_with_the_attempts_they_had(
    engine: DrivenEngine,
) -> None:
    for i in range(5):
        engine.enqueue("q", b"%d" % i)
    leased = engine.lease("q", 3)
    give_back(engine, [message.metadata.lease_id for message in leased])

    again = engine.lease("q", 5)

    assert [message.payload for message in again] == [b"0", b"1", b"2", b"3", b"4"]
    assert {message.metadata.attempt_count for message in again} == {0}
    assert engine.ack("q", leased) == [9, 9, 9]  # FAILED_PRECONDITION: those leases are over
    assert engine.ack("q", again) == [0] * 5


def test_a_message_given_back_goes_to_the_pull_that_waits(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"m")
    [leased] = engine.lease("q", 1)
    waiting = engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=1, wait_ms=60_000))
    engine.others += engine.settle_down()
    give_back(engine, [leased.metadata.lease_id])

    status, payload = engine.answer_of(waiting)

    assert status == 0
    assert [m.payload for m in service.LeaseResponse.FromString(payload).messages] == [b"m"]


def wait_is_over(engine: DrivenEngine, token: int) -> None:
    engine.submit(commands.CANCEL, b"over", token=token)
    engine.others += engine.settle_down()


def test_a_pull_whose_wait_is_over_is_answered_with_nothing_and_given_nothing_later(
    engine: DrivenEngine,
) -> None:
    waiting = engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=1, wait_ms=60_000))
    engine.others += engine.settle_down()
    wait_is_over(engine, waiting)

    assert engine.answer_of(waiting) == (0, b"")
    engine.enqueue("q", b"m")
    assert [message.payload for message in engine.lease("q", 1)] == [b"m"]


def test_a_pull_that_was_answered_when_its_wait_is_over_keeps_what_it_was_given(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"m")
    waiting = engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=1, wait_ms=60_000))
    wait_is_over(engine, waiting)

    status, payload = engine.answer_of(waiting)

    assert status == 0
    [message] = service.LeaseResponse.FromString(payload).messages
    assert engine.lease("q", 1) == []
    assert engine.ack("q", [message]) == [0]


def test_a_consumers_stream_has_no_wait_that_could_be_over(engine: DrivenEngine) -> None:
    stream = engine.submit(commands.CONSUME_OPEN, service.ConsumeRequest(queue="q", max_in_flight=1))
    engine.others += engine.settle_down()
    wait_is_over(engine, stream)
    engine.enqueue("q", b"m")

    assert engine.lease("q", 1) == [], "the stream has it"


def test_what_was_settled_or_unknown_is_left_as_it_is(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"m")
    leased = engine.lease("q", 1)
    engine.ack("q", leased)

    give_back(engine, [leased[0].metadata.lease_id, 2**63, 0])
    engine.submit(commands.CANCEL, b"\x12\xff no Settle")
    engine.others += engine.settle_down()

    assert engine.lease("q", 1) == []
    assert engine.stats("q").depth == 0


def test_what_was_given_back_is_not_leased_after_a_crash(engine: DrivenEngine) -> None:
    engine.enqueue("q", b"m")
    [leased] = engine.lease("q", 1)
    give_back(engine, [leased.metadata.lease_id])
    engine.kill()
    engine.reopen()

    [again] = engine.lease("q", 1)

    assert (again.payload, again.metadata.attempt_count) == (b"m", 0)
