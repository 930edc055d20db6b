"""A broker becomes a group of two and a broker again, by the commands, over brokers of Kafka's protocol."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from tests.e2e.conftest import launch, wait_until_started
from tests.log.test_copies_over_kafka import Nodes, kill
from tests.log.test_nodes_over_kafka import wait_for
from tests.log.test_verify import verify

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

TOPIC = "begun"
LEASE_MS = 600_000


@pytest.fixture
def nodes(brokers, tmp_path):
    made = Nodes(tmp_path, brokers, TOPIC)
    yield made
    made.close()


def stop(server):
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0, server.log_file.read_text()


def by_itself(nodes, number, name):
    """A server on a node's directory, whose settings know no group."""
    folder = nodes.folder / name
    folder.mkdir()
    return launch(nodes.data_dir(number), folder / "server.log")


def command(nodes, *words):
    """`fila-server cluster ...`, with the settings of the first node."""
    return subprocess.run(
        [
            Path(sys.executable).with_name("fila-server"),
            "--config",
            nodes.folder / "fila.toml",
            "cluster",
            *words,
        ],
        env={
            "FILA_CLUSTER__NODE": "node-0",
            "FILA_CLUSTER__PEER_ADDR": f"127.0.0.1:{nodes.ports[0]}",
            "FILA_SERVER__LISTEN_ADDR": f"127.0.0.1:{nodes.ports[2]}",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def status(nodes):
    """What an operator sees."""
    addresses = ",".join(f"127.0.0.1:{port}" for port in nodes.ports[2:])
    told = subprocess.run(
        [Path(sys.executable).with_name("fila"), "--addr", addresses, "cluster", "status"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "where no node serves: 1 of 2 nodes said how it is itself" in told.stdout
    return told.stdout


def ack(server, leased):
    server.service.Ack(service.AckRequest(queue="q", message_id=leased.id, lease_id=leased.metadata.lease_id))


def test_a_broker_becomes_a_group_and_a_broker_again_with_each_message_and_each_lease(
    nodes, brokers, tmp_path
):
    alone = wait_until_started(by_itself(nodes, 0, "alone"))
    alone.admin.CreateQueue(
        admin.CreateQueueRequest(name="q", config=admin.QueueConfig(visibility_timeout_ms=LEASE_MS))
    )
    for number in range(3):
        alone.service.Enqueue(service.EnqueueRequest(queue="q", payload=b"%d" % number))
    lease = service.LeaseRequest(queue="q", max_messages=1)
    first, second = (alone.service.Lease(lease).messages[0] for _ in range(2))
    running = command(nodes, "init", "--from", nodes.data_dir(0))
    assert running.returncode == 1
    assert "is in use by process" in running.stderr
    stop(alone)

    begun = command(nodes, "init", "--from", nodes.data_dir(0))
    assert begun.returncode == 0, begun.stderr
    assert "is the first copy of the group orders. Start node-0 on it" in begun.stdout
    again = command(nodes, "init", "--from", nodes.data_dir(0))
    assert "is a copy of a group's already: start it as a node" in again.stderr

    # Without its data nobody begins the group: the other node waits for the copy.
    other = nodes.start(1)
    wait_for(other, "cluster.waits")
    assert "and this node has no copy of it" in status(nodes)
    owner = wait_until_started(nodes.start(0))
    wait_for(other, "cluster.copy_taken")
    wait_for(other, "cluster.standby")
    ack(owner, first)
    kill(owner)
    ack(wait_until_started(other), second)
    (tmp_path / "elsewhere").mkdir()
    told = verify(brokers, TOPIC, tmp_path / "elsewhere")
    assert told.returncode == 0, told.stdout
    assert "it began with the data of a broker, which is in no record" in told.stdout

    refused = command(nodes, "leave", nodes.data_dir(0))
    assert refused.returncode == 1
    assert "a node serves the group: its log goes on" in refused.stderr
    stop(other)
    left = command(nodes, "leave", nodes.data_dir(0))  # the copy that lacks the last ack
    assert left.returncode == 0, left.stderr
    assert "which is the log's end" in left.stdout
    last = wait_until_started(by_itself(nodes, 0, "again"))
    leased = last.service.Lease(service.LeaseRequest(queue="q", max_messages=9)).messages
    assert [message.payload for message in leased] == [b"2"]
    assert last.admin.GetStats(admin.GetStatsRequest(queue="q")).in_flight == 1
    stop(last)

    # A forgotten setting is told, with the way back.
    forgotten = by_itself(nodes, 1, "forgotten")
    assert forgotten.process.wait(30) == 1
    assert "fila-server cluster leave" in forgotten.log_file.read_text()
    shutil.rmtree(nodes.data_dir(1))
