"""What a consumer with all defaults does for its neighbours, and what that costs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from fila_bench import promises
from fila_bench.admin import Admin
from fila_bench.load import Load
from fila_bench.plan import ConsumerPlan
from fila_bench.prefetch_rates import Rates
from fila_bench.registry import Budget, Run, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, producer_plan
from fila_bench.server import Server

HANDLERS_S = (0.0, 0.001, 0.01, 0.1)


@benchmark(
    "consumer-slow", "200 messages of 1 s, one worker, all defaults, max_attempts 3: how many are acked"
)
def consumer_slow(budget: Budget) -> Iterator[Finding]:
    count = 200 if budget.seconds > 5 else 20
    with Server() as server:
        handled = asyncio.run(promises.slow_work(server.address, QUEUE, count=count, handler_s=1.0))
    yield Finding(
        benchmark="consumer-slow",
        case=f"{count} messages of 1 s, one worker",
        value=handled.acked,
        unit="acked",
        reach=count,
        details={"expired": handled.expired, "dead": handled.dead, "delivered twice": handled.twice},
    )


@benchmark("consumer-quiet", "how many others a worker of 20 ms begins before a quiet tenant's message")
def consumer_quiet(budget: Budget) -> Iterator[Finding]:
    rounds = 40 if budget.seconds > 5 else 10
    with Server() as server:
        others = asyncio.run(promises.quiet_tenant(server.address, QUEUE, rounds=rounds))
    yield Finding(
        benchmark="consumer-quiet",
        case=f"quiet tenant behind a noisy backlog, most of {rounds}",
        value=max(others),
        unit="others",
        reach=3,
        better="less",
        details={"median": sorted(others)[len(others) // 2]},
    )


@benchmark("consumer-share", "100 jobs of 50 ms, two workers, the second 0.3 s late; worst of several runs")
def consumer_share(budget: Budget) -> Iterator[Finding]:
    runs = 8 if budget.seconds > 5 else 2
    with Server() as server:
        counts = [asyncio.run(promises.two_workers(server.address, f"{QUEUE}-{run}")) for run in range(runs)]
    worst = min(counts, key=promises.share_of_the_smaller)
    yield Finding(
        benchmark="consumer-share",
        case=f"share of the worker that got less, worst of {runs}",
        value=promises.share_of_the_smaller(worst),
        unit="",
        reach=0.45,
        details={"all runs": ", ".join(":".join(map(str, both)) for both in counts)},
    )


@benchmark(
    "consumer-poison", "a message that kills its worker, among 1,000: how many others count an attempt"
)
def consumer_poison(budget: Budget) -> Iterator[Finding]:  # noqa: ARG001 - as above
    for after_s in (0.0, 0.005, 1.0):
        with Server() as server:
            saw = asyncio.run(promises.poison(server.address, QUEUE, count=1_000, after_s=after_s))
        yield Finding(
            benchmark="consumer-poison",
            case=f"it kills after {after_s * 1000:g} ms",
            value=saw.aged + len([payload for payload in saw.dead if payload != b"poison"]),
            unit="innocents",
            reach=0,
            better="less",
            details={"workers killed": saw.deaths, "its attempts": saw.attempts, "dead": len(saw.dead)},
        )


@benchmark("consumer-bimodal", "99 % of 1 ms, 1 % of 2 s, two workers: longest idle while messages are left")
def consumer_bimodal(budget: Budget) -> Iterator[Finding]:
    count = 2_000 if budget.seconds > 5 else 600
    with Server() as server:
        idle_s = asyncio.run(promises.bimodal(server.address, QUEUE, count=count))
    yield Finding(
        benchmark="consumer-bimodal",
        case=f"{count:,} messages",
        value=max(idle_s) * 1000,
        unit="ms",
        reach=250,
        better="less",
        details={"handled": len(idle_s)},
    )


@benchmark("consumer-cut", "a connection cut for 1 s inside a 20 s handler")
def consumer_cut(budget: Budget) -> Iterator[Finding]:
    handler_s = 20.0 if budget.seconds > 5 else 5.0
    with Server() as server:
        story = promises.cut_connection(server.address, QUEUE, handler_s=handler_s, cut_at_s=handler_s / 2)
        handled = asyncio.run(story)
    yield Finding(
        benchmark="consumer-cut",
        case=f"{handler_s:g} s handler, acked",
        value=handled.acked,
        unit="of 3",
        reach=3,
        details={"handled twice": handled.twice, "dead": handled.dead},
    )


def _prefetch(handler_s: float, workers: int) -> Run:
    def run(budget: Budget) -> Iterator[Finding]:
        rates = Rates(handler_s, workers, seconds=1.5 if budget.seconds > 5 else 0.5)
        with Server(durability="os") as server:
            asyncio.run(rates.measure(server.address, rounds=4 if budget.seconds > 5 else 2))
        yield Finding(
            benchmark="consumer-prefetch",
            case=f"auto / best, {handler_s * 1000:g} ms, {workers} workers",
            value=rates.auto_by_best,
            unit="",
            reach=0.95,
            details={
                "auto/s": rates.median("auto"),
                "best/s": rates.median(rates.best),
                "best": str(rates.best),
                "left out after a first run": ", ".join(
                    f"{size} ({rate:,.0f}/s)" for size, rate in rates.left_out.items()
                ),
            },
        )

    return run


for _workers in (1, 16):
    for _handler_s in HANDLERS_S:
        benchmark(
            f"consumer-prefetch/{_handler_s * 1000:g}ms-{_workers}",
            f"{_workers} workers of {_handler_s * 1000:g} ms: what `auto` handles, beside the best fixed prefetch",
        )(_prefetch(_handler_s, _workers))


@benchmark("begun", "full life with `begun` for every message, against without, runs alternating")
def begun(budget: Budget) -> Iterator[Finding]:
    rates: dict[bool, list[float]] = {False: [], True: []}
    for says_begun in (False, True, True, False, False, True):
        life = Life()
        with Server() as server:
            with Admin(server.address) as admin:
                admin.create(QUEUE, fairness_key_header="tenant")
            consumer = ConsumerPlan(address=server.address, queue=QUEUE, says_begun=says_begun)
            with Load([producer_plan(life, server.address)], [consumer]) as load:
                steady = load.measure(warm_up_s=budget.warm_up_s, seconds=budget.seconds)
        rates[says_begun].append(steady.acked_per_s)
    without, with_begun = (sorted(rates[says])[1] for says in (False, True))
    yield Finding(
        benchmark="begun",
        case="1 KB x 100, begun for every message / for none, median of 3",
        value=with_begun / without,
        unit="",
        reach=0.95,
        details={"with/s": with_begun, "without/s": without},
    )
