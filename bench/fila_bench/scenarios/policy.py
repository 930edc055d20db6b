"""What hooks, throttles and telemetry take from a full life, and whether rates are kept."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fila_bench.admin import Admin
from fila_bench.load import Load
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, measure_life
from fila_bench.server import Server

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
_WINDOW_S = 10.0


@benchmark("hooks", "full life with a realistic on_enqueue script against without")
def hooks(budget: Budget) -> Iterator[Finding]:
    without, _ = measure_life(Life(), budget)
    with_script, server_us = measure_life(Life(), budget, queue_config={"on_enqueue_script": _SCRIPT})
    yield Finding(
        benchmark="hooks",
        case="with / without, 1 KB, batch 100, fsync",
        value=with_script.acked_per_s / without.acked_per_s,
        unit="",
        reach=0.6,
        details={
            "with/s": with_script.acked_per_s,
            "without/s": without.acked_per_s,
            "server us/msg": server_us,
        },
    )


@benchmark("telemetry", "full life with metrics and OTLP on against off, runs alternating")
def telemetry(budget: Budget) -> Iterator[Finding]:
    rates: dict[bool, list[float]] = {False: [], True: []}
    for on in (False, True, True, False, False, True):
        # Nobody listens at that address: an absent collector is the harder case.
        if on:
            steady, _ = measure_life(
                Life(),
                budget,
                metrics=True,
                telemetry__otlp_endpoint="http://127.0.0.1:9",
                telemetry__metrics_interval_ms=1_000,
            )
        else:
            steady, _ = measure_life(Life(), budget)
        rates[on].append(steady.acked_per_s)
    on_rate, off_rate = (sorted(rates[on])[1] for on in (True, False))
    yield Finding(
        benchmark="telemetry",
        case="on / off, 1 KB, batch 100, fsync, median of 3",
        value=on_rate / off_rate,
        unit="",
        reach=0.97,
        details={"on/s": on_rate, "off/s": off_rate},
    )


@benchmark("throttle", "delivered rate against the configured one, 10 s windows, 1 / 100 / 10,000 buckets")
def throttle(budget: Budget) -> Iterator[Finding]:
    for busy in (False, True):
        for buckets, rate_per_s in ((1, 400.0), (100, 20.0), (10_000, 0.2)):
            yield _throttled(budget, buckets, rate_per_s, busy=busy)


def _throttled(budget: Budget, buckets: int, rate_per_s: float, *, busy: bool) -> Finding:
    """Let every bucket be the only limit of its key, with a backlog it cannot empty, and count 10 s."""
    backlog = max(buckets * 8, int(buckets * rate_per_s * (_WINDOW_S + 10)))
    with Server() as server:
        with Admin(server.address) as admin:
            for bucket in range(buckets):
                admin.set_config(f"throttle.tenant:k{bucket}", f"{rate_per_s},1")
            admin.create(QUEUE, fairness_key_header="tenant", throttle_key_headers=["tenant"])
            if busy:
                admin.create("other", fairness_key_header="tenant")
        feed = ProducerPlan(
            address=server.address, queue=QUEUE, payload_bytes=64, keys=buckets, message_count=backlog
        )
        with Load([feed]) as filling:
            filling.wait_for(Counter.PRODUCED, backlog, timeout_s=120)
        producer = ProducerPlan(address=server.address, queue="other")
        consumer = ConsumerPlan(address=server.address, queue="other")
        noise = Load([producer], [consumer]) if busy else Load()
        with noise, Load(consumers=[ConsumerPlan(address=server.address, queue=QUEUE)]) as load:
            time.sleep(budget.warm_up_s)
            began, first = time.monotonic(), load.total(Counter.CONSUMED)
            time.sleep(_WINDOW_S)
            seconds, gained = time.monotonic() - began, load.total(Counter.CONSUMED) - first
            noise.check()
    wanted = buckets * rate_per_s * seconds
    # One message and one burst may fall on either side of the window, for each bucket.
    slack = 2.0 * buckets
    off = max(0.0, abs(gained - wanted) - slack) / wanted
    return Finding(
        benchmark="throttle",
        case=f"{buckets:,} buckets of {rate_per_s:g}/s, broker {'saturated' if busy else 'idle'}",
        value=off * 100,
        unit="% beyond burst and one message",
        reach=1.0,
        better="less",
        details={"delivered": gained, "configured": wanted, "error %": (gained / wanted - 1) * 100},
    )
