"""What a forecast from a history is worth: the same arrivals and handlers live, under each policy that was forecast.

    base, live and recorded ──► fila_server.modelling, under each policy ──► mean and p95 by tenant
    the policy, live and recorded, the same arrivals and handlers ─────────► mean and p95 by tenant

It is the model that `fila-pipeline compare` asks.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from fila.v1 import service_pb2, service_pb2_grpc
from fila_bench.admin import Admin
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server

QUEUE, PROVIDER = "compared", "openai"
TENANTS = {"acme": 8.0, "globex": 6.0, "hooli": 6.0, "umbrella": 4.0}
"""Messages a second."""
NOISY, NOISY_S, NOISY_A_SECOND = "noisy", (0.2, 0.5), 45.0
LIMITED = "hooli"
WORKERS, HELD_AT_ONCE = 4, 2
TOOK_S = (0.1, 0.35)
"""Of a handler, least and most: long enough that a busy machine adds little to it."""
SECONDS, QUICK_SECONDS = 60.0, 20.0
DRAIN_S_MAX = 120.0
SLOWNESSES = (1.0, 1.1, 0.9)
MEAN, P95 = (0.05, 20.0), (0.10, 50.0)
"""How far a forecast may be from what came: a part of it, or so many milliseconds."""
_LIMIT = {"rate": 5, "burst": 2}
_COURSE = """
import json, sys
from fila_server.history_files import upkeep
from fila_server.history_files.segments import segments, tables
from fila_server.modelling import course
from fila_server.modelling.policy import read_policy
from fila_server.modelling.served import Served
from pathlib import Path

directory, policy, slowness = sys.argv[1], sys.argv[2], float(sys.argv[3])
(segment,) = segments(upkeep.entries(Path(directory)), directory)
assert segment.gap is None, segment.gap
if policy == "recorded":
    served = Served()
    for part in tables(segment, segment.decisions):
        served.take(part)
    rows = served.rows()
else:
    parts = (tables(segment, segment.inputs), tables(segment, segment.decisions))
    rows = course.run(*parts, read_policy(policy), 0, slowness).served
print(json.dumps(rows))
"""


@dataclass(frozen=True)
class Policy:
    """Settings of the queue, and the provider's limit."""

    weights: Mapping[str, int]
    limit: Mapping[str, float]

    @property
    def toml(self) -> str:
        weights = ", ".join(f"{tenant} = {weight}" for tenant, weight in self.weights.items())
        limit = ", ".join(f"{name} = {value}" for name, value in self.limit.items())
        return f"[queues.{QUEUE}]\nweights = {{ {weights} }}\n[limits]\n{PROVIDER} = {{ {limit} }}\n"


BASE = Policy({"acme": 3}, _LIMIT)
POLICIES = {
    "globex weighs 5": Policy({"acme": 1, "globex": 5}, _LIMIT),
    "the flood weighs as little as it can": Policy(dict.fromkeys(TENANTS, 10), _LIMIT),
    "twice the limit": Policy({"acme": 3}, {"rate": 10, "burst": 2}),
}


@dataclass(frozen=True)
class Request:
    """One message: when it comes, whose it is, and how long its handler takes."""

    at_s: float
    tenant: str
    took_s: float


@benchmark(
    "compare-live",
    "a history's forecast beside the same load live: five tenants, three policies, handlers 10 % slower and faster",
)
def compare_live(budget: Budget) -> Iterator[Finding]:
    seconds = SECONDS if budget.seconds >= Budget().seconds else QUICK_SECONDS
    wanted = requests(seconds, seed=7)
    with tempfile.TemporaryDirectory(prefix="fila-bench-compare-") as folder:
        base = _live(BASE, wanted, 1.0, Path(folder, "base"))
        for number, (name, policy) in enumerate(POLICIES.items()):
            forecasts = [_told(base, policy.toml, slowness) for slowness in SLOWNESSES]
            for slowness in SLOWNESSES:
                live = _live(policy, wanted, slowness, Path(folder, f"{number}-{slowness}"))
                came = _told(live, "recorded", 1.0)
                handlers = _held_s(live) / (_held_s(base) * slowness)
                if slowness == 1.0:
                    yield _error(name, "mean_ms", forecasts[0], came, MEAN, handlers)
                    yield _error(name, "p95_ms", forecasts[0], came, P95, handlers)
                else:
                    yield _inside(name, slowness, forecasts, came, handlers)


def requests(seconds: float, seed: int) -> list[Request]:
    """Arrivals of so many seconds: four tenants all the time, and a flood."""
    dice = random.Random(seed)
    found = []
    for tenant, rate in TENANTS.items():
        at_s = dice.expovariate(rate)
        while at_s < seconds:
            found.append(Request(at_s, tenant, dice.uniform(*TOOK_S)))
            at_s += dice.expovariate(rate)
    begins, ends = (part * seconds for part in NOISY_S)
    at_s = begins
    while at_s < ends:
        found.append(Request(at_s, NOISY, dice.uniform(*TOOK_S)))
        at_s += dice.expovariate(NOISY_A_SECOND)
    return sorted(found, key=lambda request: request.at_s)


def _live(policy: Policy, wanted: Sequence[Request], slowness: float, history: Path) -> Path:
    with Server(history__enabled="true", history__dir=str(history)) as server:
        with Admin(server.address) as admin:
            admin.create(
                QUEUE, fairness_key_header="tenant", throttle_key_headers=["provider"], weights=policy.weights
            )
            admin.set_config(f"throttle.{PROVIDER}", f"{policy.limit['rate']},{policy.limit['burst']}")
        asyncio.run(_Shift(server.address, slowness).serve(wanted))
    return history


class _Shift:
    """A feeder, and workers that hold each message for as long as its header says."""

    def __init__(self, address: str, slowness: float) -> None:
        self._address = address
        self._slowness = slowness
        self._left = 0

    async def serve(self, wanted: Sequence[Request]) -> None:
        self._left = len(wanted)
        async with grpc.aio.insecure_channel(self._address) as channel:
            service: Any = service_pb2_grpc.FilaServiceStub(channel)
            workers = [asyncio.create_task(self._work(service)) for _ in range(WORKERS)]
            await asyncio.sleep(0.5)
            await self._feed(service, wanted)
            deadline = time.monotonic() + DRAIN_S_MAX
            while self._left and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        assert not self._left, f"{self._left} messages were not served"

    async def _feed(self, service: Any, wanted: Sequence[Request]) -> None:
        began_s = time.monotonic()
        for request in wanted:
            await asyncio.sleep(max(0.0, began_s + request.at_s - time.monotonic()))
            headers = {"tenant": request.tenant, "took": f"{request.took_s:.4f}"}
            if request.tenant == LIMITED:
                headers["provider"] = PROVIDER
            await service.Enqueue(service_pb2.EnqueueRequest(queue=QUEUE, headers=headers, payload=b"x"))

    async def _work(self, service: Any) -> None:
        session = service.ConsumeSession()
        opening = {"queue": QUEUE, "max_in_flight": HELD_AT_ONCE}
        await session.write(service_pb2.ConsumeSessionRequest(open=opening))
        writing = asyncio.Lock()
        handling: set[asyncio.Task[None]] = set()
        while (frame := await session.read()) is not grpc.aio.EOF:
            came_s = time.monotonic()
            for message in frame.delivery.messages:
                handling.add(task := asyncio.create_task(self._handle(session, writing, message, came_s)))
                task.add_done_callback(handling.discard)

    async def _handle(self, session: Any, writing: asyncio.Lock, message: Any, came_s: float) -> None:
        until_s = came_s + float(message.headers["took"]) * self._slowness
        await asyncio.sleep(max(0.0, until_s - time.monotonic()))
        lease = [message.metadata.lease_id]
        async with writing:
            await session.write(service_pb2.ConsumeSessionRequest(ack={"lease_ids": lease}))
        self._left -= 1


# --- what it came to ---------------------------------------------------------------------------


def _told(history: Path, policy: str, slowness: float) -> dict[str, dict[str, float]]:
    """Waits by tenant: as recorded, or forecast under a policy."""
    command = [sys.executable, "-c", _COURSE, str(history), policy, str(slowness)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the course broke off: {done.stderr[-500:]}")
    rows = json.loads(done.stdout.splitlines()[-1])
    return {row["fairness_key"]: row for row in rows if row["queue"] == QUEUE}


def _held_s(history: Path) -> float:
    """How long handlers had messages, all together."""
    import pyarrow.parquet as pq

    held_ms = 0
    for path in history.glob("decisions/*/*/*.parquet"):
        for row in pq.read_table(path, columns=["kind", "offsets", "held_ms"]).to_pylist():
            if row["kind"] == "acked":
                spread = len(row["offsets"]) if len(row["held_ms"]) == 1 else 1
                held_ms += sum(row["held_ms"]) * spread
    return held_ms / 1000


def _error(
    policy: str,
    figure: str,
    forecast: Mapping[str, Mapping[str, float]],
    came: Mapping[str, Mapping[str, float]],
    allowed: tuple[float, float],
    handlers: float,
) -> Finding:
    """The tenant whose forecast is furthest off, in parts of what is allowed."""
    part, ms = allowed
    off = {
        tenant: abs(forecast[tenant][figure] - row[figure]) / max(part * row[figure], ms)
        for tenant, row in came.items()
    }
    return Finding(
        benchmark="compare-live",
        case=f"{policy}: {figure.removesuffix('_ms')}, the worst of {len(off)} tenants, in parts of what it may be off",
        value=max(off.values()),
        unit="",
        reach=1.0,
        better="less",
        details={
            "may be off": f"{part:.0%} or {ms:g} ms",
            "handlers live / recorded": round(handlers, 4),
            **{
                tenant: f"{forecast[tenant][figure]:,.0f} forecast, {row[figure]:,.0f} live"
                for tenant, row in sorted(came.items())
            },
        },
    )


def _inside(
    policy: str,
    slowness: float,
    forecasts: Sequence[Mapping[str, Mapping[str, float]]],
    came: Mapping[str, Mapping[str, float]],
    handlers: float,
) -> Finding:
    """How many figures are inside of the told range."""
    outside = []
    count = 0
    for tenant, row in sorted(came.items()):
        for figure, (part, ms) in (("mean_ms", MEAN), ("p95_ms", P95)):
            told = [forecast[tenant][figure] for forecast in forecasts]
            slack = max(part * row[figure], ms)
            count += 1
            if not min(told) - slack <= row[figure] <= max(told) + slack:
                outside.append(
                    f"{tenant} {figure} {row[figure]:,.0f}, told {min(told):,.0f} to {max(told):,.0f}"
                )
    return Finding(
        benchmark="compare-live",
        case=f"{policy}: handlers {abs(slowness - 1):.0%} {'slower' if slowness > 1 else 'faster'}, figures inside of "
        "the told range",
        value=(count - len(outside)) / count,
        unit="",
        reach=1.0,
        details={
            "handlers live / recorded": round(handlers, 4),
            "the range": "from 10 % faster to 10 % slower, and what a forecast may be off",
            "outside": "; ".join(outside) or "none",
        },
    )
