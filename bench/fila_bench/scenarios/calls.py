"""What a caller of the simple API waits for: unary enqueues, and the way from producer to consumer."""

from __future__ import annotations

from collections.abc import Iterator

from fila_bench.admin import Admin
from fila_bench.callers import Callers, Listener, call, in_process, listen, percentile
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server

_QUEUE = "bench"


@benchmark("unary", "unary Enqueue, 1 KB, fsync: 1 and 50 callers")
def unary(budget: Budget) -> Iterator[Finding]:
    for callers, reach in ((1, None), (50, 5_000)):
        with Server() as server:
            with Admin(server.address) as admin:
                admin.create(_QUEUE, fairness_key_header="tenant")
            plan = Callers(address=server.address, queue=_QUEUE, callers=callers, seconds=budget.seconds)
            cpu_s = server.cpu_s()
            calls = in_process(call, plan)()
            cpu_s = server.cpu_s() - cpu_s
        took = sorted(took_ns for _, took_ns in calls)
        yield Finding(
            benchmark="unary",
            case=f"{callers} caller{'s' if callers > 1 else ''}",
            value=len(calls) / budget.seconds,
            unit="msg/s",
            reach=reach,
            details={
                "p50 ms": percentile(took, 0.5) / 1e6,
                "p99 ms": percentile(took, 0.99) / 1e6,
                # The warm-up's calls are in the time and, at the same rate, in the count.
                "server us/call": cpu_s * 1e6 / (len(calls) * (1 + plan.warm_up_s / plan.seconds)),
            },
        )


@benchmark("latency", "enqueue to delivery at 500 msg/s, unary, fsync")
def latency(budget: Budget) -> Iterator[Finding]:
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(_QUEUE, fairness_key_header="tenant")
        heard = in_process(listen, Listener(address=server.address, queue=_QUEUE, seconds=budget.seconds))
        said = in_process(
            call, Callers(address=server.address, queue=_QUEUE, rate_per_s=500, seconds=budget.seconds)
        )
        calls, delays = said(), sorted(heard())
    answers = sorted(took_ns for _, took_ns in calls)
    for share, reach in ((0.5, 1.5), (0.99, 6.0)):
        yield Finding(
            benchmark="latency",
            case=f"enqueue to delivery, p{share * 100:.0f}",
            value=percentile(delays, share) / 1e6,
            unit="ms",
            reach=reach,
            better="less",
            details={"messages": len(delays), "answer ms": percentile(answers, share) / 1e6},
        )
