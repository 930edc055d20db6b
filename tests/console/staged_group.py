"""Two real nodes of a group over librdkafka's mock cluster, with a third that never came, and their console."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fila.v1 import cluster_pb2
from tests.console.conftest import RunningConsole, start_console
from tests.e2e.conftest import START_S_MAX, RunningServer, launch, wait_until_started
from tests.log.running_brokers import Brokers
from tests.ports import KeptPort

NODES = 2
_SETTINGS = """[cluster]
name = "orders"
log = "kafka://{brokers}/serves"
peers = "{peers}"
secret_file = "{folder}/secret"
accept_weak_topic = true
"""


class Group(NamedTuple):
    """What runs."""

    nodes: list[RunningServer]
    console: RunningConsole


@contextlib.contextmanager
def group() -> Iterator[Group]:
    """Both nodes are there: the first serves, and the second follows."""
    brokers, held = Brokers(), [KeptPort() for _ in range(2 * NODES + 1)]
    ports = [each.port for each in held]
    peers = ", ".join(f"127.0.0.1:{port}" for port in (*ports[:NODES], ports[-1]))
    nodes: list[RunningServer] = []
    consoles: list[RunningConsole] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "secret").touch(0o600)
        (folder / "secret").write_text("a word that all of them know\n")
        settings = _SETTINGS.format(brokers=brokers.addresses, peers=peers, folder=folder)
        (folder / "fila.toml").write_text(settings)
        try:
            for number in range(NODES):
                (folder / f"{number}.log").touch()
                nodes.append(
                    launch(
                        folder / f"data-{number}",
                        folder / f"{number}.log",
                        FILA_CLUSTER__NODE=f"fila-{number + 1}",
                        FILA_CLUSTER__PEER_ADDR=f"127.0.0.1:{ports[number]}",
                        FILA_SERVER__LISTEN_ADDR=f"127.0.0.1:{ports[NODES + number]}",
                    )
                )
                _wait_for(nodes[-1], "cluster.standby" if number else "server.started")
            wait_until_started(nodes[0])
            _wait_until_in_sync(nodes[0])
            consoles.append(start_console(",".join(f"127.0.0.1:{port}" for port in ports[NODES : 2 * NODES])))
            yield Group(nodes, consoles[0])
        finally:
            for console in consoles:
                console.stop()
            for node in nodes:
                node.process.kill()
                node.process.wait()
            for each in held:
                each.close()
            brokers.process.stdin.close()
            brokers.process.wait()
            brokers.process.stdout.close()


def _wait_until_in_sync(owner: RunningServer) -> None:
    give_up_s, admin = time.monotonic() + START_S_MAX, owner.admin
    while not admin.GetClusterStatus(cluster_pb2.GetClusterStatusRequest()).nodes[1].in_sync:
        if time.monotonic() > give_up_s:
            raise TimeoutError("the standby does not come into sync")
        time.sleep(0.1)


def _wait_for(node: RunningServer, event: str) -> None:
    give_up_s = time.monotonic() + START_S_MAX
    while node.event(event) is None:
        if node.process.poll() is not None or time.monotonic() > give_up_s:
            raise TimeoutError(f"no {event}:\n{node.log_file.read_text()}")
        time.sleep(0.05)
