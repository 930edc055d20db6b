"""What waiting messages cost: memory, time to recover, time to choose among many keys."""

from __future__ import annotations

import signal
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from fila_bench.admin import Admin
from fila_bench.load import Load
from fila_bench.pairs import in_turn, ratio_of
from fila_bench.plan import ConsumerPlan, Counter, ProducerPlan, key_text
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server

_QUEUE = "bench"
_FILL_TIMEOUT_S = 300
_SETTLE_S = 2.0


def fill(server: Server, *, message_count: int, payload_bytes: int, keys: int) -> float:
    """Enqueue that many and return the rate; the queue must exist."""
    plan = ProducerPlan(
        address=server.address,
        queue=_QUEUE,
        payload_bytes=payload_bytes,
        batch=500,
        keys=keys,
        window_frames=4,
        message_count=message_count,
    )
    with Load([plan]) as load:
        return message_count / load.wait_for(Counter.PRODUCED, message_count, timeout_s=_FILL_TIMEOUT_S)


DRAIN_PAIRS = 15
"""A drain lasts a second, so one by itself says little."""


@dataclass(frozen=True, slots=True)
class Drained:
    rate: float
    server_us: float
    """CPU a message, of all the server's threads: it says the same on a machine that has other work."""


@benchmark(
    "drain", "64 B messages waiting under 1,000,000 keys against 10: deliveries a second, runs alternating"
)
def drain(budget: Budget) -> Iterator[Finding]:
    many = budget.message_count
    found = in_turn(
        {f"{keys:,} keys": partial(drained, many, keys) for keys in (10, many)},
        DRAIN_PAIRS if budget.seconds > 4 else 3,
    )
    few_keys, many_keys = found.values()
    ratio = ratio_of([run.rate for run in few_keys], [run.rate for run in many_keys])
    for side, runs in found.items():
        yield Finding(
            benchmark="drain",
            case=f"{side}, median of {ratio.pairs}",
            value=statistics.median(run.rate for run in runs),
            unit="msg/s",
            details={"server us/msg": statistics.median(run.server_us for run in runs)},
        )
    yield Finding(
        benchmark="drain",
        case=f"{many:,} keys / 10 keys, median of {ratio.pairs} pairs",
        value=ratio.median,
        unit="",
        reach=0.85,
        high=ratio.high,
        details={"90 % interval": ratio.interval},
    )


def drained(message_count: int, keys: int, **config: object) -> Drained:
    """The steady middle of a drain of 64 B messages that wait under that many keys of a queue of this config."""
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(_QUEUE, fairness_key_header="tenant", **config)
        fill(server, message_count=message_count, payload_bytes=64, keys=keys)
        with Load(consumers=[ConsumerPlan(address=server.address, queue=_QUEUE)]) as load:
            # The first tenth warms up, the last is left out: what counts is the steady middle.
            load.wait_for(Counter.ACKED, message_count // 10, timeout_s=_FILL_TIMEOUT_S)
            began, first, cpu_s = time.monotonic(), load.total(Counter.ACKED), server.cpu_s()
            load.wait_for(Counter.ACKED, message_count * 8 // 10, timeout_s=_FILL_TIMEOUT_S)
            acked, took_s = load.total(Counter.ACKED) - first, time.monotonic() - began
            return Drained(rate=acked / took_s, server_us=(server.cpu_s() - cpu_s) / acked * 1e6)


@benchmark("memory", "resident memory and index bytes with 1,000,000 pending messages")
def memory(budget: Budget) -> Iterator[Finding]:
    count = budget.message_count
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(_QUEUE, fairness_key_header="tenant")
        fill(server, message_count=count, payload_bytes=1024, keys=10)
        time.sleep(_SETTLE_S)
        yield Finding(
            benchmark="memory",
            case=f"resident, {count:,} pending 1 KB messages, 10 keys",
            value=server.resident_bytes() / 1e6,
            unit="MB",
            reach=600,
            better="less",
            details={"peak MB": server.peak_resident_bytes() / 1e6, "disk MB": server.disk_bytes() / 1e6},
        )
    per_message = _index_bytes(count, keys=10)
    yield Finding(
        benchmark="memory",
        case="index, a pending message (10 keys)",
        value=per_message,
        unit="bytes",
        reach=120,
        better="less",
    )
    yield Finding(
        benchmark="memory",
        case=f"index, a key beside its message ({count:,} keys)",
        value=_index_bytes(count, keys=count) - per_message,
        unit="bytes",
        reach=250,
        better="less",
        details={"text included, bytes a key": len(key_text(count - 1))},
    )


def _index_bytes(count: int, *, keys: int) -> float:
    """Growth of an idle, restarted server per message: payloads and memtables are on disk by then."""
    sizes = []
    for messages in (count // 2, count):
        with Server(storage__hot_payload_bytes=2**20, storage__memtable_bytes=4 * 2**20) as server:
            with Admin(server.address) as admin:
                admin.create(_QUEUE, fairness_key_header="tenant")
            fill(server, message_count=messages, payload_bytes=64, keys=max(10, keys * messages // count))
            server.restart()
            _first_are_oldest(server)
            time.sleep(_SETTLE_S)
            sizes.append(server.resident_bytes())
    return (sizes[1] - sizes[0]) / (count - count // 2)


@benchmark("recovery", "kill -9 with 1,000,000 pending 1 KB messages, then the first delivery")
def recovery(budget: Budget) -> Iterator[Finding]:
    count = budget.message_count
    with Server() as server:
        with Admin(server.address) as admin:
            admin.create(_QUEUE, fairness_key_header="tenant")
        fill(server, message_count=count, payload_bytes=1024, keys=10)
        began = time.monotonic()
        server.restart(how=signal.SIGKILL)
        ready_s = time.monotonic() - began
        in_order = _first_are_oldest(server)
        took_s = time.monotonic() - began
        with Admin(server.address) as admin:
            depth = admin.stats(_QUEUE).depth
    yield Finding(
        benchmark="recovery",
        case=f"{count:,} pending 1 KB messages, first delivery after kill -9",
        value=took_s,
        unit="s",
        reach=5,
        better="less",
        details={
            "answering after s": ready_s,
            "right order": "yes" if in_order else "NO",
            "lost": max(0, count - depth - 100),
        },
    )


def _first_are_oldest(server: Server) -> bool:
    """Lease the first 100 and say whether each key's come in the order of their offsets."""
    with Admin(server.address) as admin:
        messages = admin.lease(_QUEUE, 100, wait_ms=60_000)
    offsets_by_key: dict[str, list[int]] = {}
    for message in messages:
        offsets_by_key.setdefault(message.metadata.fairness_key, []).append(message.metadata.offset)
    return all(offsets == sorted(offsets) for offsets in offsets_by_key.values()) and bool(messages)


@benchmark("quiet-tenant", "5 messages beside 100 of a noisy tenant, sent first")
def quiet_tenant(_budget: Budget) -> Iterator[Finding]:
    with Server() as server, Admin(server.address) as admin:
        admin.create(_QUEUE, fairness_key_header="tenant")
        for tenant, count in (("noisy", 100), ("quiet", 5)):
            for _ in range(count):
                admin.enqueue(_QUEUE, {"tenant": tenant}, b"x")
        order = [message.metadata.fairness_key for message in admin.lease(_QUEUE, 105)]
    last = max(place for place, key in enumerate(order, start=1) if key == "quiet")
    yield Finding(
        benchmark="quiet-tenant",
        case="place of the quiet tenant's last message",
        value=last,
        unit="th",
        reach=10,
        better="less",
    )
