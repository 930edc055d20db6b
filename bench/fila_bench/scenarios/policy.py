"""What hooks and telemetry take from a full life, and whether a retry comes when it should."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace

from fila_bench.admin import Admin
from fila_bench.metrics import quantile
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, measure_life
from fila_bench.server import Server

_TELEMETRY_ROUNDS = 6

_SCRIPT = """
function on_enqueue(msg)
  local tenant = msg.headers["tenant"]
  local weight = msg.headers["priority"] == "high" and 5 or 1
  return {
    fairness_key = tenant,
    weight = weight,
    throttle_keys = { "tenant:" .. tenant, "provider:" .. (msg.headers["provider"] or "none") },
  }
end
"""


@benchmark(
    "hooks", "full life with a realistic on_enqueue script against without, runs alternating; a call's time"
)
def hooks(budget: Budget) -> Iterator[Finding]:
    rates: dict[bool, list[float]] = {False: [], True: []}
    cpu_us: dict[bool, list[float]] = {False: [], True: []}
    for scripted in (False, True, True, False, False, True):
        config: dict[str, object] = {"on_enqueue_script": _SCRIPT} if scripted else {}
        steady, server_us = measure_life(Life(), budget, queue_config=config)
        rates[scripted].append(steady.acked_per_s)
        cpu_us[scripted].append(server_us)
    with_rate, without_rate = (statistics.median(rates[scripted]) for scripted in (True, False))
    yield Finding(
        benchmark="hooks",
        case="with / without, 1 KB, batch 100, fsync, median of 3",
        value=with_rate / without_rate,
        unit="",
        reach=0.6,
        details={
            "with/s": with_rate,
            "without/s": without_rate,
            "server us/msg": statistics.median(cpu_us[True]),
            "without it": statistics.median(cpu_us[False]),
        },
    )
    pages: list[str] = []
    measure_life(
        Life(),
        budget,
        queue_config={"on_enqueue_script": _SCRIPT},
        look=lambda server: pages.append(server.metrics_page()),
        metrics=True,
    )
    for share, reach in ((0.5, None), (0.99, 25)):
        bound_s, calls = quantile(pages[0], "fila_hook_duration_seconds", share)
        yield Finding(
            benchmark="hooks",
            case=f"a call of on_enqueue under full load, p{share * 100:.0f} at most",
            value=bound_s * 1e6,
            unit="us",
            reach=reach,
            better="less",
            details={"calls": calls},
        )


@benchmark("telemetry", "full life with metrics and OTLP on against off, runs alternating")
def telemetry(budget: Budget) -> Iterator[Finding]:
    rates: dict[bool, list[float]] = {False: [], True: []}
    cpu_us: dict[bool, list[float]] = {False: [], True: []}
    # What is looked for is smaller than what one run differs from the next: so many runs, half as long.
    shorter = replace(budget, seconds=budget.seconds / 2)
    for on in (False, True, True, False) * _TELEMETRY_ROUNDS:
        # Nobody listens at that address: an absent collector is the harder case.
        if on:
            steady, server_us = measure_life(
                Life(),
                shorter,
                metrics=True,
                telemetry__otlp_endpoint="http://127.0.0.1:9",
                telemetry__metrics_interval_ms=1_000,
            )
        else:
            steady, server_us = measure_life(Life(), shorter)
        rates[on].append(steady.acked_per_s)
        cpu_us[on].append(server_us)
    on_rate, off_rate = (statistics.mean(rates[on]) for on in (True, False))
    errors = [
        statistics.stdev(rates[on]) / len(rates[on]) ** 0.5 / statistics.mean(rates[on]) for on in rates
    ]
    yield Finding(
        benchmark="telemetry",
        case=f"on / off, 1 KB, batch 100, fsync, means of {2 * _TELEMETRY_ROUNDS}",
        value=on_rate / off_rate,
        unit="",
        reach=0.97,
        details={
            "standard error": math.hypot(*errors),
            "on/s": on_rate,
            "off/s": off_rate,
            "server us/msg": statistics.mean(cpu_us[True]),
            "off": statistics.mean(cpu_us[False]),
        },
    )


@benchmark("retry-delay", "how late a message comes back that was nacked with a delay, at light load")
def retry_delay(_budget: Budget) -> Iterator[Finding]:
    delay_ms, late_ms = 100, []
    with Server() as server, Admin(server.address) as admin:
        admin.create(QUEUE, max_attempts=0)
        admin.enqueue(QUEUE, {}, b"x")
        message = admin.lease(QUEUE, 1)[0]
        for _ in range(50):
            began = time.monotonic()
            admin.nack(QUEUE, message, delay_ms=delay_ms)
            message = admin.lease(QUEUE, 1, wait_ms=10_000)[0]
            late_ms.append((time.monotonic() - began) * 1e3 - delay_ms)
    late_ms.sort()
    yield Finding(
        benchmark="retry-delay",
        case=f"{delay_ms} ms asked for, the latest of {len(late_ms)}",
        value=late_ms[-1],
        unit="ms late",
        reach=5,
        better="less",
        details={"p50 ms": late_ms[len(late_ms) // 2], "earliest ms": late_ms[0]},
    )
