"""Work for a broker that records: an hour of real or made-up requests in minutes, with something for every question.

    trace (csv, or seeded) ──► tenants ──► feeder ──► fila-server with a history ──► workers
    a flood of one tenant ──────────────┘

Four tenants share the trace. `hooli` calls a provider whose limit is below what it asks for; `umbrella`'s handler fails
for a while; `noisy` floods; for a moment nobody works.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from fila.v1 import service_pb2, service_pb2_grpc
from fila_bench.admin import Admin
from fila_bench.replay import Arrival, read_trace

QUEUE = "inference"
TENANTS = (("acme", 0.4), ("globex", 0.25), ("hooli", 0.2), ("umbrella", 0.15))
WEIGHTS = {"acme": 3}
NOISY, FAILING, LIMITED, PROVIDER = "noisy", "umbrella", "hooli", "openai"
FLOOD = (0.30, 0.45)
"""From and to, in parts of the whole time; so the next two."""
FAILURES = (0.60, 0.72)
AWAY = (0.80, 0.82)
FLOOD_TIMES = 10.0
"""How many times the trace's cost the flood asks for while it lasts."""
CAPACITY = 3.0
"""What the workers serve, in what the trace asks for."""
LIMIT_PART = 0.8
"""The provider's limit, in what its tenant asks for."""
FAILURE_RATE = 0.5
WORKERS, HELD_AT_ONCE = 8, 4
TRACE_S, TRACE_ROWS = 3_416.0, 8_819
"""Of the made-up trace: about as long, and as many, as an hour of a real inference service."""
TICK_S = 0.01
DRAIN_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Request:
    """One request, in seconds of the recording."""

    at_s: float
    tenant: str
    cost: int


def made_up(seed: int) -> list[Arrival]:
    """A trace of the shape of real ones: bursts, most requests long, few answers long."""
    dice = random.Random(seed)
    arrivals: list[Arrival] = []
    at_s, busy = 0.0, 1.0
    while len(arrivals) < TRACE_ROWS:
        if dice.random() < 0.02:
            busy = dice.choice((0.3, 0.7, 1.0, 1.5, 3.0))
        at_s += dice.expovariate(busy * TRACE_ROWS / TRACE_S)
        cost = int(min(9_000, dice.lognormvariate(7.2, 0.9) + dice.expovariate(1 / 28)))
        arrivals.append(Arrival(at_s, "", max(1, cost)))
    return arrivals


def requests(trace: Path | None, seconds: float, seed: int) -> list[Request]:
    """The trace shared by the tenants, pressed into so many seconds, and the flood."""
    arrivals = read_trace(trace, minutes=24 * 60) if trace is not None else made_up(seed)
    dice = random.Random(seed)
    speed = arrivals[-1].at_s / seconds
    names, parts = [name for name, _ in TENANTS], [part for _, part in TENANTS]
    found = [Request(each.at_s / speed, dice.choices(names, parts)[0], each.cost) for each in arrivals]
    begins, ends = (part * seconds for part in FLOOD)
    count = int(len(arrivals) * FLOOD_TIMES * (FLOOD[1] - FLOOD[0]))
    costs = [each.cost for each in arrivals]
    found += [
        Request(begins + (ends - begins) * number / count, NOISY, dice.choice(costs))
        for number in range(count)
    ]
    return sorted(found, key=lambda request: request.at_s)


def prepare(address: str, wanted: Sequence[Request], seconds: float) -> None:
    """Make the queue, and set the provider's limit."""
    asked = sum(1 for request in wanted if request.tenant == LIMITED) / seconds
    with Admin(address) as admin:
        admin.create(
            QUEUE,
            fairness_key_header="tenant",
            cost_header="tokens",
            throttle_key_headers=["provider"],
            weights=WEIGHTS,
            max_attempts=3,
        )
        admin.set_config(f"throttle.{PROVIDER}", f"{asked * LIMIT_PART:.2f},10")


async def work(address: str, wanted: Sequence[Request], seconds: float, seed: int) -> int:
    """Feed all requests in time, and serve them until nothing is left; returns how many deliveries there were."""
    own = sum(request.cost for request in wanted if request.tenant != NOISY)
    seconds_a_token = WORKERS * HELD_AT_ONCE * seconds / (own * CAPACITY)
    async with grpc.aio.insecure_channel(address) as channel:
        service: Any = service_pb2_grpc.FilaServiceStub(channel)
        shift = _Shift(service, time.monotonic(), seconds, seconds_a_token, random.Random(seed))
        workers = [asyncio.create_task(shift.work()) for _ in range(WORKERS)]
        feeder = asyncio.create_task(shift.feed(wanted))
        done, _ = await asyncio.wait([feeder, *workers], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # a worker ends only by failing
        idle_since, seen = time.monotonic(), -1
        deadline = time.monotonic() + DRAIN_S_MAX
        while time.monotonic() < min(deadline, idle_since + 3.0):
            if shift.delivered != seen or shift.held:
                idle_since, seen = time.monotonic(), shift.delivered
            await asyncio.sleep(0.1)
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        return shift.delivered


class _Shift:
    """What feeder and workers share."""

    def __init__(
        self, service: Any, began_s: float, seconds: float, seconds_a_token: float, dice: random.Random
    ) -> None:
        self._service = service
        self._began_s = began_s
        self._seconds = seconds
        self._seconds_a_token = seconds_a_token
        self._dice = dice
        self.delivered = 0
        self.held = 0

    def _within(self, parts: tuple[float, float]) -> bool:
        return parts[0] <= (time.monotonic() - self._began_s) / self._seconds < parts[1]

    async def feed(self, wanted: Sequence[Request]) -> None:
        """Enqueue what has arrived since the last tick."""
        position = 0
        while position < len(wanted):
            now_s = time.monotonic() - self._began_s
            batch = service_pb2.EnqueueBatchRequest(queue=QUEUE)
            while position < len(wanted) and wanted[position].at_s <= now_s and len(batch.messages) < 5_000:
                request = wanted[position]
                headers = {"tenant": request.tenant, "tokens": str(request.cost)}
                if request.tenant == LIMITED:
                    headers["provider"] = PROVIDER
                batch.messages.add(headers=headers, payload=b"p" * 200)
                position += 1
            if batch.messages:
                answer = await self._service.EnqueueBatch(batch)
                refused = [result.error.message for result in answer.results if result.error.code]
                assert not refused, refused[0]
            await asyncio.sleep(TICK_S)

    async def work(self) -> None:
        """One consumer; leaves while nobody works, and comes back."""
        while True:
            while self._within(AWAY):
                await asyncio.sleep(TICK_S)
            await self._session()

    async def _session(self) -> None:
        session = self._service.ConsumeSession()
        opening = {"queue": QUEUE, "max_in_flight": HELD_AT_ONCE}
        await session.write(service_pb2.ConsumeSessionRequest(open=opening))
        writing = asyncio.Lock()  # a call takes one write at a time
        handling: set[asyncio.Task[None]] = set()
        reading = asyncio.create_task(session.read())
        try:
            while not self._within(AWAY):
                await asyncio.wait([reading], timeout=0.05)
                if not reading.done():
                    continue
                if (frame := reading.result()) is grpc.aio.EOF:
                    return
                for message in frame.delivery.messages:
                    self.delivered += 1
                    self.held += 1
                    handling.add(task := asyncio.create_task(self._handle(session, writing, message)))
                    task.add_done_callback(handling.discard)
                reading = asyncio.create_task(session.read())
        finally:
            reading.cancel()
            await asyncio.gather(reading, *handling, return_exceptions=True)
            session.cancel()

    async def _handle(self, session: Any, writing: asyncio.Lock, message: Any) -> None:
        """Hold it for as long as its tokens take, then say how it went."""
        try:
            await asyncio.sleep(message.metadata.cost * self._seconds_a_token)
            lease = [message.metadata.lease_id]
            fails = message.metadata.fairness_key == FAILING and self._within(FAILURES)
            if fails and self._dice.random() < FAILURE_RATE:
                frame = service_pb2.ConsumeSessionRequest(nack={"lease_ids": lease, "error": "HTTP 500"})
            else:
                frame = service_pb2.ConsumeSessionRequest(ack={"lease_ids": lease})
            async with writing:
                await session.write(frame)
        finally:
            self.held -= 1
