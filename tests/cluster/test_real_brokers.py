"""A group over three brokers of Apache Kafka, as `make cluster` starts it. Nodes and brokers die and hang: what was
answered is delivered, and in the end nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila import FilaClient, FilaError

MINUTES = float(os.environ.get("FILA_BROKERS_MINUTES") or 10)
SEED = int(os.environ.get("FILA_BROKERS_SEED") or time.time())
NODES = "127.0.0.1:5551,127.0.0.1:5552,127.0.0.1:5553"
PRODUCERS, CONSUMERS = 4, 2
CALM_S = 60
"""After the last fault all is delivered within so long. A bid may wait a minute after three short terms."""
ROOT = Path(__file__).parents[2]


class Group:
    """What `make cluster` starts, and what it has said."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "tools.cluster.group", "build/kafka", folder / "group"],
                cwd=ROOT,
                stdout=said,
                stderr=said,
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def owner(self) -> str:
        found = re.findall(r"^(fila-\d) serves", self.said, re.MULTILINE)
        return str(found[-1]) if found else ""

    def pid(self, name: str) -> int | None:
        """None while it does not run."""
        found = re.findall(rf"^{name}: (?:process (\d+)|ended)", self.said, re.MULTILINE)
        return int(found[-1]) if found and found[-1] else None

    def wait_for_owner(self) -> None:
        until_s = time.monotonic() + 180
        while not self.owner:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < until_s, self.said
            time.sleep(0.5)

    def breaks(self, chance: random.Random) -> str:
        """One fault; what it was."""
        who = chance.choice(["owner", "owner", "standby", "broker", "broker"])
        name = f"kafka-{chance.randint(1, 3)}"
        if who == "owner":
            name = self.owner
        elif who == "standby":
            name = chance.choice([f"fila-{each}" for each in (1, 2, 3) if f"fila-{each}" != self.owner])
        pid = self.pid(name)
        if pid is None:
            return f"{name} is gone already"
        is_killed, for_s = chance.random() < 0.6, chance.choice([0.3, 2, 6, 12])
        try:
            os.kill(pid, signal.SIGKILL if is_killed else signal.SIGSTOP)
        except ProcessLookupError:
            return f"{name} is gone already"
        if is_killed:
            return f"{name} killed"
        subprocess.Popen(["sh", "-c", f"sleep {for_s}; kill -CONT {pid}"])
        return f"{name} stopped for {for_s} s"


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    subprocess.run(["make", "--silent", "build/kafka/.jars"], cwd=ROOT, check=True)
    group = Group(tmp_path)
    try:
        group.wait_for_owner()
        yield group
    finally:
        group.process.terminate()
        group.process.wait(120)


class Crowd:
    """Producers that try again until they are answered, and consumers."""

    def __init__(self, client: FilaClient) -> None:
        self._client = client
        self.answered: list[str] = []
        self.delivered: Counter[str] = Counter()
        self.is_over = False

    async def produce(self, producer: int) -> None:
        while not self.is_over:
            name = f"{producer}-{len(self.answered)}"
            while not await self._is_stored(name):  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.05)
            self.answered.append(name)
            await asyncio.sleep(0.005)

    async def _is_stored(self, name: str) -> bool:
        try:
            headers = {"tenant": name[0]}
            await self._client.enqueue("q", payload=name.encode(), headers=headers, dedup_key=name)
        except FilaError:
            return False
        return True

    async def consume(self) -> None:
        async for message in self._client.consume("q"):
            self.delivered[message.payload.decode()] += 1
            with contextlib.suppress(FilaError):
                await message.ack()

    async def left(self) -> int:
        """Messages that wait, or are still to be delivered."""
        return (await self._client.get_stats("q")).depth + len(self.never_delivered)

    @property
    def never_delivered(self) -> list[str]:
        return [name for name in self.answered if not self.delivered[name]]


@pytest.mark.e2e
@pytest.mark.soak
@pytest.mark.needs("java", "mvn", "module:confluent_kafka")
async def test_over_kafka_brokers_nothing_that_was_answered_is_lost_whatever_dies(group: Group) -> None:
    chance = random.Random(SEED)
    logging.getLogger("fila").setLevel(logging.CRITICAL)
    async with FilaClient.connect(NODES, call_timeout_s=60) as client:
        await client.create_queue("q", fairness_key_header="tenant", visibility_timeout_ms=5000)
        crowd = Crowd(client)
        producers = [asyncio.create_task(crowd.produce(each)) for each in range(PRODUCERS)]
        consumers = [asyncio.create_task(crowd.consume()) for _ in range(CONSUMERS)]
        until_s = time.monotonic() + MINUTES * 60
        faults = []
        while time.monotonic() < until_s:
            await asyncio.sleep(chance.choice([12, 16, 25]))
            faults.append(group.breaks(chance))
        crowd.is_over = True
        await asyncio.wait(producers, timeout=CALM_S + 60)
        calm_s = time.monotonic() + CALM_S
        while (depth := await crowd.left()) and time.monotonic() < calm_s:  # noqa: ASYNC110 - it asks the broker
            await asyncio.sleep(1)
        for consumer in consumers:
            consumer.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)

    twice = sum(count > 1 for count in crowd.delivered.values())
    print(
        f"seed {SEED}: {len(faults)} faults, {len(crowd.answered)} enqueues answered, {twice} delivered twice"
    )
    assert all(task.done() for task in producers), group.said
    assert crowd.never_delivered == [], (SEED, faults)
    assert depth == 0, (SEED, faults)
    assert len(crowd.answered) > 10 * 60 * MINUTES, "too little to judge"
