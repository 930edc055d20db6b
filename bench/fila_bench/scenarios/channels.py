"""One stored payload, several views: what each further channel costs the producer."""

from __future__ import annotations

from collections.abc import Iterator

from fila_bench.admin import Admin
from fila_bench.load import Load
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, producer_plan
from fila_bench.server import Server


@benchmark("channels", "enqueue throughput with 1, 2, 4 and 8 channels")
def channels(budget: Budget) -> Iterator[Finding]:
    alone = 0.0
    for count in (1, 2, 4, 8):
        with Server() as server:
            with Admin(server.address) as admin:
                names = [f"channel-{number}" for number in range(count)]
                admin.create(QUEUE, fairness_key_header="tenant", channels=names)
            with Load([producer_plan(Life(), server.address)]) as load:
                rate = load.measure(warm_up_s=budget.warm_up_s, seconds=budget.seconds).produced_per_s
        alone = alone or rate
        yield Finding(
            benchmark="channels", case=f"{count} channels, 1 KB, batch 100, fsync", value=rate, unit="msg/s"
        )
    yield Finding(benchmark="channels", case="8 channels / 1 channel", value=rate / alone, unit="", reach=0.7)
