"""The Redis protocol by Redis' own load generator: Fila, and redis-server with its own XADD."""

from __future__ import annotations

import contextlib
import csv
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from fila_peers import install
from fila_peers.brokers import PEERS, WRITTEN, running

from fila_bench.pairs import in_turn, ratio_of
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.redis import Connection, command
from fila_bench.server import Server

_QUEUE, _CHANNEL = "bench", "work"
_PAYLOAD = "x" * 100
_ROUNDS = 3
_FILA, _REDIS = "fila", "redis-server"
_PUSH, _ADD = ("RPUSH", _QUEUE, _PAYLOAD), ("XADD", _QUEUE, "*", "m", _PAYLOAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    connections: int
    pipeline: int
    requests_per_s: int
    """About what the fastest does, for the number of requests that a stretch holds."""


_SINGLE = _Shape(connections=50, pipeline=1, requests_per_s=80_000)
_PIPELINED = _Shape(connections=4, pipeline=100, requests_per_s=1_000_000)


@dataclass(frozen=True, slots=True)
class _Ran:
    rate: float
    p50_ms: float
    server_us: float


@contextlib.contextmanager
def _a_fila() -> Iterator[tuple[int, Callable[[], float]]]:
    with Server(durability="os", redis=True) as server:
        Connection(server.redis_port).ask(command("SET", _QUEUE, _CHANNEL, "NX"), 1)
        yield server.redis_port, server.cpu_s


@contextlib.contextmanager
def _a_redis() -> Iterator[tuple[int, Callable[[], float]]]:
    """One that appends every command to its file, and syncs that once a second."""
    with running(PEERS["redis-stream"], WRITTEN) as (server, _):
        yield int(server.address.rpartition(":")[2]), lambda: server.started.usage().cpu_s


def _loaded(side: str, shape: _Shape, seconds: float) -> _Ran:
    requests = max(1_000, round(shape.requests_per_s * seconds))
    with _a_redis() if side == _REDIS else _a_fila() as (port, cpu_s):
        _asked(port, shape, requests // 10, _words(side))
        before_s = cpu_s()
        rate, p50_ms = _asked(port, shape, requests, _words(side))
        return _Ran(rate, p50_ms, (cpu_s() - before_s) * 1e6 / requests)


def _words(side: str) -> tuple[str, ...]:
    return _ADD if side == _REDIS else _PUSH


def _asked(port: int, shape: _Shape, requests: int, words: Sequence[str]) -> tuple[float, float]:
    """Run redis-benchmark; return its requests a second and their p50 in ms."""
    options = ["-h", "127.0.0.1", "-p", str(port), "-c", str(shape.connections), "-P", str(shape.pipeline)]
    done = subprocess.run(
        [_generator(), *options, "-n", str(requests), "--csv", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [row for row in csv.DictReader(done.stdout.splitlines()) if row.get("rps")]
    if done.returncode or not lines:
        raise RuntimeError(f"redis-benchmark failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return float(lines[-1]["rps"]), float(lines[-1]["p50_latency_ms"])


def _generator() -> str:
    """The installed one, or that which came with the unpacked redis-server."""
    found = shutil.which("redis-benchmark")
    return found or str(install.debian("redis-server") / "usr/bin/redis-benchmark")


@benchmark("redis-edges", "RPUSH of 100 B, os, by redis-benchmark, and redis-server's XADD, alternating")
def redis_edges(budget: Budget) -> Iterator[Finding]:
    seconds = budget.seconds / 4
    runs = in_turn({side: partial(_loaded, side, _SINGLE, seconds) for side in (_FILA, _REDIS)}, _ROUNDS)
    ratio = ratio_of([run.rate for run in runs[_REDIS]], [run.rate for run in runs[_FILA]])
    single = f"RPUSH, {_SINGLE.connections} connections, one at a time, os"
    yield _rate(single, None, runs)
    yield Finding(
        benchmark="redis-edges",
        case=f"{single} / redis-server XADD, appendfsync everysec, median of {ratio.pairs} rounds",
        value=ratio.median,
        unit="",
        reach=0.8,
        details={"90 % interval": ratio.interval, "floor": 0.5},
    )
    pipelined = in_turn({_FILA: partial(_loaded, _FILA, _PIPELINED, seconds)}, _ROUNDS)
    case = f"RPUSH, {_PIPELINED.connections} connections, pipelines of {_PIPELINED.pipeline}, os"
    yield _rate(case, 1_200_000, pipelined)


def _rate(case: str, reach: float | None, runs: dict[str, list[_Ran]]) -> Finding:
    details: dict[str, object] = {}
    for side, of in runs.items():
        prefix = "" if side == _FILA else f"{side} "
        if prefix:
            details[f"{side}/s"] = statistics.median(run.rate for run in of)
        details[f"{prefix}us/msg"] = statistics.median(run.server_us for run in of)
        details[f"{prefix}p50 ms"] = statistics.median(run.p50_ms for run in of)
    return Finding(
        benchmark="redis-edges",
        case=case,
        value=statistics.median(run.rate for run in runs[_FILA]),
        unit="msg/s",
        reach=reach,
        details=details,
    )
