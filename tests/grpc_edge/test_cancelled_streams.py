"""A stream of answers that its client cancels without having read it leaves nothing behind."""

from __future__ import annotations

import struct
import time

import grpc
import pytest

from fila.v1 import admin_pb2, admin_pb2_grpc, events_pb2, watch_pb2
from tests.e2e.conftest import StartServer
from tests.grpc_edge.raw_http2 import DATA, END_STREAM, RST_STREAM, RawClient, frame, message

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

INITIAL_WINDOW_SIZE = 4
CANCEL = 8
PATIENCE_S = 30.0


class Guarded:
    """A server that asks for keys, and a queue to watch."""

    def __init__(self, start_server: StartServer) -> None:
        running = start_server(FILA_AUTH__ENABLED="true")
        self.address = running.addresses["grpc"]
        self.bearer = "Bearer " + (running.data_dir / "bootstrap-key").read_text().strip()
        self.metadata = (("authorization", self.bearer),)
        self.admin = admin_pb2_grpc.FilaAdminStub(running.channel())
        self.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="watched"), metadata=self.metadata)

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


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        ("WatchStats", watch_pb2.WatchStatsRequest(queues=["watched"])),
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
