"""Long operations on dead letters: they run in the broker, tell how far they are, and outlive who started them."""

from __future__ import annotations

import time

import grpc
import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import operation_pb2 as op
from fila.v1 import service_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

REDRIVE, DELETE, PURGE = (
    op.StartOperationRequest.KIND_REDRIVE,
    op.StartOperationRequest.KIND_DELETE,
    op.StartOperationRequest.KIND_PURGE,
)
State = op.Operation


def bury(server, queue: str, count: int, error: str = "no", **headers: str) -> None:
    messages = [service_pb2.EnqueueMessage(headers=headers, payload=b"%d" % i) for i in range(count)]
    server.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=queue, messages=messages))
    leased = server.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=count)).messages
    items = [
        service_pb2.SettleItem(
            message_id=each.id, lease_id=each.metadata.lease_id, dead_letter=True, error=error
        )
        for each in leased
    ]
    server.service.NackBatch(service_pb2.NackBatchRequest(queue=queue, items=items))


def start(server, queue: str, kind, rate: float = 0, **wanted):
    request = op.StartOperationRequest(
        dlq_queue=f"{queue}.dlq", kind=kind, rate_per_second=rate, filter=op.DeadLetterFilter(**wanted)
    )
    return server.admin.StartOperation(request).operation


def ended(server, operation):
    request = op.WatchOperationRequest(dlq_queue=operation.request.dlq_queue, id=operation.id)
    told = [each.operation for each in server.admin.WatchOperation(request, timeout=30)]
    assert [each.done for each in told] == sorted(each.done for each in told)
    return told[-1]


def depth(server, queue: str):
    return server.admin.GetStats(pb.GetStatsRequest(queue=queue)).depth


def test_a_redrive_moves_all_and_its_watch_ends_with_it(server, queue):
    bury(server, queue, 600)

    last = ended(server, start(server, queue, REDRIVE))

    assert (last.state, last.total, last.looked_at, last.done, last.stuck) == (
        State.STATE_DONE,
        600,
        600,
        600,
        0,
    )
    assert (depth(server, queue), depth(server, f"{queue}.dlq")) == (600, 0)
    assert last.ended_at.ToMilliseconds() >= last.started_at.ToMilliseconds()


def test_only_those_that_the_filter_means_are_dropped(server, queue):
    bury(server, queue, 3, error="timed out")
    bury(server, queue, 4, error="bad address")

    last = ended(server, start(server, queue, DELETE, error="address", reason="rejected"))

    assert (last.done, last.looked_at) == (4, 7)
    left = server.admin.PeekMessages(pb.PeekMessagesRequest(queue=f"{queue}.dlq", max_messages=10)).messages
    assert {each.metadata.dead_letter.last_error for each in left} == {"timed out"}


def test_a_purge_drops_all_and_takes_no_filter(server, queue):
    bury(server, queue, 10)
    with pytest.raises(grpc.RpcError, match="not for a purge"):
        start(server, queue, PURGE, error="x")

    assert ended(server, start(server, queue, PURGE)).done == 10
    assert depth(server, f"{queue}.dlq") == 0


def test_a_rate_is_kept_one_runs_at_a_time_and_a_cancel_ends_it(server, queue):
    bury(server, queue, 100)
    began_s = time.monotonic()
    running = start(server, queue, REDRIVE, rate=20)
    with pytest.raises(grpc.RpcError, match="an operation runs on"):
        start(server, queue, REDRIVE)
    while depth(server, queue) < 10:
        time.sleep(0.05)
    assert time.monotonic() - began_s > 8 / 20

    cancelled = server.admin.CancelOperation(
        op.CancelOperationRequest(dlq_queue=f"{queue}.dlq", id=running.id)
    ).operation

    assert cancelled.state == State.STATE_CANCELLED
    assert cancelled.done == depth(server, queue) == 100 - depth(server, f"{queue}.dlq")
    listed = server.admin.ListOperations(op.ListOperationsRequest(dlq_queue=f"{queue}.dlq")).operations
    assert [(each.id, each.state) for each in listed] == [(running.id, State.STATE_CANCELLED)]


def test_after_a_restart_it_is_told_as_stopped_with_its_count(start_server):
    first = start_server()
    first.admin.CreateQueue(pb.CreateQueueRequest(name="orders"))
    bury(first, "orders", 100)
    running = start(first, "orders", REDRIVE, rate=20)
    while depth(first, "orders") < 40:  # two seconds' worth: its record is written once a second
        time.sleep(0.05)
    first.stop()

    again = start_server()

    (told,) = again.admin.ListOperations(op.ListOperationsRequest()).operations
    assert (told.id, told.state) == (running.id, State.STATE_STOPPED)
    assert told.done == depth(again, "orders")
    assert ended(again, start(again, "orders", REDRIVE)).state == State.STATE_DONE
    assert depth(again, "orders") == 100


def test_what_a_slow_one_did_is_told_after_a_restart_and_the_stop_does_not_wait_for_its_pace(start_server):
    first = start_server()
    first.admin.CreateQueue(pb.CreateQueueRequest(name="orders"))
    bury(first, "orders", 3)
    start(first, "orders", REDRIVE, rate=0.001)
    while depth(first, "orders") < 1:
        time.sleep(0.05)
    began_s = time.monotonic()
    first.stop()
    assert time.monotonic() - began_s < 10

    again = start_server()

    (told,) = again.admin.ListOperations(op.ListOperationsRequest()).operations
    assert (told.state, told.done, depth(again, "orders")) == (State.STATE_STOPPED, 1, 1)


def test_what_is_wrong_with_an_operation_is_said(server, queue):
    for request, sentence in (
        (op.StartOperationRequest(dlq_queue=f"{queue}.dlq"), "kind must be 1"),
        (op.StartOperationRequest(dlq_queue=queue, kind=REDRIVE), "must be a dead-letter queue"),
        (op.StartOperationRequest(dlq_queue="nowhere.dlq", kind=REDRIVE), "does not exist"),
        (
            op.StartOperationRequest(
                dlq_queue=f"{queue}.dlq", kind=REDRIVE, filter=op.DeadLetterFilter(reason="boredom")
            ),
            "filter.reason must be one of",
        ),
    ):
        with pytest.raises(grpc.RpcError, match=sentence):
            server.admin.StartOperation(request)
    with pytest.raises(grpc.RpcError, match="there is no operation"):
        server.admin.CancelOperation(op.CancelOperationRequest(dlq_queue=f"{queue}.dlq", id="none"))


# --- a letter in another form ----------------------------------------------------------------


def test_an_edited_letter_is_a_new_message_of_its_source_and_the_letter_is_gone(server, queue):
    bury(server, queue, 1, tenant="acme")
    (letter,) = server.admin.PeekMessages(pb.PeekMessagesRequest(queue=f"{queue}.dlq")).messages

    told = server.admin.EditDeadLetter(
        op.EditDeadLetterRequest(
            dlq_queue=f"{queue}.dlq",
            offset=letter.metadata.offset,
            headers={"tenant": "bravo"},
            payload=b"fixed",
        )
    )

    (message,) = server.service.Lease(service_pb2.LeaseRequest(queue=queue)).messages
    assert message.id == told.message_id != letter.id
    assert message.payload == b"fixed"
    assert dict(message.headers) == {"tenant": "bravo", "fila-edited-from": letter.id}
    assert message.metadata.attempt_count == 0
    assert depth(server, f"{queue}.dlq") == 0


def test_an_edited_letter_is_routed_by_what_it_is_now(server, queue):
    script = 'function on_enqueue(m) return {fairness_key = "by-" .. m.headers.tenant} end'
    config = pb.QueueConfig(on_enqueue_script=script)
    server.admin.UpdateQueue(
        pb.UpdateQueueRequest(queue=queue, config=config, update_mask={"paths": ["on_enqueue_script"]})
    )
    bury(server, queue, 1, tenant="acme")
    edit = op.EditDeadLetterRequest(dlq_queue=f"{queue}.dlq", offset=1, headers={"tenant": "bravo"})
    server.admin.EditDeadLetter(edit)

    (message,) = server.service.Lease(service_pb2.LeaseRequest(queue=queue)).messages
    assert message.metadata.fairness_key == "by-bravo"


def test_a_letter_that_is_not_there_or_too_large_is_refused(server, queue):
    bury(server, queue, 1)
    for request, sentence in (
        (op.EditDeadLetterRequest(dlq_queue=f"{queue}.dlq", offset=99), "there is no dead letter 99"),
        (op.EditDeadLetterRequest(dlq_queue=f"{queue}.dlq"), "offset must name the dead letter"),
        (
            op.EditDeadLetterRequest(dlq_queue=f"{queue}.dlq", offset=1, headers={"fila-tenant": "x"}),
            "that begin with fila- are the broker's own",
        ),
        (
            op.EditDeadLetterRequest(dlq_queue=f"{queue}.dlq", offset=1, headers={"a" * 70_000: "x"}),
            "headers key must be at most",
        ),
    ):
        with pytest.raises(grpc.RpcError, match=sentence):
            server.admin.EditDeadLetter(request)
    assert depth(server, f"{queue}.dlq") == 1
