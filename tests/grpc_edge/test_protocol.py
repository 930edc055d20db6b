"""What the edge owes to gRPC and HTTP/2 beyond what the e2e suite asks."""

from __future__ import annotations

import gzip
import random
import signal
import struct
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer, StartServer
from tests.grpc_edge.raw_http2 import (
    ACK,
    CANCEL,
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    NO_ERROR,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Frame,
    RawClient,
    frame,
    message,
)  # fmt: skip

pytestmark = pytest.mark.e2e

ENQUEUE = "/fila.v1.FilaService/Enqueue"
ENQUEUE_STREAM = "/fila.v1.FilaService/EnqueueStream"
LEASE = "/fila.v1.FilaService/Lease"
CONSUME = "/fila.v1.FilaService/Consume"
LARGE = 1_000_000


@pytest.fixture(scope="module")
def queue(server: RunningServer) -> str:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    return "q"


def refusal(call: Any) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def details_of(error: Any) -> status_pb2.Status:
    trailing = dict(error.trailing_metadata())
    return status_pb2.Status.FromString(trailing["grpc-status-details-bin"])


def trailers(stream: int) -> Any:
    return lambda f: f.kind == HEADERS and f.stream == stream and f.flags & END_STREAM


# --- statuses ----------------------------------------------------------------------------------


def test_the_details_say_the_same_code_as_the_trailers(server: RunningServer) -> None:
    """A client that compares them calls another code inside a mismatch, and the call INTERNAL."""
    error = refusal(lambda: server.service.Enqueue(service_pb2.EnqueueRequest(queue="nowhere")))
    status = details_of(error)
    assert (status.code, error.code()) == (5, grpc.StatusCode.NOT_FOUND)
    assert status.message == error.details()
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == ("QUEUE_NOT_FOUND", "fila")


def test_a_message_keeps_its_percent_signs_and_foreign_letters(server: RunningServer) -> None:
    unknown: Any = server.channel().unary_unary("/fila.v1.FilaService/100%25")
    error = refusal(lambda: unknown(b""))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "/fila.v1.FilaService/100%25" in error.details()
    name = "naïve 100%\nsecond"
    error = refusal(lambda: server.admin.SetConfig(admin_pb2.SetConfigRequest(key=name * 1000, value="x")))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_refusal_at_capacity_says_when_to_try_again(start_server: StartServer) -> None:
    server = start_server(FILA_SCHEDULER__OUTSTANDING_CALLS_MAX="1")
    service, ends, pull = (
        server.service,
        time.monotonic() + 15,
        service_pb2.LeaseRequest(queue="q", wait_ms=20_000),
    )
    made = server.admin.CreateQueue.future(admin_pb2.CreateQueueRequest(name="q"))
    # A call of the broker's own, such as its look at the schedules, may have the one place.
    while made.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and time.monotonic() < ends:
        time.sleep(0.01)
        made = server.admin.CreateQueue.future(admin_pb2.CreateQueueRequest(name="q"))
    made.result()
    waiting = service.Lease.future(pull)
    error = refusal(lambda: service.Enqueue(service_pb2.EnqueueRequest(queue="nowhere")))
    while error.code() == grpc.StatusCode.NOT_FOUND and time.monotonic() < ends:  # until the pull has come
        if waiting.done():  # an enqueue had the one place when it came
            waiting = service.Lease.future(pull)
        time.sleep(0.01)
        error = refusal(lambda: service.Enqueue(service_pb2.EnqueueRequest(queue="nowhere")))
    waiting.cancel()
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in details_of(error).details)
    assert retry.retry_delay.ToMilliseconds() == 100


def test_a_status_before_the_end_of_the_upload_ends_the_upload(server: RunningServer, queue: str) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE_STREAM)
        client.send(frame(DATA, 0, 1, message(b"\xff\xff\xff")))
        client.until(trailers(1))
        reset = client.until(lambda f: f.kind == RST_STREAM and f.stream == 1)
        assert reset.number == NO_ERROR


# --- windows -----------------------------------------------------------------------------------


def test_a_message_larger_than_the_window_gets_through(server: RunningServer, queue: str) -> None:
    batch = service_pb2.EnqueueBatchRequest(
        queue=queue, messages=[service_pb2.EnqueueMessage(payload=b"x" * LARGE) for _ in range(15)]
    )
    results = server.service.EnqueueBatch(batch, timeout=30).results
    assert len(results) == 15
    assert all(result.message_id for result in results)


def test_a_stalled_stream_does_not_stop_its_connection(server: RunningServer, queue: str) -> None:
    """Its client reads no answers, so its window is withheld; a call beside it is answered."""
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[service_pb2.EnqueueMessage(payload=b"x")])
    request = message(service_pb2.EnqueueStreamRequest(sequence=1, batch=batch).SerializeToString())
    with RawClient(server.addresses["grpc"], {INITIAL_WINDOW_SIZE: 0}) as client:
        client.begin(1, ENQUEUE_STREAM)
        client.pour(frame(DATA, 0, 1, request * 300) * 40)  # some 640 kB: within its window
        client.begin(3, ENQUEUE)
        client.send(frame(WINDOW_UPDATE, 0, 3, struct.pack(">I", 1000)))
        one = service_pb2.EnqueueRequest(queue=queue, payload=b"x").SerializeToString()
        client.send(frame(DATA, END_STREAM, 3, message(one)))
        client.until(trailers(3))


def test_data_frames_are_as_large_as_the_client_takes(server: RunningServer) -> None:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="large"))
    server.service.Enqueue(service_pb2.EnqueueRequest(queue="large", payload=b"x" * LARGE))
    with RawClient(
        server.addresses["grpc"], {MAX_FRAME_SIZE: 1 << 20, INITIAL_WINDOW_SIZE: 1 << 24}
    ) as client:
        client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 24)))
        client.begin(1, CONSUME)
        request = service_pb2.ConsumeRequest(queue="large", max_in_flight=1).SerializeToString()
        client.send(frame(DATA, END_STREAM, 1, message(request)))
        assert len(client.until(lambda f: f.kind == DATA and f.stream == 1).payload) > 16384


def test_bounds_are_told_with_the_first_settings(server: RunningServer) -> None:
    """Told later, a client with more streams than that would lose its connection."""
    with RawClient(server.addresses["grpc"]) as client:
        first = client.until(bool)
        assert (first.kind, first.flags) == (SETTINGS, 0)
        told = dict(struct.iter_unpack(">HI", first.payload))
        assert told[MAX_CONCURRENT_STREAMS] == 10_000
        assert told[MAX_HEADER_LIST_SIZE] == 65_536


# --- deadlines, cancellation, metadata -----------------------------------------------------------


def test_a_deadline_is_kept_for_a_client_that_does_not(server: RunningServer, queue: str) -> None:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="empty"))
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, LEASE, (b"grpc-timeout", b"200m"))
        request = service_pb2.LeaseRequest(queue="empty", wait_ms=60_000).SerializeToString()
        client.send(frame(DATA, END_STREAM, 1, message(request)))
        client.until(trailers(1))


def test_a_thousand_cancelled_calls_cost_nobody_the_connection(server: RunningServer) -> None:
    with RawClient(server.addresses["grpc"]) as client:
        for number in range(1000):
            client.begin(2 * number + 1, LEASE)
            client.send(frame(RST_STREAM, 0, 2 * number + 1, struct.pack(">I", CANCEL)))
        client.send(frame(PING, 0, 0, b"12345678"))
        assert client.until(lambda f: f.kind in (PING, GOAWAY)).kind == PING


def lease_raw(client: RawClient, stream: int, queue: str) -> None:
    client.begin(stream, LEASE)
    request = service_pb2.LeaseRequest(queue=queue, wait_ms=60_000).SerializeToString()
    client.send(frame(DATA, END_STREAM, stream, message(request)))


def leave(client: RawClient, stream: int) -> None:
    client.send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))


def leased(server: RunningServer, queue: str, count: int) -> list[Any]:
    """So many messages of the queue, leased, or as many as come within seconds."""
    found: list[Any] = []
    ends = time.monotonic() + 10
    while len(found) < count and time.monotonic() < ends:
        request = service_pb2.LeaseRequest(queue=queue, wait_ms=1000, max_messages=count)
        found += server.service.Lease(request).messages
    return found


def test_a_pull_that_left_gives_back_what_was_on_its_way(server: RunningServer) -> None:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="left"))
    for _ in range(30):
        server.service.Enqueue(service_pb2.EnqueueRequest(queue="left", payload=b"x"))
    with RawClient(server.addresses["grpc"]) as client:
        for number in range(30):  # left at once: its answer finds nobody
            lease_raw(client, 2 * number + 1, "left")
            leave(client, 2 * number + 1)
        given = {f.stream for f in client.pour(b"") if f.kind == DATA}
    # Whatever was sent before it left is its own.
    assert len(leased(server, "left", 30 - len(given))) >= 30 - len(given)


def test_a_pull_that_left_gives_back_what_it_could_not_read(server: RunningServer) -> None:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="unread"))
    server.service.Enqueue(service_pb2.EnqueueRequest(queue="unread", payload=b"x"))
    with RawClient(server.addresses["grpc"], {INITIAL_WINDOW_SIZE: 0}) as client:
        lease_raw(client, 1, "unread")
        client.until(lambda f: f.kind == HEADERS and f.stream == 1)  # it has its answer, but for the bytes
        leave(client, 1)
        [again] = leased(server, "unread", 1)
        assert again.metadata.attempt_count <= 1


@pytest.mark.parametrize("size", [40_000, 60_000])
def test_metadata_below_the_bound_is_taken(server: RunningServer, queue: str, size: int) -> None:
    request = service_pb2.EnqueueRequest(queue=queue, payload=b"x")
    server.service.Enqueue(request, metadata=(("x-large", "y" * size),))


def test_metadata_beyond_the_bound_is_refused_and_the_channel_lives(
    server: RunningServer, queue: str
) -> None:
    service = server.service
    request = service_pb2.EnqueueRequest(queue=queue, payload=b"x")
    many = tuple((f"x-{number}", "y" * 1000) for number in range(80))
    error = refusal(lambda: service.Enqueue(request, metadata=many))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    service.Enqueue(request)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (grpc.Compression.NoCompression, "the message has 5003 bytes; at most 4096 are taken: it names"),
        (
            grpc.Compression.Gzip,
            "has more than 4096 bytes once it is inflated, the most that is taken: it names",
        ),
    ],
)
def test_a_request_that_is_too_large_is_refused_with_its_bound_and_what_to_do(
    server: RunningServer, how: grpc.Compression, told: str
) -> None:
    check: Any = health_pb2_grpc.HealthStub(server.channel()).Check
    long = health_pb2.HealthCheckRequest(service="x" * 5000)
    error = refusal(lambda: check(long, compression=how, timeout=5))
    assert (error.code(), told in error.details()) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)


# --- compression -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests_are_taken(server: RunningServer, queue: str, how: grpc.Compression) -> None:
    request = service_pb2.EnqueueRequest(queue=queue, payload=b"abc" * 10_000)
    assert len(server.service.Enqueue(request, compression=how).message_id) == 36


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        # Packed in the test: each process of pytest makes these lists.
        (b"gzip", lambda: gzip.compress(bytes(200 << 20), 9)),
        (b"gzip", lambda: gzip.compress(b"x" * 1000)[:-9]),
        (b"deflate", lambda: zlib.compress(b"x") + b"behind it"),
        (b"gzip", lambda: b"not gzip at all"),
        (b"br", lambda: b"x"),
        (b"identity", lambda: b"x"),
    ],
    ids=["bomb", "cut short", "more behind it", "not gzip", "unknown encoding", "marked and not encoded"],
)
def test_bad_compression_ends_the_call_alone(
    server: RunningServer, encoding: bytes, packed: Callable[[], bytes]
) -> None:
    payload = packed()
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE, (b"grpc-encoding", encoding))
        client.pour(frame(DATA, 0, 1, b"\1" + struct.pack(">I", len(payload))), looks=50)
        for at in range(0, len(payload), 16384):
            client.send(frame(DATA, 0, 1, payload[at : at + 16384]))
        client.send(frame(PING, 0, 0, b"12345678"))
        assert client.until(lambda f: f.kind in (PING, GOAWAY) and bool(f.flags & ACK)).kind == PING


def answer_to(server: RunningServer, *more: tuple[bytes, bytes]) -> tuple[int, bytes]:
    """The compressed flag and the message of an answer of some kilobytes."""
    frames: list[Frame] = []

    def is_last(found: Frame) -> bool:
        frames.append(found)
        return found.kind == HEADERS and bool(found.flags & END_STREAM)

    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, "/fila.v1.FilaAdmin/ListConfig", *more)
        client.send(frame(DATA, END_STREAM, 1, message(b"")))
        client.until(is_last)
    got = b"".join(found.payload for found in frames if found.kind == DATA)
    flag, length = struct.unpack(">BI", got[:5])
    assert len(got) == 5 + length
    return flag, got[5:]


@pytest.fixture(scope="module")
def large_config(server: RunningServer) -> bytes:
    for number in range(10):
        server.admin.SetConfig(admin_pb2.SetConfigRequest(key=f"large.{number}", value="abc" * 1000))
    listed: bytes = server.admin.ListConfig(admin_pb2.ListConfigRequest()).SerializeToString()
    return listed


def test_a_large_answer_is_compressed_as_the_request_says_that_it_is(
    server: RunningServer, large_config: bytes
) -> None:
    for encoding, unpack in ((b"gzip", gzip.decompress), (b"deflate", zlib.decompress)):
        for more in ((), ((b"grpc-accept-encoding", b"identity, deflate, gzip"),)):
            flag, packed = answer_to(server, (b"grpc-encoding", encoding), *more)
            assert (flag, unpack(packed)) == (1, large_config)
            assert len(packed) < len(large_config) / 10


@pytest.mark.parametrize(
    "more",
    [
        (),
        ((b"grpc-accept-encoding", b"identity,deflate,gzip"),),
        ((b"grpc-encoding", b"identity"), (b"grpc-accept-encoding", b"gzip")),
        ((b"grpc-encoding", b"gzip"), (b"grpc-accept-encoding", b"identity,deflate")),
    ],
    ids=["said nothing", "reads all", "sends plain", "reads another"],
)
def test_a_client_that_does_not_compress_gets_plain_answers(
    server: RunningServer, large_config: bytes, more: tuple[tuple[bytes, bytes], ...]
) -> None:
    assert answer_to(server, *more) == (0, large_config)


@pytest.mark.parametrize("how", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_library_reads_compressed_answers_small_and_large(
    server: RunningServer, large_config: bytes, how: grpc.Compression
) -> None:
    admin = server.admin
    for number in range(20):
        value = random.Random(number).randbytes(20_000).hex()
        admin.SetConfig(admin_pb2.SetConfigRequest(key=f"huge.{number}", value=value))
    for prefix in ("large.1", "large.", "huge.", ""):
        request = admin_pb2.ListConfigRequest(prefix=prefix)
        assert admin.ListConfig(request, compression=how) == admin.ListConfig(request)
    for number in range(20):
        admin.SetConfig(admin_pb2.SetConfigRequest(key=f"huge.{number}"))
    with pytest.raises(grpc.RpcError, match="is not set"):
        admin.GetConfig(admin_pb2.GetConfigRequest(key="huge.1"), compression=how)


# --- drain -------------------------------------------------------------------------------------


def test_a_server_that_stops_says_so_twice_and_finishes_what_it_has(start_server: StartServer) -> None:
    server = start_server()
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE_STREAM)
        batch = service_pb2.EnqueueBatchRequest(
            queue="q", messages=[service_pb2.EnqueueMessage(payload=b"x")]
        )
        client.send(
            frame(DATA, 0, 1, message(service_pb2.EnqueueStreamRequest(batch=batch).SerializeToString()))
        )
        client.until(lambda f: f.kind == DATA and f.stream == 1)
        server.process.send_signal(signal.SIGTERM)
        notice = client.until(lambda f: f.kind == GOAWAY)
        assert int.from_bytes(notice.payload[:4]) == 2**31 - 1
        end = client.until(lambda f: f.kind == HEADERS and bool(f.flags & END_STREAM))
        assert end.stream == 1, "an idle stream is told that the server goes"
        last = client.until(lambda f: f.kind == GOAWAY)
        assert (int.from_bytes(last.payload[:4]), last.number) == (1, NO_ERROR)
    assert server.process.wait(10) == 0


def test_pulls_and_consumers_are_sent_home_when_the_server_stops(start_server: StartServer) -> None:
    server = start_server()
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    pull = server.service.Lease.future(service_pb2.LeaseRequest(queue="q", wait_ms=60_000))
    consumer = server.service.Consume(service_pb2.ConsumeRequest(queue="q", max_in_flight=1))
    while len(server.admin.ListConsumers(admin_pb2.ListConsumersRequest(queue="q")).consumers) < 1:
        time.sleep(0.01)
    server.process.send_signal(signal.SIGTERM)
    assert refusal(pull.result).code() == grpc.StatusCode.UNAVAILABLE
    assert refusal(lambda: next(consumer)).code() == grpc.StatusCode.UNAVAILABLE
    assert server.process.wait(10) == 0


def test_what_a_client_received_as_the_server_stopped_counts_an_attempt(start_server: StartServer) -> None:
    """A delivery that waits for the client's window leaves in one flush with the trailers that end its stream."""
    server = start_server()
    server.admin.CreateQueue(
        admin_pb2.CreateQueueRequest(name="q", config=admin_pb2.QueueConfig(visibility_timeout_ms=1000))
    )
    server.service.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=b"x" * 3000))
    with RawClient(server.addresses["grpc"], {INITIAL_WINDOW_SIZE: 100}) as client:
        client.begin(1, CONSUME)
        request = service_pb2.ConsumeRequest(queue="q", max_in_flight=1).SerializeToString()
        client.send(frame(DATA, END_STREAM, 1, message(request)))
        client.until(lambda f: f.kind == DATA and f.stream == 1)
        server.process.send_signal(signal.SIGTERM)
        client.until(lambda f: f.kind == GOAWAY)
        client.send(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 10_000)))
        client.until(lambda f: f.kind == HEADERS and f.stream == 1 and bool(f.flags & END_STREAM))
    assert server.process.wait(10) == 0
    again = start_server(server.data_dir)
    [seen] = leased(again, "q", 1)
    assert seen.metadata.attempt_count == 1


# --- threads, reflection -------------------------------------------------------------------------


def test_connections_are_spread_over_the_threads(start_server: StartServer) -> None:
    server = start_server(FILA_SERVER__IO_THREADS="3")
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    failed: list[Exception] = []

    def enqueue() -> None:
        service = server.service
        try:
            for _ in range(50):
                service.Enqueue(service_pb2.EnqueueRequest(queue="q", payload=b"x"))
        except grpc.RpcError as error:
            failed.append(error)

    callers = [threading.Thread(target=enqueue) for _ in range(9)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failed
    [queue] = [
        one for one in server.admin.ListQueues(admin_pb2.ListQueuesRequest()).queues if one.name == "q"
    ]
    assert queue.depth == 450


def test_a_session_without_a_first_frame_is_told_what_was_missing(server: RunningServer) -> None:
    error = refusal(lambda: list(server.service.ConsumeSession(iter([]))))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "open must be the first frame of a session" in error.details()


def test_a_method_that_there_is_not_is_unimplemented_and_named(server: RunningServer) -> None:
    nope: Any = server.channel().unary_unary("/fila.v1.FilaService/Nope")
    error = refusal(lambda: nope(b""))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED
    assert "/fila.v1.FilaService/Nope" in error.details()


def test_reflection_answers_by_its_newer_name_too(server: RunningServer) -> None:
    ask = server.channel().stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    [answer] = ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    assert "fila.v1.FilaService" in [found.name for found in answer.list_services_response.service]
