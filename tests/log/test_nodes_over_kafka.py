"""Two servers of one group, over a log of Kafka's protocol: one serves, and when it dies the other one does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import grpc
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from fila import FilaClient
from fila.v1 import admin_pb2 as admin
from fila.v1 import cluster_pb2 as cluster
from fila.v1 import events_pb2 as events
from fila.v1 import service_pb2 as service
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import START_S_MAX, launch, wait_until_started
from tests.ports import KeptPort
from tests.sdk.conftest import until

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

GROUP = """[cluster]
name = "orders"
log = "kafka://{brokers}/{topic}"
peers = "{peers}"
secret_file = "{folder}/secret"
accept_weak_topic = true

[cluster.kafka]
retry.backoff.ms = 50
retry.backoff.max.ms = 100
reconnect.backoff.max.ms = 100
"""

TOPIC = {
    "test_when_the_owner_is_killed_the_standby_serves_with_all_that_was_answered": "killed",
    "test_an_owner_that_was_stopped_wakes_as_a_standby": "stopped",
    "test_over_a_takeover_a_producer_and_a_consumer_go_on_and_nothing_is_lost": "followed",
    "test_over_a_takeover_redis_py_goes_on_by_its_sentinel": "sentinel",
    "test_an_owner_tells_operators_and_each_node_its_metrics_how_the_group_is": "asked",
    "test_a_node_that_an_operator_removed_counts_no_more_until_it_answers_again": "removed",
    "test_over_a_planned_move_each_call_is_answered_and_each_message_is_there_once": "moved-by-hand",
    "test_a_group_whose_log_was_made_anew_goes_on_with_the_copy_that_an_operator_chooses": "first-log",
}


@pytest.fixture
def start_node(brokers, tmp_path, request):
    """Nodes by their number; they end with the test."""
    held = [KeptPort() for _ in range(8)]
    ports = [each.port for each in held]
    peers = ", ".join(f"127.0.0.1:{port}" for port in ports[:2])
    (tmp_path / "secret").touch(0o600)
    (tmp_path / "secret").write_text("a word that both of them know\n")
    (tmp_path / "fila.toml").write_text(
        GROUP.format(brokers=brokers.addresses, topic=TOPIC[request.node.name], peers=peers, folder=tmp_path)
    )
    running = []

    def start(number, **more):
        running.append(
            launch(
                tmp_path / f"data-{number}",
                tmp_path / f"node-{number}.log",
                FILA_CLUSTER__NODE=f"node-{number}",
                FILA_CLUSTER__PEER_ADDR=f"127.0.0.1:{ports[number]}",
                FILA_METRICS__LISTEN_ADDR=f"127.0.0.1:{ports[number + 2]}",
                FILA_SERVER__LISTEN_ADDR=f"127.0.0.1:{ports[number + 4]}",
                FILA_REDIS__LISTEN_ADDR=f"127.0.0.1:{ports[number + 6]}",
                **more,
            )
        )
        running[-1].addresses["metrics"] = f"127.0.0.1:{ports[number + 2]}"
        return running[-1]

    yield start
    for server in running:
        for channel in server.channels:
            channel.close()
        server.process.kill()
        server.process.wait()
    for each in held:
        each.close()


def wait_for(server, event, times=1):
    end = time.monotonic() + START_S_MAX
    while [line["event"] for line in server.log].count(event) < times:
        assert time.monotonic() < end, f"no {event}:\n{server.log_file.read_text()}"
        assert server.process.poll() is None, server.log_file.read_text()
        time.sleep(0.02)


def probed(address, path):
    try:
        return urllib.request.urlopen(f"http://{address}{path}", timeout=START_S_MAX).status
    except urllib.error.HTTPError as refused:
        return refused.code


def refused(stub):
    with pytest.raises(grpc.RpcError) as refused:
        stub.Enqueue(service.EnqueueRequest(queue="q", payload=b"to the wrong one"))
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    return refused.value.details()


def test_when_the_owner_is_killed_the_standby_serves_with_all_that_was_answered(start_node):
    owner = wait_until_started(start_node(0))
    owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    standby = start_node(1)
    wait_for(standby, "cluster.standby")
    stub = owner.service
    for number in range(20):
        stub.Enqueue(service.EnqueueRequest(queue="q", payload=b"%d" % number))
    assert standby.event("cluster.owner") is None
    page = standby.addresses["metrics"]
    while probed(page, "/readyz") != 200:
        time.sleep(0.02)
    assert probed(page, "/ownerz") == 503
    standby.addresses["grpc"] = f"127.0.0.1:{standby.event('cluster.standby')['grpc']}"
    stub, end = standby.service, time.monotonic() + START_S_MAX
    while f"and {owner.addresses['grpc']} serves the group" not in (
        said := refused(stub)
    ):  # it has to hear of it
        assert "no other node is known to serve" in said
        assert time.monotonic() < end
        time.sleep(0.02)

    owner.process.send_signal(signal.SIGKILL)
    owner.process.wait()
    successor = wait_until_started(standby).service
    told = successor.Lease(service.LeaseRequest(queue="q", max_messages=100)).messages
    assert [message.payload for message in told] == [b"%d" % number for number in range(20)]
    assert successor.Enqueue(service.EnqueueRequest(queue="q", payload=b"more")).message_id
    assert probed(page, "/ownerz") == 200


def test_an_owner_that_was_stopped_wakes_as_a_standby(start_node):
    owner = wait_until_started(start_node(0))
    owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    standby = start_node(1)
    wait_for(standby, "cluster.standby")
    owner.process.send_signal(signal.SIGSTOP)
    successor = wait_until_started(standby)
    successor.service.Enqueue(service.EnqueueRequest(queue="q", payload=b"told to the successor"))

    owner.process.send_signal(signal.SIGCONT)
    wait_for(owner, "cluster.term_over")
    wait_for(owner, "cluster.standby", times=2)
    assert owner.process.poll() is None
    assert successor.service.Lease(service.LeaseRequest(queue="q", max_messages=1)).messages
    assert owner.stop() == 0


async def test_over_a_takeover_a_producer_and_a_consumer_go_on_and_nothing_is_lost(start_node):
    owner = wait_until_started(start_node(0))
    owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    standby = start_node(1)
    wait_for(standby, "cluster.standby")
    both = f"127.0.0.1:{standby.event('cluster.standby')['grpc']},{owner.addresses['grpc']}"
    handed_out: set[bytes] = set()
    acked: set[bytes] = set()
    judged = 0
    async with FilaClient.connect(both, retry_for_s=START_S_MAX) as client, asyncio.timeout(2 * START_S_MAX):

        async def consume() -> None:
            nonlocal judged
            async for message in client.consume("q"):
                assert message.payload not in acked, "its ack was answered"
                judged += 1
                handed_out.add(message.payload)
                await message.ack()
                acked.add(message.payload)

        consuming = asyncio.create_task(consume())
        for number in range(200):
            if number == 100:
                await until(lambda: len(acked) >= 50)
                owner.process.send_signal(signal.SIGKILL)
            await client.enqueue("q", b"%d" % number, dedup_key=str(number))
        await until(lambda: len(acked) == 200 or consuming.done())
        consuming.cancel()
        await asyncio.gather(consuming, return_exceptions=True)
        assert handed_out == {b"%d" % number for number in range(200)}
        assert judged >= 200
        assert not await client.lease("q", max_messages=1)
    assert standby.event("cluster.owner")


def insistently(call, *args):
    """As a program does that a takeover is to pass by: again, where the connection failed."""
    end = time.monotonic() + START_S_MAX
    while True:
        try:
            return call(*args)
        except (redis.ConnectionError, redis.TimeoutError):
            assert time.monotonic() < end
            time.sleep(0.02)


def test_over_a_takeover_redis_py_goes_on_by_its_sentinel(start_node):
    owner = wait_until_started(start_node(0))
    standby = start_node(1)
    wait_for(standby, "cluster.standby")
    ports = [standby.event("cluster.standby")["redis"], int(owner.addresses["redis"].rpartition(":")[2])]
    followed = Sentinel([("127.0.0.1", port) for port in ports], min_other_sentinels=1, socket_timeout=5)
    client = followed.master_for("orders", retry=Retry(NoBackoff(), 0))
    at_standby = redis.Redis(port=ports[0])
    insistently(client.setnx, "q", "c")
    assert followed.discover_master("orders") == ("127.0.0.1", ports[1])
    assert followed.discover_slaves("orders") == [("127.0.0.1", ports[0])]
    assert client.execute_command("ROLE")[0] == b"master"
    while not client.info("replication")["connected_slaves"]:  # it has to hear of it
        time.sleep(0.02)
    assert at_standby.execute_command("ROLE")[:4] == [b"slave", b"127.0.0.1", ports[1], b"connected"]
    with pytest.raises(redis.ReadOnlyError, match="serves the group"):
        at_standby.rpush("q", "to the wrong one")
    heard = at_standby.pubsub(ignore_subscribe_messages=True)
    heard.subscribe("+switch-master")

    for number in range(20):
        if number == 10:
            owner.process.send_signal(signal.SIGKILL)
        insistently(client.rpush, "q", str(number))
    rows = insistently(client.execute_command, "HMGET", "q", "c", "100")
    told = [int(body) for _, _, body in rows]
    assert sorted(set(told)) == list(range(20)), "one whose answer was lost may be there twice"
    assert followed.discover_master("orders") == ("127.0.0.1", ports[0])
    assert standby.event("cluster.owner")
    message = heard.get_message(timeout=START_S_MAX) or heard.get_message(timeout=START_S_MAX)
    assert message["data"] == b"orders 127.0.0.1 %d 127.0.0.1 %d" % (ports[1], ports[0])
    for each in (client, at_standby, followed):
        each.close()


def metric(address, name):
    page = urllib.request.urlopen(f"http://{address}/metrics", timeout=START_S_MAX).read().decode()
    return float(page.partition(f'\n{name}{{fila_cluster="orders"}} ')[2].partition("\n")[0])


def nodes_told(owner):
    told = owner.admin.GetClusterStatus(cluster.GetClusterStatusRequest())
    assert told.group == "orders"
    return told.nodes


def test_an_owner_tells_operators_and_each_node_its_metrics_how_the_group_is(start_node):
    owner = start_node(0)
    page = owner.addresses["metrics"]
    wait_until_started(owner)
    owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    own, other = nodes_told(owner)
    assert (own.node, own.role, own.in_sync, own.store_format) == ("node-0", cluster.NODE_ROLE_OWNER, True, 3)
    assert (other.node, other.role) == ("", cluster.NODE_ROLE_GONE)

    standby = start_node(1, FILA_LIMITS__HEADERS_MAX="23")
    wait_for(standby, "cluster.standby")
    end = time.monotonic() + START_S_MAX
    while not (other := nodes_told(owner)[1]).in_sync:
        assert time.monotonic() < end, other
        time.sleep(0.02)
    assert (other.node, other.role, other.lacks) == ("node-1", cluster.NODE_ROLE_STANDBY, "")
    assert list(other.differing_settings) == ["limits.headers_max"]
    assert abs(other.clock_offset_ms) < 1000
    listed = owner.admin.ListQueues(admin.ListQueuesRequest())
    assert listed.cluster_node_count == 2
    assert {each.leader_node_id for each in listed.queues} == {own.node_id}
    stats = owner.admin.GetStats(admin.GetStatsRequest(queue="q"))
    assert (stats.leader_node_id, stats.replication_count) == (own.node_id, 2)
    shown = CommandLine(owner.addresses["grpc"]).run("cluster", "status")
    assert "node-1  standby" in shown.out
    assert "2 of 2 nodes in sync" in shown.out

    assert metric(standby.addresses["metrics"], "fila_cluster_role") == 0
    assert metric(standby.addresses["metrics"], "fila_cluster_in_sync") == 1
    assert metric(page, "fila_cluster_role") == 1
    assert metric(page, "fila_cluster_takeovers_total") == 1
    assert metric(page, "fila_cluster_nodes_in_sync") == 2
    assert metric(page, "fila_cluster_confirm_duration_seconds_count") > 0
    assert 0 < metric(page, "fila_cluster_confirm_duration_seconds_sum") < START_S_MAX

    standby.process.send_signal(signal.SIGSTOP)
    while (other := nodes_told(owner)[1]).role != cluster.NODE_ROLE_GONE:
        assert time.monotonic() < end, other
        time.sleep(0.02)
    assert other.since.ToMilliseconds() > 0
    assert owner.admin.GetStats(admin.GetStatsRequest(queue="q")).replication_count == 1
    while (event := owner.event("cluster.gone")) is None:
        assert time.monotonic() < end, owner.log_file.read_text()
        time.sleep(0.02)
    assert (event["node"], event["detail"]) == ("node-1", "it answers no probe")
    happened = [
        each.kind
        for answer in owner.admin.WatchEvents(events.WatchEventsRequest(kinds=["cluster"]))
        for each in answer.events
    ]
    assert happened == ["cluster.owner", "cluster.standby", "cluster.gone"]


def test_a_node_that_an_operator_removed_counts_no_more_until_it_answers_again(start_node):
    owner = start_node(0)
    page = owner.addresses["metrics"]
    wait_until_started(owner)
    standby = start_node(1)
    wait_for(owner, "cluster.standby")
    end = time.monotonic() + START_S_MAX
    # The event may have been the owner's own, from before it served.
    while "node-1" not in [each.node for each in nodes_told(owner)]:
        assert time.monotonic() < end, owner.log_file.read_text()
        time.sleep(0.02)
    shell = CommandLine(owner.addresses["grpc"])
    assert "node-1 answers: it is standby" in shell.run("cluster", "remove", "node-1").err
    assert "node-0 serves the group" in shell.run("cluster", "remove", "node-0").err

    standby.process.send_signal(signal.SIGSTOP)
    wait_for(owner, "cluster.gone")
    assert (
        shell.run("cluster", "remove", "node-1").out == "node-1 does not count any more, until it answers\n"
    )
    assert [each.node for each in nodes_told(owner)] == ["node-0"]
    assert metric(page, "fila_cluster_nodes") == 1
    assert '"RemoveNode"' in shell.run("auth", "audit", "-o", "json").out
    assert owner.event("cluster.removed")["node"] == "node-1"

    standby.process.send_signal(signal.SIGCONT)
    end = time.monotonic() + START_S_MAX
    while len(nodes_told(owner)) == 1:
        assert time.monotonic() < end, owner.log_file.read_text()
        time.sleep(0.02)
    assert "node-1 answers: it is " in shell.run("cluster", "remove", "node-1").err


async def test_over_a_planned_move_each_call_is_answered_and_each_message_is_there_once(start_node):
    """Without dedup keys: no answer is lost."""
    owner = wait_until_started(start_node(0))
    owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    shell = CommandLine(owner.addresses["grpc"])
    refused = await shell("cluster", "move", expect=1)
    assert "no standby can take over. " in refused.err
    assert "it has never answered" in refused.err
    standby = start_node(1)
    wait_for(standby, "cluster.standby")
    await until(lambda: nodes_told(owner)[1].in_sync)
    assert (
        'no node of the group orders is named "node-7"'
        in (await shell("cluster", "move", "node-7", expect=1)).err
    )
    assert (
        "node-0 cannot take over: it serves already"
        in (await shell("cluster", "move", "node-0", expect=1)).err
    )
    both = f"127.0.0.1:{standby.event('cluster.standby')['grpc']},{owner.addresses['grpc']}"
    stored = 0
    async with FilaClient.connect(both, retry_for_s=START_S_MAX) as client, asyncio.timeout(2 * START_S_MAX):

        async def produce() -> None:
            nonlocal stored
            while not moving.done():
                await client.enqueue("q", b"%d" % stored)
                stored += 1

        moving = asyncio.create_task(shell("cluster", "move", "node-1"))
        await asyncio.gather(produce(), produce(), moving)
        assert moving.result().out.startswith("node-1 serves, since term ")
    assert stored > 0
    wait_for(owner, "cluster.standby", times=1)
    assert standby.event("cluster.bids")["detail"] == "the owner hands over"
    standby.addresses["grpc"] = f"127.0.0.1:{standby.event('cluster.standby')['grpc']}"
    assert standby.admin.GetStats(admin.GetStatsRequest(queue="q")).depth == stored
    assert standby.admin.GetClusterStatus(cluster.GetClusterStatusRequest()).short_terms <= 1
    audit = CommandLine(standby.addresses["grpc"]).run("auth", "audit", "-o", "json").out
    assert '"MoveOwner"' in audit
    assert "the owner hands over" in audit


def test_a_group_whose_log_was_made_anew_goes_on_with_the_copy_that_an_operator_chooses(
    start_node, brokers, tmp_path
):
    owner = wait_until_started(start_node(0))
    owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    standby = start_node(1)
    wait_for(standby, "cluster.standby")
    for number in range(10):
        owner.service.Enqueue(service.EnqueueRequest(queue="q", payload=b"%d" % number))
    assert standby.stop() == 0
    assert owner.stop() == 0

    anew = {"FILA_CLUSTER__LOG": f"kafka://{brokers.addresses}/log-made-anew"}
    first, second = start_node(0, **anew), start_node(1, **anew)
    for node in (first, second):
        wait_for(node, "cluster.halted")
        assert "it lost its end" in node.event("cluster.halted")["detail"]

    def reseed(node):
        environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
        peer = tmp_path.joinpath("fila.toml").read_text().partition('peers = "')[2].partition(",")[0]
        named = {"FILA_CLUSTER__NODE": "node-0", "FILA_CLUSTER__PEER_ADDR": peer}
        named |= {"FILA_SERVER__LISTEN_ADDR": "127.0.0.1:5555", "FILA_REDIS__ENABLED": "false"}
        command = [sys.executable, "-m", "fila_server.main", "cluster", "reseed", "--from", node, "--yes"]
        return subprocess.run(
            command, env=environ | anew | named, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    refused = reseed("node-1")
    assert refused.returncode == 1
    assert "node-0 holds more: up to offset" in refused.stderr
    assert "With --force it is done all the same" in refused.stderr
    done = reseed("node-0")
    assert done.returncode == 0, done.stderr
    assert "node-0: halted, up to offset" in done.stdout
    served = wait_until_started(first)
    told = served.service.Lease(service.LeaseRequest(queue="q", max_messages=100)).messages
    assert [message.payload for message in told] == [b"%d" % number for number in range(10)]
    wait_for(second, "cluster.copy_taken")
    end = time.monotonic() + START_S_MAX
    while not nodes_told(served)[1].in_sync:
        assert time.monotonic() < end, second.log_file.read_text()
        time.sleep(0.02)
