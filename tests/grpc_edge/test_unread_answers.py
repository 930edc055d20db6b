"""Answers that a client does not read: it may keep as much from others as is left for them, and no more."""

from __future__ import annotations

import time

import grpc
import pytest

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.e2e.conftest import RunningServer, StartServer
from tests.grpc_edge.raw_http2 import DATA, END_STREAM, RawClient, frame, message

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

INITIAL_WINDOW_SIZE = 4
BUDGET = 16 * 2**20
PAYLOAD = bytes(2**20)
PATIENCE_S = 60.0


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server(
        FILA_SERVER__EDGE="native",
        FILA_STORAGE__DURABILITY="os",
        FILA_LIMITS__UNWRITTEN_BYTES_MAX=str(BUDGET),
    )


def test_one_connection_that_reads_nothing_keeps_nobody_from_pulling_or_peeking(
    server: RunningServer,
) -> None:
    admin = admin_pb2_grpc.FilaAdminStub(server.channel())
    service = service_pb2_grpc.FilaServiceStub(server.channel())
    for name in ("hoarded", "served"):
        admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name))
        for _ in range(40):
            service.Enqueue(service_pb2.EnqueueRequest(queue=name, payload=PAYLOAD))
    with RawClient(server.addresses["grpc"], {INITIAL_WINDOW_SIZE: 0}) as hoarder:
        for number in range(40):
            hoarder.begin(2 * number + 1, "/fila.v1.FilaService/Lease")
            asked = service_pb2.LeaseRequest(queue="hoarded", wait_ms=60_000)
            hoarder.send(frame(DATA, END_STREAM, 2 * number + 1, message(asked.SerializeToString())))
        stats = admin_pb2.GetStatsRequest(queue="hoarded")
        ends = time.monotonic() + PATIENCE_S
        while admin.GetStats(stats).in_flight < 7 and time.monotonic() < ends:
            time.sleep(0.02)  # no call of ours is told when its answers lie there
        hoarder.pour(b"", looks=500)

        assert admin.GetStats(stats).in_flight in (7, 8), (
            "half of the budget, and what a page has beside its payload"
        )
        for _ in range(20):
            leased = service.Lease(service_pb2.LeaseRequest(queue="served", max_messages=2)).messages
            assert len(leased) == 2
            peeked = admin.PeekMessages(
                admin_pb2.PeekMessagesRequest(queue="hoarded", max_messages=3)
            ).messages
            assert len(peeked) == 3

    ends = time.monotonic() + PATIENCE_S
    while admin.GetStats(stats).in_flight and time.monotonic() < ends:
        time.sleep(0.02)
    assert admin.GetStats(stats).depth == 40, "what it never read is there again"


def test_a_client_that_reads_gets_all_of_an_answer_larger_than_its_share(server: RunningServer) -> None:
    admin = admin_pb2_grpc.FilaAdminStub(server.channel())
    options = [("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(server.addresses["grpc"], options=options) as channel:
        service = service_pb2_grpc.FilaServiceStub(channel)
        admin.CreateQueue(admin_pb2.CreateQueueRequest(name="large"))
        for _ in range(12):
            service.Enqueue(service_pb2.EnqueueRequest(queue="large", payload=PAYLOAD))

        got = 0
        while got < 12:
            got += len(service.Lease(service_pb2.LeaseRequest(queue="large", max_messages=12)).messages)

    assert got == 12
