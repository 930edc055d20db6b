"""Whether the compiled load generator asks as much of the broker as the one that all earlier numbers came from."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from fila_bench import go_load
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, measure_life
from fila_bench.server import Server

_PAIRS = 3


def measure_go(life: Life, budget: Budget, **flags: str | float) -> tuple[dict[str, Any], float]:
    """Run one load of fila-load against a server of its own; return its report and the server's CPU microseconds a
    message."""
    with Server(durability=life.durability) as server:
        cpu_s = server.cpu_s()
        report = go_load.run(
            server.address,
            queue=QUEUE,
            payload=life.payload_bytes,
            batch=life.batch,
            keys=life.keys,
            window=life.window_frames,
            warm_up=f"{budget.warm_up_s}s",
            duration=f"{budget.seconds}s",
            **flags,
        )
        cpu_s = server.cpu_s() - cpu_s
    messages = report["acked_per_s"] * (budget.seconds + budget.warm_up_s)
    return report, cpu_s * 1e6 / max(1.0, messages)


@benchmark("generators", "the headline by fila-load against the headline by this harness, runs alternating")
def generators(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    life = Life()
    ours: list[float] = []
    compiled: list[float] = []
    for pair in range(_PAIRS):
        # The order alternates, so that a machine that slows down is not charged to one of them.
        for go_first in (True, False) if pair % 2 else (False, True):
            if go_first:
                report, server_us = measure_go(life, budget)
                compiled.append(report["acked_per_s"])
            else:
                steady, _ = measure_life(life, budget)
                ours.append(steady.acked_per_s)
    yield Finding(
        benchmark="generators",
        case=f"fila-load / harness, {life.case}, median of {_PAIRS}",
        value=median(compiled) / median(ours),
        unit="",
        reach=0.95,
        details={
            "fila-load/s": median(compiled),
            "harness/s": median(ours),
            "server us/msg": server_us,
            "client cores": report["cpu_s"] / report["seconds"],
        },
    )
