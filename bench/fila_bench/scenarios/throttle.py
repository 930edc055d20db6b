"""Token buckets: is the rate kept, does a long line cost more, does one destination hold up another?"""

from __future__ import annotations

import time
from collections.abc import Iterator

from fila_bench.admin import Admin
from fila_bench.callers import Callers, Listener, call, in_process, listen, percentile
from fila_bench.load import Load
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan, key_text
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE
from fila_bench.server import Server

_WINDOW_S = 10.0
_FILL_TIMEOUT_S = 120


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
                admin.set_config(f"throttle.{key_text(bucket)}", f"{rate_per_s},1")
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
    # One message and one burst may fall on either side of the window. Granted once and not to each bucket:
    # their sum should be better than each of them, and ten thousand such grants would hide everything.
    slack = 2.0
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


@benchmark("throttle-line", "cost of a token with 10 and 10,000 keys waiting in one bucket's line")
def line(budget: Budget) -> Iterator[Finding]:
    for weights, of in ((1, ""), (5, ", weights and costs of 1 to 5")):
        server_us: dict[int, float] = {}
        for keys in (10, 10_000):
            with Server() as server:
                with Admin(server.address) as admin:
                    admin.set_config("throttle.slow", "3000,100")
                    admin.create(
                        QUEUE,
                        fairness_key_header="tenant",
                        throttle_key_headers=["provider"],
                        weight_header="weight",
                        cost_header="cost",
                    )
                _fill(server, 100_000, keys=keys, provider="slow", weights=weights)
                with Load(consumers=[ConsumerPlan(address=server.address, queue=QUEUE)]) as load:
                    load.measure(warm_up_s=0, seconds=budget.warm_up_s)
                    cpu_s = server.cpu_s()
                    steady = load.measure(warm_up_s=0, seconds=budget.seconds)
                    cpu_s = server.cpu_s() - cpu_s
            delivered = max(1.0, steady.consumed_per_s * steady.seconds)
            server_us[keys] = cpu_s * 1e6 / delivered
            yield Finding(
                benchmark="throttle-line",
                case=f"{keys:,} keys behind one bucket of 3,000/s{of}",
                value=server_us[keys],
                unit="us of server CPU a delivery",
                details={"delivered/s": steady.consumed_per_s},
            )
        yield Finding(
            benchmark="throttle-line",
            case=f"10,000 keys / 10 keys{of}",
            value=server_us[10_000] / server_us[10],
            unit="",
            reach=1.25,
            better="less",
        )


@benchmark(
    "free-beside-throttled", "latency to a free destination beside 100,000 messages for a throttled one"
)
def free_beside_throttled(budget: Budget) -> Iterator[Finding]:
    p50_by_backlog: dict[int, float] = {}
    for backlog in (0, 100_000):
        with Server() as server:
            with Admin(server.address) as admin:
                admin.set_config("throttle.slow", "1,1")
                admin.create(QUEUE, fairness_key_header="tenant", throttle_key_headers=["provider"])
            if backlog:
                _fill(server, backlog, keys=1, provider="slow")
            heard = in_process(listen, Listener(address=server.address, queue=QUEUE, seconds=budget.seconds))
            # The same tenant, whose other messages all wait for the slow provider.
            headers = {"tenant": key_text(0), "provider": "free"}
            plan = Callers(
                address=server.address, queue=QUEUE, rate_per_s=300, seconds=budget.seconds, headers=headers
            )
            in_process(call, plan)()
            delays = sorted(heard())
        p50_by_backlog[backlog] = percentile(delays, 0.5) / 1e6
        yield Finding(
            benchmark="free-beside-throttled",
            case=f"{backlog:,} throttled messages of the same tenant",
            value=p50_by_backlog[backlog],
            unit="ms, p50",
            details={"p99 ms": percentile(delays, 0.99) / 1e6, "messages": len(delays)},
        )
    yield Finding(
        benchmark="free-beside-throttled",
        case="with / without the backlog",
        value=p50_by_backlog[100_000] / p50_by_backlog[0],
        unit="",
        reach=1.25,
        better="less",
    )


def _fill(server: Server, count: int, *, keys: int, provider: str, weights: int = 1) -> None:
    plan = ProducerPlan(
        address=server.address,
        queue=QUEUE,
        payload_bytes=64,
        keys=keys,
        message_count=count,
        extra_headers={"provider": provider},
        weights=weights,
    )
    with Load([plan]) as load:
        load.wait_for(Counter.PRODUCED, count, timeout_s=_FILL_TIMEOUT_S)
