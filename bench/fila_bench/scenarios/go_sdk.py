"""What the Go SDK reaches of what the bare frames of fila-load reach, in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from fila_bench import go_load
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import Life
from fila_bench.scenarios.generators import measure_go

_ROUNDS = 3
_GOROUTINES = 200

_AWAITED: dict[str, str | float] = {"client": "sdk", "producers": _GOROUTINES, "consumers": _GOROUTINES}
_MANY: dict[str, str | float] = {"client": "sdk-many"}


@benchmark("go-sdk", "the Go SDK against fila-load's bare frames: awaited calls, batches, one call's latency")
def go_sdk(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    yield from _rates(budget)
    yield _latency(budget)
    yield _memory(budget)


def _rates(budget: Budget) -> Iterator[Finding]:
    flags_by_case: dict[str, dict[str, str | float]] = {"bare": {}, "awaited": _AWAITED, "many": _MANY}
    reports: dict[str, list[dict[str, Any]]] = {case: [] for case in flags_by_case}
    for round_ in range(_ROUNDS):
        # The order alternates, so that a machine that slows down is not charged to one of them.
        for case in list(flags_by_case)[:: -1 if round_ % 2 else 1]:
            reports[case].append(measure_go(Life(), budget, **flags_by_case[case])[0])
    rate = {case: median(report["acked_per_s"] for report in runs) for case, runs in reports.items()}
    cores = {
        case: median(report["cpu_s"] / report["seconds"] for report in runs) for case, runs in reports.items()
    }
    for case, text, reach in (
        ("awaited", f"Enqueue and Ack awaited by {_GOROUTINES} goroutines each / bare frames", 0.7),
        ("many", "EnqueueMany and batched acks / bare frames", 0.95),
    ):
        yield Finding(
            benchmark="go-sdk",
            case=f"{text}, {Life().case}, median of {_ROUNDS}",
            value=rate[case] / rate["bare"],
            unit="",
            reach=reach,
            details={
                "SDK/s": rate[case],
                "bare/s": rate["bare"],
                "client us/msg": cores[case] * 1e6 / max(1.0, rate[case]),
                "bare client": cores["bare"] * 1e6 / max(1.0, rate["bare"]),
            },
        )


def _latency(budget: Budget) -> Finding:
    p50: dict[str, list[float]] = {"unary": [], "sdk": []}
    for round_ in range(_ROUNDS):
        for client in ("unary", "sdk")[:: -1 if round_ % 2 else 1]:
            report, _ = measure_go(Life(batch=1), budget, client=client, producers=1, consumers=0)
            p50[client].append(report["enqueue_us"]["p50"])
    return Finding(
        benchmark="go-sdk",
        case="one awaited Enqueue at a time, p50 / a unary call of the stub, 1 KB, fsync",
        value=median(p50["sdk"]) / median(p50["unary"]),
        unit="",
        reach=1.15,
        better="less",
        details={"SDK us": median(p50["sdk"]), "stub us": median(p50["unary"])},
    )


def _memory(budget: Budget) -> Finding:
    report, _ = measure_go(Life(), budget, **_AWAITED)
    return Finding(
        benchmark="go-sdk",
        case=f"live heap at the end / at the beginning, {_GOROUTINES} goroutines each way",
        value=report["heap_last"] / report["heap_first"],
        unit="",
        details={
            "MiB": report["heap_last"] / (1 << 20),
            "messages": report["acked_per_s"] * report["seconds"],
        },
    )
