"""What the nodes of a group record is one history: each term is a run, in the directory of the node that served."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fila import FilaClient
from fila.v1 import admin_pb2 as admin
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import START_S_MAX, wait_until_started
from tests.log.test_copies_over_kafka import Nodes
from tests.log.test_nodes_over_kafka import wait_for
from tests.log.test_upgrade_over_kafka import in_sync

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.needs("module:confluent_kafka"),
    pytest.mark.needs("module:pyarrow"),
]


@pytest.fixture
def nodes(brokers, tmp_path):
    made = Nodes(tmp_path, brokers, "recorded")
    yield made
    made.close()


def verified(*directories):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("FILA_")}
    command = [sys.executable, "-m", "fila_server.main", "history", "verify", *map(str, directories)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.timeout(180)
@pytest.mark.costly("three servers and two replays, each in a process of its own")
async def test_the_terms_of_two_nodes_are_one_history_over_a_planned_move(nodes, tmp_path):
    histories = [tmp_path / f"history-{number}" for number in (0, 1)]

    def start(number):
        return nodes.start(number, FILA_HISTORY__ENABLED="true", FILA_HISTORY__DIR=str(histories[number]))

    first = wait_until_started(start(0))
    first.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    second = start(1)
    wait_for(second, "cluster.standby")
    shell = CommandLine(nodes.addresses)
    async with FilaClient.connect(nodes.addresses, retry_for_s=START_S_MAX) as client:

        async def work(first_number):
            for number in range(first_number, first_number + 50):
                await client.enqueue("q", b"%d" % number)
            for message in await client.lease("q", max_messages=40):
                await message.ack()

        await work(0)
        await in_sync(shell, "node-1")
        await shell("cluster", "move", "node-1")
        await work(100)
    wait_for(first, "cluster.standby", times=1)
    assert second.stop() == 0
    both = verified(*histories)
    assert both.returncode == 0, both.stdout + both.stderr
    assert "Of a group: 2 terms of node-0 and node-1." in both.stdout
    assert both.stdout.count(": same, ") == 2
    assert " of node-0: same, " in both.stdout
    assert " of node-1: same, " in both.stdout
    # An owner that hands over records until it has read the next one's term. No other note: the first term has its end,
    # and no term is missing.
    notes = [line for line in both.stdout.splitlines() if line.strip().startswith("note:")]
    assert all("node-1 had taken over by then" in note for note in notes), notes

    alone = verified(histories[1])
    assert "Of a group: 1 term of node-1." in alone.stdout
