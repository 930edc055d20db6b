"""Quotas: what a name's keys use together is bounded, refused with the time to come back, and shown."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, auth_pb2, service_pb2, sink_pb2, watch_pb2
from fila_server.services.admin import OF_A_NAME_MAX
from tests.access.guarded_server import Client, Guarded, details_of, make_queue, refusal
from tests.access.test_keys_and_rights import enqueue
from tests.e2e.conftest import StartServer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PATIENCE_S = 100.0
"""On a busy machine quotas are looked at seldom: each look rests ten times as long as it took."""
STREAM_S = 250.0
"""Longer than a test waits twice, so that no stream ends under it."""


def test_a_quota_refuses_with_the_time_to_come_back(guarded: Guarded):
    queue = make_queue(guarded, "quota")
    client = guarded.make_key("metered", "produce quota")
    guarded.admin.auth.SetQuotas(
        auth_pb2.SetQuotasRequest(name="metered", quotas=auth_pb2.Quotas(messages_per_second=2))
    )
    with pytest.raises(grpc.RpcError) as caught:
        [enqueue(client, queue) for _ in range(10)]
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert b"RetryInfo" in details_of(caught.value)
    shown = client.auth.GetPrincipal(auth_pb2.GetPrincipalRequest()).principal
    assert (shown.name, shown.quotas.messages_per_second) == ("metered", 2)
    assert shown.quota_refusals >= 1


@pytest.mark.parametrize("rate", [1e-300, 0.0009, -1.0, float("nan"), float("inf"), 2e15])
def test_a_rate_that_would_never_be_earned_or_is_none_is_refused_with_its_bounds(
    guarded: Guarded, rate: float
):
    quotas = auth_pb2.Quotas(bytes_per_second=rate)
    request = auth_pb2.SetQuotasRequest(name="admin", quotas=quotas)
    code, sentence, _ = refusal(lambda: guarded.admin.auth.SetQuotas(request))
    assert (code, "bytes_per_second must be 0 (no bound), or from 0.001 to 1e+15" in sentence) == (
        "INVALID_ARGUMENT",
        True,
    )


def test_what_is_staged_counts_as_what_is_enqueued_does(guarded: Guarded):
    queue = make_queue(guarded, "staged")
    client = guarded.make_key("stager", "produce staged", "produce job")
    epoch = client.sink.OpenSink(sink_pb2.OpenSinkRequest(sink_id="job", run_id="1")).epoch
    guarded.admin.auth.SetQuotas(
        auth_pb2.SetQuotasRequest(name="stager", quotas=auth_pb2.Quotas(messages_per_second=5))
    )

    def stage_on() -> None:
        messages = [service_pb2.EnqueueMessage()] * 100
        deadline = time.monotonic() + PATIENCE_S
        for frame in itertools.count():
            request = sink_pb2.StageRequest(
                queue=queue, sink_id="job", epoch=epoch, frame=frame, messages=messages
            )
            client.sink.Stage(request)
            assert time.monotonic() < deadline

    with pytest.raises(grpc.RpcError) as caught:
        stage_on()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "at most 5 messages a second" in caught.value.details()


def test_a_stage_request_of_millions_of_messages_is_refused_before_they_are_looked_at(guarded: Guarded):
    client = guarded.make_key("no-stager", "produce elsewhere")
    stage: Any = client.channel.unary_unary("/fila.v1.FilaSink/Stage")
    head = sink_pb2.StageRequest(queue="staged", sink_id="job").SerializeToString()
    with pytest.raises(grpc.RpcError) as caught:
        stage(head + b"\x12\x00" * 2_000_000)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "messages: at most" in caught.value.details()


def test_one_name_has_half_of_the_places_of_those_who_watch(guarded: Guarded):
    queue = make_queue(guarded, "watched")
    viewer = guarded.make_key("viewer", "view watched")
    request = watch_pb2.WatchStatsRequest(queues=[queue])
    streams = [viewer.admin.WatchStats(request) for _ in range(OF_A_NAME_MAX)]
    for stream in streams:
        next(stream)
    code, sentence, _ = refusal(lambda: next(viewer.admin.WatchStats(request)))
    assert (code, f"has {OF_A_NAME_MAX} open" in sentence) == ("RESOURCE_EXHAUSTED", True)
    assert next(guarded.admin.admin.WatchStats(request))
    for stream in streams:
        stream.cancel()


def test_a_producers_stream_is_slowed_down_to_its_quota(guarded: Guarded):
    queue = make_queue(guarded, "slowed")
    client = guarded.make_key("slow", "produce slowed")
    guarded.admin.auth.SetQuotas(
        auth_pb2.SetQuotasRequest(name="slow", quotas=auth_pb2.Quotas(messages_per_second=20))
    )
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[service_pb2.EnqueueMessage()] * 5)
    frames = [service_pb2.EnqueueStreamRequest(sequence=n, batch=batch) for n in range(1, 9)]
    began = time.monotonic()
    answers = list(client.service.EnqueueStream(iter(frames), timeout=30))
    assert [answer.sequence for answer in answers] == list(range(1, 9))
    assert all(result.message_id for answer in answers for result in answer.results)
    # Of 40 messages 20 are a second's worth that was there, and a frame may overdraw once.
    assert time.monotonic() - began > 0.6


def until_refused(client: Client, queue: str) -> tuple[str, str, bytes]:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            enqueue(client, queue)
        except grpc.RpcError as error:
            return error.code().name, error.details(), details_of(error)
    pytest.fail("nothing was refused")


def when_stored(client: Client, queue: str, least: int, limit: int) -> auth_pb2.Principal:
    """What was let in while the core counted is in its number and added once more, until it counts again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        shown: auth_pb2.Principal = client.auth.GetPrincipal(auth_pb2.GetPrincipalRequest()).principal
        if least <= shown.stored_bytes < limit:
            return shown
        assert time.monotonic() < deadline, f"{shown.stored_bytes} bytes are counted"
        if shown.stored_bytes < least:
            with contextlib.suppress(grpc.RpcError):
                enqueue(client, queue)
        time.sleep(0.05)


def test_a_tenant_that_stores_too_much_is_refused_until_there_is_room_over_a_restart_too(
    start_server: StartServer,
):
    settings = {"FILA_AUTH__ENABLED": "true"}
    guarded = Guarded(start_server(**settings))
    queue = make_queue(guarded, "stored")
    client = guarded.make_key("storing", f"produce {queue}", as_tenant="acme")
    other = guarded.make_key("other", f"produce {queue}", as_tenant="globex")
    for _ in range(20):
        client.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=b"x" * 1000))
    quotas = auth_pb2.Quotas(stored_bytes=30_000)
    guarded.admin.auth.SetQuotas(auth_pb2.SetQuotasRequest(name="storing", quotas=quotas))

    code, sentence, details = until_refused(client, queue)
    assert (code, b"QUOTA_EXCEEDED" in details, b"RetryInfo" in details) == ("RESOURCE_EXHAUSTED", True, True)
    assert 'at most 30000 bytes stored for tenant "acme"' in sentence
    shown = when_stored(client, queue, 30_000, 33_000)
    assert shown.quotas.stored_bytes == 30_000
    assert shown.quota_refusals >= 1
    enqueue(other, queue)

    # What was let in counts with a little more than is stored of it: the bound was met, and may not be reached.
    reached = auth_pb2.Quotas(stored_bytes=20_000)
    guarded.admin.auth.SetQuotas(auth_pb2.SetQuotasRequest(name="storing", quotas=reached))
    guarded.running.stop()
    again = Guarded(start_server(guarded.running.data_dir, **settings))
    client, admin = again.client(client.key), again.admin
    code, _, _ = refusal(lambda: enqueue(client, queue))
    assert code == "RESOURCE_EXHAUSTED", "from the first frame on"
    admin.admin.PurgeQueue(admin_pb2.PurgeQueueRequest(queue=queue))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            enqueue(client, queue)
        except grpc.RpcError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            continue
        break
    plain = auth_pb2.SetQuotasRequest(name="admin", quotas=quotas)
    code, sentence, _ = refusal(lambda: admin.auth.SetQuotas(plain))
    assert (code, "bound to a tenant" in sentence) == ("INVALID_ARGUMENT", True)


def test_a_stream_of_a_tenant_that_stores_too_much_waits_for_room(guarded: Guarded):
    queue = make_queue(guarded, "stored-stream")
    client = guarded.make_key("storing-stream", f"produce {queue}", as_tenant="streaming")
    quotas = auth_pb2.Quotas(stored_bytes=20_000)
    guarded.admin.auth.SetQuotas(auth_pb2.SetQuotasRequest(name="storing-stream", quotas=quotas))
    message = service_pb2.EnqueueMessage(payload=b"x" * 1000)
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[message] * 5)
    frames = [service_pb2.EnqueueStreamRequest(sequence=number, batch=batch) for number in range(1, 11)]
    answers = []
    sending = threading.Thread(
        target=lambda: answers.extend(client.service.EnqueueStream(iter(frames), timeout=STREAM_S))
    )
    sending.start()
    deadline = time.monotonic() + PATIENCE_S
    while not (shown := client.auth.GetPrincipal(auth_pb2.GetPrincipalRequest()).principal).quota_refusals:
        assert time.monotonic() < deadline, shown
        time.sleep(0.02)
    stored = guarded.admin.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue)).depth
    assert stored < 50, "a frame beyond the bound waits"
    while sending.is_alive():
        assert time.monotonic() < deadline + 20
        guarded.admin.admin.PurgeQueue(admin_pb2.PurgeQueueRequest(queue=queue))
        sending.join(0.2)
    assert [answer.sequence for answer in answers] == list(range(1, 11))


def test_a_name_gets_no_more_than_it_may_have_in_flight_over_streams_and_pulls(guarded: Guarded):
    queue = make_queue(guarded, "in-flight", visibility_timeout_ms=600_000)
    client = guarded.make_key("worker", f"consume {queue}")
    for _ in range(6):
        enqueue(guarded.admin, queue)
    quotas = auth_pb2.Quotas(in_flight=3)
    guarded.admin.auth.SetQuotas(auth_pb2.SetQuotasRequest(name="worker", quotas=quotas))
    consume = service_pb2.ConsumeRequest(queue=queue, max_in_flight=2)
    stream = client.service.Consume(consume, timeout=STREAM_S)
    streamed = [next(stream).message for _ in range(2)]
    pull = service_pb2.LeaseRequest(queue=queue, max_messages=10)
    (pulled,) = client.service.Lease(pull).messages

    code, sentence, details = refusal(lambda: client.service.Lease(pull))
    assert (code, b"QUOTA_EXCEEDED" in details, b"RetryInfo" in details) == ("RESOURCE_EXHAUSTED", True, True)
    assert "at most 3 messages in flight" in sentence
    deadline = time.monotonic() + PATIENCE_S
    while True:
        shown = client.auth.GetPrincipal(auth_pb2.GetPrincipalRequest()).principal
        if (shown.in_flight, shown.quota_refusals) == (3, 1):
            break
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)
    client.service.Ack(
        service_pb2.AckRequest(queue=queue, message_id=streamed[0].id, lease_id=streamed[0].metadata.lease_id)
    )
    assert next(stream).message.id not in {streamed[0].id, streamed[1].id, pulled.id}

    guarded.admin.auth.SetQuotas(auth_pb2.SetQuotasRequest(name="worker", quotas=auth_pb2.Quotas()))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            assert len(client.service.Lease(pull).messages) == 2
        except grpc.RpcError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
            continue
        break
    assert guarded.make_key("tenants-own", f"produce {queue}", as_tenant="acme")
    bound = auth_pb2.SetQuotasRequest(name="tenants-own", quotas=quotas)
    code, sentence, _ = refusal(lambda: guarded.admin.auth.SetQuotas(bound))
    assert (code, "fila key cap" in sentence) == ("INVALID_ARGUMENT", True)


def test_streams_are_counted_over_all_keys_of_a_name(guarded: Guarded):
    queue = make_queue(guarded, "counted")
    client = guarded.make_key("counting", "consume counted", "produce counted")
    guarded.admin.auth.SetQuotas(
        auth_pb2.SetQuotasRequest(name="counting", quotas=auth_pb2.Quotas(streams=1))
    )
    enqueue(guarded.admin, queue)
    first = client.service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=1))
    assert next(first).message.id
    pull = service_pb2.LeaseRequest(queue=queue)
    code, sentence, details = refusal(lambda: client.service.Lease(pull))
    assert (code, b"QUOTA_EXCEEDED" in details) == ("RESOURCE_EXHAUSTED", True)
    assert "at most 1 streams at a time" in sentence
    shown = client.auth.GetPrincipal(auth_pb2.GetPrincipalRequest()).principal
    assert (shown.streams, shown.quota_refusals) == (1, 1)
    first.cancel()
    ends = time.monotonic() + PATIENCE_S
    while client.auth.GetPrincipal(auth_pb2.GetPrincipalRequest()).principal.streams:
        assert time.monotonic() < ends
        time.sleep(0.02)
    client.service.Lease(pull)
