"""Limits: what four of them cost a message, what names of one pattern cost, and a flood of names."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from fila.v1 import limit_pb2
from fila_bench.admin import Admin
from fila_bench.load import Load
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan, key_text
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, measure_life
from fila_bench.server import Server

_ROUNDS = 5
_PAIRS = 3
_NAMES = {"provider": "rate", "account": "slots", "project": "budget", "model": "rate-too"}
"""Headers, and the limits that they name. None of these ever holds anything: they judge and take."""
_PER_KEY = 20
_NAMES_A_SECOND = 1_000_000 / 60
_FLOOD_FACTOR = 1.2
_TIMEOUT_S = 300


def _limit(name: str) -> limit_pb2.Limit:
    if name == "slots":
        return limit_pb2.Limit(name=name, max_in_flight=1_000_000)
    if name == "budget":
        return limit_pb2.Limit(
            name=name,
            budget=limit_pb2.Budget(amount=1e12, period_ms=86_400_000, unit=limit_pb2.Limit.UNIT_MESSAGES),
        )
    return limit_pb2.Limit(
        name=name, rates=[limit_pb2.Rate(per_second=1e9, burst=1e9, unit=limit_pb2.Limit.UNIT_MESSAGES)]
    )


@benchmark("limits", "server CPU a message that names four limits, and of one that names one")
def limits(budget: Budget) -> Iterator[Finding]:
    """Both send the same headers; the queue reads one of them, or all."""

    def run(count: int) -> float:
        def prepare(server: Server) -> None:
            with Admin(server.address) as admin:
                for name in _NAMES.values():
                    admin.set_limit(_limit(name))

        config: dict[str, object] = {"throttle_key_headers": list(_NAMES)[:count]}
        return measure_life(
            Life(payload_bytes=64, extra_headers=_NAMES), budget, queue_config=config, prepare=prepare
        )[1]

    found = in_turn({"none": lambda: run(0), "one": lambda: run(1), "four": lambda: run(4)}, _ROUNDS)
    for side, us in found.items():
        yield Finding(
            benchmark="limits",
            case=f"{side}, 64 B, batch 100, fsync",
            value=statistics.median(us),
            unit="us of server CPU",
        )
    for other, reach in (("one", 1.5), ("none", None)):
        ratio = ratio_of(found[other], found["four"])
        yield Finding(
            benchmark="limits",
            case=f"four (rate, slots, budget, rate) / {other}, median of {_ROUNDS} rounds",
            value=ratio.median,
            unit="",
            reach=reach,
            better="less",
            details={"90 % interval": ratio.interval},
        )


@benchmark(
    "limits-pattern", "server CPU a message: many names of one pattern / a hundredth of them, each registered"
)
def pattern(budget: Budget) -> Iterator[Finding]:
    """Of each name 20 messages or more; both sides let the same number go in all, and have all of it waiting."""
    many = max(10_000, budget.message_count // 10)
    few = many // 100
    count = many * _PER_KEY
    rate_per_s = 40_000.0

    def run(keys: int) -> float:
        with Server() as server:
            with Admin(server.address) as admin:
                each = limit_pb2.Rate(
                    per_second=rate_per_s / keys, burst=max(1.0, rate_per_s / keys / 10), unit="UNIT_MESSAGES"
                )
                for name in ["k*"] if keys == many else map(key_text, range(keys)):
                    admin.set_limit(limit_pb2.Limit(name=name, rates=[each]))
                admin.create(QUEUE, fairness_key_header="tenant", throttle_key_headers=["tenant"])
            cpu_s = server.cpu_s()
            plan = ProducerPlan(
                address=server.address, queue=QUEUE, payload_bytes=64, keys=keys, message_count=count
            )
            with Load([plan]) as load:
                load.wait_for(Counter.PRODUCED, count, timeout_s=_TIMEOUT_S)
            with Load(consumers=[ConsumerPlan(address=server.address, queue=QUEUE)]) as load:
                load.wait_for(Counter.ACKED, count * 9 // 10, timeout_s=_TIMEOUT_S)
                acked = load.total(Counter.ACKED)
                cpu_s = server.cpu_s() - cpu_s
            return cpu_s * 1e6 / acked

    found = in_turn({"registered": lambda: run(few), "pattern": lambda: run(many)}, _PAIRS)
    for side, keys in (("registered", few), ("pattern", many)):
        yield Finding(
            benchmark="limits-pattern",
            case=f"{keys:,} names, {side}, {rate_per_s:,.0f} messages/s in all, {count:,} messages",
            value=statistics.median(found[side]),
            unit="us of server CPU",
        )
    ratio = ratio_of(found["registered"], found["pattern"])
    yield Finding(
        benchmark="limits-pattern",
        case=f"{many:,} names of a pattern / {few:,} registered, median of {_PAIRS} pairs",
        value=ratio.median,
        unit="",
        reach=1.2,
        better="less",
        details={"90 % interval": ratio.interval},
    )


@benchmark(
    "limits-flood",
    "a pattern that meets more than a million names a minute: memory, and a quiet caller's wait",
)
def flood(budget: Budget) -> Iterator[Finding]:
    """Each message names the next of many names, which come round again, and is acked at once. A name has used some of
    its rate, so the broker keeps it until it is full again: here for ten seconds."""
    seconds = 6 * budget.seconds
    names = int(_NAMES_A_SECOND * _FLOOD_FACTOR * (seconds + budget.warm_up_s))
    with Server() as server:
        with Admin(server.address) as admin:
            admin.set_limit(
                limit_pb2.Limit(
                    name="k*",
                    rates=[limit_pb2.Rate(per_second=0.1, burst=1_000, unit=limit_pb2.Limit.UNIT_MESSAGES)],
                )
            )
            admin.create(QUEUE, fairness_key_header="tenant", throttle_key_headers=["tenant"])
            plan = ProducerPlan(address=server.address, queue=QUEUE, payload_bytes=64, keys=names, batch=100)
            consumer = ConsumerPlan(address=server.address, queue=QUEUE)
            waits_ms: list[float] = []
            kept: list[int] = []
            resident: list[int] = []
            with Load([plan], [consumer]) as load:
                first = load.total(Counter.ACKED)
                began = time.monotonic()
                while time.monotonic() - began < seconds:
                    asked = time.monotonic()
                    kept.append(admin.limit_state("k*").throttle_keys)
                    waits_ms.append((time.monotonic() - asked) * 1000)
                    resident.append(server.resident_bytes())
                    time.sleep(0.02)
                met = load.total(Counter.ACKED) - first
                seconds = time.monotonic() - began
        waits_ms.sort()
        yield Finding(
            benchmark="limits-flood",
            case=f"{names:,} names, {met / seconds * 60:,.0f} messages a minute",
            value=max(resident) / 1e6,
            unit="MB at most",
            better="less",
            details={
                "MB in the middle": resident[len(resident) // 2] / 1e6,
                "names kept at most": max(kept),
                "an answer ms, p50": statistics.median(waits_ms),
                "p99": waits_ms[len(waits_ms) * 99 // 100],
                "the longest": waits_ms[-1],
            },
        )
