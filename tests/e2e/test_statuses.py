"""Every row of the status table, and each limit at its value and one beyond, on a real server."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer

pytestmark = pytest.mark.e2e

Code = grpc.StatusCode
NOBODY = str(uuid.UUID(int=7))


def _refusal(call: Callable[[], Any]) -> tuple[grpc.StatusCode, str, str]:
    """Code, reason and text of a call that must fail."""
    with pytest.raises(grpc.RpcError) as raised:
        call()
    error: Any = raised.value
    status = status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == "fila"
    assert status.code == error.code().value[0]
    assert error.details(), "every refusal says why"
    return error.code(), info.reason, error.details()


def _enqueue(server: RunningServer, queue: str, **fields: Any) -> service_pb2.EnqueueResponse:
    response = server.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, **fields), timeout=10)
    assert isinstance(response, service_pb2.EnqueueResponse)
    return response


def _lease(server: RunningServer, queue: str, count: int = 1) -> list[Any]:
    request = service_pb2.LeaseRequest(queue=queue, max_messages=count)
    return list(server.service.Lease(request, timeout=10).messages)


# --- NOT_FOUND ----------------------------------------------------------------------------

UNKNOWN_QUEUE = [
    ("service", "Enqueue", service_pb2.EnqueueRequest(queue="nobody")),
    ("service", "Lease", service_pb2.LeaseRequest(queue="nobody")),
    ("service", "Ack", service_pb2.AckRequest(queue="nobody", message_id=NOBODY)),
    ("service", "Nack", service_pb2.NackRequest(queue="nobody", message_id=NOBODY)),
    (
        "service",
        "ExtendLease",
        service_pb2.ExtendLeaseRequest(queue="nobody", message_id=NOBODY, extend_ms=1000),
    ),
    ("service", "AckBatch", service_pb2.AckBatchRequest(queue="nobody", items=[{"message_id": NOBODY}])),
    ("service", "NackBatch", service_pb2.NackBatchRequest(queue="nobody", items=[{"message_id": NOBODY}])),
    ("admin", "GetQueue", admin_pb2.GetQueueRequest(queue="nobody")),
    ("admin", "DeleteQueue", admin_pb2.DeleteQueueRequest(queue="nobody")),
    ("admin", "PurgeQueue", admin_pb2.PurgeQueueRequest(queue="nobody")),
    ("admin", "PeekMessages", admin_pb2.PeekMessagesRequest(queue="nobody")),
    ("admin", "GetStats", admin_pb2.GetStatsRequest(queue="nobody")),
    (
        "admin",
        "UpdateQueue",
        admin_pb2.UpdateQueueRequest(queue="nobody", update_mask={"paths": ["max_depth"]}),
    ),
]


@pytest.mark.parametrize(
    ("service", "method", "request_"), UNKNOWN_QUEUE, ids=[row[1] for row in UNKNOWN_QUEUE]
)
def test_a_queue_that_does_not_exist_is_not_found(
    server: RunningServer, service: str, method: str, request_: Any
) -> None:
    code, reason, text = _refusal(lambda: getattr(getattr(server, service), method)(request_, timeout=10))

    assert (code, reason) == (Code.NOT_FOUND, "QUEUE_NOT_FOUND")
    assert 'queue "nobody" does not exist' in text


def test_consuming_a_queue_that_does_not_exist_is_not_found(server: RunningServer) -> None:
    consume = server.service.Consume(service_pb2.ConsumeRequest(queue="nobody"), timeout=10)
    assert _refusal(lambda: next(consume))[:2] == (Code.NOT_FOUND, "QUEUE_NOT_FOUND")

    opening = [service_pb2.ConsumeSessionRequest(open={"queue": "nobody"})]
    session = server.service.ConsumeSession(iter(opening), timeout=10)
    assert _refusal(lambda: next(session))[:2] == (Code.NOT_FOUND, "QUEUE_NOT_FOUND")


UNKNOWN_CHANNEL = [
    ("service", "Lease", service_pb2.LeaseRequest(channel="nobody")),
    ("service", "Ack", service_pb2.AckRequest(channel="nobody", message_id=NOBODY)),
    ("service", "Nack", service_pb2.NackRequest(channel="nobody", message_id=NOBODY)),
    ("admin", "PurgeQueue", admin_pb2.PurgeQueueRequest(channel="nobody")),
    ("admin", "GetStats", admin_pb2.GetStatsRequest(channel="nobody")),
    ("admin", "PeekMessages", admin_pb2.PeekMessagesRequest(channel="nobody")),
    ("admin", "DeleteChannel", admin_pb2.DeleteChannelRequest(channel="nobody")),
]


@pytest.mark.parametrize(
    ("service", "method", "request_"), UNKNOWN_CHANNEL, ids=[row[1] for row in UNKNOWN_CHANNEL]
)
def test_a_channel_that_does_not_exist_is_not_found(
    server: RunningServer, queue: str, service: str, method: str, request_: Any
) -> None:
    request_.queue = queue
    code, reason, text = _refusal(lambda: getattr(getattr(server, service), method)(request_, timeout=10))

    assert (code, reason) == (Code.NOT_FOUND, "CHANNEL_NOT_FOUND")
    assert f'queue "{queue}" has no channel "nobody"' in text


def test_a_message_that_is_not_stored_is_not_found(server: RunningServer, queue: str) -> None:
    request = service_pb2.AckRequest(queue=queue, message_id=NOBODY)

    assert _refusal(lambda: server.service.Ack(request))[:2] == (Code.NOT_FOUND, "MESSAGE_NOT_FOUND")


def test_an_ack_without_a_lease_needs_a_leased_message(server: RunningServer, queue: str) -> None:
    stored = _enqueue(server, queue)
    request = service_pb2.AckRequest(queue=queue, message_id=stored.message_id)

    assert _refusal(lambda: server.service.Ack(request))[:2] == (Code.NOT_FOUND, "MESSAGE_NOT_FOUND")
    _lease(server, queue)
    server.service.Ack(request)
    assert _refusal(lambda: server.service.Ack(request))[0] is Code.NOT_FOUND


def test_a_config_key_that_is_not_set_is_not_found(server: RunningServer) -> None:
    code, _, text = _refusal(lambda: server.admin.GetConfig(admin_pb2.GetConfigRequest(key="nobody")))

    assert code is Code.NOT_FOUND
    assert '"nobody" is not set' in text


# --- ALREADY_EXISTS, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, UNIMPLEMENTED ---------------


def test_a_queue_that_exists_already_exists(server: RunningServer, queue: str) -> None:
    request = admin_pb2.CreateQueueRequest(name=queue)
    code, reason, text = _refusal(lambda: server.admin.CreateQueue(request))

    assert (code, reason) == (Code.ALREADY_EXISTS, "QUEUE_EXISTS")
    assert f'queue "{queue}" exists' in text


def test_a_lease_that_is_no_longer_current_is_a_failed_precondition(
    server: RunningServer, queue: str
) -> None:
    _enqueue(server, queue)
    [first] = _lease(server, queue)
    nack = service_pb2.NackRequest(
        queue=queue, message_id=first.id, lease_id=first.metadata.lease_id, delay_ms=0
    )
    server.service.Nack(nack)
    [second] = _lease(server, queue)
    late = service_pb2.AckRequest(queue=queue, message_id=first.id, lease_id=first.metadata.lease_id)

    assert second.metadata.attempt_count == 1
    assert _refusal(lambda: server.service.Ack(late))[:2] == (Code.FAILED_PRECONDITION, "LEASE_LOST")


def test_a_full_queue_is_exhausted_and_says_when_to_come_back(server: RunningServer) -> None:
    config = admin_pb2.QueueConfig(max_depth=2)
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="small", config=config))
    for _ in range(2):
        _enqueue(server, "small")

    with pytest.raises(grpc.RpcError) as raised:
        _enqueue(server, "small")

    error: Any = raised.value
    status = status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    retry = error_details_pb2.RetryInfo()
    assert error.code() is Code.RESOURCE_EXHAUSTED
    assert status.details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() > 0


# --- limits -------------------------------------------------------------------------------

PER_MESSAGE = [
    ("payload", {"payload": bytes(1 << 20)}, {"payload": bytes((1 << 20) + 1)}),
    ("headers", {"headers": {f"h{i}": "" for i in range(64)}}, {"headers": {f"h{i}": "" for i in range(65)}}),
    ("header", {"headers": {"k" * 4096: "v"}}, {"headers": {"k" * 4097: "v"}}),
    ("header", {"headers": {"k": "v" * 4096}}, {"headers": {"k": "v" * 4097}}),
]


@pytest.mark.parametrize(("field", "at", "beyond"), PER_MESSAGE, ids=["payload", "headers", "key", "value"])
def test_a_message_at_its_limit_is_stored_and_one_beyond_is_refused_by_name(
    server: RunningServer, queue: str, field: str, at: dict[str, Any], beyond: dict[str, Any]
) -> None:
    assert _enqueue(server, queue, **at).offset == 1

    code, reason, text = _refusal(lambda: _enqueue(server, queue, **beyond))

    assert (code, reason) == (Code.INVALID_ARGUMENT, "LIMIT_EXCEEDED")
    assert field in text
    assert any(letter.isdigit() for letter in text), "the bound is named"
    assert _enqueue(server, queue).offset == 2


def test_a_fairness_key_out_of_a_header_has_its_limit_too(server: RunningServer) -> None:
    config = admin_pb2.QueueConfig(fairness_key_header="tenant")
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="keyed", config=config))
    _enqueue(server, "keyed", headers={"tenant": "t" * 256})

    code, _, text = _refusal(lambda: _enqueue(server, "keyed", headers={"tenant": "t" * 257}))

    assert code is Code.INVALID_ARGUMENT
    assert "256" in text


def test_a_batch_at_its_limit_is_stored_and_one_beyond_is_refused(server: RunningServer, queue: str) -> None:
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[{}] * 10_000)
    results = server.service.EnqueueBatch(batch, timeout=20).results
    assert len(results) == 10_000
    assert results[-1].offset == 10_000
    batch.messages.add()

    code, reason, text = _refusal(lambda: server.service.EnqueueBatch(batch, timeout=20))

    assert (code, reason) == (Code.INVALID_ARGUMENT, "LIMIT_EXCEEDED")
    assert "10000" in text


def test_a_bad_message_never_fails_its_neighbours(server: RunningServer, queue: str) -> None:
    messages = [
        service_pb2.EnqueueMessage(payload=b"1"),
        service_pb2.EnqueueMessage(queue="nobody"),
        service_pb2.EnqueueMessage(payload=bytes((1 << 20) + 1)),
        service_pb2.EnqueueMessage(headers={"k" * 4097: "v"}),
        service_pb2.EnqueueMessage(payload=b"2"),
    ]

    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=messages)
    results = server.service.EnqueueBatch(batch, timeout=10).results

    assert [result.error.reason for result in results] == [
        "",
        "QUEUE_NOT_FOUND",
        "LIMIT_EXCEEDED",
        "LIMIT_EXCEEDED",
        "",
    ]
    assert [message.payload for message in _lease(server, queue, 10)] == [b"1", b"2"]


# --- bad input ----------------------------------------------------------------------------

HOT_UNARY = ("Enqueue", "EnqueueBatch", "Lease", "Ack", "Nack", "AckBatch", "NackBatch", "ExtendLease")
GARBAGE = [
    b"\xff" * 16,
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x0a\x05ab",
    b"\x0a\x02\xff\xfe",
    b"",
    b"\x00",
    b"\x0b\x0b",
]


@pytest.mark.parametrize("method", HOT_UNARY)
def test_garbage_is_an_invalid_argument_on_every_call(server: RunningServer, method: str) -> None:
    channel: Any = server.channel()
    call = channel.unary_unary(f"/fila.v1.FilaService/{method}")
    for frame in GARBAGE:
        if method == "EnqueueBatch" and frame == b"":
            continue  # an empty batch is a batch
        code, _, _ = _refusal(lambda frame=frame: call(frame, timeout=10))  # type: ignore[misc]
        assert code is Code.INVALID_ARGUMENT, frame


BAD_NAMES = ["", ".hidden", "a b", "a/b", "x" * 256, "é", "a\n"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_a_name_no_queue_can_have_is_an_invalid_argument_everywhere(server: RunningServer, name: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: server.service.Enqueue(service_pb2.EnqueueRequest(queue=name)),
        lambda: server.service.Lease(service_pb2.LeaseRequest(queue=name)),
        lambda: next(server.service.Consume(service_pb2.ConsumeRequest(queue=name))),
        lambda: server.service.Ack(service_pb2.AckRequest(queue=name, message_id=NOBODY)),
        lambda: server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name)),
        lambda: server.admin.GetStats(admin_pb2.GetStatsRequest(queue=name)),
    ]
    for call in calls:
        code, _, text = _refusal(call)
        assert code is Code.INVALID_ARGUMENT
        assert "name" in text or "queue" in text


@pytest.mark.parametrize("message_id", ["", "x", "0" * 36, NOBODY + "0", NOBODY.replace("-", "_")])
def test_an_id_that_is_no_uuid_is_an_invalid_argument(
    server: RunningServer, queue: str, message_id: str
) -> None:
    request = service_pb2.AckRequest(queue=queue, message_id=message_id)

    code, _, text = _refusal(lambda: server.service.Ack(request))

    assert code is Code.INVALID_ARGUMENT
    assert "message_id" in text


@pytest.mark.parametrize("extend_ms", [0, 999, 43_200_001, 2**64 - 1])
def test_an_extension_outside_its_bounds_is_an_invalid_argument(
    server: RunningServer, queue: str, extend_ms: int
) -> None:
    request = service_pb2.ExtendLeaseRequest(queue=queue, message_id=NOBODY, lease_id=1, extend_ms=extend_ms)

    code, _, text = _refusal(lambda: server.service.ExtendLease(request))

    assert code is Code.INVALID_ARGUMENT
    assert "extend_ms" in text


def test_a_delay_and_a_moment_exclude_each_other(server: RunningServer, queue: str) -> None:
    options = {"delay_ms": 1, "deliver_at": {"seconds": 2**31}}
    request = service_pb2.EnqueueRequest(queue=queue, options=options)
    code, _, text = _refusal(lambda: server.service.Enqueue(request))

    assert code is Code.INVALID_ARGUMENT
    assert "options.delay_ms, options.deliver_at: only one of them" in text
