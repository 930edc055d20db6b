"""Failures whose policy is being asked, and settings that change meanwhile. Mostly faults the simulation found."""

from collections.abc import Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands, seam_frames
from tests.core.driven_engine import DrivenEngine

SCRIPT = "function on_failure(msg) end"


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    driven = DrivenEngine()
    driven.create_queue("q", on_failure_script=SCRIPT, visibility_timeout_ms=1000)
    yield driven
    driven.remove()


def events(engine: DrivenEngine) -> dict[int, int]:
    """Failures that were told since the last look: number of the event, and attempts."""
    engine.others += engine.settle_down()
    told = [out for out in engine.others if out[1] == commands.EVENT]
    engine.others = [out for out in engine.others if out[1] != commands.EVENT]
    return {number: seam_frames.FailureEvent.FromString(payload).attempts for number, _, _, payload in told}


def decide(engine: DrivenEngine, number: int, action: int) -> None:
    engine.submit(commands.DECIDE, seam_frames.Decision(action=action).SerializeToString(), number)
    engine.others += engine.settle_down()


def nack(engine: DrivenEngine, message: messages.Message) -> int:
    request = service.NackRequest(queue="q", message_id=message.id, lease_id=message.metadata.lease_id)
    return engine.submit(commands.NACK, request)


def update(engine: DrivenEngine, **config: Any) -> int:
    return engine.submit(
        commands.UPDATE_QUEUE, admin.UpdateQueueRequest(queue="q", config=admin.QueueConfig(**config))
    )


def test_a_nack_that_was_not_decided_before_a_crash_leaves_the_lease_as_it_was(engine):
    engine.enqueue("q")
    (message,) = engine.lease("q")
    token = nack(engine, message)
    assert list(events(engine).values()) == [1]
    with pytest.raises(LookupError):
        engine.answer_of(token)

    engine.kill()
    engine.reopen()

    assert engine.lease("q") == []
    assert engine.stats("q").in_flight == 1
    assert engine.ack("q", [message]) == [0]


def test_a_lease_that_ran_out_and_was_not_decided_before_a_crash_fails_again_and_counts_once(engine):
    engine.enqueue("q")
    engine.lease("q")
    engine.sleep(1001)
    assert list(events(engine).values()) == [1]

    engine.kill()
    engine.reopen()

    ((number, attempts),) = events(engine).items()
    assert attempts == 1
    decide(engine, number, seam_frames.RETRY)
    engine.sleep(200)
    assert [message.metadata.attempt_count for message in engine.lease("q")] == [1]


def test_an_extended_lease_that_fails_is_as_long_as_it_was_after_a_crash(engine):
    engine.enqueue("q")
    (message,) = engine.lease("q")
    request = service.ExtendLeaseRequest(
        queue="q", message_id=message.id, lease_id=message.metadata.lease_id, extend_ms=60_000
    )
    engine.call(commands.EXTEND_LEASE, request, service.ExtendLeaseResponse)
    nack(engine, message)
    events(engine)

    engine.kill()
    engine.reopen(away_ms=5_000)

    assert engine.ack("q", [message]) == [0]


@pytest.mark.parametrize("action", [seam_frames.RETRY, seam_frames.DEAD_LETTER])
def test_a_decision_that_was_made_holds_over_a_crash(engine, action):
    engine.enqueue("q")
    (message,) = engine.lease("q")
    nack(engine, message)
    ((number, _),) = events(engine).items()
    decide(engine, number, action)

    engine.kill()
    engine.reopen()

    engine.sleep(200)
    where = "q.dlq" if action == seam_frames.DEAD_LETTER else "q"
    assert [found.id for found in engine.lease(where)] == [message.id]
    assert engine.ack("q", [message]) != [0]


def test_a_message_whose_time_to_live_ended_while_it_was_decided_is_not_retried(engine):
    engine.enqueue("q", ttl_ms=500)
    (message,) = engine.lease("q")
    nack(engine, message)
    ((number, _),) = events(engine).items()
    engine.sleep(600)

    decide(engine, number, seam_frames.RETRY)

    engine.sleep(1000)
    assert engine.lease("q") == []
    stats = engine.stats("q")
    assert (stats.depth, stats.in_flight, stats.ttl_dropped_total) == (0, 0, 1)


def test_what_was_accepted_under_fsync_is_seen_once_it_is_durable_whatever_the_queue_is_set_to_since(engine):
    engine.enqueue("q")  # the queue's offsets are reserved from here on
    engine.ack("q", engine.lease("q"))
    first = engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"fsync"))
    update(engine, durability=admin.DURABILITY_OS)
    pulled = engine.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=9, wait_ms=1000))
    engine.run_pass()
    engine.run_pass()

    assert not {first, pulled} & {token for token, _, _, _ in engine.core.drain()}

    engine.others += engine.settle_down()
    assert engine.answer_of(first)[0] == 0
    assert len(service.LeaseResponse.FromString(engine.answer_of(pulled)[1]).messages) == 1


def test_a_message_under_os_is_answered_when_it_is_seen_though_what_came_before_it_waits_for_its_sync(engine):
    engine.enqueue("q")
    engine.ack("q", engine.lease("q"))
    engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"fsync"))
    update(engine, durability=admin.DURABILITY_OS)
    engine.run_pass()
    token = engine.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=b"os"))
    engine.run_pass()
    engine.others += engine.core.drain()
    assert token not in {owner for owner, _, _, _ in engine.others}  # or a purge would not find it

    engine.others += engine.settle_down()

    assert engine.answer_of(token)[0] == 0
    assert engine.payloads("q") == [b"fsync", b"os"]
