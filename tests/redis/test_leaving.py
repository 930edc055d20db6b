"""Clients that leave in the middle of something: noticed, and given nothing that others could have."""

from __future__ import annotations

import asyncio
import socket
import struct

from fila_server import commands
from fila_server.edges.redis import server as redis_server
from tests.redis.conftest import Connect
from tests.redis.model_engine import ModelEngine
from tests.redis.raw_client import RawClient, command, until

MORE_THAN_IS_KEPT = b"".join(command("RPUSH", "other", "x" * 1000) for _ in range(1300))


async def _leave(client: RawClient) -> None:
    """With a reset: an end of the input alone may be that of a client that still reads."""
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.writer.transport.abort()
    await asyncio.sleep(0)


async def test_a_client_that_leaves_with_much_pipelined_behind_a_waiting_read_is_noticed(
    connect: Connect, engine: ModelEngine, server: redis_server.Server
):
    alive = await connect()
    await alive("SET", "orders", "mail")
    await alive("SET", "other", "mail")
    for _ in range(10):
        client = await connect()
        client.send(command("HMGET", "orders", "mail", 1, 86_400) + MORE_THAN_IS_KEPT)
        await client.writer.drain()
        client.writer.close()

    await until(lambda: server.client_count == 1)
    assert engine.waiters == []

    for _ in range(10):
        await alive("RPUSH", "orders", "m")
    assert len(await alive("HMGET", "orders", "mail", 10)) == 10


async def test_a_read_with_much_pipelined_behind_it_answers_null_and_what_follows_is_carried_out(
    connect: Connect, engine: ModelEngine
):
    client = await connect()
    await client("SET", "orders", "mail")
    await client("SET", "other", "mail")
    client.send(command("HMGET", "orders", "mail", 1, 60) + MORE_THAN_IS_KEPT)

    assert await client.reply() is None
    assert await client.replies(1300) == [1] * 1300


async def test_a_read_with_a_little_pipelined_behind_it_goes_on_waiting(
    connect: Connect, engine: ModelEngine
):
    client, other = await connect(), await connect()
    await client("SET", "orders", "mail")
    client.send(command("HMGET", "orders", "mail", 1, 60) + MORE_THAN_IS_KEPT[:900_000])
    await until(lambda: engine.waiters)
    await asyncio.sleep(0.05)
    assert len(engine.waiters) == 1

    await other("RPUSH", "orders", "m")
    assert [row[2] for row in await client.reply()] == [b"m"]


async def test_what_a_client_was_given_as_it_left_goes_to_the_next_reader(
    connect: Connect, engine: ModelEngine, server: redis_server.Server
):
    leaving, other = await connect(), await connect()
    await other("SET", "orders", "mail")
    leaving.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.waiters)
    engine.hold_answers(commands.LEASE)
    await other("RPUSH", "orders", "m")
    await _leave(leaving)
    await until(lambda: server.client_count == 1)
    engine.release_answers()
    await until(lambda: not engine.queues["orders"].channels["mail"].leases)

    assert [row[2] for row in await other("HMGET", "orders", "mail", 1)] == [b"m"]
