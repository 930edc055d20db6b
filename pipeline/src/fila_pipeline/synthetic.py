"""A history made up from a seed: a small fair broker in plain Python, with tenants that misbehave in known ways.

It exists for tests and for the tutorial, until the broker records its own. It schedules like the broker in what
matters to the jobs (deficit round robin by weight and cost, buckets that hold before delivery, backoff, dead letters,
waits split by cause) and in nothing else.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fila_pipeline import schema
from fila_pipeline.recording import HistoryWriter

PASS_MS = 50
MAX_ATTEMPTS = 3
BACKOFF_MS = 500
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Tenant:
    """One fairness key and how it behaves; rates are messages a second."""

    name: str
    rate: float
    weight: int = 1
    cost: float = 1.0
    flood_rate: float = 0.0
    flood_s: tuple[float, float] = (0.0, 0.0)
    failure_rate: float = 0.0
    failing_s: tuple[float, float] | None = None
    """When `failure_rate` holds; None for always."""
    provider: str = ""
    """The bucket its messages name."""
    favour: float = 1.0
    """The planted fault: how many times its due it is served. 1 is right."""


@dataclass(frozen=True)
class Scenario:
    """What is simulated."""

    tenants: tuple[Tenant, ...]
    seconds: float
    capacity: float
    """Cost that the consumers take a second."""
    seed: int = 1
    queue: str = "orders"
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Rate and burst by provider."""
    away_s: tuple[float, float] = (0.0, 0.0)
    """When nobody consumes."""
    handling_ms: float = 200.0
    roll_s: float = 300.0
    gap_s: tuple[float, float] | None = None
    """What the recorder missed."""


@dataclass(slots=True)
class _Message:
    offset: int
    tenant: Tenant
    enqueued_ms: int
    attempt: int = 0
    delay_ms: int = 0
    throttle_ms: int = 0
    away_ms: int = 0
    held_since_ms: int = -1
    ready_ms: int = 0


class _Broker:
    """Passes of PASS_MS; `rows` takes the decisions of each."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = random.Random(scenario.seed)  # noqa: S311 - the same history for the same seed
        self.rows: list[dict[str, Any]] = []
        self.ready: dict[str, deque[_Message]] = {tenant.name: deque() for tenant in scenario.tenants}
        self.lines: dict[str, deque[_Message]] = defaultdict(deque)
        self.delayed: list[tuple[int, int, _Message]] = []
        self.handled: list[tuple[int, int, int, _Message]] = []
        self.ring: deque[str] = deque()
        self.has_turn = False
        self.deficit = dict.fromkeys(self.ready, 0.0)
        self.tokens = {name: burst for name, (_, burst) in scenario.limits.items()}
        self.credit = 0.0
        self.next_offset = 1
        self.now_ms = 0
        self.runs: dict[tuple[Any, ...], dict[str, Any]] = {}

    def run(self) -> list[dict[str, Any]]:
        for number in range(int(self.scenario.seconds * 1000 / PASS_MS)):
            self.now_ms = number * PASS_MS
            self.arrive()
            self.settle()
            self.come_back()
            self.refill()
            self.deliver()
            self.rows.extend(self.runs.values())
            self.runs.clear()
        return self.rows

    def note(self, kind: str, message: _Message, **more: Any) -> None:
        """Add one message to the run of its kind and key in this pass."""
        tenant = message.tenant
        single: dict[str, Any] = {
            name: more.pop(name) for name in ("consumer", "bucket", "reason") if name in more
        }
        key = (kind, tenant.name, *single.values())
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = {
                "at": START + timedelta(milliseconds=self.now_ms),
                "pass": self.now_ms // PASS_MS,
                "kind": kind,
                "queue": self.scenario.queue,
                "channel": "default",
                "fairness_key": tenant.name,
                "weight": tenant.weight,
                "throttle_keys": [tenant.provider] if tenant.provider else [],
                **single,
                **{name: [] for name in ("offsets", "costs", "attempts", *more)},
            }
        run["offsets"].append(message.offset)
        run["costs"].append(tenant.cost)
        run["attempts"].append(message.attempt)
        for name, value in more.items():
            run[name].append(value)

    def within(self, seconds: tuple[float, float]) -> bool:
        return seconds[0] * 1000 <= self.now_ms < seconds[1] * 1000

    def arrive(self) -> None:
        for tenant in self.scenario.tenants:
            rate = tenant.flood_rate if self.within(tenant.flood_s) else tenant.rate
            expected = rate * PASS_MS / 1000
            count = int(expected) + (self.random.random() < expected % 1)
            for _ in range(count):
                message = _Message(self.next_offset, tenant, self.now_ms, ready_ms=self.now_ms)
                self.next_offset += 1
                self.note(schema.ENQUEUED, message)
                self.become_ready(message)

    def become_ready(self, message: _Message) -> None:
        provider = message.tenant.provider
        if provider in self.tokens:
            if self.lines[provider] or self.tokens[provider] < 1:
                message.held_since_ms = self.now_ms
                self.note(schema.THROTTLED, message, bucket=provider)
                self.lines[provider].append(message)
                return
            self.tokens[provider] -= 1
        self.join_ring(message)

    def join_ring(self, message: _Message) -> None:
        name = message.tenant.name
        if not self.ready[name]:
            self.ring.append(name)
        self.ready[name].append(message)

    def settle(self) -> None:
        while self.handled and self.handled[0][0] <= self.now_ms:
            _, _, consumer, message = heapq.heappop(self.handled)
            tenant = message.tenant
            failing = tenant.failing_s is None or self.within(tenant.failing_s)
            held = self.now_ms - message.held_since_ms
            if not failing or self.random.random() >= tenant.failure_rate:
                self.note(schema.ACKED, message, consumer=consumer, held_ms=held)
                continue
            expired = self.random.random() < 0.2
            kind, reason = (schema.EXPIRED, "lease") if expired else (schema.NACKED, "HTTP 500")
            self.note(kind, message, consumer=consumer, reason=reason, held_ms=held)
            message.attempt += 1
            if message.attempt >= MAX_ATTEMPTS:
                self.note(schema.DEAD_LETTERED, message, reason="max_attempts")
                continue
            wait_ms = BACKOFF_MS << message.attempt
            self.note(schema.DELAYED, message, held_ms=wait_ms)
            message.ready_ms = self.now_ms
            message.delay_ms, message.throttle_ms, message.away_ms = wait_ms, 0, 0
            heapq.heappush(self.delayed, (self.now_ms + wait_ms, message.offset, message))

    def come_back(self) -> None:
        while self.delayed and self.delayed[0][0] <= self.now_ms:
            self.become_ready(heapq.heappop(self.delayed)[2])

    def refill(self) -> None:
        for name, (rate, burst) in self.scenario.limits.items():
            self.tokens[name] = min(burst, self.tokens[name] + rate * PASS_MS / 1000)
            while self.lines[name] and self.tokens[name] >= 1:
                self.tokens[name] -= 1
                message = self.lines[name].popleft()
                held = self.now_ms - message.held_since_ms
                message.throttle_ms += held
                self.note(schema.RELEASED, message, bucket=name, held_ms=held)
                self.join_ring(message)

    def deliver(self) -> None:
        if self.within(self.scenario.away_s):
            for waiting in self.ready.values():
                for message in waiting:
                    message.away_ms += PASS_MS
            return
        self.credit = min(self.credit, 0.0) + self.scenario.capacity * PASS_MS / 1000
        while self.credit > 0 and self.ring:
            name = self.ring[0]
            waiting = self.ready[name]
            if not self.has_turn:
                self.deficit[name] += waiting[0].tenant.weight * waiting[0].tenant.favour
                self.has_turn = True
            while waiting and self.deficit[name] >= waiting[0].tenant.cost and self.credit > 0:
                self.hand_out(waiting.popleft())
            if not waiting:
                self.deficit[name] = 0.0
                self.ring.popleft()
            elif self.deficit[name] >= waiting[0].tenant.cost:
                return  # The pass is over, the turn is not.
            else:
                self.ring.rotate(-1)
            self.has_turn = False

    def hand_out(self, message: _Message) -> None:
        cost = message.tenant.cost
        self.deficit[message.tenant.name] -= cost
        self.credit -= cost
        waited = self.now_ms - message.ready_ms
        known = message.delay_ms + message.throttle_ms + message.away_ms
        consumer = 1 + self.random.randrange(4)
        self.note(
            schema.DELIVERED,
            message,
            consumer=consumer,
            wait_no_consumer_ms=message.away_ms,
            wait_share_ms=max(0, waited - known),
            wait_throttle_ms=message.throttle_ms,
            wait_delay_ms=message.delay_ms,
        )
        message.held_since_ms = self.now_ms
        ends_ms = self.now_ms + 1 + int(self.random.expovariate(1 / self.scenario.handling_ms))
        heapq.heappush(self.handled, (ends_ms, message.offset, consumer, message))


def decisions(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the scenario's decisions as rows, in order."""
    return _Broker(scenario).run()


def record(scenario: Scenario, directory: Path) -> int:
    """Write the scenario's history; returns the number of messages that were enqueued."""
    rows = decisions(scenario)
    writer = HistoryWriter(directory, f"{scenario.queue}-{scenario.seed}")
    limits = [
        {"at": START, "pass": 0, "kind": "limit", "name": name, "rate": rate, "burst": burst}
        for name, (rate, burst) in sorted(scenario.limits.items())
    ]
    if limits:
        writer.write(schema.CHANGES, limits)
    blocks: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        since = (row["at"] - START).total_seconds()
        if scenario.gap_s is not None and scenario.gap_s[0] <= since < scenario.gap_s[1]:
            continue
        blocks[f"{row['at']:%Y%m%d%H}", int(since / scenario.roll_s)].append(row)
    for block in sorted(blocks):
        writer.write(schema.DECISIONS, blocks[block])
    if scenario.gap_s is not None:
        first, last = (START + timedelta(seconds=s) for s in scenario.gap_s)
        writer.gap(first, last, "blocks were dropped: the disk was too slow")
    return sum(len(row["offsets"]) for row in rows if row["kind"] == schema.ENQUEUED)


def noisy_neighbours(seconds: float = 3600.0, seed: int = 1) -> Scenario:
    """A scenario with something for every job: a flood, a tight provider, a tenant that fails, a pause of consumers."""
    s = seconds
    return Scenario(
        tenants=(
            Tenant("acme", rate=4, weight=3),
            Tenant("globex", rate=4),
            Tenant("initech", rate=3, flood_rate=60, flood_s=(s * 0.3, s * 0.5)),
            Tenant("umbrella", rate=3, failure_rate=0.6, failing_s=(s * 0.7, s * 0.85)),
            Tenant("hooli", rate=5, provider="openai"),
            Tenant("soylent", rate=0.5, cost=8.0),
        ),
        seconds=seconds,
        capacity=45,
        seed=seed,
        limits={"openai": (4.5, 10.0)},
        away_s=(s * 0.6, s * 0.61),
    )
