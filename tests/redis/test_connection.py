"""Order, waiting, bounds and the end of a connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from functools import partial
from typing import Any, cast

import pytest

from fila_server import commands, errors
from fila_server.broker.interfaces import EnqueueHooks
from fila_server.config.schema import Limits, Redis
from fila_server.edges.redis import connection
from fila_server.edges.redis import server as redis_server
from fila_server.hooks.sandbox import HookLimits
from fila_server.hooks.stage import ParsedFrame
from tests.doors import PLAIN, open_door
from tests.redis.conftest import Connect
from tests.redis.model_engine import ModelEngine
from tests.redis.raw_client import ErrorReply, RawClient, Status, command, until


@pytest.fixture
async def orders(client: RawClient) -> RawClient:
    assert await client("SET", "orders", "mail") == Status("OK")
    return client


# --- order --------------------------------------------------------------------------------


async def test_each_command_of_a_pipeline_sees_what_those_before_it_did(orders: RawClient):
    orders.send(
        command("RPUSH", "orders", "a") + command("HMGET", "orders", "mail", 1)
        + command("RPUSH", "orders", "b", "c") + command("HMGET", "orders", "mail", 9)
        + command("DEL", "orders", "mail") + command("HMGET", "orders", "mail", 1)
        + b"PING\r\n" + command("RPUSH", "orders", "d")
    )  # fmt: skip

    one, first, two, second, deleted, gone, pong, three = await orders.replies(8)
    assert (one, two, three, deleted, pong) == (1, 2, 1, 1, Status("PONG"))
    assert [row[2] for row in first] == [b"a"]
    assert [row[2] for row in second] == [b"b", b"c"]
    assert gone.startswith("CNF")


async def test_pushes_go_on_while_others_wait_for_the_disk_and_replies_keep_their_order(
    orders: RawClient, engine: ModelEngine
):
    engine.hold_answers()
    engine.submitted.clear()
    for number, text in enumerate(("a", "b", "c"), 1):
        orders.send(command("RPUSH", "orders", text) + command("RPUSH", "orders", text, text))
        await until(partial(_has_submitted, engine, 2 * number))
    orders.send(command("HMGET", "orders", "mail", 20))
    await asyncio.sleep(0.01)
    assert engine.submitted[-1][0] == commands.ENQUEUE_ATOMIC, "a read must not overtake a push"
    engine.release_answers()

    assert await orders.replies(6) == [1, 2, 1, 2, 1, 2]
    assert len(await orders.reply()) == 9


async def test_a_thousand_commands_in_one_piece_are_all_answered_in_order(client: RawClient):
    client.send(b"".join(command("ECHO", i) for i in range(20_000)))

    assert await client.replies(20_000) == [str(i).encode() for i in range(20_000)]


async def test_every_command_works_in_pieces_of_one_byte(client: RawClient):
    stream = (
        command("SET", "q", "c") + command("RPUSH", "q", "m", "n") + b"RPUSH q inline\r\n"
        + command("HMGET", "q", "c", 5) + command("HDEL", "q", "c", 1) + command("PING")
    )  # fmt: skip
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in stream:
        client.send(bytes((byte,)))
        await asyncio.sleep(0)

    ok, two, one, rows, none, pong = await client.replies(6)
    assert (ok, two, one, none, pong) == (Status("OK"), 2, 1, 0, Status("PONG"))
    assert [row[2] for row in rows] == [b"m", b"n", b"inline"]


class SlowHooks:
    """Takes longer for the first frames than for the last ones."""

    scripted = True
    limits = HookLimits()

    def __init__(self) -> None:
        self.turns = 20

    def concerns(self, parsed: ParsedFrame) -> bool:
        return True

    async def route(self, parsed: ParsedFrame) -> None:
        self.turns -= 1
        for _ in range(self.turns):
            await asyncio.sleep(0)


async def test_pushes_that_pass_through_a_hook_keep_their_order(
    orders: RawClient, engine: ModelEngine, server: redis_server.Server
):
    server.broker.use_hooks(cast("EnqueueHooks", SlowHooks()))
    orders.send(b"".join(command("RPUSH", "orders", n) + command("RPUSH", "orders", n, n) for n in range(10)))

    assert await orders.replies(20) == [1, 2] * 10
    assert list(engine.queues["orders"].log.values()) == [b"%d" % n for n in range(10) for _ in range(3)]


def _has_submitted(engine: ModelEngine, count: int) -> bool:
    return len(engine.submitted) >= count


# --- waiting reads ------------------------------------------------------------------------


async def test_a_waiting_read_is_woken_by_a_push(orders: RawClient, connect: Connect, engine: ModelEngine):
    orders.send(command("HMGET", "orders", "mail", 5, 10))
    await until(lambda: engine.waiters)
    other = await connect()
    assert b'"blocked_client_count":1' in (await other("INFO", "server"))[0]
    await other("RPUSH", "orders", "a", "b")

    assert [row[2] for row in await orders.reply()] == [b"a", b"b"]
    assert b'"blocked_client_count":0' in (await other("INFO", "server"))[0]


async def test_a_waiting_read_is_woken_by_a_lease_that_expires(orders: RawClient, engine: ModelEngine):
    await orders("RPUSH", "orders", "a")
    await orders("HMGET", "orders", "mail", 1)
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.waiters)
    engine.advance(30_000)

    assert [row[2] for row in await orders.reply()] == [b"a"]


async def test_a_waiting_read_is_woken_by_a_seek(orders: RawClient, connect: Connect, engine: ModelEngine):
    await orders("RPUSH", "orders", "a")
    await orders("HMGET", "orders", "mail", 1)
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.waiters)
    await (await connect())("HMSET", "orders", "mail", "ID", 1)

    assert [row[2] for row in await orders.reply()] == [b"a"]


@pytest.mark.parametrize(("args", "prefix"), [(("DEL", "orders"), "QNF"), (("DEL", "orders", "mail"), "CNF")])
async def test_a_waiting_read_is_told_of_deletion(
    orders: RawClient, connect: Connect, engine: ModelEngine, args: tuple[str, ...], prefix: str
):
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.waiters)
    await (await connect())(*args)

    assert (await orders.reply()).startswith(prefix)


async def test_a_reader_that_leaves_is_taken_out_of_the_core(orders: RawClient, engine: ModelEngine):
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.waiters)
    await orders.close()

    await until(lambda: not engine.waiters)


async def test_what_follows_a_waiting_read_waits_with_it(
    orders: RawClient, connect: Connect, engine: ModelEngine
):
    orders.send(command("HMGET", "orders", "mail", 1, 60) + command("RPUSH", "orders", "mine"))
    await until(lambda: engine.waiters)
    await (await connect())("RPUSH", "orders", "theirs")

    assert [row[2] for row in await orders.reply()] == [b"theirs"]
    assert await orders.reply() == 1


async def test_a_timeout_is_a_null_in_the_protocol_of_the_connection(orders: RawClient, engine: ModelEngine):
    read = command("HMGET", "orders", "mail", 1, 1)
    for hello, null in ((command("PING"), b"*-1\r\n"), (command("HELLO", 3), b"_\r\n")):
        orders.send(hello)
        await orders.reply()
        orders.send(read)
        await until(lambda: engine.waiters)
        engine.advance(1000)
        assert await orders._reader.readexactly(len(null)) == null


async def test_a_thousand_readers_wait_and_each_gets_its_push(connect: Connect, engine: ModelEngine, server):
    settings = server.overrides
    settings._from_file = Redis(bind_address=settings.settings.bind_address)
    clients = [await connect() for _ in range(200)]
    for i, client in enumerate(clients):
        await client("SET", f"q{i}", "c")
        client.send(command("HMGET", f"q{i}", "c", 1, 60))
    await until(lambda: len(engine.waiters) == 200)
    pusher = await connect()
    pusher.send(b"".join(command("RPUSH", f"q{i}", i) for i in range(200)))

    for i, client in enumerate(clients):
        assert (await client.reply())[0][2] == str(i).encode()


async def test_a_client_that_leaves_in_the_middle_of_a_set_leaves_the_server_whole(
    client: RawClient, connect: Connect, engine: ModelEngine, server: redis_server.Server
):
    other = await connect()
    await other("PING")
    engine.hold_answers(commands.CREATE_QUEUE)
    client.send(command("SET", "orders", "mail"))
    await until(lambda: engine.queues)
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not a goodbye
    client.writer.transport.abort()
    await until(lambda: server.client_count == 1)
    engine.release_answers()

    while b"orders" not in (await other("INFO", "queues"))[0]:
        pass


# --- bounds -------------------------------------------------------------------------------


async def test_a_connection_too_many_is_told_so(connect: Connect, server: redis_server.Server):
    clients = [await connect() for _ in range(50)]
    await asyncio.gather(*[client("PING") for client in clients])
    late = await connect()

    assert await late.reply() == ErrorReply("ERR max number of clients reached")
    assert await late.is_closed()
    assert await clients[0]("CONFIG", "SET", "server.max_connections", 51) == Status("OK")
    assert await (await connect())("PING") == Status("PONG")


async def test_a_payload_over_the_limit_is_refused_and_the_connection_stays(orders: RawClient):
    for size in (2**20 + 1, 5 * 2**20):
        reply = await orders("RPUSH", "orders", b"x" * size)
        assert reply.startswith("IPA an argument of"), reply
    assert await orders("RPUSH", "orders", b"x" * 2**20) == 1
    assert len((await orders("HMGET", "orders", "mail", 1))[0][2]) == 2**20


async def test_a_push_over_the_batch_limits_pushes_nothing(orders: RawClient, engine: ModelEngine):
    assert (await orders("RPUSH", "orders", *["m"] * 10_001)).startswith("IPA 10001 messages")
    assert (await orders("RPUSH", "orders", *[b"x" * 2**20] * 17)).startswith("IPA")
    assert engine.queues["orders"].log == {}
    assert await orders("RPUSH", "orders", *["m"] * 10_000) == 10_000


async def test_a_million_element_del_is_an_error_and_the_connection_stays(client: RawClient):
    client.send(b"*1000001\r\n$3\r\nDEL\r\n" + b"$1\r\nx\r\n" * 1_000_000)

    assert (await client.reply()).startswith("IPA")
    assert await client("PING") == Status("PONG")


@pytest.mark.parametrize(
    "stream",
    [
        b"*1\r\n$-1\r\n",
        b"*-5\r\n",
        b"*1\r\n*1\r\n$4\r\nPING\r\n",
        b"*1\r\n$99999999999999999999\r\n",
        b'"x\r\n',
    ],
)
async def test_broken_framing_is_answered_then_closed_after_what_came_before(
    orders: RawClient, stream: bytes
):
    orders.send(command("RPUSH", "orders", "a") + stream)
    orders.send(b"x" * 4_000_000)  # still on its way when the server gives up

    assert await orders.reply() == 1
    assert (await orders.reply()).startswith("ERR Protocol error: ")
    assert await orders.is_closed()


async def test_a_client_that_never_reads_stops_being_read(
    orders: RawClient, monkeypatch: pytest.MonkeyPatch, server: redis_server.Server
):
    await orders("RPUSH", "orders", b"x" * 1000)
    echo = command("ECHO", b"x" * 100_000)
    sent = 0
    orders.writer.transport.set_write_buffer_limits(high=0)
    while True:
        orders.send(echo)
        sent += 1
        try:
            await asyncio.wait_for(orders.writer.drain(), 0.2)
        except TimeoutError:
            break
        assert sent < 1000, "100 MB of replies were taken in for a client that reads none"
    ours: Any = next(iter(server.connections))
    held = ours._decoder.kept_bytes + ours._transport.get_write_buffer_size() + ours._ready_bytes

    assert held < 4 * 2**20
    assert await orders.replies(sent) == [b"x" * 100_000] * sent


async def test_input_kept_for_later_is_bounded_while_the_disk_is_slow(
    orders: RawClient, engine: ModelEngine, server: redis_server.Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "STARTED_BYTES_MAX", 200_000)
    engine.hold_answers()
    push = command("RPUSH", "orders", b"x" * 10_000) * 10
    orders.writer.transport.set_write_buffer_limits(high=0)
    sent = 0
    while True:
        orders.send(push)
        sent += 1
        try:
            await asyncio.wait_for(orders.writer.drain(), 0.2)
        except TimeoutError:
            break
        assert sent < 1000
    ours: Any = next(iter(server.connections))

    assert ours._decoder.kept_bytes < 2 * connection.UNSTARTED_BYTES_MAX
    assert ours._started_bytes < 2_000_000
    engine.release_answers()
    assert await orders.replies(10 * sent) == [1] * (10 * sent)


# --- the end ------------------------------------------------------------------------------


async def test_quit_is_answered_after_what_came_before_and_nothing_after_it(
    orders: RawClient, engine: ModelEngine
):
    orders.send(command("RPUSH", "orders", "a") + command("QUIT") + command("RPUSH", "orders", "b"))

    assert await orders.replies(2) == [1, Status("OK")]
    assert await orders.is_closed()
    assert list(engine.queues["orders"].log.values()) == [b"a"]


async def test_what_was_sent_before_a_half_close_is_answered(orders: RawClient):
    orders.send(command("RPUSH", "orders", "a") + command("HMGET", "orders", "mail", 1) + command("PING"))
    orders.writer.write_eof()

    one, rows, pong = await orders.replies(3)
    assert (one, rows[0][2], pong) == (1, b"a", Status("PONG"))
    assert await orders.is_closed()


async def test_a_half_close_ends_a_wait_and_what_is_behind_it_is_carried_out(
    orders: RawClient, engine: ModelEngine
):
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.waiters)
    orders.send(
        command("RPUSH", "orders", "a") + command("HMGET", "orders", "mail", 1, 60) + command("PING")
        + command("HMGET", "orders", "mail", 1, 60)
    )  # fmt: skip
    orders.writer.write_eof()

    null, one, rows, pong, none_left = await orders.replies(5)
    assert (null, one, rows[0][2], pong, none_left) == (None, 1, b"a", Status("PONG"), None)
    assert await orders.is_closed()
    assert engine.waiters == []


async def test_a_read_that_would_wait_gets_what_is_there_though_its_client_has_closed_its_side(
    orders: RawClient, engine: ModelEngine
):
    await orders("RPUSH", "orders", "a")
    engine.hold_answers(commands.LEASE)
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.queues["orders"].channels["mail"].leases)
    orders.writer.write_eof()
    await until(lambda: commands.CANCEL in [kind for kind, _ in engine.submitted])
    engine.release_answers()

    rows = await orders.reply()
    assert rows is not None, "answered null while its message was on the way"
    assert rows[0][2] == b"a"
    assert await orders.is_closed()


async def test_a_web_page_cannot_talk_through_a_browser(client: RawClient):
    client.send(b"POST / HTTP/1.1\r\nHost: localhost:9797\r\n\r\nRPUSH q m\r\n")

    assert (await client.reply()).startswith("UCOM")
    assert await client.is_closed()


async def test_closing_the_server_ends_waits_and_answers_what_runs(
    orders: RawClient, connect: Connect, engine: ModelEngine, server: redis_server.Server
):
    pusher = await connect()
    orders.send(command("HMGET", "orders", "mail", 1, 60))
    await until(lambda: engine.waiters)
    engine.hold_answers()
    pusher.send(command("RPUSH", "orders", "a"))
    await until(lambda: engine.submitted[-1][0] == commands.ENQUEUE_BATCH)
    closing = asyncio.ensure_future(server.close())
    await asyncio.sleep(0.01)
    engine.release_answers()

    assert await pusher.reply() == 1
    assert await pusher.is_closed()
    await orders.reply()
    assert await orders.is_closed()
    await closing
    assert server.client_count == 0


async def test_a_taken_port_is_an_error_that_names_the_setting(server: redis_server.Server):
    host, port = server.address
    taken = Redis(bind_address=type(server.overrides.settings.bind_address)(f"{host}:{port}"))

    with pytest.raises(errors.PortTaken, match=r"redis\.bind_address"):
        await redis_server.start(server.broker, taken, Limits(), door=open_door(), tls=PLAIN)


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
