"""Nodes of a group are given a build that reads one format of the log more, and back; and the group is upgraded."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from fila import FilaClient
from fila.v1 import admin_pb2 as admin
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import START_S_MAX, wait_until_started
from tests.log.test_copies_over_kafka import Nodes
from tests.log.test_nodes_over_kafka import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:confluent_kafka")]

TOPIC = {
    "test_a_group_is_upgraded_once_all_of_its_nodes_read_the_newer_format": "upgraded",
    "test_a_group_is_rolled_to_a_newer_build_and_back_and_no_call_fails": "rolled",
}
NEWER = (sys.executable, str(Path(__file__).with_name("newer_build.py")))
"""What starts a server of a build that reads one format more."""


@pytest.fixture
def nodes(brokers, tmp_path, request):
    made = Nodes(tmp_path, brokers, TOPIC[request.node.name])
    yield made
    made.close()


async def in_sync(shell, node, log_format=1):
    """Wait until the one that answers knows this node to be in sync, as a build that reads this format."""
    async with asyncio.timeout(START_S_MAX):
        while True:
            told = (await shell("cluster", "status", "-o", "json")).json["nodes"]
            known = [each for each in told if each.get("node") == node]
            if any(each.get("in_sync") and each["log_format"] >= log_format for each in known):
                return


@pytest.mark.costly("a server starts four times, and no newer build is there to be forked")
async def test_a_group_is_upgraded_once_all_of_its_nodes_read_the_newer_format(nodes):
    first, second = wait_until_started(nodes.start(0, within=NEWER)), nodes.start(1)
    wait_for(second, "cluster.standby")
    shell = CommandLine(nodes.addresses)
    await in_sync(shell, "node-1")
    refused = await shell("cluster", "upgrade", expect=1)
    assert "node-1 reads the log up to format 1, and is Fila " in refused.err
    assert second.stop() == 0
    nodes.start(1, within=NEWER)
    await in_sync(shell, "node-1", log_format=2)
    assert (await shell("cluster", "upgrade")).out.startswith(
        "the group writes format 2 of the log; node-1 serves, since term "
    )
    assert '"UpgradeGroup"' in (await shell("auth", "audit", "-o", "json")).out
    await in_sync(shell, "node-0")

    assert first.stop() == 0
    older = nodes.start(0)
    assert older.process.wait(START_S_MAX) != 0
    assert "writes format 2 of the log, and this fila-server reads up to 1" in older.log_file.read_text()


@pytest.mark.soak
async def test_a_group_is_rolled_to_a_newer_build_and_back_and_no_call_fails(nodes):
    """And upgraded, while a producer goes on that has no dedup keys."""
    first, second = wait_until_started(nodes.start(0)), nodes.start(1)
    first.admin.CreateQueue(admin.CreateQueueRequest(name="q"))
    wait_for(second, "cluster.standby")
    shell, stored, is_over = CommandLine(nodes.addresses), 0, asyncio.Event()

    async def rolled(number, standby, build):
        """The standby goes on as another build."""
        await in_sync(shell, f"node-{number}")
        assert await asyncio.to_thread(standby.stop) == 0
        node = nodes.start(number, within=build)
        await in_sync(shell, f"node-{number}")
        return node

    async with FilaClient.connect(nodes.addresses, retry_for_s=START_S_MAX) as client:

        async def produce() -> None:
            nonlocal stored
            while not is_over.is_set():
                await client.enqueue("q", b"%d" % stored)
                stored += 1
                await asyncio.sleep(0.01)

        producing = asyncio.create_task(produce())
        for build, act in ((NEWER, "move"), ((), "move"), (NEWER, "upgrade")):
            second = await rolled(1, second, build)
            await shell("cluster", "move", "node-1")
            first = await rolled(0, first, build)
            said = (await shell("cluster", act)).out
            assert said.startswith("the group writes format 2" if act == "upgrade" else "node-0 serves")
        is_over.set()
        await producing
    first.addresses["grpc"] = nodes.addresses.partition(",")[0]
    assert first.admin.GetStats(admin.GetStatsRequest(queue="q")).depth == stored > 0
