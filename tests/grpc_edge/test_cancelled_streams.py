"""A stream of answers that its client cancels without having read it leaves nothing behind."""

from __future__ import annotations

import struct
import time

import grpc
import pytest

from fila.v1 import admin_pb2, admin_pb2_grpc, events_pb2, service_pb2, service_pb2_grpc, watch_pb2
from tests.e2e.conftest import StartServer
from tests.grpc_edge.raw_http2 import DATA, END_STREAM, RST_STREAM, RawClient, frame, message

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

INITIAL_WINDOW_SIZE = 4
CANCEL = 8
MIB = 1 << 20
PATIENCE_S = 30.0


class Guarded:
    """A server that asks for keys, with the smallest budget of answers that nobody has read, and a log to read."""

    def __init__(self, start_server: StartServer) -> None:
        running = start_server(
            FILA_SERVER__EDGE="native",
            FILA_AUTH__ENABLED="true",
            FILA_LIMITS__UNWRITTEN_BYTES_MAX=str(16 * MIB),
        )
        self.address = running.addresses["grpc"]
        self.bearer = "Bearer " + (running.data_dir / "bootstrap-key").read_text().strip()
        self.metadata = (("authorization", self.bearer),)
        self.service = service_pb2_grpc.FilaServiceStub(running.channel())
        self.admin = admin_pb2_grpc.FilaAdminStub(running.channel())
        self.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="log"), metadata=self.metadata)
        messages = [service_pb2.EnqueueMessage(payload=bytes(900_000))] * 8
        batch = service_pb2.EnqueueBatchRequest(queue="log", messages=messages)
        self.service.EnqueueBatch(batch, metadata=self.metadata)

    def cancel_unread(self, path: str, request: bytes, calls: int) -> None:
        """Begin as many calls, take nothing of their answers, cancel them, and leave."""
        ids = range(1, 2 * calls, 2)
        with RawClient(self.address, {INITIAL_WINDOW_SIZE: 0}) as client:
            for stream in ids:
                client.begin(stream, f"/fila.v1.FilaAdmin/{path}", (b"authorization", self.bearer.encode()))
                client.send(frame(DATA, END_STREAM, stream, message(request)))
            client.pour(b"", looks=1000)
            cancels = b"".join(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)) for stream in ids)
            client.pour(cancels, looks=500)


@pytest.fixture
def guarded(start_server: StartServer) -> Guarded:
    return Guarded(start_server)


def test_a_cancelled_read_of_a_log_gives_its_part_of_the_budget_back(guarded: Guarded) -> None:
    request = admin_pb2.ReadLogRequest(queue="log", max_batch=1000)
    guarded.cancel_unread("ReadLog", request.SerializeToString(), calls=60)

    pull = service_pb2.LeaseRequest(queue="log", max_messages=3, wait_ms=int(PATIENCE_S * 1000))
    answer = guarded.service.Lease(pull, timeout=PATIENCE_S + 5, metadata=guarded.metadata)
    read = list(guarded.admin.ReadLog(request, metadata=guarded.metadata))

    assert len(answer.messages) == 3
    assert sum(len(piece.messages) for piece in read) == 8


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        ("WatchStats", watch_pb2.WatchStatsRequest(queues=["log"])),
        ("WatchEvents", events_pb2.WatchEventsRequest(follow=True)),
    ],
    ids=["WatchStats", "WatchEvents"],
)
def test_a_cancelled_watch_gives_its_place_back(
    guarded: Guarded, path: str, request_: watch_pb2.WatchStatsRequest | events_pb2.WatchEventsRequest
) -> None:
    guarded.cancel_unread(path, request_.SerializeToString(), calls=100)

    ends = time.monotonic() + PATIENCE_S
    refused = "not asked yet"
    watch = getattr(guarded.admin, path)
    while refused and time.monotonic() < ends:
        try:
            next(watch(request_, timeout=5, metadata=guarded.metadata))
            refused = ""
        except grpc.RpcError as error:
            refused = error.details()
    assert not refused
