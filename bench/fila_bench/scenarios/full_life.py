"""Enqueue, deliver, ack: the number everything else is compared with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from fila_bench.admin import Admin
from fila_bench.load import Load, Steady
from fila_bench.plan import ConsumerPlan, ProducerPlan
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server

QUEUE = "bench"
_LOAD = (
    "Load: a producer and a consumer in Python, each a process, with 8 frames under way (4 at batch 500, 16 at "
    "batch 10, 64 at batch 1). What fila-load finds, with more frames under way, stands under [edges](#edges)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One load shape; the defaults are the headline's."""

    payload_bytes: int = 1024
    batch: int = 100
    durability: str = "fsync"
    keys: int = 10
    reach: float | None = None
    window_frames: int = 8
    extra_headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def case(self) -> str:
        size = f"{self.payload_bytes // 1024} KB" if self.payload_bytes >= 1024 else f"{self.payload_bytes} B"
        return f"{size}, batch {self.batch}, {self.durability}, {self.keys:,} keys"


_CASES = (
    Life(reach=110_000),
    Life(durability="os", reach=125_000),
    Life(payload_bytes=64, reach=200_000),
    Life(payload_bytes=64, durability="os"),
    Life(batch=500, window_frames=4),
    Life(payload_bytes=64, batch=500, window_frames=4),
    Life(batch=10, reach=25_000, window_frames=16),
    Life(payload_bytes=64, batch=10, window_frames=16),
    Life(batch=1, window_frames=64),
    Life(payload_bytes=64, batch=1, window_frames=64),
)


@benchmark("full-life", "enqueue, deliver and ack at once: sizes, batches, fsync and os", _LOAD)
def full_life(budget: Budget) -> Iterator[Finding]:
    for life in _CASES:
        steady, server_us = measure_life(life, budget)
        yield finding("full-life", life, steady, server_us)


@benchmark("headline", "the first case of full-life alone", _LOAD)
def headline(budget: Budget) -> Iterator[Finding]:
    steady, server_us = measure_life(_CASES[0], budget)
    yield finding("headline", _CASES[0], steady, server_us)


@benchmark("fair-vs-one-key", "full life over 10 keys against one key, runs alternating")
def fair_against_one_key(budget: Budget) -> Iterator[Finding]:
    rate_by_keys: dict[int, list[float]] = {1: [], 10: []}
    us_by_keys: dict[int, list[float]] = {1: [], 10: []}
    for keys in (1, 10, 10, 1, 1, 10):
        steady, server_us = measure_life(Life(keys=keys), budget)
        rate_by_keys[keys].append(steady.acked_per_s)
        us_by_keys[keys].append(server_us)
    one, ten = (sorted(rate_by_keys[keys])[1] for keys in (1, 10))
    yield Finding(
        benchmark="fair-vs-one-key",
        case="10 keys / 1 key, 1 KB, batch 100, fsync, median of 3",
        value=ten / one,
        unit="",
        reach=0.97,
        details={
            "10 keys/s": ten,
            "1 key/s": one,
            "server us/msg": sorted(us_by_keys[10])[1],
            "with 1 key": sorted(us_by_keys[1])[1],
        },
    )


@benchmark("keys", "full life with 10 to 1,000,000 fairness keys, 64 B")
def many_keys(budget: Budget) -> Iterator[Finding]:
    for keys in (10, 1_000, 100_000, budget.message_count):
        life = Life(payload_bytes=64, keys=keys)
        steady, server_us = measure_life(life, budget)
        yield finding("keys", life, steady, server_us)


@benchmark("enqueue-only", "enqueue without a consumer")
def enqueue_only(budget: Budget) -> Iterator[Finding]:
    for life in (Life(), Life(durability="os"), Life(payload_bytes=64)):
        with Server(durability=life.durability) as server, Admin(server.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
            with Load([producer_plan(life, server.address)]) as load:
                steady = load.measure(warm_up_s=budget.warm_up_s, seconds=budget.seconds)
        yield Finding(
            benchmark="enqueue-only",
            case=life.case,
            value=steady.produced_per_s,
            unit="msg/s",
            details={"refused": steady.refused},
        )


def producer_plan(life: Life, address: str) -> ProducerPlan:
    return ProducerPlan(
        address=address,
        queue=QUEUE,
        payload_bytes=life.payload_bytes,
        batch=life.batch,
        keys=life.keys,
        window_frames=life.window_frames,
        extra_headers=dict(life.extra_headers),
    )


def measure_life(
    life: Life,
    budget: Budget,
    *,
    queue_config: dict[str, object] | None = None,
    prepare: Callable[[Server], None] | None = None,
    look: Callable[[Server], None] | None = None,
    beside: Callable[[Server], AbstractContextManager[object]] | None = None,
    **server_settings: str | int,
) -> tuple[Steady, float]:
    """Run one load; return what was steady and the server's CPU microseconds per acked message.

    `prepare` is called before the queue is made. `look` is called at the end, while the server is still there and still
    loaded; what `beside` makes is entered before anything is measured.
    """
    config: dict[str, object] = {"fairness_key_header": "tenant", **(queue_config or {})}
    with Server(durability=life.durability, **server_settings) as server:  # type: ignore[arg-type]
        if prepare is not None:
            prepare(server)
        with Admin(server.address) as admin:
            admin.create(QUEUE, **config)
        consumer = ConsumerPlan(address=server.address, queue=QUEUE)
        with contextlib.ExitStack() as stack:
            load = stack.enter_context(Load([producer_plan(life, server.address)], [consumer]))
            if beside is not None:
                stack.enter_context(beside(server))
            load.measure(warm_up_s=0, seconds=budget.warm_up_s)
            cpu_s = server.cpu_s()
            steady = load.measure(warm_up_s=0, seconds=budget.seconds)
            cpu_s = server.cpu_s() - cpu_s
            if look is not None:
                look(server)
    return steady, cpu_s * 1e6 / max(1.0, steady.acked_per_s * steady.seconds)


def finding(name: str, life: Life, steady: Steady, server_us: float) -> Finding:
    details: dict[str, object] = {
        "produced/s": steady.produced_per_s,
        "server us/msg": server_us,
        "backlog": f"{steady.backlog_start:,} to {steady.backlog_end:,}",
    }
    if steady.refused or steady.settle_failed:
        details |= {"refused": steady.refused, "acks refused": steady.settle_failed}
    return Finding(
        benchmark=name,
        case=life.case,
        value=steady.acked_per_s,
        unit="msg/s",
        reach=life.reach,
        details=details,
    )
