"""A consumer cannot hurt anybody: with all defaults, slow work, poison, quiet tenants and broken connections, against a
real server with a lease of 2 s. bench/ measures the same with 30 s."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fila import FilaClient, Message, NewMessage
from tests.e2e.conftest import RunningServer, StartServer

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.engine")]


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[FilaClient]:
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        yield client


async def settled(client: FilaClient, queue: str) -> None:
    async with asyncio.timeout(20):
        while (stats := await client.get_stats(queue)).depth or stats.in_flight:  # noqa: ASYNC110 - the broker has no event for it
            await asyncio.sleep(0.05)


async def test_slow_work_behind_one_worker_is_handled_once_and_nothing_expires(
    client: FilaClient, queue: str
) -> None:
    await client.update_queue(queue, max_attempts=3, visibility_timeout_ms=2000)
    await client.enqueue_many(queue, [b"%d" % i for i in range(40)])
    handled: list[bytes] = []

    async for msg in client.consume(queue):
        await asyncio.sleep(0.2)
        await msg.ack()
        handled.append(msg.payload)
        if len(handled) == 40:
            break

    stats = await client.get_stats(queue)
    assert sorted(handled) == sorted(b"%d" % i for i in range(40))
    assert (stats.acked_total, stats.expired_total, stats.dead_lettered_total) == (40, 0, 0)


async def test_work_that_takes_longer_than_the_lease_is_handled_once(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, max_attempts=3, visibility_timeout_ms=2000)
    await client.enqueue_many(queue, [b"0", b"1"])
    handled = []

    async for msg in client.consume(queue, stop_when_idle_s=0.5):
        await asyncio.sleep(3)
        await msg.ack()
        handled.append(msg.payload)

    assert sorted(handled) == [b"0", b"1"]
    assert (await client.get_stats(queue)).expired_total == 0


async def test_a_quiet_tenant_is_served_after_at_most_three_others(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, fairness_key_header="tenant")
    noisy = NewMessage(payload=b"noisy", headers={"tenant": "noisy"})
    await client.enqueue_many(queue, [noisy] * 300)
    begun: list[bytes] = []

    async def work() -> None:
        async for msg in client.consume(queue):
            begun.append(msg.payload)
            await asyncio.sleep(0.02)
            await msg.ack()

    working = asyncio.create_task(work())
    await asyncio.sleep(0.5)
    others = []
    for i in range(5):
        await client.enqueue(queue, b"quiet %d" % i, {"tenant": "quiet"})
        at = len(begun)
        async with asyncio.timeout(5):
            while b"quiet %d" % i not in begun:  # noqa: ASYNC110 - a list has no event
                await asyncio.sleep(0.005)
        others.append(begun.index(b"quiet %d" % i) - at)
    working.cancel()

    assert max(others) <= 3, others


async def test_two_workers_share_though_the_second_comes_late(server: RunningServer, queue: str) -> None:
    address = server.addresses["grpc"]
    counts = [0, 0]
    async with FilaClient.connect(address) as one, FilaClient.connect(address) as two:
        await one.enqueue_many(queue, [b"%d" % i for i in range(100)])

        async def work(worker: int, client: FilaClient) -> None:
            async for msg in client.consume(queue, stop_when_idle_s=0.5):
                counts[worker] += 1
                await asyncio.sleep(0.05)
                await msg.ack()

        first = asyncio.create_task(work(0, one))
        await asyncio.sleep(0.3)
        await asyncio.gather(first, work(1, two))

    assert sum(counts) == 100
    assert min(counts) >= 45, counts


POISONED = """
import asyncio, os, sys
from fila import FilaClient

address, queue, after_s = sys.argv[1], sys.argv[2], float(sys.argv[3])

async def main():
    client = await FilaClient.connect(address)
    async for msg in client.consume(queue):
        if msg.payload == b"poison":
            if after_s:
                await asyncio.sleep(after_s)
            os._exit(9)
        assert msg.attempt_count == 0
        await msg.ack()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0, 0.005, 1])
async def test_poison_ages_nobody_else_and_dies_of_its_own_attempts(
    client: FilaClient, server: RunningServer, queue: str, after_s: float
) -> None:
    await client.update_queue(queue, max_attempts=4, visibility_timeout_ms=2000, disconnect_grace_ms=100)
    await client.enqueue_many(queue, [b"poison" if i == 30 else b"%d" % i for i in range(300)])

    deaths = 0
    while deaths < 8 and (await client.get_stats(f"{queue}.dlq")).depth == 0:
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", POISONED, server.addresses["grpc"], queue, str(after_s)
        )
        ended = asyncio.create_task(worker.wait())
        gone = asyncio.create_task(settled(client, queue))
        waiting: set[asyncio.Task[Any]] = {ended, gone}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            gone.cancel()
            assert ended.result() == 9
            deaths += 1
            await asyncio.sleep(0.3)
        else:
            worker.kill()
            await ended

    (letter,) = await client.peek(f"{queue}.dlq")
    assert letter.payload == b"poison"
    assert letter.dead_letter.attempts == 4
    assert deaths <= 5, "it escapes the count once at most"
    left = await client.peek(queue, max_messages=300)
    assert all(message.attempt_count == 0 for message in left)


async def test_nothing_waits_behind_a_long_message_while_the_other_worker_is_free(
    server: RunningServer, queue: str
) -> None:
    address = server.addresses["grpc"]
    waited_s: list[float] = []
    async with FilaClient.connect(address) as one, FilaClient.connect(address) as two:
        payloads = [b"long" if i % 100 == 50 else b"short" for i in range(600)]
        await one.enqueue_many(queue, payloads)
        idle_since: dict[int, float] = {}

        async def work(worker: int, client: FilaClient) -> None:
            idle_since[worker] = time.monotonic()
            async for msg in client.consume(queue, stop_when_idle_s=2.5):
                waited_s.append(time.monotonic() - idle_since[worker])
                await asyncio.sleep(2 if msg.payload == b"long" else 0.001)
                await msg.ack()
                idle_since[worker] = time.monotonic()

        await asyncio.gather(work(0, one), work(1, two))

    assert len(waited_s) == 600
    # The last long ones leave the other worker idle with nothing to do; until then nobody waits for the other's buffer.
    assert sorted(waited_s)[-3] < 0.25, sorted(waited_s)[-5:]


class Wire:
    """A connection to the broker that can be cut for a while."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._wires: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self) -> str:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return f"127.0.0.1:{self.port}"

    async def cut(self) -> None:
        self._server.close()
        for wire in self._wires:
            wire.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(*self._target)
        self._wires |= {writer, there[1]}
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        for wire in (writer, there[1]):
            wire.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


async def test_a_connection_cut_for_a_second_costs_a_running_handler_nothing(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    await client.update_queue(queue, visibility_timeout_ms=2000, max_attempts=1)
    await client.enqueue_many(queue, [b"0", b"1", b"2"])
    wire = Wire(server.addresses["grpc"])
    handled = []
    async with FilaClient.connect(await wire.open()) as cut:
        async for msg in cut.consume(queue, stop_when_idle_s=1.5):
            handled.append(msg.payload)
            if len(handled) == 1:
                await asyncio.sleep(0.5)
                await wire.cut()
                await asyncio.sleep(1)
                await wire.open()
                await asyncio.sleep(2.5)
            await msg.ack()
    await wire.cut()

    assert handled == [b"0", b"1", b"2"]
    stats = await client.get_stats(queue)
    assert (stats.acked_total, stats.expired_total, stats.dead_lettered_total) == (3, 0, 0)


async def test_kill_of_the_broker_keeps_what_was_begun_and_the_consumer_resumes(
    start_server: StartServer, tmp_path: Path
) -> None:
    data = tmp_path / "kept"
    server = start_server(data)
    wire = Wire(server.addresses["grpc"])
    async with FilaClient.connect(await wire.open()) as client:
        await client.create_queue("orders", max_attempts=1, visibility_timeout_ms=2000)
        await client.enqueue_many("orders", [b"0", b"1"])
        messages = aiter(client.consume("orders", prefetch=2))
        first: Message = await anext(messages)
        await asyncio.sleep(0.2)

        server.process.kill()
        server.process.wait()
        again = start_server(data)
        host, _, port = again.addresses["grpc"].rpartition(":")
        wire._target = host, int(port)

        await first.ack()
        async with asyncio.timeout(20):
            second = await anext(messages)
            await second.ack()
            stats = await client.get_stats("orders")

    assert (first.payload, second.payload) == (b"0", b"1")
    assert (stats.depth, stats.in_flight, stats.dead_lettered_total) == (0, 0, 0)
    await wire.cut()
