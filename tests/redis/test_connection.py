"""Order, waiting, leaving and names of clients where tests/e2e/test_redis_connections.py does not ask."""

from __future__ import annotations

import socket
import struct
from typing import Any

import pytest

from fila.v1 import admin_pb2
from tests.redis.conftest import Connect, info, until_blocked, until_connected
from tests.redis.raw_client import ErrorReply, RawClient, Status, command

pytestmark = pytest.mark.e2e


def reset(client: RawClient) -> None:
    """Leave without a goodbye: an end of the input alone may be that of a client that still reads."""
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.writer.transport.abort()


# --- order --------------------------------------------------------------------------------


async def test_a_read_sees_every_push_that_its_client_sent_before_it(orders: RawClient):
    pushes = [command("RPUSH", "orders", n) + command("RPUSH", "orders", n, n) for n in range(200)]
    orders.send(b"".join(pushes) + command("HMGET", "orders", "mail", 1000))

    assert await orders.replies(400) == [1, 2] * 200
    assert [row[2] for row in await orders.reply()] == [b"%d" % n for n in range(200) for _ in range(3)]


async def test_pushes_that_pass_through_a_script_keep_their_order_within_a_key(orders: RawClient, admin: Any):
    """The script takes long for the first ones and no time for the last."""
    script = """
        local calls = 0
        function on_enqueue(msg)
            calls = calls + 1
            for _ = 1, (20 - calls) * 1000 do end
            return { fairness_key = "one" }
        end
    """
    config = admin_pb2.QueueConfig(on_enqueue_script=script)
    request = admin_pb2.UpdateQueueRequest(queue="orders", config=config)
    request.update_mask.paths.append("on_enqueue_script")
    admin.UpdateQueue(request)
    orders.send(b"".join(command("RPUSH", "orders", n) + command("RPUSH", "orders", n, n) for n in range(10)))

    assert await orders.replies(20) == [1, 2] * 10
    rows = await orders("HMGET", "orders", "mail", 100)
    assert [row[2] for row in rows] == [b"%d" % n for n in range(10) for _ in range(3)]


# --- waiting reads ------------------------------------------------------------------------


async def test_a_waiting_read_counts_as_blocked_until_a_push_wakes_it(orders: RawClient, connect: Connect):
    other = await connect()
    orders.send(command("HMGET", "orders", "mail", 5, 10))
    await until_blocked(other, 1)
    await other("RPUSH", "orders", "a", "b")

    assert [row[2] for row in await orders.reply()] == [b"a", b"b"]
    assert (await info(other))["blocked_client_count"] == 0


async def test_a_waiting_read_is_woken_by_a_seek_that_takes_a_lease_away(orders: RawClient, connect: Connect):
    await orders("RPUSH", "orders", "a")
    ((_, ticket, _),) = await orders("HMGET", "orders", "mail", 1)
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    other = await connect()
    await until_blocked(other, 1)
    await other("HMSET", "orders", "mail", "ID", 1)

    assert [row[2] for row in await orders.reply()] == [b"a"]
    assert await orders("HDEL", "orders", "mail", ticket) == 0


# --- clients that leave -------------------------------------------------------------------


async def test_clients_that_leave_in_the_middle_of_a_set_leave_the_server_whole(
    client: RawClient, connect: Connect
):
    for number in range(50):
        leaving = await connect()
        leaving.send(command("SET", f"q{number}", "mail"))
        await leaving.writer.drain()
        reset(leaving)
    await until_connected(client, 1)

    # Made or not, whole: there are no messages yet, and a queue that is half there would have no channel.
    for number in range(50):
        assert await client("SETNX", f"q{number}", "mail") == Status("OK")
        assert await client("HMGET", f"q{number}", "mail", 1) == []
        assert (await client("SET", f"q{number}", "mail")).startswith("QAE")


async def test_a_read_with_a_little_pipelined_behind_it_goes_on_waiting(orders: RawClient, connect: Connect):
    other = await connect()
    await other("SET", "other", "mail")
    behind = b"".join(command("RPUSH", "other", "x" * 1000) for _ in range(850))
    orders.send(command("HMGET", "orders", "mail", 1, 60) + behind)
    await orders.writer.drain()
    await until_blocked(other, 1)
    for _ in range(100):  # what lies in the socket is read meanwhile
        assert (await info(other))["blocked_client_count"] == 1
    await other("RPUSH", "orders", "m")

    assert [row[2] for row in await orders.reply()] == [b"m"]
    assert await orders.replies(850) == [1] * 850


# --- who a client is ----------------------------------------------------------------------


async def test_hello_switches_the_protocol_and_reset_takes_it_back(client: RawClient):
    about = await client("HELLO", 3, "AUTH", "default", "x", "SETNAME", "worker-1")
    assert about[b"proto"] == 3
    assert about[b"server"] == b"fila"
    assert await client("CLIENT", "GETNAME") == b"worker-1"
    assert await client("RESET") == Status("RESET")
    assert await client("CLIENT", "GETNAME") is None
    assert isinstance(await client("HELLO"), list)
    assert (await client("HELLO", 4)).startswith("NOPROTO")
    assert (await client("HELLO", 3, "AUTH", "admin", "x")).startswith("WRONGPASS")
    assert (await client("HELLO", 3, "SETNAME", "a b")).startswith("ERR")
    assert isinstance(await client("HELLO", 2), list)


async def test_clients_can_name_and_list_themselves(client: RawClient):
    number = await client("CLIENT", "ID")
    assert await client("CLIENT", "SETNAME", "worker-1") == Status("OK")
    assert await client("CLIENT", "SETINFO", "LIB-NAME", "test") == Status("OK")
    assert await client("CLIENT", "SETINFO", "lib-ver", "1.0") == Status("OK")
    assert await client("CLIENT", "NO-EVICT", "on") == Status("OK")

    listed = (await client("CLIENT", "LIST")).decode()
    assert listed == (await client("CLIENT", "INFO")).decode()
    assert f"id={number} " in listed
    assert "name=worker-1 " in listed
    assert "lib-name=test lib-ver=1.0 resp=2" in listed
    for bad in (
        ("KILL", "x"),
        ("NO-EVICT", "maybe"),
        ("SETNAME",),
        ("SETNAME", "a\nb"),
        ("SETINFO", "COLOUR", "red"),
    ):
        assert isinstance(await client("CLIENT", *bad), ErrorReply)


async def test_there_are_no_passwords_and_one_database(client: RawClient):
    assert (await client("AUTH", "x")).startswith(
        "ERR AUTH <password> called without any password configured"
    )
    assert await client("AUTH", "default", "x") == Status("OK")
    assert (await client("AUTH", "admin", "x")).startswith("WRONGPASS")
    assert await client("SELECT", 0) == Status("OK")
    assert await client("SELECT", 1) == ErrorReply("ERR DB index is out of range")
    assert (await client("SELECT", "x")).startswith("ERR")


async def test_command_describes_every_command(client: RawClient):
    count = await client("COMMAND", "COUNT")
    listed = await client("COMMAND")
    assert len(listed) == count
    arities = {entry[0]: entry[1] for entry in listed}
    assert (arities[b"rpush"], arities[b"setnx"], arities[b"hmget"]) == (-3, 3, -4)
    assert (await client("COMMAND", "INFO", "rpush", "lpush"))[1] is None
    docs = await client("COMMAND", "DOCS", "rpush")
    assert docs[0] == b"rpush"
    assert isinstance(await client("COMMAND", "GETKEYS"), ErrorReply)


async def test_inline_commands_take_quotes(client: RawClient):
    client.send(b"\r\nECHO \"a b\\x21\"\r\necho 'c d'\nPING\n")

    assert await client.replies(3) == [b"a b!", b"c d", Status("PONG")]
