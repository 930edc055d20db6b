"""Every benchmark has a name to select it by, and is a function that yields findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fila_bench.report import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much time and data a run may spend; `--quick` shrinks both."""

    seconds: float = 8.0
    """Length of one measured stretch."""

    warm_up_s: float = 2.0
    message_count: int = 1_000_000
    """Size of the backlogs of the memory, recovery and many-keys benchmarks."""


QUICK = Budget(seconds=2.0, warm_up_s=1.0, message_count=100_000)

Run = Callable[[Budget], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    name: str
    about: str
    run: Run


BENCHMARK_BY_NAME: dict[str, Benchmark] = {}


def benchmark(name: str, about: str) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        assert name not in BENCHMARK_BY_NAME, f"two benchmarks are called {name}"
        BENCHMARK_BY_NAME[name] = Benchmark(name, about, run)
        return run

    return register
