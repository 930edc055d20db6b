"""A fake broker and a client of it, for every test that asks."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from fila import Backoff, ConnectionEvent, Consumer, FilaClient
from tests.sdk.fake_broker import FakeBroker

QUICK_BACKOFF = Backoff(base_s=0.001, cap_s=0.02, randomness=random.Random(1))
SETTLE_TIMEOUT_S = 30.0


async def stop_for_good(broker: FakeBroker) -> None:
    """It gives its port back."""
    broker.answering.set()
    await broker.stop()
    broker.place.close()


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    """A started broker with one queue, `orders`."""
    broker = FakeBroker()  # type: ignore[abstract]  # grpc answers UNIMPLEMENTED for what it lacks
    broker.add("orders")
    await broker.start()
    yield broker
    await stop_for_good(broker)


@pytest.fixture
async def client(broker: FakeBroker) -> AsyncIterator[FilaClient]:
    """A client that waits hardly at all before it tries again."""
    async with FilaClient.connect(
        broker.address, retry_for_s=30.0, call_timeout_s=30.0, backoff=QUICK_BACKOFF
    ) as client:
        yield client


@pytest.fixture
def broker_thread() -> Iterator[FakeBroker]:
    """The same broker on a loop of its own, for clients that block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    broker = FakeBroker()  # type: ignore[abstract]
    broker.add("orders")
    asyncio.run_coroutine_threadsafe(broker.start(), loop).result()
    yield broker
    asyncio.run_coroutine_threadsafe(stop_for_good(broker), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def fill(client: FilaClient, count: int) -> None:
    """Enqueue b"0", b"1", ..."""
    await client.enqueue_many("orders", [b"%d" % i for i in range(count)])


@contextlib.asynccontextmanager
async def drained(broker: FakeBroker, *consumers: Consumer[Any]) -> AsyncIterator[None]:
    """Loops over these consumers end when nothing of `orders` waits or is held. A loop that ends when nothing came for
    so long ends too early where the machine stands still."""
    orders = broker.queues["orders"]

    async def end() -> None:
        await until(lambda: not orders.ready and not orders.leased)
        for consumer in consumers:
            consumer.close()

    async with asyncio.TaskGroup() as beside:
        beside.create_task(end())
        yield


def said(broker: FakeBroker, kind: str) -> list[Any]:
    """What came over sessions, of one kind."""
    return [getattr(frame, kind) for frame in broker.frames if frame.WhichOneof("request") == kind]


def begun(broker: FakeBroker) -> set[int]:
    """Leases that were declared begun."""
    return {lease for frame in said(broker, "begun") for lease in frame.lease_ids}


@dataclass
class Watched:
    """A client that resumes quickly, and what it told of its connection."""

    client: FilaClient
    events: list[ConnectionEvent]


@pytest.fixture
async def watched(broker: FakeBroker) -> AsyncIterator[Watched]:
    """A client whose connection events are kept."""
    events: list[ConnectionEvent] = []
    async with FilaClient.connect(
        broker.address, backoff=QUICK_BACKOFF, on_connection=events.append, name="worker-1"
    ) as client:
        yield Watched(client, events)


async def until(holds: Callable[[], object]) -> None:
    """Let the loop turn until something holds."""
    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        while not holds():  # noqa: ASYNC110 - what holds is not ours to signal
            await asyncio.sleep(0.001)


class ManualClock:
    """Time that passes when the test says so; sleeping is noted and takes no time at all."""

    def __init__(self) -> None:
        self.slept_s: list[float] = []
        self._now_s = 1000.0

    def now_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self._now_s += seconds
        await asyncio.sleep(0)
