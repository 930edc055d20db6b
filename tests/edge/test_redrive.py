"""A redrive that ends before its last page: what it moved stays moved, and is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fila.v1 import admin_pb2
from fila_server import errors, events
from fila_server.access.admission import Caller
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.events import Ring
from fila_server.operations.queues import Queues
from tests.edge.fake_engine import FakeEngine, ok

DLQ = "orders.dlq"
SOMEBODY = Caller(number=7, name="ops", key_id="", tenant="", is_admin=True, peer="127.0.0.1")
DEAD_LETTERS = 5


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Any]]:
    ring = Ring(1)
    monkeypatch.setattr(events, "RING", ring)
    return lambda: list(ring.after(0, 10)[0])


@pytest.fixture
def queues(engine: FakeEngine, broker: Broker) -> Queues:
    """Over a core with a few dead letters, of which a page moves as many as it is asked for."""

    def move(frame: bytes) -> tuple[int, bytes]:
        asked = seam_frames.RedrivePage.FromString(frame)
        last = min(asked.after_offset + asked.count, DEAD_LETTERS)
        page = seam_frames.RedrivenPage(moved=last - asked.after_offset, last_offset=last)
        return errors.OK, page.SerializeToString()

    stats = admin_pb2.GetStatsResponse(depth=DEAD_LETTERS, head_offset=DEAD_LETTERS + 1)
    broker.queue_configs |= {"orders": admin_pb2.QueueConfig(), DLQ: admin_pb2.QueueConfig()}
    engine.answers |= {
        commands.ACCESS_CHANGE: ok(),
        commands.GET_STATS: lambda _: (errors.OK, stats.SerializeToString()),
        commands.REDRIVE_MOVE: move,
    }
    check: Any = SimpleNamespace(redrive=lambda _: None)
    admission: Any = SimpleNamespace(check=lambda *_: None)
    return Queues(broker, Limits(), check, "fsync", admission)


def paced() -> admin_pb2.RedriveRequest:
    """One message in a quarter of an hour: it pauses behind its first page."""
    return admin_pb2.RedriveRequest(dlq_queue=DLQ, rate_per_second=0.001)


async def test_a_paced_redrive_that_a_drain_ends_is_told_by_what_it_moved(
    engine: FakeEngine, broker: Broker, queues: Queues, told: Callable[[], list[Any]]
) -> None:
    redrive = asyncio.ensure_future(queues.redrive(paced(), SOMEBODY))
    await engine.until(commands.REDRIVE_MOVE)

    await broker.drain(1)
    with pytest.raises(errors.Unavailable):
        await redrive

    (event,) = told()
    assert (event.kind, event.queue, event.count) == ("dead_letters.redriven", DLQ, 1)
    assert (event.peer, event.principal) == ("127.0.0.1", "ops")


async def test_a_paced_redrive_whose_caller_goes_away_is_told_by_what_it_moved(
    engine: FakeEngine, queues: Queues, told: Callable[[], list[Any]]
) -> None:
    redrive = asyncio.ensure_future(queues.redrive(paced(), SOMEBODY))
    await engine.until(commands.REDRIVE_MOVE)
    for _ in range(10):
        await asyncio.sleep(0)

    redrive.cancel()
    with pytest.raises(asyncio.CancelledError):
        await redrive

    assert [event.count for event in told()] == [1]


async def test_a_redrive_that_ends_before_it_moved_anything_is_not_told(
    engine: FakeEngine, queues: Queues, told: Callable[[], list[Any]]
) -> None:
    engine.answers[commands.REDRIVE_MOVE] = lambda _: (
        errors.OK,
        seam_frames.RedrivenPage(stuck=DEAD_LETTERS, last_offset=DEAD_LETTERS).SerializeToString(),
    )

    with pytest.raises(errors.Conflict):
        await queues.redrive(paced(), SOMEBODY)

    assert told() == []
