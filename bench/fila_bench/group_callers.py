"""Who calls a group while its nodes and brokers die: one caller whose answers are timed, and a load at a given rate."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import logging
import time
from dataclasses import dataclass
from typing import Any, Self

import uvloop

from fila import FilaClient, FilaError, NewMessage
from fila_bench.load import LoadFailed
from fila_bench.plan import PROCESSES, key_text, now_ns

_ANSWERS_MAX = 2_000_000
_PAUSE_S = 0.002
_BATCH = 100
_UNDER_WAY_MAX = 8
_KEYS = 10


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """A load that goes to whichever node serves."""

    addresses: str
    queue: str
    per_s: float
    """Messages of 1 KB in batches of 100, each delivered and acked; 0: the caller alone."""


class Callers:
    """`with Callers(crowd) as callers:` the caller and the load, each a process."""

    def __init__(self, crowd: Crowd) -> None:
        self._count = PROCESSES.RawValue(ctypes.c_uint64, 0)
        self._answers = PROCESSES.RawArray(ctypes.c_uint64, _ANSWERS_MAX)
        self._stop = PROCESSES.RawValue(ctypes.c_bool, False)
        self._began_s = 0.0
        self._stored, self._acked = (PROCESSES.RawValue(ctypes.c_uint64, 0) for _ in range(2))
        self._processes = [
            PROCESSES.Process(target=_ask, args=(crowd, self._answers, self._count, self._stop), daemon=True)
        ]
        if crowd.per_s:
            for target, counter in ((_produce, self._stored), (_consume, self._acked)):
                self._processes.append(
                    PROCESSES.Process(target=target, args=(crowd, counter, self._stop), daemon=True)
                )

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        self.wait_for_answers(100)
        self._began_s = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.value = True
        for process in self._processes:
            process.join(10)
            process.kill()

    @property
    def acked_per_s(self) -> float:
        """Of the load, since it began."""
        return float(self._acked.value / (time.monotonic() - self._began_s))

    def wait_for_answers(self, count: int) -> None:
        """So many more of them."""
        first = self._count.value
        until_s = time.monotonic() + 120
        while self._count.value < first + count:
            self._check()
            if time.monotonic() > until_s:
                raise LoadFailed("the caller is not answered")
            time.sleep(0.01)

    def _check(self) -> None:
        for process in self._processes:
            if process.exitcode is not None:
                raise LoadFailed(f"{process.name} exited with {process.exitcode}")

    def longest_gap_s(self, since_ns: int) -> float:
        """From an answer to the next one, of those that ended after this moment."""
        count = self._count.value
        times = list(self._answers[max(0, count - 60_000) : count])
        return max(late - early for early, late in itertools.pairwise(times) if late > since_ns) / 1e9


def _ask(crowd: Crowd, answers: Any, count: Any, stop: Any) -> None:
    async def ask() -> None:
        async with FilaClient.connect(crowd.addresses, batching=False, call_timeout_s=60) as client:
            number = 0
            began = now_ns()
            while not stop.value:
                number += 1
                headers = {"tenant": key_text(number % _KEYS)}
                key = f"{began}-{number}"
                while not stop.value:
                    try:
                        await client.enqueue(crowd.queue, b"x" * 1024, headers=headers, dedup_key=key)
                        break
                    except FilaError:
                        await asyncio.sleep(_PAUSE_S)
                answers[count.value] = now_ns()
                count.value += 1
                await asyncio.sleep(_PAUSE_S)

    _run(ask())


def _produce(crowd: Crowd, stored: Any, stop: Any) -> None:
    batch = [
        NewMessage(payload=b"x" * 1024, headers={"tenant": key_text(each % _KEYS)}) for each in range(_BATCH)
    ]

    async def produce() -> None:
        under_way: set[asyncio.Task[None]] = set()

        async def store(client: FilaClient) -> None:
            with contextlib.suppress(FilaError):
                stored.value += len(await client.enqueue_many(crowd.queue, batch))

        async with FilaClient.connect(crowd.addresses, call_timeout_s=60) as client:
            next_s = time.monotonic()
            while not stop.value:
                next_s = max(next_s + _BATCH / crowd.per_s, time.monotonic() - 0.1)
                await asyncio.sleep(next_s - time.monotonic())
                if len(under_way) < _UNDER_WAY_MAX:
                    task = asyncio.create_task(store(client))
                    under_way.add(task)
                    task.add_done_callback(under_way.discard)

    _run(produce())


def _consume(crowd: Crowd, acked: Any, stop: Any) -> None:
    async def consume() -> None:
        async with FilaClient.connect(crowd.addresses, call_timeout_s=60) as client:
            waits: set[asyncio.Future[None]] = set()

            def settled(done: asyncio.Future[None]) -> None:
                waits.discard(done)
                done.cancelled() or done.exception()  # a lost lease comes again

            async for message in client.consume(crowd.queue):
                if stop.value:
                    return
                wait = asyncio.ensure_future(message.ack())
                waits.add(wait)
                wait.add_done_callback(settled)
                acked.value += 1

    _run(consume())


def _run(what: Any) -> None:
    logging.getLogger("fila").setLevel(logging.CRITICAL)
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(what)
