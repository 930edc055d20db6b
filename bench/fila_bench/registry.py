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
    method: str = ""
    """What a reader has to know of all its lines to compare them with others: who makes the load, and with what. Whole
    sentences, under the heading of its section."""


BENCHMARK_BY_NAME: dict[str, Benchmark] = {}


@dataclass(frozen=True, slots=True)
class Group:
    """Benchmarks that are asked for by one name, because they answer one question."""

    about: str
    names: tuple[str, ...]


GROUP_BY_NAME = {
    "edge-table": Group(
        "what the edges have to reach, in one run of some twelve minutes",
        ("edges", "redis-edges", "tls", "keys-on", "neighbours", "idle-connections"),
    ),
}


def named(name: str) -> list[str]:
    """The benchmark of this name, all of `name/...`, or all of the group; empty where nothing is called so."""
    if name in GROUP_BY_NAME:
        return [known for part in GROUP_BY_NAME[name].names for known in named(part)]
    return [known for known in BENCHMARK_BY_NAME if known == name or known.startswith(f"{name}/")]


def benchmark(name: str, about: str, method: str = "") -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        assert name not in BENCHMARK_BY_NAME, f"two benchmarks are called {name}"
        BENCHMARK_BY_NAME[name] = Benchmark(name, about, run, method)
        return run

    return register
