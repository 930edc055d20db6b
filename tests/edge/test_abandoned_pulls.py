"""Pulls and consumers that nobody awaits any more: they take no place, and what they were given goes to others."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import messages_pb2, service_pb2
from fila_server import commands
from fila_server.broker.calls import Broker
from fila_server.edges.grpc.identity import Identity
from fila_server.edges.grpc.service import SERVICE, _Service
from tests.doors import open_door
from tests.edge.fake_engine import FakeEngine, ok

OUTSTANDING_CALLS_MAX = 100  # of the fixture `broker`


async def _turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def _leased(*lease_ids: int) -> bytes:
    """A LeaseResponse with one message a lease."""
    response = service_pb2.LeaseResponse()
    for lease_id in lease_ids:
        response.messages.add(payload=b"p", metadata=messages_pb2.MessageMetadata(lease_id=lease_id))
    return response.SerializeToString()


def _given_back(engine: FakeEngine) -> list[int]:
    return [
        lease_id
        for _, frame in engine.of(commands.CANCEL)
        for lease_id in service_pb2.Settle.FromString(frame).lease_ids
    ]


async def _abandon(broker: Broker) -> None:
    pull = asyncio.ensure_future(broker.lease(b"pull"))
    await _turns(2)
    pull.cancel()
    await _turns(2)


async def test_pulls_that_were_abandoned_leave_room_for_as_many_calls_as_before(
    engine: FakeEngine, broker: Broker
) -> None:
    for _ in range(2 * OUTSTANDING_CALLS_MAX):
        await _abandon(broker)
    engine.answers[commands.ENQUEUE] = ok(b"stored")

    assert await broker.call(commands.ENQUEUE, b"") == b"stored"
    waiting = [broker.call(commands.ACK, b"") for _ in range(OUTSTANDING_CALLS_MAX)]
    for token, _ in engine.of(commands.ACK):
        engine.say(token, commands.REPLY, b"")
    await asyncio.gather(*waiting)


@pytest.mark.parametrize("how", ["cancelled", "deadline", "connection"])
async def test_over_grpc_a_pull_that_is_abandoned_leaves_nothing_outstanding(
    engine: FakeEngine, broker: Broker, channel: aio.Channel, how: str
) -> None:
    lease: Any = channel.unary_unary(f"/{SERVICE}/Lease")
    for timeout_s in (0.1, 1.0, 10.0) if how == "deadline" else (None,):
        call = lease(b"pull", timeout=timeout_s)
        asking = asyncio.ensure_future(call.code())
        arrived = asyncio.ensure_future(engine.until(commands.LEASE))
        await asyncio.wait({asking, arrived}, return_when=asyncio.FIRST_COMPLETED)
        if arrived.done():
            break
        arrived.cancel()  # the deadline was over before the core was asked: the next one has longer
    await arrived
    if how == "cancelled":
        call.cancel()
    elif how == "connection":
        await channel.close()
    assert await asking in (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)

    await engine.until(commands.CANCEL)

    assert broker.outstanding_count == 0


async def test_a_server_that_stops_does_not_wait_for_a_pull_that_was_abandoned(
    engine: FakeEngine, broker: Broker
) -> None:
    await _abandon(broker)

    async with asyncio.timeout(10):
        await broker.drain(30)


async def test_an_answer_that_comes_after_its_pull_was_abandoned_is_given_back(
    engine: FakeEngine, broker: Broker
) -> None:
    await _abandon(broker)
    [(token, _)] = engine.of(commands.LEASE)
    engine.say(token, commands.REPLY, _leased(7, 8, 9))
    await _turns()

    assert _given_back(engine) == [9, 8, 7]  # the last first: each finds the place in front of the one before


async def test_an_answer_that_comes_at_the_moment_its_pull_is_abandoned_is_given_back(
    engine: FakeEngine, broker: Broker
) -> None:
    pull = asyncio.ensure_future(broker.lease(b"pull"))
    await _turns(2)
    [(token, _)] = engine.of(commands.LEASE)
    engine.say(token, commands.REPLY, _leased(7))
    broker._on_wake()  # the future has its answer, and the task has not run yet
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull

    assert _given_back(engine) == [7]


async def test_an_answer_that_comes_before_an_abandoned_pull_has_heard_of_it_is_given_back(
    engine: FakeEngine, broker: Broker
) -> None:
    pull = asyncio.ensure_future(broker.lease(b"pull"))
    await _turns(2)
    [(token, _)] = engine.of(commands.LEASE)
    pull.cancel()
    engine.say(token, commands.REPLY, _leased(7))
    broker._on_wake()  # the future is cancelled, and the task has not run yet
    with pytest.raises(asyncio.CancelledError):
        await pull

    assert _given_back(engine) == [7]


async def test_an_empty_answer_to_nobody_gives_nothing_back(engine: FakeEngine, broker: Broker) -> None:
    await _abandon(broker)
    [(token, _)] = engine.of(commands.LEASE)
    engine.say(token, commands.REPLY, b"")
    await _turns()

    assert engine.of(commands.CANCEL) == [(token, b"")]


async def test_what_a_pull_was_given_while_the_server_began_to_drain_is_given_back(
    engine: FakeEngine, broker: Broker
) -> None:
    pull = asyncio.ensure_future(broker.lease(b"pull"))
    await _turns(2)
    await broker.drain(1)
    [(token, _)] = engine.of(commands.LEASE)
    engine.say(token, commands.REPLY, _leased(3))
    await asyncio.wait([pull])
    await _turns()

    assert _given_back(engine) == [3]


@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_over_grpc_a_pull_that_is_cancelled_right_behind_its_answer_gives_it_back(
    engine: FakeEngine, broker: Broker, turns: int
) -> None:
    context: Any = types.SimpleNamespace(
        add_done_callback=lambda _: None, peer=lambda: "ipv4:127.0.0.1:1", invocation_metadata=tuple
    )
    pull = asyncio.ensure_future(_Service(broker, Identity(open_door())).lease(b"pull", context))
    await _turns(2)
    [(token, _)] = engine.of(commands.LEASE)
    engine.say(token, commands.REPLY, _leased(7, 8))
    broker._on_wake()
    await _turns(turns)
    pull.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pull

    assert _given_back(engine) == [8, 7]
    assert broker.unwritten.held_bytes == 0


async def test_over_grpc_a_consumer_that_goes_before_it_is_let_in_keeps_no_stream_of_its_name(
    engine: FakeEngine, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    door, streams = open_door(), [0]

    def take_stream(_: object) -> Callable[[], None]:
        streams[0] += 1
        return lambda: streams.__setitem__(0, streams[0] - 1)

    monkeypatch.setattr(door, "take_stream", take_stream)
    context: Any = types.SimpleNamespace(peer=lambda: "ipv4:127.0.0.1:1", invocation_metadata=tuple)
    consuming = asyncio.ensure_future(_Service(broker, Identity(door)).consume(b"", context))
    await _turns(2)
    assert (streams, len(engine.of(commands.CONSUME_OPEN))) == ([1], 1)

    consuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consuming

    assert streams == [0]
