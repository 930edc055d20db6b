"""When a call of the edge begins and ends: its request whole, its deadline readable, its client still there."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer
from tests.grpc_edge.raw_http2 import ACK, DATA, END_STREAM, HEADERS, PING, RawClient, frame, message
from tests.grpc_edge.test_protocol import (
    CONSUME,
    ENQUEUE,
    ENQUEUE_STREAM,
    LEASE,
    lease_raw,
    leased,
    trailers,
)

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def queue(server: RunningServer) -> str:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    return "q"


def curled(server: RunningServer, path: str, body: bytes | None, *fields: str) -> dict[str, str]:
    """The response headers of a call that is refused before anything was answered."""
    curl = shutil.which("curl")
    assert curl
    given = [argument for field in fields for argument in ("-H", field)]
    given += ["-X", "POST"] if body is None else ["--data-binary", "@-"]
    for _ in range(20):
        found = subprocess.run(
            [curl, "-s", "-D", "-", "-o", "/dev/null", "--http2-prior-knowledge", "-m", "10",
             "-H", "content-type: application/grpc", *given, f"http://{server.addresses['grpc']}{path}"],
            input=body, capture_output=True, check=False,
        )  # fmt: skip
        if found.stdout:  # curl forgets an answer that is there before it has sent all
            break
    lines = found.stdout.decode().splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def stored(server: RunningServer, queue: str) -> int:
    stats = server.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue))
    return int(stats.enqueued_total)


@pytest.mark.needs("curl")
@pytest.mark.parametrize("timeout", ["", "1", "S", "-1S", "1.5S", "123456789S", "1 S", "1Sx", "1s"])
def test_a_deadline_that_cannot_be_read_is_no_deadline_but_a_mistake(
    server: RunningServer, timeout: str
) -> None:
    told = curled(
        server, ENQUEUE, None, "te: trailers", f"grpc-timeout: {timeout}" if timeout else "grpc-timeout;"
    )
    assert told["grpc-status"] == str(grpc.StatusCode.INTERNAL.value[0])
    assert "grpc-timeout" in told["grpc-message"]


@pytest.mark.needs("curl")
@pytest.mark.parametrize("fields", [(), ("te: gzip",)], ids=["none", "another"])
def test_a_call_whose_trailers_would_be_lost_is_refused(
    server: RunningServer, fields: tuple[str, ...]
) -> None:
    told = curled(server, ENQUEUE, None, *fields)
    # nghttp2 itself resets a request whose te is something else.
    assert told.get("grpc-status", "13") == "13"
    assert fields or "te: must be" in told["grpc-message"]


@pytest.mark.needs("curl")
@pytest.mark.parametrize("path", [ENQUEUE, LEASE, CONSUME, "/fila.v1.FilaAdmin/ListQueues"])
def test_a_second_message_refuses_the_call_and_nothing_of_it_was_done(
    server: RunningServer, queue: str, path: str
) -> None:
    before = stored(server, queue)
    one = message(service_pb2.EnqueueRequest(queue=queue).SerializeToString())
    for body in (one + one, one + one[:3]):
        told = curled(server, path, body, "te: trailers")
        expected = grpc.StatusCode.UNIMPLEMENTED if body == one + one else grpc.StatusCode.INTERNAL
        assert told["grpc-status"] == str(expected.value[0]), told
    assert stored(server, queue) == before


def test_a_call_runs_when_its_request_has_ended(server: RunningServer) -> None:
    """Its message comes in pieces, others' frames come between, and its end comes in a frame of its own."""
    queue = "pieces"
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue))
    payload = bytes(range(256)) * 100
    request = message(service_pb2.EnqueueRequest(queue=queue, payload=payload).SerializeToString())
    small = message(service_pb2.EnqueueRequest(queue=queue, payload=b"small").SerializeToString())
    before = stored(server, queue)
    with RawClient(server.addresses["grpc"]) as client:
        for stream in (1, 3, 5):
            client.begin(stream, ENQUEUE)
        client.send(frame(DATA, 0, 3, small) + frame(DATA, 0, 5, small) + frame(DATA, 0, 1, request[:16000]))
        client.send(frame(DATA, 0, 1, request[16000:]) + frame(PING, 0, 0, b"12345678"))
        client.until(lambda f: f.kind == PING and bool(f.flags & ACK))
        assert stored(server, queue) == before
        client.send(frame(DATA, END_STREAM, 1) + frame(DATA, END_STREAM, 3) + frame(DATA, END_STREAM, 5))
        for _ in range(3):
            client.until(lambda f: f.kind == HEADERS and bool(f.flags & END_STREAM))
    assert stored(server, queue) == before + 3
    found = [message.payload for message in leased(server, queue, 3)]
    assert sorted(found) == sorted([payload, b"small", b"small"])


def test_a_client_that_closes_its_side_reads_the_answers_to_what_it_asked(
    server: RunningServer, queue: str
) -> None:
    one = message(service_pb2.EnqueueRequest(queue=queue, payload=b"x").SerializeToString())
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[service_pb2.EnqueueMessage(payload=b"x")])
    sent = message(service_pb2.EnqueueStreamRequest(sequence=1, batch=batch).SerializeToString())
    with RawClient(server.addresses["grpc"]) as client:
        for stream, path, body in (
            (1, ENQUEUE, one),
            (3, ENQUEUE_STREAM, sent),
            (5, "/fila.v1.FilaAdmin/ListQueues", message(b"")),
        ):
            client.begin(stream, path)
            client.send(frame(DATA, END_STREAM, stream, body))
        client.end_input()
        ended: set[int] = set()
        while ended != {1, 3, 5}:
            last = client.until(lambda f: f.kind == HEADERS and bool(f.flags & END_STREAM))
            ended.add(last.stream)
        client.until_closed()


def test_a_client_that_waits_for_messages_and_closes_its_side_is_gone(server: RunningServer) -> None:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="closed"))
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, CONSUME)
        request = service_pb2.ConsumeRequest(queue="closed", max_in_flight=1).SerializeToString()
        client.send(frame(DATA, END_STREAM, 1, message(request)))
        lease_raw(client, 3, "closed")
        client.send(frame(PING, 0, 0, b"12345678"))
        client.until(lambda f: f.kind == PING and bool(f.flags & ACK))
        client.end_input()
        client.until(trailers(1))
        client.until_closed()
    server.service.Enqueue(service_pb2.EnqueueRequest(queue="closed", payload=b"x"))
    [found] = leased(server, "closed", 1)
    assert found.metadata.attempt_count <= 1


@pytest.mark.parametrize("method", ["Lease", "Consume", "ConsumeSession"])
def test_a_request_that_is_kept_while_its_call_waits_is_small(server: RunningServer, method: str) -> None:
    long: Any = {"queue": "q" * 2**20}
    calls = {
        "Lease": lambda: server.service.Lease(service_pb2.LeaseRequest(**long)),
        "Consume": lambda: list(server.service.Consume(service_pb2.ConsumeRequest(**long))),
        "ConsumeSession": lambda: list(
            server.service.ConsumeSession(iter([service_pb2.ConsumeSessionRequest(open=long)]))
        ),
    }
    with pytest.raises(grpc.RpcError) as raised:
        calls[method]()

    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.details().startswith("request must be at most 65536 bytes")
