"""The load of fila_bench/sdk_load.py through the Python SDK: 1 KB messages, each enqueue and each ack awaited."""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median

import grpc

from fila import FilaClient
from fila.v1.service_pb2 import EnqueueRequest
from fila.v1.service_pb2_grpc import FilaServiceStub

PAYLOAD = bytes(1024)
HEADERS = [{"tenant": f"k{number:07}"} for number in range(10)]


class Load:
    """Counters of one run, and when it is over."""

    def __init__(self) -> None:
        self.acked = 0
        self.is_over = False

    async def produce(self, client: FilaClient, queue: str) -> None:
        sequence = 0
        while not self.is_over:
            await client.enqueue(queue, PAYLOAD, headers=HEADERS[sequence % 10])
            sequence += 1

    async def consume(self, consumer: object) -> None:
        async for message in consumer:  # type: ignore[attr-defined]
            await message.ack()
            self.acked += 1

    async def measure(self, warm_up_s: float, seconds: float, messages: int) -> dict[str, float]:
        """Measure for `seconds`, or until so many messages are acked, the first tenth of them as the warm-up."""
        await self._until(warm_up_s, messages // 10)
        heap_first = live_heap()
        began, cpu_s, acked = time.monotonic(), cpu_seconds(), self.acked
        await self._until(seconds, messages)
        elapsed_s = time.monotonic() - began
        return {
            "acked": self.acked,
            "acked_per_s": (self.acked - acked) / elapsed_s,
            "seconds": elapsed_s,
            "cpu_s": cpu_seconds() - cpu_s,
            "heap_first": heap_first,
            "heap_last": live_heap(),
        }

    async def _until(self, seconds: float, messages: int) -> None:
        if not messages:
            await asyncio.sleep(seconds)
        while self.acked < messages:
            await asyncio.sleep(0.01)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def live_heap() -> int:
    """Return the blocks the interpreter holds; it counts no bytes."""
    gc.collect()
    return sys.getallocatedblocks()


async def awaited(address: str, queue: str, callers: int, *until: float) -> dict[str, float]:
    load = Load()
    async with await FilaClient.connect(address) as client:
        consumer = client.consume(queue)
        tasks = [asyncio.create_task(load.produce(client, queue)) for _ in range(callers)]
        tasks += [asyncio.create_task(load.consume(consumer)) for _ in range(callers)]
        result = await load.measure(until[0], until[1], int(until[2]))
        load.is_over = True
        for task in tasks[callers:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return result


async def one_at_a_time(
    send: Callable[[int], Awaitable[object]], warm_up_s: float, seconds: float
) -> dict[str, float]:
    took_us: list[float] = []
    began = time.monotonic()
    sequence = 0
    while (now := time.monotonic()) < began + warm_up_s + seconds:
        await send(sequence)
        sequence += 1
        if now > began + warm_up_s:
            took_us.append((time.monotonic() - now) * 1e6)
    return {"p50_us": median(took_us)}


async def main() -> None:
    address, queue, mode = sys.argv[1:4]
    callers, warm_up_s, seconds, messages = (
        int(sys.argv[4]),
        float(sys.argv[5]),
        float(sys.argv[6]),
        int(sys.argv[7]),
    )
    if mode == "awaited":
        result = await awaited(address, queue, callers, warm_up_s, seconds, messages)
    elif mode == "one":
        async with await FilaClient.connect(address) as client:
            result = await one_at_a_time(
                lambda n: client.enqueue(queue, PAYLOAD, headers=HEADERS[n % 10]), warm_up_s, seconds
            )
    else:
        async with grpc.aio.insecure_channel(address) as channel:
            stub = FilaServiceStub(channel)
            result = await one_at_a_time(
                lambda n: stub.Enqueue(EnqueueRequest(queue=queue, headers=HEADERS[n % 10], payload=PAYLOAD)),
                warm_up_s,
                seconds,
            )
    print(json.dumps(result))


asyncio.run(main())
