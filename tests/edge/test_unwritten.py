"""Answers that nobody reads are bounded over all clients, and who reads is served all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import admin_pb2, admin_pb2_grpc, messages_pb2, service_pb2, service_pb2_grpc
from fila_server import commands
from fila_server.broker.calls import Broker
from fila_server.broker.unwritten import COUNTED_FROM_BYTES, Unwritten
from fila_server.config.schema import Address, Config, Server
from fila_server.edges.grpc.server import RpcServer
from fila_server.errors import Overloaded
from tests.doors import PLAIN, open_door
from tests.edge.fake_engine import FakeEngine, ok
from tests.liveness.http2 import RawHttp2

KIB = 1024
BUDGET = 8 * 1024 * KIB
LARGE = 3 * 1024 * KIB


@pytest.fixture
async def broker(engine: FakeEngine) -> AsyncIterator[Broker]:
    broker = Broker(engine, unwritten_bytes_max=BUDGET)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture
async def address(broker: Broker) -> AsyncIterator[str]:
    server = RpcServer(broker, Config(server=Server(listen_addr=Address("127.0.0.1:0"))), open_door(), PLAIN)
    server.bind()
    await server.serve()
    yield f"127.0.0.1:{server.port}"
    await server.stop(0)


def _leased(lease_id: int, size: int = LARGE) -> bytes:
    metadata = messages_pb2.MessageMetadata(lease_id=lease_id)
    message = messages_pb2.Message(payload=bytes(size), metadata=metadata)
    return service_pb2.LeaseResponse(messages=[message]).SerializeToString()


def _delivery(lease_id: int, *, is_session: bool) -> bytes:
    leased = service_pb2.LeaseResponse.FromString(_leased(lease_id))
    if is_session:
        return service_pb2.ConsumeSessionResponse(delivery={"messages": leased.messages}).SerializeToString()
    return service_pb2.ConsumeResponse(message=leased.messages[0]).SerializeToString()


def _given_back(engine: FakeEngine) -> list[int]:
    frames = [frame for _, frame in engine.of(commands.CANCEL)]
    return [lease_id for frame in frames for lease_id in service_pb2.Settle.FromString(frame).lease_ids]


async def _until(holds: Any) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - what is waited for happens in other people's code
            await asyncio.sleep(0.001)


async def _unread(engine: FakeEngine, address: str, count: int) -> RawHttp2:
    """So many large answers on streams of one connection that nobody reads."""
    hoarder = await asyncio.to_thread(RawHttp2, address)
    engine.answers[commands.PEEK_MESSAGES] = ok(bytes(LARGE))
    for _ in range(count):
        await asyncio.to_thread(
            hoarder.call,
            "/fila.v1.FilaAdmin/PeekMessages",
            admin_pb2.PeekMessagesRequest(queue="q").SerializeToString(),
        )
    return hoarder


async def _hoarders(engine: FakeEngine, broker: Broker, address: str) -> list[RawHttp2]:
    """Two connections that leave no room for another page."""
    hoarders = [await _unread(engine, address, 10) for _ in range(2)]
    await _until(lambda: broker.unwritten.held_bytes == 2 * LARGE)
    return hoarders


async def test_answers_nobody_reads_are_held_up_to_the_budget_and_freed_with_their_connection(
    engine: FakeEngine, broker: Broker, address: str
) -> None:
    hoarders = await _hoarders(engine, broker, address)
    await asyncio.sleep(0.1)

    # Beyond the first a whole page of 4 MiB has to be free before another is asked for.
    assert broker.unwritten.held_bytes == 2 * LARGE

    for each in hoarders:
        each.close()
    await _until(lambda: broker.unwritten.held_bytes == 0)


async def test_one_connection_that_reads_nothing_leaves_room_for_others(
    engine: FakeEngine, broker: Broker, address: str
) -> None:
    hoarder = await _unread(engine, address, 40)
    await _until(lambda: broker.unwritten.held_bytes == LARGE)
    await asyncio.sleep(0.1)
    async with aio.insecure_channel(address) as channel:
        admin: Any = admin_pb2_grpc.FilaAdminStub(channel)
        await admin.PeekMessages(admin_pb2.PeekMessagesRequest(queue="q"))

    await _until(lambda: broker.unwritten.held_bytes == LARGE)
    hoarder.close()


async def test_a_read_beyond_the_budget_is_refused_and_says_when_to_try_again(
    engine: FakeEngine, broker: Broker, address: str
) -> None:
    hoarders = await _hoarders(engine, broker, address)
    async with aio.insecure_channel(address) as channel:
        admin: Any = admin_pb2_grpc.FilaAdminStub(channel)
        with pytest.raises(aio.AioRpcError) as raised:
            await admin.PeekMessages(admin_pb2.PeekMessagesRequest(queue="q"))

    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "limits.unwritten_bytes_max is 8388608" in raised.value.details()
    assert b"google.rpc.RetryInfo" in dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
    for each in hoarders:
        each.close()


async def test_small_answers_are_given_beyond_the_budget(
    engine: FakeEngine, broker: Broker, address: str
) -> None:
    broker.unwritten.add(2 * BUDGET - 1)
    engine.answers[commands.LEASE] = ok(_leased(1, 100))
    engine.answers[commands.ENQUEUE] = ok(b"")
    async with aio.insecure_channel(address) as channel:
        service: Any = service_pb2_grpc.FilaServiceStub(channel)

        await service.Enqueue(service_pb2.EnqueueRequest(queue="q"))
        leased = await service.Lease(service_pb2.LeaseRequest(queue="q"))

    assert len(leased.messages) == 1


async def test_a_large_answer_that_is_read_leaves_nothing_counted(
    engine: FakeEngine, broker: Broker, address: str
) -> None:
    engine.answers[commands.LEASE] = ok(_leased(1))
    async with aio.insecure_channel(address) as channel:
        service: Any = service_pb2_grpc.FilaServiceStub(channel)
        for _ in range(20):
            await service.Lease(service_pb2.LeaseRequest(queue="q"))

    await _until(lambda: broker.unwritten.held_bytes == 0)
    assert _given_back(engine) == []


async def test_a_pull_beyond_the_budget_gives_its_messages_back_and_waits_for_room(
    engine: FakeEngine, broker: Broker
) -> None:
    broker.unwritten.add(BUDGET)
    request = service_pb2.LeaseRequest(queue="q", wait_ms=60_000).SerializeToString()
    pull = asyncio.ensure_future(broker.lease(request))
    [(token, _)] = await engine.until(commands.LEASE)
    engine.say(token, commands.REPLY, _leased(7))
    await _until(lambda: _given_back(engine) == [7])
    assert not pull.done()

    broker.unwritten.give(BUDGET)
    (_, (token, again)) = await engine.until(commands.LEASE, 2)
    assert 0 < service_pb2.LeaseRequest.FromString(again).wait_ms <= 60_000
    engine.say(token, commands.REPLY, _leased(8))

    assert await pull == _leased(8)
    assert broker.unwritten.held_bytes == len(_leased(8))


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


@pytest.mark.parametrize("may_wait", [True, False])
async def test_a_pull_that_may_not_wait_for_room_is_refused(
    engine: FakeEngine, broker: Broker, may_wait: bool
) -> None:
    broker.unwritten.add(BUDGET)
    wait_ms = 0 if may_wait else 60_000
    request = service_pb2.LeaseRequest(queue="q", wait_ms=wait_ms).SerializeToString()
    engine.answers[commands.LEASE] = ok(_leased(7))

    with pytest.raises(Overloaded, match="unwritten_bytes_max"):
        await broker.lease(request, may_wait_for_room=may_wait)
    assert _given_back(engine) == [7]


@pytest.mark.parametrize("kind", [commands.CONSUME_OPEN, commands.SESSION_OPEN])
async def test_a_consumer_gets_no_delivery_there_is_no_room_for_and_goes_on_when_there_is(
    engine: FakeEngine, broker: Broker, kind: int
) -> None:
    engine.answers[kind] = ok()
    stream = await broker.open_stream(kind, b"")
    [(token, _)] = engine.of(kind)
    is_session = kind == commands.SESSION_OPEN
    broker.unwritten.add(BUDGET - LARGE)
    engine.say(token, commands.DELIVERY, _delivery(5, is_session=is_session))
    await _until(lambda: _given_back(engine) == [5])
    assert engine.of(commands.WRITTEN) == []  # so the core sends it nothing more

    broker.unwritten.give(BUDGET - LARGE)
    assert engine.of(commands.WRITTEN) == [(token, b"")]
    engine.say(token, commands.DELIVERY, _delivery(6, is_session=is_session))

    assert await anext(stream) == _delivery(6, is_session=is_session)
    await stream.close()
    assert broker.unwritten.held_bytes == 0


async def test_what_a_stream_held_is_freed_when_it_closes(engine: FakeEngine, broker: Broker) -> None:
    engine.answers[commands.CONSUME_OPEN] = ok()
    stream = await broker.open_stream(commands.CONSUME_OPEN, b"")
    [(token, _)] = engine.of(commands.CONSUME_OPEN)
    engine.say(token, commands.DELIVERY, _delivery(5, is_session=False))
    engine.say(token, commands.DELIVERY, _delivery(6, is_session=False))
    await anext(stream)
    await _until(lambda: broker.unwritten.held_bytes > 2 * LARGE)

    await stream.close()

    assert broker.unwritten.held_bytes == 0


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
