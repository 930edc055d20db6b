"""Compressed messages that are inflated over several turns of a thread: whole, in order, and nobody else's trouble."""

from __future__ import annotations

import gzip
import random
import zlib

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer
from tests.grpc_edge.raw_http2 import (
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    RST_STREAM,
    RawClient,
    frame,
    headers,
    message,
)

pytestmark = pytest.mark.e2e

ENQUEUE = "/fila.v1.FilaService/Enqueue"
ENQUEUE_STREAM = "/fila.v1.FilaService/EnqueueStream"
A_TURN = 1 << 20
"""Bytes that a thread inflates in a turn."""
GZIP = (b"grpc-encoding", b"gzip")
DEFLATE = (b"grpc-encoding", b"deflate")
EMPTY_BLOCK = b"\0\0\0\xff\xff"
"""Stored, of no bytes: nothing is made of it, and reading it takes its time all the same."""


def make_queue(server: RunningServer, name: str) -> str:
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name))
    return name


def leased(server: RunningServer, queue: str) -> list[bytes]:
    """Payloads, in order; a pull brings no more than 4 MiB of them."""
    found: list[bytes] = []
    while part := server.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=100)).messages:
        found += [each.payload for each in part]
    return found


@pytest.mark.parametrize("how", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_batch_that_takes_several_turns_is_taken_whole(
    server: RunningServer, how: grpc.Compression
) -> None:
    queue = make_queue(server, f"whole-{how.name.lower()}")
    payloads = [random.Random(seed).randbytes(900) * 1_000 for seed in range(8)]
    batch = service_pb2.EnqueueBatchRequest(queue=queue)
    for payload in payloads:
        batch.messages.add(payload=payload)
    assert batch.ByteSize() > 6 * A_TURN

    results = server.service.EnqueueBatch(batch, compression=how).results

    assert [len(result.message_id) for result in results] == [36] * len(payloads)
    assert leased(server, queue) == payloads


def stream_frame(queue: str, sequence: int, payload: bytes, copies: int = 1) -> bytes:
    request = service_pb2.EnqueueStreamRequest(sequence=sequence)
    for _ in range(copies):
        request.batch.messages.add(queue=queue, payload=payload)
    return bytes(request.SerializeToString())


def test_a_streams_frames_keep_their_order_whether_they_are_compressed_or_not(server: RunningServer) -> None:
    queue = make_queue(server, "in-order")
    large = stream_frame(queue, 1, b"1" * 500_000, copies=6)
    frames = [
        message(gzip.compress(large), compressed=1),
        message(stream_frame(queue, 2, b"2")),
        message(gzip.compress(stream_frame(queue, 3, b"3" * 500_000, copies=4)), compressed=1),
        message(stream_frame(queue, 4, b"4")),
    ]
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE_STREAM, GZIP)
        data = b"".join(frames)
        assert len(data) < 16_384
        client.send(frame(DATA, END_STREAM, 1, data))
        client.until(lambda got: got.kind == HEADERS and bool(got.flags & END_STREAM))

    assert [payload[:1] for payload in leased(server, queue)] == [b"1"] * 6 + [b"2"] + [b"3"] * 4 + [b"4"]


def test_who_has_had_a_message_inflated_waits_behind_those_that_came_meanwhile(server: RunningServer) -> None:
    queue = make_queue(server, "in-turn")
    one, other, two = (
        message(
            gzip.compress(stream_frame(queue, 1 + (mark == b"3"), mark * 500_000, copies=8)), compressed=1
        )
        for mark in (b"1", b"2", b"3")
    )
    data = frame(DATA, END_STREAM, 1, one + two) + frame(DATA, END_STREAM, 3, other)
    assert len(data) < 32_768, "the server's first read brings all of it"
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE_STREAM, GZIP)
        client.begin(3, ENQUEUE_STREAM, GZIP)
        client.send(data)
        for _ in range(2):
            client.until(lambda got: got.kind == HEADERS and bool(got.flags & END_STREAM))

    assert [payload[:1] for payload in leased(server, queue)] == [b"1"] * 8 + [b"2"] * 8 + [b"3"] * 8


def heard(client: RawClient) -> None:
    """All that was sent before was taken, the server's windows among it."""
    client.send(frame(PING, 0, 0, b"12345678"))
    client.until(lambda got: got.kind == PING)


def sent(client: RawClient, stream: int, data: bytes, behind: bytes = b"") -> None:
    """What comes `behind` its end is there as soon as that is."""
    heard(client)
    for at in range(0, len(data) - 1, 16_384):
        client.send(frame(DATA, 0, stream, data[at : min(at + 16_384, len(data) - 1)]))
    heard(client)
    client.send(frame(DATA, END_STREAM, stream, data[-1:]) + behind)


def test_a_message_that_becomes_nothing_is_read_in_turns_too(server: RunningServer) -> None:
    """Else one of some megabytes held a thread's other clients up for a second."""
    data = message(b"\x78\x9c" + EMPTY_BLOCK * 100_000, compressed=1)
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE, DEFLATE)
        refused_at_once = headers(ENQUEUE, (b"grpc-timeout", b"soon"))
        sent(client, 1, data, behind=frame(HEADERS, END_HEADERS, 3, refused_at_once))
        answered = [client.until(lambda got: got.kind == HEADERS).stream for _ in range(2)]

    assert answered == [3, 1]


def test_a_message_with_much_that_becomes_nothing_is_taken_whole(server: RunningServer) -> None:
    queue = make_queue(server, "mostly-empty")
    packed = zlib.compress(service_pb2.EnqueueRequest(queue=queue, payload=b"x").SerializeToString())
    data = message(packed[:2] + EMPTY_BLOCK * 100_000 + packed[2:], compressed=1)
    with RawClient(server.addresses["grpc"]) as client:
        client.begin(1, ENQUEUE, DEFLATE)
        sent(client, 1, data)
        client.until(lambda got: got.kind == HEADERS and bool(got.flags & END_STREAM))

    assert leased(server, queue) == [b"x"]


def test_a_call_that_goes_while_its_message_is_inflated_leaves_the_next_ones_alone(
    server: RunningServer,
) -> None:
    queue = make_queue(server, "after-resets")
    bomb = message(gzip.compress(bytes(12 * A_TURN), 9), compressed=1)
    pieces = [bomb[at : at + 16_384] for at in range(0, len(bomb), 16_384)]
    with RawClient(server.addresses["grpc"]) as client:
        for stream in (1, 3, 5):
            client.begin(stream, ENQUEUE, GZIP)
            client.send(b"".join(frame(DATA, 0, stream, piece) for piece in pieces))
            client.send(frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4)))
    with RawClient(server.addresses["grpc"]) as client:  # this one closes its connection in the midst of it
        client.begin(1, ENQUEUE, GZIP)
        client.send(b"".join(frame(DATA, 0, 1, piece) for piece in pieces))

    for number in range(3):
        request = service_pb2.EnqueueRequest(queue=queue, payload=b"%d" % number)
        server.service.Enqueue(request, compression=grpc.Compression.Gzip, timeout=20)
    assert leased(server, queue) == [b"0", b"1", b"2"]
