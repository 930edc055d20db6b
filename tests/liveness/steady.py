"""A steady mixed load, and what a server's memory does under it.

`python -m tests.liveness.steady GRPC REDIS SECONDS` is the load, in a process of its own. It runs at the same pace
from its first second to its last. What it makes it also takes away: fairness keys and queues of new names, channels,
connections, dead letters, delayed messages. A server that keeps something of each of these grows, however slowly.

What a server remembers of keys is bounded by their number (`fila_keys_remembered`). The load names as many at its
beginning. At its own pace it would come to the bound after an hour and a half, and a rise until then would hide others.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from fila import FilaClient, FilaError, NewMessage

QUEUE, DEAD_LETTERS = "steady", "steady.dlq"
KEYS_AT_A_TIME = 500
REMEMBERED_KEYS = 20_000
BATCH = 20
LEASE_MS = 10_000
KIB_A_MB = 1024


def rise_mb_a_minute(
    samples: Sequence[tuple[float, float]], *, after_s: float = 1800.0, window_s: float = 600.0
) -> float:
    """How fast memory rises: the least-squares line through the lowest sample of each window.

    `samples` are pairs of seconds since the load began, and resident memory in MB. What is before `after_s` does not
    count: caches fill. The lowest of a window is what the server could not do without in it. ValueError if fewer than
    two windows are left."""
    lowest: dict[int, tuple[float, float]] = {}
    for at_s, mb in samples:
        number = int((at_s - after_s) // window_s)
        if at_s >= after_s and (number not in lowest or mb < lowest[number][1]):
            lowest[number] = (at_s / 60.0, mb)
    points = list(lowest.values())
    if len(points) < 2:
        raise ValueError(f"{len(points)} windows of {window_s:.0f} s: a line takes two")
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def resident_mb(pid: int) -> float:
    """What the kernel says that a process has in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS"))
    return int(line.split()[1]) / KIB_A_MB


class SteadyLoad:
    """Each of its loops does one kind of thing at one pace."""

    def __init__(self, grpc: str, redis: str, seed: int) -> None:
        self._grpc = grpc
        self._redis_host, _, self._redis_port = redis.rpartition(":")
        self._random = random.Random(seed)
        self._newest_key = KEYS_AT_A_TIME
        self.done = 0

    async def run(self, seconds: float) -> None:
        async with FilaClient.connect(self._grpc, call_timeout_s=30) as client:
            await client.create_queue(QUEUE, fairness_key_header="tenant", max_attempts=3)
            await self._fill(client)
            loops = [
                asyncio.create_task(self._every(pause_s, once, client))
                for pause_s, once in (
                    (0.2, self._produce),
                    (1.0, self._delay),
                    (3.0, self._look),
                    (4.0, self._connect),
                    (4.0, self._speak_redis),
                    (10.0, self._come_and_go),
                    (30.0, self._purge),
                )
            ]
            loops.append(asyncio.create_task(self._consume(client)))
            await asyncio.sleep(seconds)
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)

    async def _every(
        self, pause_s: float, once: Callable[[FilaClient], Awaitable[None]], client: FilaClient
    ) -> None:
        while True:
            with suppress(FilaError):
                await once(client)
                self.done += 1
            await asyncio.sleep(pause_s)

    async def _fill(self, client: FilaClient) -> None:
        for first in range(0, REMEMBERED_KEYS, 1_000):
            names = (f"early-{number}" for number in range(first, first + 1_000))
            await client.enqueue_many(QUEUE, [NewMessage(headers={"tenant": name}) for name in names])

    def _key(self) -> str:
        """One of the newest keys. Each call makes a new one now and then, so old ones are never named again."""
        self._newest_key += self._random.random() < 0.1
        return f"tenant-{self._random.randrange(self._newest_key - KEYS_AT_A_TIME, self._newest_key)}"

    async def _produce(self, client: FilaClient) -> None:
        for _ in range(BATCH):
            payload = bytes(self._random.randrange(10, 2_000))
            await client.enqueue(QUEUE, headers={"tenant": self._key()}, payload=payload)

    async def _delay(self, client: FilaClient) -> None:
        await client.enqueue(QUEUE, headers={"tenant": self._key()}, payload=b"later", delay_ms=3000)

    async def _consume(self, client: FilaClient) -> None:
        async for message in client.consume(QUEUE):
            with suppress(FilaError):
                if self._random.random() < 0.05:
                    await message.nack(error="the handler of the steady load refused it")
                else:
                    await message.ack()

    async def _look(self, client: FilaClient) -> None:
        await client.list_queues()
        await client.get_stats(QUEUE, max_keys=50)
        await client.peek(QUEUE, max_messages=20)

    async def _connect(self, _: FilaClient) -> None:
        async with FilaClient.connect(self._grpc, call_timeout_s=30) as other:
            await other.enqueue(QUEUE, headers={"tenant": self._key()}, payload=b"from another connection")

    async def _speak_redis(self, _: FilaClient) -> None:
        reader, writer = await asyncio.open_connection(self._redis_host, int(self._redis_port))
        writer.write(b"RPUSH steady-redis a b c\r\nLPOP steady-redis 3\r\nPING\r\n")
        await reader.readuntil(b"PONG\r\n")
        writer.close()
        await writer.wait_closed()

    async def _come_and_go(self, client: FilaClient) -> None:
        name = f"guest-{self._random.randrange(1 << 40):x}"
        await client.create_queue(name, fairness_key_header="tenant")
        await client.create_channel(name, "copy")
        for number in range(50):
            await client.enqueue(name, headers={"tenant": f"guest-{number}"}, payload=bytes(500))
        for message in await client.lease(name, max_messages=20):
            await message.ack()
        await client.delete_queue(name, force=True)

    async def _purge(self, client: FilaClient) -> None:
        await client.purge(DEAD_LETTERS)


async def _main(grpc: str, redis: str, seconds: str) -> None:
    load = SteadyLoad(grpc, redis, seed=1)
    await load.run(float(seconds))
    print(load.done)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
