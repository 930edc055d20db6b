"""Replays real arrivals as one tenant beside a noisy one, through a real broker, and times the waits.

    trace (csv) ── Arrival(at_s, tenant, cost) ──► feeder ──► fila-server ──► workers ──► Served
    flood (10 x the trace's cost) ──────────────┘                  each holds one message for cost / rate

Workers stand for inference servers: their number of tokens a second is bounded, they take
one request at a time, and they are given less than the two tenants together ask for. What
then decides who waits is the broker's order and nothing else.
"""

from __future__ import annotations

import asyncio
import csv
import random
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc

from fila.v1 import service_pb2, service_pb2_grpc

QUEUE = "inference"
REAL, NOISY = "code", "noisy"
_TICK_S = 0.01
_PAYLOAD = struct.Struct("<qd")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request of the trace: when, whose, how many tokens."""

    at_s: float
    tenant: str
    cost: int


@dataclass(frozen=True, slots=True)
class Served:
    """A request a worker got, in seconds of the trace."""

    arrived_s: float
    waited_s: float
    tenant: str
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How the replay is run; one for both orders, so that they differ in nothing else."""

    speed: float
    """Seconds of the trace in one second."""

    workers: int
    tokens_per_s: float
    """What all workers together serve, in tokens a second of the trace."""


class Record:
    """What workers got so far; complete once every real request was served."""

    def __init__(self, real_count: int) -> None:
        self.served: list[Served] = []
        self.complete = asyncio.Event()
        self._real_left = real_count

    def add(self, served: Served) -> None:
        self.served.append(served)
        self._real_left -= served.tenant == REAL
        if self._real_left == 0:
            self.complete.set()


def read_trace(path: Path, minutes: float) -> list[Arrival]:
    """The first `minutes` of the trace; a request costs the tokens it reads and those it writes."""
    arrivals: list[Arrival] = []
    first: datetime | None = None
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            # Seven digits of fraction are one more than Python reads.
            at = datetime.fromisoformat(row["TIMESTAMP"][:26])
            first = first or at
            at_s = (at - first).total_seconds()
            if at_s > minutes * 60:
                break
            cost = int(row["ContextTokens"]) + int(row["GeneratedTokens"])
            arrivals.append(Arrival(at_s, REAL, max(1, cost)))
    return arrivals


def flood(real: Sequence[Arrival], times: float, seed: int) -> list[Arrival]:
    """A tenant that asks for `times` the cost, evenly over the same stretch, in requests of the same sizes."""
    dice = random.Random(seed)
    count = int(len(real) * times)
    stretch_s = real[-1].at_s
    costs = [arrival.cost for arrival in real]
    return [Arrival(stretch_s * number / count, NOISY, dice.choice(costs)) for number in range(count)]


async def replay(address: str, arrivals: Sequence[Arrival], setup: Setup) -> list[Served]:
    """Feed all arrivals in time; return what was served once every real request was."""
    record = Record(sum(1 for arrival in arrivals if arrival.tenant == REAL))
    async with grpc.aio.insecure_channel(address) as channel:
        service: Any = service_pb2_grpc.FilaServiceStub(channel)
        started_s = time.monotonic() + 0.5
        feeder = asyncio.create_task(_feed(service, arrivals, setup, started_s))
        workers = [
            asyncio.create_task(_work(service, setup, started_s, record)) for _ in range(setup.workers)
        ]
        over = asyncio.create_task(record.complete.wait())
        tasks = [over, feeder, *workers]
        try:
            # Each of them ends on its own only by failing, but for these two.
            while not over.done():
                finished, _ = await asyncio.wait(
                    {task for task in tasks if not task.done()}, return_when=asyncio.FIRST_COMPLETED
                )
                for task in finished:
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
    return record.served


async def _feed(service: Any, arrivals: Sequence[Arrival], setup: Setup, started_s: float) -> None:
    """Enqueue what has arrived since the last tick; the stamp is the arrival, not the tick."""
    position = 0
    while position < len(arrivals):
        trace_s = (time.monotonic() - started_s) * setup.speed
        batch = service_pb2.EnqueueBatchRequest(queue=QUEUE)
        while position < len(arrivals) and arrivals[position].at_s <= trace_s:
            arrival = arrivals[position]
            batch.messages.add(
                headers={"tenant": arrival.tenant, "tokens": str(arrival.cost)},
                payload=_PAYLOAD.pack(arrival.cost, arrival.at_s),
            )
            position += 1
        if batch.messages:
            answer = await service.EnqueueBatch(batch)
            refused = [result.error.message for result in answer.results if result.error.code]
            assert not refused, refused[0]
        await asyncio.sleep(_TICK_S)


async def _work(service: Any, setup: Setup, started_s: float, record: Record) -> None:
    """One worker: one message at a time, held for as long as its tokens take."""
    session = service.ConsumeSession()
    await session.write(service_pb2.ConsumeSessionRequest(open={"queue": QUEUE, "max_in_flight": 1}))
    seconds_a_token = setup.workers / setup.tokens_per_s / setup.speed
    acks = 0
    while (frame := await session.read()) is not grpc.aio.EOF:
        for message in frame.delivery.messages:
            trace_s = (time.monotonic() - started_s) * setup.speed
            cost, arrived_s = _PAYLOAD.unpack(message.payload)
            record.add(Served(arrived_s, max(0.0, trace_s - arrived_s), message.headers["tenant"], cost))
            await asyncio.sleep(cost * seconds_a_token)
            acks += 1
            ack = service_pb2.ConsumeSessionRequest(
                ack={"sequence": acks, "lease_ids": [message.metadata.lease_id]}
            )
            await session.write(ack)


@dataclass(frozen=True, slots=True)
class Summary:
    """One tenant's waits, and the share of served cost it got while requests kept arriving."""

    tenant: str
    requests: int
    waiting: int
    """Requests that still waited when the last real one was served, and the replay ended."""

    p50_s: float
    p95_s: float
    p99_s: float
    share: float


def summarize(served: Sequence[Served], arrivals: Sequence[Arrival]) -> list[Summary]:
    """The share counts only what was served before the last arrival: afterwards nobody competes."""
    arrivals_end_s = max(arrival.at_s for arrival in arrivals)
    in_time = [each for each in served if each.arrived_s + each.waited_s <= arrivals_end_s]
    total = sum(each.cost for each in in_time)
    summaries = []
    for tenant in (REAL, NOISY):
        waits = sorted(each.waited_s for each in served if each.tenant == tenant)
        cost = sum(each.cost for each in in_time if each.tenant == tenant)
        at = [waits[min(len(waits) - 1, int(len(waits) * share))] for share in (0.5, 0.95, 0.99)]
        waiting = sum(1 for arrival in arrivals if arrival.tenant == tenant) - len(waits)
        summaries.append(Summary(tenant, len(waits), waiting, at[0], at[1], at[2], cost / total))
    return summaries
