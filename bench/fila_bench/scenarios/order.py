"""What strict order of a key costs a drain, and what it costs to take one of many messages back."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

from fila.v1 import admin_pb2, messages_pb2
from fila_bench.admin import Admin
from fila_bench.callers import percentile
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.plan import key_text
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.backlog import DRAIN_PAIRS, drained, fill
from fila_bench.server import Server

_QUEUE = "bench"
_KEYS = 1_000
_ROUNDS, _CALLS_OF_A_ROUND = 15, 200


@benchmark(
    "order",
    "64 B messages waiting under 1,000,000 keys: a drain in strict order of a key against one without",
)
def order(budget: Budget) -> Iterator[Finding]:
    many = budget.message_count
    sides = {
        "relaxed": partial(drained, many, many),
        "strict": partial(drained, many, many, key_order=admin_pb2.KEY_ORDER_STRICT),
    }
    found = in_turn(sides, DRAIN_PAIRS if budget.seconds > 4 else 3)
    ratio = ratio_of([run.rate for run in found["relaxed"]], [run.rate for run in found["strict"]])
    for side, runs in found.items():
        yield Finding(
            benchmark="order",
            case=f"{side}, {many:,} keys, median of {ratio.pairs}",
            value=statistics.median(run.rate for run in runs),
            unit="msg/s",
            details={"server us/msg": statistics.median(run.server_us for run in runs)},
        )
    yield Finding(
        benchmark="order",
        case=f"strict / relaxed, {many:,} keys, median of {ratio.pairs} pairs",
        value=ratio.median,
        unit="",
        reach=0.9,
        high=ratio.high,
        details={"90 % interval": ratio.interval},
    )


@benchmark(
    "cancel", "one of 1,000,000 waiting messages is taken back, against one ack: p99 of unary calls, fsync"
)
def cancel(budget: Budget) -> Iterator[Finding]:
    many = budget.message_count
    calls = _ROUNDS * _CALLS_OF_A_ROUND
    with Server() as server, Admin(server.address) as admin:
        admin.create(_QUEUE, fairness_key_header="tenant", visibility_timeout_ms=3_600_000)
        fill(server, message_count=many // 2, payload_bytes=64, keys=_KEYS)
        ids = admin.enqueue_many(_QUEUE, (({"tenant": key_text(i % _KEYS)}, bytes(64)) for i in range(calls)))
        fill(server, message_count=many - many // 2 - calls, payload_bytes=64, keys=_KEYS)
        to_cancel, leased = iter(ids), iter(_leased(admin, calls))
        sides = {
            "ack": partial(_p99_ms, lambda: admin.ack(_QUEUE, next(leased))),
            "cancel": partial(_p99_ms, lambda: admin.cancel(_QUEUE, next(to_cancel))),
        }
        found = in_turn(sides, _ROUNDS)
    ratio = ratio_of(found["ack"], found["cancel"])
    for side, runs in found.items():
        yield Finding(
            benchmark="cancel",
            case=f"{side}, {many:,} waiting: p99, median of {ratio.pairs} rounds",
            value=statistics.median(runs),
            unit="ms",
            better="less",
            details={"calls": calls},
        )
    yield Finding(
        benchmark="cancel",
        case=f"cancel / ack, {many:,} waiting: p99, median of {ratio.pairs} rounds",
        value=ratio.median,
        unit="",
        reach=1.5,
        better="less",
        details={"90 % interval": ratio.interval},
    )


def _leased(admin: Admin, count: int) -> list[messages_pb2.Message]:
    found: list[messages_pb2.Message] = []
    while len(found) < count:
        found += admin.lease(_QUEUE, min(1_000, count - len(found)))
    return found


def _p99_ms(one_call: Callable[[], None]) -> float:
    took_ns = []
    for _ in range(_CALLS_OF_A_ROUND):
        began_ns = time.perf_counter_ns()
        one_call()
        took_ns.append(time.perf_counter_ns() - began_ns)
    return percentile(sorted(took_ns), 0.99) / 1e6
