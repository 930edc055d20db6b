"""What a consumer with all defaults must do for its neighbours, played with the Python SDK against a broker.

Each function plays one story on a queue of its own and returns what it saw. `make bench` plays them with the default
lease of 30 s; the tests of the repository with one of 2 s.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fila import FilaClient, NewMessage
from fila.prefetch import Prefetch
from fila_bench.wire import Wire

IDLE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """How often each message reached a program, and what the broker counted."""

    times_by_payload: Counter[bytes]
    acked: int
    expired: int
    dead: int

    @property
    def twice(self) -> int:
        return sum(times > 1 for times in self.times_by_payload.values())


async def _counted(client: FilaClient, queue: str, times: Counter[bytes]) -> Handled:
    stats = await client.get_stats(queue)
    return Handled(
        times_by_payload=times,
        acked=stats.acked_total,
        expired=stats.expired_total,
        dead=stats.dead_lettered_total,
    )


def _numbered(count: int) -> list[bytes]:
    return [b"%d" % i for i in range(count)]


async def slow_work(
    address: str, queue: str, *, count: int, handler_s: float, visibility_timeout: str | int = 0
) -> Handled:
    """One worker, `max_attempts` 3, handlers that take long beside the lease when many are buffered."""
    times: Counter[bytes] = Counter()
    async with FilaClient.connect(address) as client:
        await client.create_queue(queue, max_attempts=3, visibility_timeout_ms=visibility_timeout)
        await client.enqueue_many(queue, _numbered(count))
        async for message in client.consume(queue, stop_when_idle_s=IDLE_S):
            times[message.payload] += 1
            await asyncio.sleep(handler_s)
            await message.ack()
        return await _counted(client, queue, times)


async def quiet_tenant(address: str, queue: str, *, rounds: int) -> list[int]:
    """One worker with 20 ms a message and a noisy backlog: how many others it began between the answer to a quiet
    tenant's enqueue and that message, once a round."""
    noisy = NewMessage(payload=b"noisy", headers={"tenant": "noisy"})
    begun: list[bytes] = []
    others = []
    async with FilaClient.connect(address) as client:
        await client.create_queue(queue, fairness_key_header="tenant")
        await client.enqueue_many(queue, [noisy] * (100 + 25 * rounds))

        async def work() -> None:
            async for message in client.consume(queue):
                begun.append(message.payload)
                arrived.set()
                await asyncio.sleep(0.02)
                await message.ack()

        arrived = asyncio.Event()
        working = asyncio.create_task(work())
        await asyncio.sleep(0.5)
        for i in range(rounds):
            quiet = b"quiet %d" % i
            await client.enqueue(queue, quiet, {"tenant": "quiet"})
            at = len(begun)
            while quiet not in begun[at:]:
                arrived.clear()
                await arrived.wait()
            others.append(begun.index(quiet, at) - at)
        working.cancel()
    return others


async def two_workers(address: str, queue: str) -> list[int]:
    """100 jobs of 50 ms, the second worker 0.3 s late: how many each got."""
    counts = [0, 0]
    async with FilaClient.connect(address) as one, FilaClient.connect(address) as two:
        await one.create_queue(queue)
        await one.enqueue_many(queue, _numbered(100))

        async def work(worker: int, client: FilaClient) -> None:
            async for message in client.consume(queue, stop_when_idle_s=IDLE_S):
                counts[worker] += 1
                await asyncio.sleep(0.05)
                await message.ack()

        first = asyncio.create_task(work(0, one))
        await asyncio.sleep(0.3)
        await asyncio.gather(first, work(1, two))
    return counts


async def bimodal(address: str, queue: str, *, count: int) -> list[float]:
    """Two workers, 99 % of 1 ms, 1 % of 2 s: how long a worker was idle before each message, while some were left."""
    idle_s: list[float] = []
    async with FilaClient.connect(address) as one, FilaClient.connect(address) as two:
        await one.create_queue(queue)
        # The last hundred are short, so that the end of the queue is nobody's buffer.
        payloads = [b"long" if i % 100 == 50 and i < count - 100 else b"short" for i in range(count)]
        await one.enqueue_many(queue, payloads)

        async def work(client: FilaClient) -> None:
            since_s = time.monotonic()
            async for message in client.consume(queue, stop_when_idle_s=2 * IDLE_S):
                idle_s.append(time.monotonic() - since_s)
                await asyncio.sleep(2 if message.payload == b"long" else 0.001)
                await message.ack()
                since_s = time.monotonic()

        await asyncio.gather(work(one), work(two))
    return idle_s


async def cut_connection(
    address: str, queue: str, *, handler_s: float, cut_at_s: float, visibility_timeout: str | int = 0
) -> Handled:
    """A connection cut for 1 s inside a long handler, `max_attempts` 1."""
    times: Counter[bytes] = Counter()
    wire = Wire(address)
    async with FilaClient.connect(address) as client:
        await client.create_queue(queue, max_attempts=1, visibility_timeout_ms=visibility_timeout)
        await client.enqueue_many(queue, _numbered(3))
        async with FilaClient.connect(await wire.open()) as cut:
            async for message in cut.consume(queue, stop_when_idle_s=2 * IDLE_S):
                times[message.payload] += 1
                if message.payload == b"0":
                    await asyncio.sleep(cut_at_s)
                    wire.cut()
                    await asyncio.sleep(1)
                    await wire.open()
                    await asyncio.sleep(handler_s - cut_at_s - 1)
                await message.ack()
        wire.cut()
        return await _counted(client, queue, times)


_POISONED = """
import asyncio, os, sys
from fila import FilaClient

address, queue, after_s = sys.argv[1], sys.argv[2], float(sys.argv[3])

async def main():
    client = await FilaClient.connect(address)
    async for message in client.consume(queue):
        if message.payload == b"poison":
            if after_s:
                await asyncio.sleep(after_s)
            os._exit(9)
        if message.attempt_count:
            print("aged", flush=True)
        await message.ack()

asyncio.run(main())
"""


@dataclass(slots=True, kw_only=True)
class Poisoned:
    """What a poison message did: `deaths` of its workers, its `attempts` as a dead letter, who else `aged`."""

    deaths: int = 0
    attempts: int = 0
    aged: int = 0
    dead: list[bytes] = field(default_factory=list)


async def poison(address: str, queue: str, *, count: int, after_s: float, **settings: Any) -> Poisoned:
    """A message that kills its worker `after_s` seconds after it came, until it is a dead letter; `max_attempts` 4."""
    saw = Poisoned()
    async with FilaClient.connect(address) as client:
        await client.create_queue(queue, max_attempts=4, **settings)
        payloads = _numbered(count)
        payloads[count // 10] = b"poison"
        await client.enqueue_many(queue, payloads)
        while saw.deaths < 10 and not (await client.get_stats(f"{queue}.dlq")).depth:
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-c", _POISONED, address, queue, str(after_s), stdout=asyncio.subprocess.PIPE
            )
            ended = asyncio.create_task(worker.communicate())
            while not ended.done() and not (await client.get_stats(f"{queue}.dlq")).depth:
                await asyncio.wait([ended], timeout=0.1)
            if not ended.done():
                worker.kill()
            said, _ = await ended
            saw.aged += said.count(b"aged")
            if worker.returncode == 9:
                saw.deaths += 1
        for letter in await client.peek(f"{queue}.dlq", max_messages=1000):
            saw.dead.append(letter.payload)
            saw.attempts = max(saw.attempts, letter.dead_letter.attempts if letter.dead_letter else 0)
        saw.aged += sum(left.attempt_count > 0 for left in await client.peek(queue, max_messages=1000))
    return saw


async def throughput(
    address: str, queue: str, *, prefetch: Prefetch, handler_s: float, workers: int, seconds: float
) -> float:
    """Messages a second that so many loops of one consumer handle and ack, from a backlog of about `seconds`. It is
    longer than the largest window: what is fetched in one piece at the start must be replaced while the clock runs."""
    count = 0
    wanted = int(seconds * 100_000) if handler_s == 0 else int(workers * seconds / handler_s) + 1
    over = asyncio.Event()
    async with FilaClient.connect(address) as client:
        await client.create_queue(queue)
        await client.enqueue_many(queue, [b"x" * 100] * (wanted + 1_000))
        consumer = client.consume(queue, prefetch=prefetch)

        async def work() -> None:
            nonlocal count
            async for message in consumer:
                if handler_s:
                    await asyncio.sleep(handler_s)
                message.ack()
                count += 1
                if count == wanted:
                    over.set()

        began_s = time.monotonic()
        working = [asyncio.create_task(work()) for _ in range(workers)]
        try:
            async with asyncio.timeout(1.5 * seconds):
                await over.wait()
        except TimeoutError:  # a small window takes long; what was done says how fast it is
            pass
        rate = count / (time.monotonic() - began_s)
        for task in working:
            task.cancel()
        await asyncio.wait(working)
        await client.delete_queue(queue)
    return rate


def share_of_the_smaller(counts: Sequence[int]) -> float:
    """45:55 is 0.45."""
    return min(counts) / max(1, sum(counts))
