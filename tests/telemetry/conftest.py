"""A core under a simulated clock, with something of everything in it, and what telemetry asks of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fila_server.core.protocol import commands
from fila_server.hooks.counters import HookCounters, HookStatus
from fila_server.telemetry import catalog
from fila_server.telemetry.group import OWNER, STANDBY, GroupStatus, NodeStatus
from fila_server.telemetry.series import (
    EdgeReading,
    HookReading,
    QuotaReading,
    ScheduleReading,
    TroubleReading,
)
from fila_server.telemetry.snapshot import Snapshot, decode
from tests.core.driven_engine import DrivenEngine, Refused

GROUP = GroupStatus(
    "orders",
    (
        NodeStatus("10.0.0.1:5556", "a", role=OWNER),
        NodeStatus("10.0.0.2:5556", "b", role=STANDBY, clock_ms=5),
    ),
    unconfirmed=(1, 300),
)


def metrics_of(group: GroupStatus | None) -> list[catalog.Metric]:
    """What a broker has to say that is a node of the group, or alone."""
    return [
        metric
        for metric in catalog.METRICS
        if (metric is not catalog.SYNC if group else catalog.GROUP not in metric.attributes)
    ]


Ask = Callable[[], Awaitable[bytes]]


@pytest.fixture
def engine() -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    engine.create_queue(
        "orders", fairness_key_header="tenant", throttle_key_headers=["provider"], max_depth=1000
    )
    yield engine
    engine.remove()


def packed(engine: DrivenEngine) -> bytes:
    token = engine.submit(commands.METRICS, b"")
    engine.others += engine.settle_down()
    status, payload = engine.answer_of(token)
    assert status == 0
    return payload


def snapshot_of(engine: DrivenEngine) -> Snapshot:
    return decode(packed(engine))


@pytest.fixture
def ask(engine: DrivenEngine) -> Ask:
    async def answer() -> bytes:
        return packed(engine)

    return answer


def of_a_long_life(snapshot: Snapshot) -> Snapshot:
    """With a number in all of a queue's that are 0, so that every metric has something to say."""

    def filled(struct: Any, **more: Any) -> Any:
        zeros = {name: 1 for name in struct.__struct_fields__ if getattr(struct, name) == 0}
        return replace(struct, **(zeros | more))

    queues = [
        filled(
            queue,
            counts=filled(queue.counts),
            latency=[1, *queue.latency[1:]],
            channels=[
                filled(channel, waited_ms=tuple(ms or 1.0 for ms in channel.waited_ms))
                for channel in queue.channels
            ],
        )
        for queue in snapshot.queues
    ]
    limits = [replace(limit, learned_rate=1.0) for limit in snapshot.limits]
    return replace(snapshot, queues=queues, keys=[filled(key) for key in snapshot.keys], limits=limits)


@pytest.fixture
def ask_of_a_long_life(engine: DrivenEngine) -> Ask:
    async def answer() -> bytes:
        return msgspec.msgpack.encode(of_a_long_life(decode(packed(engine))))

    return answer


def live_a_little(engine: DrivenEngine) -> None:
    """Enqueue, deliver, ack, nack, throttle, refuse."""
    engine.set_config("throttle.mail", "1,1")
    for tenant in ("acme", "globex"):
        for _ in range(3):
            engine.enqueue("orders", headers={"tenant": tenant})
    engine.enqueue("orders", headers={"tenant": "acme", "provider": "mail"})
    engine.enqueue("orders", headers={"tenant": "acme", "provider": "mail"}, delay_ms=60_000)
    engine.sleep(1500)
    leased = engine.lease("orders")
    engine.ack("orders", leased[:4])
    engine.nack("orders", leased[4:5])
    with pytest.raises(Refused):
        engine.enqueue("nowhere")


BACKUP_AGE_S = 90.0
EDGE = EdgeReading(
    connections=3,
    unread_bytes=5000,
    unread_bytes_max=1 << 24,
    events=70,
    hour_bytes=46_480,
)
QUOTAS = [QuotaReading("shop", 3, {"streams": 0.5, "stored_bytes": 0.25})]
SCHEDULES = [ScheduleReading("orders", 7, 2, 1)]
TROUBLES = [
    TroubleReading("flood", "orders", "default", "acme", "", 1_700_000_000.0),
    TroubleReading("limit_behind", "", "", "", "mail", 1_700_000_001.0),
]


@pytest.fixture
def hook_readings() -> list[HookReading]:
    counters = HookCounters(errors=1, fallbacks=2, held=3)
    counters.record_runs(4, 44_000)
    return [HookReading("orders", HookStatus("on_enqueue", "half_open", counters))]
