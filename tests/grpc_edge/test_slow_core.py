"""Calls while the core answers nothing yet: what is begun of them is bounded, in order, and given back to others."""

from __future__ import annotations

import queue
import struct
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from fila.v1 import service_pb2, service_pb2_grpc
from fila_server import errors
from fila_server.access.rights import PRODUCE
from fila_server.core.protocol import commands
from fila_server.services.status import status_of
from tests.grpc_edge.raw_http2 import (
    ACK,
    CANCEL,
    DATA,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    RST_STREAM,
    WINDOW_UPDATE,
    RawClient,
    frame,
    message,
)
from tests.grpc_edge.told_edge import WAIT_S, ToldEdge

FRAMES_OWED_MAX = 32
INBOX_FRAMES_MAX = 64
"""As iothread.pxd has them."""
CAPACITY = 40
CALLS_MAX = 4
OF_NOBODY = 1 << 40
"""A token whose answer no test waits for."""


@pytest.fixture
def settings() -> dict[str, int | str]:
    return {"scheduler.command_channel_capacity": CAPACITY}


@pytest.fixture
def edge(settings: dict[str, int | str]) -> Iterator[ToldEdge]:
    edge = ToldEdge(settings)
    edge.engine.create_queue("orders")
    yield edge
    edge.close()


@pytest.fixture
def few() -> Iterator[ToldEdge]:
    """One that few calls may wait in at a time."""
    edge = ToldEdge(calls_max=CALLS_MAX)
    edge.engine.create_queue("orders")
    yield edge
    edge.close()


@pytest.fixture
def producers() -> Iterator[ToldEdge]:
    """One whose only key may produce."""
    edge = ToldEdge(grants=[(PRODUCE, "orders", "")])
    edge.engine.create_queue("orders")
    yield edge
    edge.close()


@pytest.fixture
def client(edge: ToldEdge) -> Iterator[RawClient]:
    with RawClient(edge.grpc_address) as client:
        yield client


def begin(client: RawClient, stream: int, method: str, request: bytes, flags: int = END_STREAM) -> None:
    client.begin(stream, f"/fila.v1.FilaService/{method}")
    client.send(frame(DATA, flags, stream, message(request)))


def leave(client: RawClient, stream: int) -> None:
    client.send(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))


def answers(edge: ToldEdge, client: RawClient, *counts: tuple[int, int]) -> list[list[bytes]]:
    """So many messages of each stream, from a core whose passes run meanwhile."""
    data = {stream: b"" for stream, _ in counts}
    found: dict[int, list[bytes]] = {stream: [] for stream, _ in counts}

    def take() -> bool:
        for each in client.pour(b"", looks=1):
            if each.kind == DATA:
                data[each.stream] += each.payload
        for stream, _ in counts:
            while len(left := data[stream]) >= 5 and len(left) >= (end := 5 + int.from_bytes(left[1:5])):
                found[stream].append(left[5:end])
                data[stream] = left[end:]
        return all(len(found[stream]) >= count for stream, count in counts)

    edge.run_until(take, "answers came")
    return list(found.values())


def in_flight(edge: ToldEdge) -> int:
    return edge.engine.stats("orders").in_flight


def until_read(client: RawClient) -> None:
    """Return when the server has read all that was sent."""
    client.send(frame(PING, 0, 0, b"12345678"))
    client.until(lambda answer: answer.kind == PING and bool(answer.flags & ACK))


# --- producers ----------------------------------------------------------------------------


def batch(sequence: int) -> bytes:
    messages = [service_pb2.EnqueueMessage(queue="orders", payload=b"x")]
    batch = service_pb2.EnqueueBatchRequest(messages=messages)
    return service_pb2.EnqueueStreamRequest(sequence=sequence, batch=batch).SerializeToString()


def sequences(told: list[bytes]) -> list[int]:
    return [service_pb2.EnqueueStreamResponse.FromString(each).sequence for each in told]


@pytest.mark.parametrize("settings", [{}])  # the threads put commands of their own into the mailbox, too
def test_an_enqueue_stream_is_taken_no_further_than_its_bound_and_answered_in_order(
    edge: ToldEdge, client: RawClient
):
    begin(client, 1, "EnqueueStream", batch(0), flags=0)
    client.send(b"".join(frame(DATA, 0, 1, message(batch(sequence))) for sequence in range(1, 300)))
    edge.until_waiting(FRAMES_OWED_MAX)
    until_read(client)
    edge.engine.run_pass()

    assert edge.count("frames_in") == FRAMES_OWED_MAX
    assert sequences(*answers(edge, client, (1, 300))) == list(range(300))


def test_a_full_mailbox_slows_enqueue_streams_and_loses_nothing(edge: ToldEdge, client: RawClient):
    for stream in (1, 3):
        begin(client, stream, "EnqueueStream", batch(0), flags=0)
    for sequence in range(1, 100):
        client.send(b"".join(frame(DATA, 0, stream, message(batch(sequence))) for stream in (1, 3)))
    edge.until_waiting(CAPACITY)
    until_read(client)

    assert edge.count("mailbox") == CAPACITY
    for told in answers(edge, client, (1, 100), (3, 100)):
        assert sequences(told) == list(range(100))
    assert edge.engine.stats("orders").depth == 200


# --- pulls --------------------------------------------------------------------------------


def waiting_pull(edge: ToldEdge, client: RawClient, stream: int = 1) -> None:
    """One that waits in the core for a message, which comes with the next pass."""
    asked = service_pb2.LeaseRequest(queue="orders", wait_ms=60_000)
    begin(client, stream, "Lease", asked.SerializeToString())
    until_read(client)
    edge.engine.settle_down()
    edge.engine.submit(
        commands.ENQUEUE, service_pb2.EnqueueRequest(queue="orders", payload=b"x"), token=OF_NOBODY
    )


def test_what_an_abandoned_pull_is_given_before_the_core_hears_of_it_goes_back_uncounted(
    edge: ToldEdge, client: RawClient
):
    waiting_pull(edge, client)
    leave(client, 1)
    until_read(client)
    edge.run_until(lambda: in_flight(edge) == 0, "message was given back")

    [again] = edge.engine.lease("orders")
    assert again.metadata.attempt_count <= 1


def test_what_a_pull_is_given_as_the_server_begins_to_stop_goes_back_and_the_pull_is_sent_home(
    edge: ToldEdge, client: RawClient
):
    waiting_pull(edge, client)
    edge.drain()
    end = client.until(lambda answer: answer.kind == HEADERS and bool(answer.flags & END_STREAM))
    assert end.stream == 1
    edge.run_until(lambda: in_flight(edge) == 0, "message was given back")

    assert len(edge.engine.lease("orders")) == 1


def test_while_a_node_hands_over_calls_are_told_where_to_go_and_a_producer_has_its_answers_first(
    edge: ToldEdge,
):
    refusal = errors.NotOwner("fila-2:5555")
    frames: queue.SimpleQueue[service_pb2.EnqueueStreamRequest | None] = queue.SimpleQueue()
    with grpc.insecure_channel(edge.grpc_address) as channel:
        service = service_pb2_grpc.FilaServiceStub(channel)
        producer = service.EnqueueStream(iter(frames.get, None))
        frames.put(service_pb2.EnqueueStreamRequest.FromString(batch(1)))
        edge.until_begun(1)
        pull = service.Lease.future(service_pb2.LeaseRequest(queue="orders", wait_ms=60_000))
        edge.until_begun(2)
        edge.drain(refusal.message.encode(), status_of(refusal).SerializeToString())
        calls: list[Any] = [pull.exception(WAIT_S)]
        edge.engine.settle_down()
        assert next(producer).sequence == 1
        with pytest.raises(grpc.RpcError) as ended:
            next(producer)
        calls.append(ended.value)
        frames.put(None)
    for call in calls:
        assert call.code() is grpc.StatusCode.UNAVAILABLE
        assert call.details() == refusal.message
        encoded = dict(call.trailing_metadata())["grpc-status-details-bin"]
        [detail] = status_pb2.Status.FromString(encoded).details
        info = error_details_pb2.ErrorInfo.FromString(detail.value)
        assert (info.reason, dict(info.metadata)) == ("NOT_OWNER", {"owner": "fila-2:5555"})


@pytest.mark.parametrize("how", ["cancelled", "connection"])
def test_pulls_that_were_abandoned_leave_room_for_as_many_calls_as_before(few: ToldEdge, how: str):
    asked = service_pb2.LeaseRequest(queue="orders", wait_ms=60_000).SerializeToString()
    for _ in range(3):
        with RawClient(few.grpc_address) as client:
            for stream in range(1, 2 * CALLS_MAX, 2):
                begin(client, stream, "Lease", asked)
            until_read(client)
            if how == "cancelled":
                for stream in range(1, 2 * CALLS_MAX, 2):
                    leave(client, stream)
                until_read(client)
        few.engine.settle_down()

    with RawClient(few.grpc_address) as client:
        streams = iter(range(1, 100_000, 2))

        def is_answered() -> bool:
            enqueue = service_pb2.EnqueueRequest(queue="orders").SerializeToString()
            begin(client, next(streams), "Enqueue", enqueue)
            return any(answer.kind == DATA for answer in client.pour(b"", looks=5))

        few.run_until(is_answered, "call was let in")


@pytest.mark.parametrize("method", ["Lease", "Consume", "ConsumeSession"])
def test_a_call_without_its_right_is_refused_for_that_also_where_rights_of_others_change_meanwhile(
    producers: ToldEdge, method: str
):
    address = producers.grpc_address
    with grpc.insecure_channel(address) as channel, RawClient(address) as other:
        stub = service_pb2_grpc.FilaServiceStub(channel)
        metadata = (("authorization", producers.key),)
        calls: dict[str, Callable[[], Any]] = {
            "Lease": lambda: stub.Lease.future(
                service_pb2.LeaseRequest(queue="orders", wait_ms=60_000), metadata=metadata
            ),
            "Consume": lambda: stub.Consume(service_pb2.ConsumeRequest(queue="orders"), metadata=metadata),
            "ConsumeSession": lambda: stub.ConsumeSession(
                iter([service_pb2.ConsumeSessionRequest(open={"queue": "orders"})]), metadata=metadata
            ),
        }
        call = calls[method]()
        producers.until_begun(1)
        producers.change_rights_of_another()
        until_read(other)
        until_read(other)
        producers.engine.settle_down()
        assert (call.code(), call.details()[:9]) == (grpc.StatusCode.PERMISSION_DENIED, "consume: ")


# --- sessions -----------------------------------------------------------------------------


def opening() -> bytes:
    return service_pb2.ConsumeSessionRequest(open={"queue": "orders"}).SerializeToString()


def ack(sequence: int) -> bytes:
    request = service_pb2.ConsumeSessionRequest(ack={"sequence": sequence, "lease_ids": [1]})
    return request.SerializeToString()


def test_later_frames_of_a_session_keep_their_order(edge: ToldEdge, client: RawClient):
    begin(client, 1, "ConsumeSession", opening(), flags=0)
    client.send(b"".join(frame(DATA, 0, 1, message(ack(sequence))) for sequence in range(1, 21)))

    [told] = answers(edge, client, (1, 21))
    opened, *settled = map(service_pb2.ConsumeSessionResponse.FromString, told)
    assert opened.opened.consumer_id
    assert [answer.settled.sequence for answer in settled] == list(range(1, 21))


def test_a_session_that_does_not_read_its_results_is_not_listened_to(edge: ToldEdge):
    with RawClient(edge.grpc_address, {INITIAL_WINDOW_SIZE: 0}) as client:
        begin(client, 1, "ConsumeSession", opening(), flags=0)
        client.send(b"".join(frame(DATA, 0, 1, message(ack(sequence))) for sequence in range(1, 501)))
        edge.run_until(lambda: edge.count("commands") > INBOX_FRAMES_MAX, "results came")
        until_read(client)
        edge.engine.settle_down()
        until_read(client)
        edge.engine.settle_down()

        assert edge.count("commands") < 2 * INBOX_FRAMES_MAX
        for window in (0, 1):
            client.send(frame(WINDOW_UPDATE, 0, window, struct.pack(">I", 1 << 20)))
        [told] = answers(edge, client, (1, 501))
        settled = map(service_pb2.ConsumeSessionResponse.FromString, told)
        assert [answer.settled.sequence for answer in settled] == list(range(501))
