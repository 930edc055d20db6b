"""Servers of one group, one of which has no copy to go on with: it takes another one's, by itself.

The mock brokers forget records beyond 5 MB, so a log of more has lost its beginning.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from tests.e2e.conftest import START_S_MAX, launch, wait_until_started
from tests.log.test_nodes_over_kafka import GROUP, wait_for
from tests.ports import KeptPort

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

TOPIC = {
    "test_a_new_node_takes_a_copy_where_the_log_has_no_beginning_any_more": "taken",
    "test_a_damaged_copy_is_set_aside_and_replaced_by_itself": "damaged",
    "test_a_standby_that_was_away_for_too_long_takes_a_copy": "behind",
    "test_an_owner_that_may_not_truncate_says_so_and_goes_on": "short",
    "test_a_standbys_backup_is_a_copy_for_its_group_or_a_broker_alone": "backed-up",
}
PIECE = random.Random(1).randbytes(900_000)
PIECES, FEW = 8, 4


class Nodes:
    """Servers by their number, each with a data directory."""

    def __init__(self, folder, brokers, topic):
        self.folder, self.running = folder, []
        self.held = [KeptPort() for _ in range(4)]
        self.ports = [each.port for each in self.held]
        peers = ", ".join(f"127.0.0.1:{port}" for port in self.ports[:2])
        (folder / "secret").touch(0o600)
        (folder / "secret").write_text("a word that both of them know\n")
        (folder / "fila.toml").write_text(
            GROUP.format(brokers=brokers.addresses, topic=topic, peers=peers, folder=folder)
        )

    @property
    def addresses(self):
        """Where clients reach them."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports[2:])

    def data_dir(self, number):
        return self.folder / f"data-{number}"

    def start(self, number, **settings: Any):
        server = launch(
            self.data_dir(number),
            self.folder / f"node-{number}-{len(self.running)}.log",
            FILA_CLUSTER__NODE=f"node-{number}",
            FILA_CLUSTER__PEER_ADDR=f"127.0.0.1:{self.ports[number]}",
            FILA_SERVER__LISTEN_ADDR=f"127.0.0.1:{self.ports[number + 2]}",
            **settings,
        )
        self.running.append(server)
        return server

    def close(self):
        for server in self.running:
            for channel in server.channels:
                channel.close()
            server.process.kill()
            server.process.wait()
        for each in self.held:
            each.close()


@pytest.fixture
def nodes(brokers, tmp_path, request):
    made = Nodes(tmp_path, brokers, TOPIC[request.node.name])
    yield made
    made.close()


def kill(server):
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


def fill(owner, pieces=PIECES, first=0):
    """By default more than the brokers keep."""
    if not first:
        owner.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    for number in range(first, first + pieces):
        owner.service.Enqueue(service.EnqueueRequest(queue="q", payload=b"%d" % number + PIECE))


def numbers(owner):
    found = []
    while told := owner.service.Lease(service.LeaseRequest(queue="q", max_messages=4)).messages:
        found += [int(message.payload[:1]) for message in told]
    return found


def test_a_new_node_takes_a_copy_where_the_log_has_no_beginning_any_more(nodes):
    owner = wait_until_started(nodes.start(0))
    assert owner.event("cluster.log_is_read")
    fill(owner)
    late = nodes.start(1)
    wait_for(late, "cluster.copy_taken")
    wait_for(late, "cluster.standby")
    assert late.event("cluster.copy_taken")["source"] == "node-0"
    assert owner.event("cluster.copy_given")["to"] == "node-1"
    kill(owner)
    assert numbers(wait_until_started(late)) == list(range(PIECES))

    # Nobody has a copy any more: people are told what to do, and nothing is served.
    kill(late)
    for number in (0, 1):
        shutil.rmtree(nodes.data_dir(number))
    first = nodes.start(0)
    wait_for(first, "cluster.waits")
    second = nodes.start(1)
    for each in (first, second):
        wait_for(each, "cluster.halted")
        assert "no other node has a copy of it. Bring back a node" in each.event("cluster.halted")["detail"]
        assert not (nodes.data_dir(0) / "rocksdb").exists()


def test_a_damaged_copy_is_set_aside_and_replaced_by_itself(nodes):
    owner = wait_until_started(nodes.start(0))
    standby = nodes.start(1)
    wait_for(standby, "cluster.standby")
    fill(owner, FEW)
    log = _written_log(nodes.data_dir(1))
    kill(standby)
    content = bytearray(log.read_bytes())
    content[len(content) // 3] ^= 1
    log.write_bytes(content)

    again = nodes.start(1)
    wait_for(again, "cluster.standby")
    assert "the copy is damaged" in again.event("cluster.copy_wanted")["detail"]
    assert again.event("cluster.copy_taken")["set_aside"] is True
    assert (nodes.data_dir(1) / "set-aside" / "rocksdb").is_dir()

    # What RocksDB meets while it writes or compacts is noted, and the copy is not opened again.
    kill(again)
    (nodes.data_dir(1) / "salvage").touch()
    again = nodes.start(1)
    wait_for(again, "cluster.standby")
    assert "the store has met damage" in again.event("cluster.copy_wanted")["detail"]
    assert not (nodes.data_dir(1) / "salvage").exists()
    kill(owner)
    assert numbers(wait_until_started(again)) == list(range(FEW))


def _written_log(data_dir):
    """Its write-ahead log, once it has all."""
    end = time.monotonic() + START_S_MAX
    while time.monotonic() < end:
        log = max(data_dir.glob("rocksdb/*.log"), key=lambda file: file.stat().st_size)
        if log.stat().st_size > FEW * len(PIECE):
            return log
        time.sleep(0.05)
    raise AssertionError("the standby does not apply")


def test_a_standby_that_was_away_for_too_long_takes_a_copy(nodes):
    owner = wait_until_started(nodes.start(0))
    standby = nodes.start(1)
    wait_for(standby, "cluster.standby")
    kill(standby)
    fill(owner)

    again = nodes.start(1)
    wait_for(again, "cluster.copy_taken")
    assert "is gone: only a copy has it" in again.event("cluster.copy_wanted")["detail"]
    kill(owner)
    assert numbers(wait_until_started(again)) == list(range(PIECES))


def test_an_owner_that_may_not_truncate_says_so_and_goes_on(nodes):
    """The mock brokers know no DeleteRecords."""
    settings = {"FILA_CLUSTER__LOG_KEPT_MS": "0", "FILA_CLUSTER__LOG_KEPT_BYTES": "0"}
    owner = wait_until_started(nodes.start(0, **settings))
    fill(owner, 1)
    wait_for(nodes.start(1, **settings), "cluster.standby")
    wait_for(owner, "cluster.log_not_truncated")
    told = owner.event("cluster.log_not_truncated")
    assert "the log was not truncated" in told["detail"]
    assert told["below"] > 0
    assert numbers(owner) == [0]


def test_a_standbys_backup_is_a_copy_for_its_group_or_a_broker_alone(nodes):
    owner = wait_until_started(nodes.start(0))
    standby = nodes.start(1)
    wait_for(standby, "cluster.standby")
    fill(owner, FEW)
    _written_log(nodes.data_dir(1))
    program = Path(sys.executable).with_name("fila-server")

    def run(*words):
        done = subprocess.run(
            [program, *words], check=False, cwd=nodes.folder / "backups", capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    (nodes.folder / "backups").mkdir()
    run("backup", "--data-dir", nodes.data_dir(1), "taken")
    assert standby.event("checkpoint.made")
    run("restore", "--data-dir", "alone", "taken")
    told = run("cluster", "leave", "--as-it-is", "alone")
    assert "What the log holds beyond it is not in it" in told
    alone = launch(nodes.folder / "backups" / "alone", nodes.folder / "backups" / "alone.log")
    nodes.running.append(alone)
    assert numbers(wait_until_started(alone)) == list(range(FEW))

    # In its group it reads on from there. An owner's backups go on, too.
    fill(owner, FEW, first=FEW)
    kill(standby)
    shutil.rmtree(nodes.data_dir(1))
    run("restore", "--data-dir", nodes.data_dir(1), "taken")
    again = nodes.start(1)
    wait_for(again, "cluster.standby")
    assert not again.event("cluster.copy_wanted")
    kill(owner)
    assert numbers(wait_until_started(again)) == list(range(2 * FEW))
    run("backup", "--data-dir", nodes.data_dir(1), "of-the-owner")
