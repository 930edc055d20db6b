"""One queue, two protocols, a real server: what one puts in the other takes out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
import redis

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer, StartServer
from tests.waiting import within

pytestmark = pytest.mark.e2e


def connect(server: RunningServer) -> redis.Redis:
    host, _, port = server.addresses["redis"].rpartition(":")
    return redis.Redis(host=host, port=int(port), socket_timeout=30)


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server()


@pytest.fixture
def client(server: RunningServer) -> Iterator[Any]:
    with connect(server) as client:
        yield client


def test_what_redis_pushes_grpc_leases_and_acks(server: RunningServer, client: Any):
    client.setnx("orders", "mail")
    client.rpush("orders", *[f"m{i}" for i in range(10)])
    service = server.service

    leased = service.Lease(service_pb2.LeaseRequest(queue="orders", channel="mail", max_messages=4)).messages
    assert [message.payload for message in leased] == [b"m0", b"m1", b"m2", b"m3"]
    assert {message.metadata.fairness_key for message in leased} == {"default"}
    items = [service_pb2.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in leased]
    acked = service.AckBatch(service_pb2.AckBatchRequest(queue="orders", channel="mail", items=items))
    assert [result.code for result in acked.results] == [0] * 4

    rest = client.hmget("orders", ["mail", 100])
    assert [row[2] for row in rest] == [f"m{i}".encode() for i in range(4, 10)]
    assert client.hdel("orders", "mail", *[row[1] for row in rest]) == 6


def test_what_grpc_enqueues_redis_reads_in_fair_order(server: RunningServer, client: Any):
    config = admin_pb2.QueueConfig(fairness_key_header="tenant", channels=["mail"])
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders", config=config))
    messages = [
        service_pb2.EnqueueMessage(headers={"tenant": tenant}, payload=f"{tenant}{i}".encode())
        for tenant, count in (("noisy", 20), ("quiet", 3))
        for i in range(count)
    ]
    server.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue="orders", messages=messages))

    first = [row[2] for row in client.hmget("orders", ["mail", 6])]
    assert sorted(body for body in first if body.startswith(b"quiet")) == [b"quiet0", b"quiet1", b"quiet2"]


def test_a_ticket_is_the_lease_id(server: RunningServer, client: Any):
    client.setnx("orders", "mail")
    client.rpush("orders", "a", "b")
    (_, by_grpc, _), (_, by_redis, _) = client.hmget("orders", ["mail", 2])

    items = [service_pb2.SettleItem(lease_id=by_grpc % 2**64)]
    acked = server.service.AckBatch(service_pb2.AckBatchRequest(queue="orders", channel="mail", items=items))
    assert [result.code for result in acked.results] == [0]
    assert client.hdel("orders", "mail", by_grpc, by_redis) == 1


def test_a_grpc_call_makes_no_channel_and_is_told_which_there_are(server: RunningServer, client: Any):
    client.setnx("orders", "mail")
    client.rpush("orders", "a", "b")

    with pytest.raises(grpc.RpcError, match='no channel "default"; it has "mail"'):
        server.service.Lease(service_pb2.LeaseRequest(queue="orders", max_messages=10))

    listed = server.admin.ListChannels(admin_pb2.ListChannelsRequest(queue="orders"))
    assert [channel.name for channel in listed.channels] == ["mail"]
    assert len(client.hmget("orders", ["mail", 10])) == 2


def test_everything_acked_stays_acked_and_settings_stay_set_over_a_restart(start_server: StartServer):
    server = start_server()
    with connect(server) as client:
        client.setnx("orders", "mail")
        client.setnx("orders", "audit")
        client.config_set("queues.orders.message_timeout", "3s")
        client.rpush("orders", *range(100))
        rows = client.hmget("orders", ["mail", 100])
        assert client.hdel("orders", "mail", *[row[1] for row in rows if row[0] % 3]) == 67
        client.config_set("server.max_connections", "77")
    server.stop()

    again = start_server(server.data_dir)
    with connect(again) as client:
        client.config_set("queues.orders.message_timeout", "30s")
        audit = client.hmget("orders", ["audit", 1000])
        assert [int(row[2]) for row in audit] == list(range(100))
        # What was leased before comes back when its lease is over, and nothing that was acked does.
        client.execute_command("HMSET", "orders", "audit", "ID", 2**62)
        left: list[int] = []
        while len(left) < 33:
            got = client.hmget("orders", ["mail", 100, 20])
            assert got, f"only {len(left)} of 33 came back"
            left += [row[0] for row in got]
        assert sorted(left) == [offset for offset in range(1, 101) if offset % 3 == 0]
        assert json.loads(client.execute_command("CONFIG", "GET", "server")[0])["max_connections"] == 77


def test_a_waiting_read_is_woken_the_moment_a_lease_expires(client: Any):
    client.setnx("orders", "mail")
    client.config_set("queues.orders.message_timeout", "1s")
    client.rpush("orders", "a")

    def expires_and_comes(_: int) -> float:
        client.hmget("orders", ["mail", 1])
        started = time.monotonic()
        ((_, ticket, body),) = client.hmget("orders", ["mail", 1, 19])
        took_s = time.monotonic() - started
        assert body == b"a"
        assert took_s > 0.8
        assert client.hdel("orders", "mail", ticket) == 1
        client.rpush("orders", "a")
        return took_s

    within(1.5, expires_and_comes)


def test_a_timeout_passes_in_its_time(client: Any):
    client.setnx("orders", "mail")

    def passes(_: int) -> float:
        started = time.monotonic()
        assert client.hmget("orders", ["mail", 1, 0.25]) is None
        took_s = time.monotonic() - started
        assert took_s > 0.24
        return took_s

    within(1, passes)
