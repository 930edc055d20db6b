"""A group for one benchmark: three brokers of Apache Kafka and three nodes on loopback, gone afterwards."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient

from fila_bench.server import Server, ServerFailed, free_port
from tools.cluster import brokers

_ROOT = Path(__file__).resolve().parents[2]
_JARS = _ROOT / "build" / "kafka"
_WAIT_S_MAX = 180
_KEPT_BYTES = 128 * 2**20
# A benchmark of minutes must not fill the disk with six copies of all that went through it.
_SEGMENTS = {"segment.bytes": str(64 * 2**20), "file.delete.delay.ms": "1000"}
_OFTEN = "log.retention.check.interval.ms=10000\n"


class Group:
    """`with Group() as group:` one that serves, with both standbys in sync."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fila-group-"))
        self.ports = brokers.Ports([free_port() for _ in range(3)], [free_port() for _ in range(3)])
        self._brokers: dict[int, subprocess.Popen[bytes]] = {}
        secret = self._folder / "secret"
        secret.touch(0o600)
        secret.write_text("a word that all of them know\n")
        peers = [f"127.0.0.1:{free_port()}" for _ in range(3)]
        self.nodes = [
            Server(
                metrics=True,
                cluster__name="bench",
                cluster__node=f"fila-{number}",
                cluster__log=f"kafka://{brokers.addresses(self.ports)}/{brokers.TOPIC}",
                cluster__peers=",".join(peers),
                cluster__peer_addr=peer,
                cluster__secret_file=str(secret),
                cluster__log_kept_ms=10_000,
                cluster__log_kept_bytes=_KEPT_BYTES,
            )
            for number, peer in enumerate(peers, 1)
        ]

    def __enter__(self) -> Self:
        try:
            subprocess.run(["make", "--silent", "build/kafka/.jars"], cwd=_ROOT, check=True)
            for number in brokers.NUMBERS:
                self.start_broker(number)
            self.make_topic(brokers.TOPIC)
            for node in self.nodes:
                node.start()
            self.wait_until_in_sync()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            try:
                node.__exit__()
            except ServerFailed as failed:
                print(failed)
        for process in self._brokers.values():
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def addresses(self) -> str:
        """Where a client finds the group."""
        return ",".join(node.address for node in self.nodes)

    @property
    def log_addresses(self) -> str:
        return brokers.addresses(self.ports)

    @property
    def owner(self) -> Server:
        """The node that serves; waits until one does."""
        found: list[Server] = []

        def is_there() -> bool:
            found[:] = [node for node in self.nodes if _says_yes(node, "ownerz")]
            return len(found) == 1

        self._wait(is_there, "no node serves")
        return found[0]

    @property
    def standbys(self) -> list[Server]:
        owner = self.owner
        return [node for node in self.nodes if node is not owner]

    def make_topic(self, topic: str) -> None:
        brokers.make_topic(topic, self.ports, **_SEGMENTS)

    def wait_until_in_sync(self) -> None:
        """One serves, and the others could take over."""
        self._wait(lambda: all(_says_yes(node, "readyz") for node in self.nodes), "a node is not in sync")
        self.owner  # noqa: B018 - waits for it

    def start_broker(self, number: int) -> None:
        self._brokers[number] = brokers.start(
            number, _JARS, self._folder / f"kafka-{number}", self.ports, _OFTEN
        )

    def signal_broker(self, number: int, how: signal.Signals) -> None:
        """A broker that this ends is waited for."""
        self._brokers[number].send_signal(how)
        if how == signal.SIGKILL:
            self._brokers[number].wait()

    def leader(self) -> int:
        """The number of the broker that leads the log."""
        return self._of_log()[0]

    def wait_for_brokers(self) -> None:
        """All three hold all of the log."""
        self._wait(lambda: len(self._of_log()[1]) == 3, "a broker is not in sync")

    def _of_log(self) -> tuple[int, list[int]]:
        client = AdminClient({"bootstrap.servers": self.log_addresses, "log_level": 0})
        (partition,) = client.list_topics(brokers.TOPIC, timeout=30).topics[brokers.TOPIC].partitions.values()
        return partition.leader, partition.isrs

    def brokers_cpu_s(self) -> float:
        """User and system time of all three so far."""
        return sum(_cpu_s(process.pid) for process in self._brokers.values())

    def log_bytes(self) -> int:
        """What one broker has of the log on its disk."""
        return sum(
            file.stat().st_size for file in (self._folder / "kafka-1" / f"{brokers.TOPIC}-0").glob("*.log")
        )

    def _wait(self, is_so: Callable[[], bool], otherwise: str) -> None:
        until_s = time.monotonic() + _WAIT_S_MAX
        while not is_so():
            if time.monotonic() > until_s:
                said = "; ".join(node.log_tail() for node in self.nodes)
                raise ServerFailed(f"{otherwise} after {_WAIT_S_MAX} s: {said}")
            time.sleep(0.05)


def _says_yes(node: Server, path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{node.metrics_port}/{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, itertools.islice(fields, 11, 13))) / os.sysconf("SC_CLK_TCK")
