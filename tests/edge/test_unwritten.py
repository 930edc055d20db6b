"""The budget of answers that nobody has read yet: over all clients, and over one connection's share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fila_server.broker.calls import Broker
from fila_server.broker.unwritten import COUNTED_FROM_BYTES, Unwritten
from fila_server.errors import Overloaded
from tests.edge.fake_engine import FakeEngine

KIB = 1024
BUDGET = 8 * 1024 * KIB
LARGE = 3 * 1024 * KIB


@pytest.fixture
async def broker(engine: FakeEngine) -> AsyncIterator[Broker]:
    broker = Broker(engine, unwritten_bytes_max=BUDGET)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.mark.parametrize("timeout_s", [None, 60.0])
async def test_who_is_cancelled_as_room_comes_is_cancelled(timeout_s: float | None) -> None:
    budget = Unwritten(BUDGET)
    assert budget.take(BUDGET)
    waiting = asyncio.ensure_future(budget.room(LARGE, timeout_s))
    await asyncio.sleep(0)

    budget.give(BUDGET)
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_reading_the_log_is_refused_at_its_start_and_waits_in_its_middle(
    engine: FakeEngine, broker: Broker
) -> None:
    engine.log_pieces = [bytes(LARGE), bytes(LARGE)]
    pieces: Any = broker.read_log(b"")
    await anext(pieces)
    broker.unwritten.add(BUDGET)
    following = asyncio.ensure_future(anext(pieces))
    with pytest.raises(Overloaded):
        await anext(broker.read_log(b""))
    assert not following.done()

    broker.unwritten.give(BUDGET)

    assert len(await following) == LARGE
    await pieces.aclose()
    assert broker.unwritten.held_bytes == 0


def test_a_connection_may_hold_what_is_left_for_others() -> None:
    budget = Unwritten(12 * LARGE)

    for _ in range(6):
        assert budget.take(LARGE, "one")
    assert not budget.take(LARGE, "one")
    for _ in range(3):
        assert budget.take(LARGE, "two")
    assert not budget.take(LARGE, "two")
    assert budget.take(LARGE, "three")

    for _ in range(6):
        budget.give(LARGE, "one")
    for _ in range(3):
        budget.give(LARGE, "two")
    budget.give(LARGE, "three")
    assert budget.held_bytes == 0
    assert budget.take(6 * LARGE, "one"), "what was given back counts for nobody"


def test_who_waits_for_room_is_not_kept_by_one_that_has_its_share() -> None:
    budget = Unwritten(12 * LARGE)
    assert budget.take(6 * LARGE, "one")
    assert budget.take(6 * LARGE)
    told: list[str] = []
    budget.at_room(LARGE, lambda: told.append("one"), "one")
    budget.at_room(LARGE, lambda: told.append("two"), "two")
    budget.at_room(2 * LARGE, lambda: told.append("two again"), "two")

    budget.give(2 * LARGE)
    assert told == ["two"]
    budget.give(4 * LARGE)
    assert told == ["two", "two again"]
    budget.give(6 * LARGE, "one")
    assert told == ["two", "two again", "one"]


async def test_a_drain_waits_for_nobody_who_waits_for_room(engine: FakeEngine, broker: Broker) -> None:
    broker.unwritten.add(BUDGET)
    waiting = asyncio.ensure_future(broker.unwritten.room(LARGE))
    await asyncio.sleep(0)
    await broker.drain(1)

    await asyncio.wait_for(waiting, 30)


def test_answers_below_a_size_are_not_counted() -> None:
    unwritten = Unwritten(COUNTED_FROM_BYTES)
    for _ in range(10):
        assert unwritten.take(COUNTED_FROM_BYTES - 1)
    assert unwritten.held_bytes == 0
    assert unwritten.take(COUNTED_FROM_BYTES)
    assert not unwritten.take(COUNTED_FROM_BYTES)
