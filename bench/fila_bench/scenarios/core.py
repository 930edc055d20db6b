"""The core alone: how far from it do the edges keep the whole?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fila_bench import core_load
from fila_bench.callers import in_process
from fila_bench.core_load import CoreLoad
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding

_CASES: tuple[tuple[int, int, Literal["fsync", "os"]], ...] = (
    (1024, 100, "fsync"),
    (1024, 100, "os"),
    (64, 100, "fsync"),
    (1024, 10, "fsync"),
)


@benchmark("core", "full life in the compiled core alone: no gRPC, no sockets")
def core(budget: Budget) -> Iterator[Finding]:
    for payload_bytes, batch, durability in _CASES:
        load = CoreLoad(
            payload_bytes=payload_bytes,
            batch=batch,
            durability=durability,
            warm_up_s=budget.warm_up_s,
            seconds=budget.seconds,
        )
        found = in_process(core_load.run, load)()
        yield Finding(
            benchmark="core",
            case=f"{payload_bytes} B, batch {batch}, {durability}, 10 keys",
            value=found.acked_per_s,
            unit="msg/s",
            details={"produced/s": found.produced_per_s, "us/msg": found.cpu_us_per_message},
        )
