"""Answers that a client does not read: it may keep as much from others as is left for them, and no more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.e2e.conftest import RunningServer, StartServer
from tests.grpc_edge.raw_http2 import DATA, END_STREAM, RawClient, frame, message
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

INITIAL_WINDOW_SIZE = 4
BUDGET = 16 * 2**20
PAYLOAD = bytes(2**20)
PATIENCE_S = 60.0


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server(
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


@contextmanager
def hoarding(server: RunningServer) -> Iterator[Any]:
    """Pages of some megabytes on connections that read none of them, until there is no room for another page: yields
    the refusal of that one."""
    admin = admin_pb2_grpc.FilaAdminStub(server.channel())
    peek = admin_pb2.PeekMessagesRequest(queue="hoarded", max_messages=3)
    with ExitStack() as connections:

        def hoard(pages: int) -> None:
            hoarder = connections.enter_context(RawClient(server.addresses["grpc"], {INITIAL_WINDOW_SIZE: 0}))
            for number in range(pages):
                hoarder.begin(2 * number + 1, "/fila.v1.FilaAdmin/PeekMessages")
                hoarder.send(frame(DATA, END_STREAM, 2 * number + 1, message(peek.SerializeToString())))

        errors: list[Any] = []

        def is_refused() -> bool:
            errors.append(refused(admin, peek))
            if errors[-1] is None:
                hoard(1)  # pages that were made at the same time took room from each other, and gave it back
            return errors[-1] is not None

        for _ in range(8):
            hoard(4)
        until(is_refused)
        yield errors[-1]


def refused(admin: Any, peek: admin_pb2.PeekMessagesRequest) -> Any:
    """The refusal of a read, or None."""
    try:
        admin.PeekMessages(peek)
    except grpc.RpcError as error:
        return error
    return None


@pytest.fixture
def filled(server: RunningServer) -> RunningServer:
    """A server with queues of some megabytes."""
    for name in ("hoarded", "large", "small"):
        server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name))
    for name in ("hoarded", "large"):
        for _ in range(3):
            server.service.Enqueue(service_pb2.EnqueueRequest(queue=name, payload=PAYLOAD))
    return server


def test_a_read_beyond_the_budget_is_refused_with_its_bound_and_served_once_the_others_have_gone(
    filled: RunningServer,
) -> None:
    admin = admin_pb2_grpc.FilaAdminStub(filled.channel())
    peek = admin_pb2.PeekMessagesRequest(queue="hoarded", max_messages=3)
    with hoarding(filled) as error:
        assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert f"limits.unwritten_bytes_max is {BUDGET}" in error.details()
        assert b"google.rpc.RetryInfo" in dict(error.trailing_metadata())["grpc-status-details-bin"]

    until(lambda: refused(admin, peek) is None)


def test_small_answers_are_given_while_others_hoard_and_a_consumer_is_served_once_they_have_gone(
    filled: RunningServer,
) -> None:
    service = service_pb2_grpc.FilaServiceStub(filled.channel())
    with hoarding(filled):
        small = service_pb2.EnqueueRequest(queue="small", payload=b"x")
        assert service.Enqueue(small, timeout=20).offset == 1
        assert len(service.Lease(service_pb2.LeaseRequest(queue="small"), timeout=20).messages) == 1
        options = [("grpc.max_receive_message_length", -1)]
        channel = grpc.insecure_channel(filled.addresses["grpc"], options=options)
        consumer: Any = service_pb2_grpc.FilaServiceStub(channel).Consume(
            service_pb2.ConsumeRequest(queue="large", max_in_flight=3, max_batch=3)
        )

    got = 0
    while got < 3:
        got += len(next(consumer).messages)
    channel.close()
