"""Calls, latency and full lives through the edge, by one compiled client, beside the server of an older commit, whose
edge was grpc's own server in Python."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fila_bench import device, go_load
from fila_bench.against import BASELINE, server_of
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server

_QUEUE = "bench"
_ROUNDS = 3
_MEDIAN = f"median of {_ROUNDS} rounds"
_WARM_UP_S = 1.0
_CALLS_PER_S = 500
_METHOD = (
    "Load: fila-load, one process in Go; in full lives `window` frames are under way, more than in those of "
    f"[full-life](#full-life). Every case ran {_ROUNDS} times a side, in turn. All figures of a rate's line, and "
    '`us/msg` wherever it stands, are of the run with the middle rate; other figures of a case that says "median" are '
    "medians of their own."
)
_FILA, _OLDER = "fila", f"commit {BASELINE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """What one run of fila-load found."""

    rate: float
    """Of a full life the messages acked a second, else those enqueued."""

    enqueue_ms: tuple[float, float]
    """From the call to its answer: p50 and p99."""

    delivery_ms: tuple[float, float] | None
    server_us: float
    """CPU time a message, as the client's."""

    client_us: float
    client_cores: float
    sync_ms: float = 0.0
    """What the device took for one sync at that time; 0 where nothing waits for it."""

    @property
    def details(self) -> dict[str, object]:
        told: dict[str, object] = {"server us/msg": self.server_us, "client us/msg": self.client_us}
        told["client cores"] = self.client_cores
        return {**told, "device sync ms": self.sync_ms} if self.sync_ms else told


def _server(side: str, durability: str) -> Server:
    if side == _OLDER:
        return Server(durability=durability, program=server_of(BASELINE))
    return Server(durability=durability)


def _drive(server: Server, seconds: float, sync_ms: float, **flags: str | float) -> Driven:
    report = go_load.run(
        server.address,
        queue=_QUEUE,
        server_pid=server.pid,
        warm_up=f"{min(seconds, _WARM_UP_S)}s",
        duration=f"{seconds}s",
        **flags,
    )
    if report["refused"] or report["settle_failed"]:
        raise go_load.GoLoadFailed(f"refused {report['refused']} messages, {report['settle_failed']} acks")
    rate = report["acked_per_s"] or report["produced_per_s"]
    messages = max(1.0, rate * report["seconds"])
    delivery = report.get("delivery_us")
    return Driven(
        rate=rate,
        enqueue_ms=(report["enqueue_us"]["p50"] / 1e3, report["enqueue_us"]["p99"] / 1e3),
        delivery_ms=(delivery["p50"] / 1e3, delivery["p99"] / 1e3) if delivery else None,
        server_us=report["server_cpu_s"] * 1e6 / messages,
        client_us=report["cpu_s"] * 1e6 / messages,
        client_cores=report["cpu_s"] / report["seconds"],
        sync_ms=sync_ms,
    )


def _sync_ms(server: Server, durability: str) -> float:
    return device.sync_ms(server.data_dir) if durability == "fsync" else 0.0


def _middle(runs: Sequence[Driven]) -> Driven:
    """The run of the median rate, so that all figures of a line are of one run."""
    return sorted(runs, key=lambda run: run.rate)[len(runs) // 2]


def _against(case: str, reach: float | None, old: Sequence[Driven], new: Sequence[Driven]) -> Finding:
    ratio = ratio_of([run.rate for run in old], [run.rate for run in new])
    return Finding(
        benchmark="edges",
        case=f"{case}, median of {ratio.pairs} rounds",
        value=ratio.median,
        unit="",
        reach=reach,
        details={
            "90 % interval": ratio.interval,
            "fila/s": statistics.median(run.rate for run in new),
            "the other's/s": statistics.median(run.rate for run in old),
            "server us/msg": _middle(new).server_us,
            "the other's us/msg": _middle(old).server_us,
        },
    )


# --- unary calls ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Calls:
    one: Driven
    fifty: Driven


def _calls(side: str, durability: str, seconds: float) -> _Calls:
    with _server(side, durability) as server:
        before_ms = _sync_ms(server, durability)
        one = _drive(server, seconds, before_ms, client="unary", producers=1, consumers=0)
        # What the disk takes changes by the second, and this run is held against it.
        after_ms = _sync_ms(server, durability)
        fifty = _drive(server, seconds, after_ms, client="unary", producers=50, consumers=0)
        return _Calls(replace(one, sync_ms=(before_ms + after_ms) / 2), fifty)


@benchmark("edges/unary", "unary Enqueue, 1 KB, 50 callers and 1, by fila-load, runs alternating", _METHOD)
def unary(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    for durability, reach in (("fsync", 30_000), ("os", 40_000)):
        sides = {side: partial(_calls, side, durability, budget.seconds / 4) for side in (_FILA, _OLDER)}
        runs = in_turn(sides, _ROUNDS)
        fifty = {side: [run.fifty for run in runs[side]] for side in sides}
        yield _rate(f"50 callers, {durability}", reach, fifty)
        yield _against(f"50 callers, {durability}: fila / {_OLDER}", 6, fifty[_OLDER], fifty[_FILA])
        one = {side: [run.one for run in runs[side]] for side in sides}
        yield _rate(f"1 caller, {durability}", 10_000 if durability == "os" else None, one)
        if durability == "fsync":
            yield _beyond_the_sync(one)


def _rate(case: str, reach: float | None, runs: dict[str, list[Driven]]) -> Finding:
    ours = _middle(runs[_FILA])
    details: dict[str, object] = {
        "p50 ms": ours.enqueue_ms[0],
        "p99 ms": ours.enqueue_ms[1],
        **ours.details,
    }
    details |= {f"{side}/s": _middle(others).rate for side, others in runs.items() if side != _FILA}
    return Finding(benchmark="edges", case=case, value=ours.rate, unit="msg/s", reach=reach, details=details)


def _beyond_the_sync(runs: dict[str, list[Driven]]) -> Finding:
    """Of each run its own device's sync is taken off: that time is the disk's, and changes by the minute."""
    beyond = {side: [run.enqueue_ms[0] - run.sync_ms for run in of] for side, of in runs.items()}
    return Finding(
        benchmark="edges",
        case=f"1 caller, fsync: p50 beyond one device sync, {_MEDIAN}",
        value=statistics.median(beyond[_FILA]),
        unit="ms",
        reach=0.15,
        better="less",
        details={
            "p50 ms": statistics.median(run.enqueue_ms[0] for run in runs[_FILA]),
            "device sync ms": statistics.median(run.sync_ms for run in runs[_FILA]),
            **{side: statistics.median(of) for side, of in beyond.items() if side != _FILA},
        },
    )


# --- from enqueue to delivery -----------------------------------------------------------------


def _paced(seconds: float) -> Driven:
    with _server(_FILA, "fsync") as server:
        # Several producers, so that one slow answer does not hold up the next call.
        return _drive(
            server, seconds, _sync_ms(server, "fsync"), client="unary", producers=4, rate=_CALLS_PER_S
        )


@benchmark(
    "edges/latency",
    "enqueue to delivery at 500 msg/s, one a call, fsync, by fila-load",
    _METHOD,
)
def latency(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    runs = [_paced(budget.seconds / 2) for _ in range(_ROUNDS)]
    for place, (name, reach) in enumerate((("p50", 0.45), ("p99", 1.2))):
        yield Finding(
            benchmark="edges",
            case=f"enqueue to delivery at {_CALLS_PER_S} msg/s, one a call, fsync: {name}, {_MEDIAN}",
            value=statistics.median(run.delivery_ms[place] for run in runs if run.delivery_ms),
            unit="ms",
            reach=reach,
            better="less",
            details={
                "answer ms": statistics.median(run.enqueue_ms[place] for run in runs),
                "device sync ms": statistics.median(run.sync_ms for run in runs),
            },
        )


# --- full lives -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Life:
    batch: int
    reach: float
    floor: float = 0.0
    server_us_reach: float | None = None
    sides: tuple[str, ...] = (_FILA,)
    window: int
    """Frames under way: enough that neither side waits for a sync that is under way with nothing to do."""

    @property
    def case(self) -> str:
        return f"full life, 1 KB, batch {self.batch}{' streamed' if self.batch == 1 else ''}, fsync"


_LIVES = (
    _Life(batch=1, window=256, reach=30_000, floor=15_000, server_us_reach=25),
    _Life(batch=10, window=64, reach=120_000),
    _Life(batch=100, window=16, reach=300_000, server_us_reach=3, sides=(_FILA, _OLDER)),
)


def _lived(side: str, life: _Life, seconds: float) -> Driven:
    with _server(side, "fsync") as server:
        sync_ms = _sync_ms(server, "fsync")
        return _drive(server, seconds, sync_ms, client="bare", batch=life.batch, window=life.window)


@benchmark(
    "edges/life", "full life, 1 KB, fsync, batches of 1, 10 and 100, by fila-load, runs alternating", _METHOD
)
def life(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    for shape in _LIVES:
        runs = in_turn(
            {side: partial(_lived, side, shape, budget.seconds / 2) for side in shape.sides}, _ROUNDS
        )
        ours = _middle(runs[_FILA])
        yield Finding(
            benchmark="edges",
            case=shape.case,
            value=ours.rate,
            unit="msg/s",
            reach=shape.reach,
            details={
                **({"floor": shape.floor} if shape.floor else {}),
                **ours.details,
                "window": shape.window,
                **{f"{side}/s": _middle(of).rate for side, of in runs.items() if side != _FILA},
            },
        )
        if shape.server_us_reach is not None:
            yield Finding(
                benchmark="edges",
                case=f"{shape.case}: server CPU a message, {_MEDIAN}",
                value=statistics.median(run.server_us for run in runs[_FILA]),
                unit="us",
                reach=shape.server_us_reach,
                better="less",
                details={
                    side: statistics.median(run.server_us for run in runs[side]) for side in shape.sides[1:]
                },
            )
        if _OLDER in runs:
            yield _against(f"{shape.case}: fila / {_OLDER}", 1.0, runs[_OLDER], runs[_FILA])
