"""The queue as a log: what further channels cost, how fast a seek is, and whether disk comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import grpc

from fila.v1 import service_pb2, service_pb2_grpc
from fila_bench.admin import Admin
from fila_bench.load import Load
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.scenarios.full_life import QUEUE, Life, producer_plan
from fila_bench.server import Server

_LONG_S = 600
_SETTLE_S = 5
_DELAYED_EVERY_S = 0.02


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


@benchmark("seek", "back to the first of 1,000,000 retained messages: time to the first delivery")
def seek(budget: Budget) -> Iterator[Finding]:
    count = budget.message_count
    with Server(durability="os") as server, Admin(server.address) as admin:
        admin.create(QUEUE, fairness_key_header="tenant", retention={"soft_period_ms": 86_400_000})
        plan = ProducerPlan(address=server.address, queue=QUEUE, payload_bytes=64, message_count=count)
        with Load([plan], [ConsumerPlan(address=server.address, queue=QUEUE)]) as load:
            load.wait_for(Counter.ACKED, count, timeout_s=_LONG_S)
        began = time.monotonic()
        admin.seek(QUEUE, 1)
        answered_s = time.monotonic() - began
        first = admin.lease(QUEUE, 1, wait_ms=30_000)[0].metadata.offset
        took_s = time.monotonic() - began
    yield Finding(
        benchmark="seek",
        case=f"{count:,} retained messages, delivering again after",
        value=took_s,
        unit="s",
        reach=3,
        better="less",
        details={"seek answered after s": answered_s, "first offset": first},
    )


@benchmark("disk", "10,000,000 messages through a queue with about 1,000 pending: disk and memory at the end")
def disk(budget: Budget) -> Iterator[Finding]:
    for delayed in (0, 1_000):
        yield _disk(budget, delayed)


def _enqueue_delayed(address: str, count: int, done: threading.Event) -> None:
    """One message at a time among the others, delayed for an hour: each alone in a frame of done ones."""
    with grpc.insecure_channel(address) as channel:
        service = service_pb2_grpc.FilaServiceStub(channel)
        options = service_pb2.EnqueueOptions(delay_ms=3_600_000)
        for _ in range(count):
            service.Enqueue(service_pb2.EnqueueRequest(queue=QUEUE, payload=bytes(1024), options=options))
            if done.wait(_DELAYED_EVERY_S):
                return


def _disk(budget: Budget, delayed: int) -> Finding:
    count = budget.message_count * 10
    done = threading.Event()
    with Server(durability="os") as server:
        with Admin(server.address) as admin:
            admin.create(QUEUE, fairness_key_header="tenant")
        plan = ProducerPlan(
            address=server.address, queue=QUEUE, message_count=count, window_frames=4, backlog_max=1_000
        )
        pins = threading.Thread(target=_enqueue_delayed, args=(server.address, delayed, done))
        pins.start()
        with Load([plan], [ConsumerPlan(address=server.address, queue=QUEUE)]) as load:
            load.wait_for(Counter.ACKED, count // 10, timeout_s=_LONG_S)
            early = server.resident_bytes()
            load.wait_for(Counter.ACKED, count, timeout_s=_LONG_S)
            late = server.resident_bytes()
        done.set()
        pins.join()
        time.sleep(_SETTLE_S)
        return Finding(
            benchmark="disk",
            case=f"disk after {count:,} messages of 1 KB, {delayed:,} more delayed",
            value=server.disk_bytes() / 1e6,
            unit="MB",
            details={"RSS after a tenth, MB": early / 1e6, "RSS at the end, MB": late / 1e6},
        )
