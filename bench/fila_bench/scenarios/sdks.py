"""What the SDKs of Python, JavaScript and Java reach of what fila-load's bare frames reach, in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from fila_bench import go_load, sdk_load
from fila_bench.admin import Admin
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life
from fila_bench.scenarios.generators import measure_go
from fila_bench.server import Server

_ROUNDS = 3
_CALLERS = 200
_MILLION = 1_000_000
_REACH_BY_LANGUAGE = {"Python": 0.25, "JavaScript": 0.35, "Java": 0.5}


@benchmark(
    "sdks", "Python, JavaScript and Java against fila-load's bare frames: awaited calls, one call's latency"
)
def sdks(budget: Budget) -> Iterator[Finding]:
    go_load.build()
    yield from _awaited(budget)
    for language in _REACH_BY_LANGUAGE:
        yield _latency(language, budget)


@benchmark(
    "sdk-memory", "the heap of each SDK at 100,000 and at 1,000,000 messages, 200 calls awaited at a time"
)
def memory(budget: Budget) -> Iterator[Finding]:
    messages = min(_MILLION, budget.message_count)
    for language in _REACH_BY_LANGUAGE:
        report = _run(language, "awaited", messages=messages)
        yield Finding(
            benchmark="sdk-memory",
            case=f"{language}: live heap after {messages:,} messages / after a tenth of them",
            value=report["heap_last"] / report["heap_first"],
            unit="",
            details={"at a tenth": report["heap_first"], "at the end": report["heap_last"]},
        )


def _awaited(budget: Budget) -> Iterator[Finding]:
    bare: list[float] = []
    same_in_flight: list[float] = []
    rates: dict[str, list[float]] = {language: [] for language in _REACH_BY_LANGUAGE}
    us_by_language: dict[str, list[float]] = {language: [] for language in _REACH_BY_LANGUAGE}
    for _ in range(_ROUNDS):
        bare.append(measure_go(Life(), budget)[0]["acked_per_s"])
        same_in_flight.append(measure_go(Life(window_frames=2), budget)[0]["acked_per_s"])
        for language in _REACH_BY_LANGUAGE:
            # A JVM compiles for some seconds what others come with.
            report = _run(language, "awaited", warm_up_s=2 * budget.warm_up_s, seconds=budget.seconds)
            rates[language].append(report["acked_per_s"])
            us_by_language[language].append(report["cpu_s"] / report["seconds"] * 1e6 / report["acked_per_s"])
    yield Finding(
        benchmark="sdks",
        case=f"bare frames with {_CALLERS} messages unanswered / with 800: what any {_CALLERS} callers could reach",
        value=median(same_in_flight) / median(bare),
        unit="",
        details={f"{_CALLERS}/s": median(same_in_flight), "800/s": median(bare)},
    )
    for language, reach in _REACH_BY_LANGUAGE.items():
        yield Finding(
            benchmark="sdks",
            case=f"{language}: enqueue and ack awaited by {_CALLERS} callers each / bare frames, median of {_ROUNDS}",
            value=median(rates[language]) / median(bare),
            unit="",
            reach=reach,
            details={
                "SDK/s": median(rates[language]),
                "client us/msg": median(us_by_language[language]),
                "of 200 unanswered": median(rates[language]) / median(same_in_flight),
            },
        )


def _latency(language: str, budget: Budget) -> Finding:
    p50: dict[str, list[float]] = {"one": [], "stub": []}
    for round_ in range(_ROUNDS):
        for mode in ("one", "stub")[:: -1 if round_ % 2 else 1]:
            report = _run(language, mode, warm_up_s=budget.warm_up_s, seconds=budget.seconds / 2)
            p50[mode].append(report["p50_us"])
    return Finding(
        benchmark="sdks",
        case=f"{language}: one awaited enqueue at a time, p50 / a unary call of the stub, 1 KB, fsync",
        value=median(p50["one"]) / median(p50["stub"]),
        unit="",
        reach=1.15,
        better="less",
        details={"SDK us": median(p50["one"]), "stub us": median(p50["stub"])},
    )


def _run(
    language: str, mode: str, *, warm_up_s: float = 0, seconds: float = 0, messages: int = 0
) -> dict[str, float]:
    with Server(durability="fsync") as server:
        with Admin(server.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
        return sdk_load.run(
            language,
            server.address,
            QUEUE,
            mode,
            callers=_CALLERS,
            warm_up_s=warm_up_s,
            seconds=seconds,
            messages=messages,
        )
