"""A connection of the Redis protocol on a real server: order, waiting, bounds, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import socket
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2
from tests.e2e.conftest import RunningServer, StartServer
from tests.redis.raw_client import ErrorReply, RawClient, Status, command

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

MORE_THAN_IS_KEPT = b"".join(command("RPUSH", "other", "x" * 1000) for _ in range(1300))


def address(server: RunningServer) -> tuple[str, int]:
    host, _, port = server.addresses["redis"].rpartition(":")
    return host, int(port)


class Clients:
    """Those of one test."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self._all: list[RawClient] = []

    async def __call__(self) -> RawClient:
        self._all.append(RawClient(*await asyncio.open_connection(*address(self.server))))
        return self._all[-1]

    async def close(self) -> None:
        for client in self._all:
            await client.close()


@pytest.fixture
async def connect(server: RunningServer) -> AsyncIterator[Clients]:
    clients = Clients(server)
    yield clients
    await clients.close()


@pytest.fixture
async def client(connect: Clients, queue: str) -> RawClient:
    """One that has a queue of the test's own, with a channel `mail`."""
    client = await connect()
    assert await client("SETNX", queue, "mail") == Status("OK")
    return client


async def info(client: RawClient) -> dict[str, float]:
    """What INFO server says: client_count, blocked_client_count, ..."""
    about: dict[str, float] = json.loads((await client("INFO", "server"))[0])
    return about


async def until_blocked(client: RawClient, count: int) -> None:
    async with asyncio.timeout(30):
        while (await info(client))["blocked_client_count"] != count:
            pass


async def carried_out(client: RawClient) -> int:
    """How many commands the server has carried out, this one included."""
    told = (await client("INFO", "all")).decode()
    return int(told.split("total_commands_processed:")[1].split()[0])


async def until_alone(client: RawClient) -> None:
    """Return when the clients of earlier tests, and others of this one, are noticed to have left."""
    async with asyncio.timeout(30):
        while (await info(client))["client_count"] != 1:
            pass


async def until_others_ran(client: RawClient, before: int) -> None:
    """Return once the server has carried out more since `before` than what this client asks here."""
    asked = 0
    async with asyncio.timeout(30):
        while (await carried_out(client)) - before <= (asked := asked + 1):
            pass


# --- order --------------------------------------------------------------------------------


async def test_each_command_of_a_pipeline_sees_what_those_before_it_did(client: RawClient, queue: str):
    client.send(
        command("RPUSH", queue, "a") + command("HMGET", queue, "mail", 1)
        + command("RPUSH", queue, "b", "c") + command("HMGET", queue, "mail", 9)
        + command("DEL", queue, "mail") + command("HMGET", queue, "mail", 1)
        + b"PING\r\n" + command("RPUSH", queue, "d")
    )  # fmt: skip

    one, first, two, second, deleted, gone, pong, three = await client.replies(8)
    assert (one, two, three, deleted, pong) == (1, 2, 1, 1, Status("PONG"))
    assert [row[2] for row in first] == [b"a"]
    assert [row[2] for row in second] == [b"b", b"c"]
    assert gone.startswith("CNF")


async def test_thousands_of_commands_in_one_piece_are_all_answered_in_order(client: RawClient, queue: str):
    pipeline = []
    for number in range(3000):
        pipeline += [
            command("RPUSH", queue, number), command("ECHO", number), command("RPUSH", queue, number, number),
        ]  # fmt: skip
    client.send(b"".join(pipeline))

    for number in range(3000):
        assert await client.replies(3) == [1, str(number).encode(), 2]


async def test_a_run_of_pushes_to_several_queues_tells_each_its_own_outcome(client: RawClient, queue: str):
    client.send(
        command("RPUSH", queue, "a") + command("RPUSH", "nowhere", "b") + command("RPUSH", "a b", "c")
        + command("RPUSH", queue, "d") + command("RPUSH", queue)
    )  # fmt: skip

    first, nowhere, unnamed, last, missing = await client.replies(5)
    assert (first, last) == (1, 1)
    assert nowhere.startswith('QNF queue "nowhere" does not exist; SETNX queue channel makes both')
    assert unnamed.startswith("IPA queue must be 1 to 255 bytes")
    assert missing.startswith("MPA missing parameter: RPUSH queue")


async def test_a_conversation_means_the_same_in_pieces_of_any_size(client: RawClient, queue: str):
    whole = (
        command("RPUSH", queue, "m", "n") + f"RPUSH {queue} 'in line'\r\n".encode()
        + command("HMGET", queue, "mail", 5, "0.5") + command("HDEL", queue, "mail", -7) + command("PING")
        + command("RPUSH", queue, b"\r\n$3\r\n" * 100) + b'echo "a\\x41\\n"\r\n' + b"*0\r\n\r\n"
    )  # fmt: skip
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    cuts = random.Random(5)
    for size in (1, 2, 3, 0, 0, 0):
        at = 0
        while at < len(whole):
            step = size or cuts.randrange(1, 60)
            client.send(whole[at : at + step])
            at += step
            await asyncio.sleep(0)
        two, one, rows, none, pong, again, echo = await client.replies(7)
        assert (two, one, none, pong, again, echo) == (2, 1, 0, Status("PONG"), 1, b"aA\n")
        assert [row[2] for row in rows][-3:] == [b"m", b"n", b"in line"]
        await client("SREM", queue, "mail")


async def test_many_tickets_are_acked_in_one_command(client: RawClient, queue: str):
    for _ in range(3):
        assert await client("RPUSH", queue, *["m"] * 5000) == 5000
    tickets = []
    while rows := await client("HMGET", queue, "mail", 10_000):
        tickets += [row[1] for row in rows]
    assert len(tickets) == 15_000

    assert await client("HDEL", queue, "mail", *tickets, 4711) == 15_000
    assert (await client("HDEL", queue, "elsewhere", *tickets)).startswith("CNF")
    assert (await client("HDEL", queue, "mail", tickets[0], "x")).startswith("IPA Invalid Ticket")


# --- waiting reads ------------------------------------------------------------------------


async def test_what_follows_a_waiting_read_waits_with_it(client: RawClient, connect: Clients, queue: str):
    other = await connect()
    client.send(command("HMGET", queue, "mail", 1, 60) + command("RPUSH", queue, "mine"))
    await until_blocked(other, 1)
    await other("RPUSH", queue, "theirs")

    assert [row[2] for row in await client.reply()] == [b"theirs"]
    assert await client.reply() == 1
    await until_blocked(other, 0)


async def test_a_read_that_waits_in_vain_is_a_null_in_the_protocol_of_its_connection(
    client: RawClient, queue: str
):
    for hello, null in ((command("PING"), b"*-1\r\n"), (command("HELLO", 3), b"_\r\n")):
        client.send(hello)
        await client.reply()
        client.send(command("HMGET", queue, "mail", 1, "0.05"))
        assert await asyncio.wait_for(client._reader.readexactly(len(null)), 10) == null
    assert await client("HMGET", queue, "mail", 1) == []
    assert await client("HMGET", queue, "mail", 0, 60) == []


async def test_readers_that_leave_with_much_pipelined_behind_their_read_are_noticed(
    client: RawClient, connect: Clients, queue: str
):
    await client("SETNX", "other", "mail")
    await until_alone(client)
    for _ in range(5):
        leaving = await connect()
        assert await leaving("PING") == Status("PONG")  # it is counted
        leaving.send(command("HMGET", queue, "mail", 1, 86_400) + MORE_THAN_IS_KEPT)
        await leaving.writer.drain()
        leaving.writer.close()

    await until_alone(client)
    assert (await info(client))["blocked_client_count"] == 0
    for _ in range(5):
        await client("RPUSH", queue, "m")
    assert len(await client("HMGET", queue, "mail", 10)) == 5


async def test_a_read_with_much_pipelined_behind_it_answers_null_and_what_follows_is_carried_out(
    client: RawClient, queue: str
):
    await client("SETNX", "other", "mail")
    client.send(command("HMGET", queue, "mail", 1, 60) + MORE_THAN_IS_KEPT)

    assert await client.reply() is None
    assert await client.replies(1300) == [1] * 1300


async def test_a_reader_that_is_reset_takes_no_message_with_it(
    client: RawClient, connect: Clients, queue: str
):
    reader = await connect()
    reader.send(command("HMGET", queue, "mail", 1, 60))
    await until_blocked(client, 1)
    sock = reader.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reader.writer.transport.abort()
    await until_blocked(client, 0)
    await client("RPUSH", queue, "m")

    assert [row[2] for row in await client("HMGET", queue, "mail", 1)] == [b"m"]


# --- bounds -------------------------------------------------------------------------------


async def test_a_connection_too_many_is_told_so(client: RawClient, connect: Clients):
    await until_alone(client)
    assert await client("CONFIG", "SET", "server.max_connections", 1) == Status("OK")
    late = await connect()

    assert await late.reply() == ErrorReply("ERR max number of clients reached")
    assert await late.is_closed()
    assert await client("CONFIG", "SET", "server.max_connections", 10_000) == Status("OK")
    assert await (await connect())("PING") == Status("PONG")


async def test_a_client_that_reads_nothing_is_not_read_and_others_are_served(
    client: RawClient, connect: Clients
):
    other = await connect()
    echo = command("ECHO", b"x" * 100_000)
    client.writer.transport.set_write_buffer_limits(high=0)
    sent = 0
    while True:
        client.send(echo)
        sent += 1
        try:
            await asyncio.wait_for(client.writer.drain(), 0.5)
        except TimeoutError:
            break
        assert sent < 1000, "100 MB of replies were taken in for a client that reads none"

    assert await other("PING") == Status("PONG")
    assert await client.replies(sent) == [b"x" * 100_000] * sent


async def test_pushes_and_reads_of_a_client_that_reads_nothing_are_bounded_too(
    client: RawClient, connect: Clients, queue: str
):
    other = await connect()
    assert await client("RPUSH", queue, *[b"x" * 100_000] * 100) == 100
    read = command("HMGET", queue, "mail", 10) + command("RPUSH", queue, b"y" * 10_000)
    client.writer.transport.set_write_buffer_limits(high=0)
    sent = 0
    while True:
        client.send(read)
        sent += 1
        try:
            await asyncio.wait_for(client.writer.drain(), 0.5)
        except TimeoutError:
            break
        assert sent < 5000
    assert await other("RPUSH", queue, "z") == 1

    rows = 0
    for _ in range(sent):
        rows += len(await client.reply())
        assert await client.reply() == 1
    assert rows >= 100


async def test_what_is_too_large_is_refused_and_the_connection_stays(client: RawClient, queue: str):
    for size in (2**20 + 1, 5 * 2**20):
        reply = await client("RPUSH", queue, b"x" * size)
        assert reply.startswith("IPA an argument of"), reply
    assert (await client("RPUSH", queue, *["m"] * 10_001)).startswith("IPA 10001 messages")
    assert (await client("RPUSH", queue, *[b"x" * 2**20] * 17)).startswith("IPA")
    assert await client("RPUSH", queue, b"x" * 2**20) == 1
    assert await client("RPUSH", queue, *["m"] * 10_000) == 10_000
    assert len((await client("HMGET", queue, "mail", 1))[0][2]) == 2**20


@pytest.mark.parametrize(
    "stream",
    [
        b"*1\r\n$-1\r\n", b"*-5\r\n", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"*1\r\n$99999999999999999999\r\n",
        b'"x\r\n', b"x" * 70_000,
    ],
)  # fmt: skip
async def test_broken_framing_is_answered_after_what_came_before_then_the_connection_ends(
    client: RawClient, queue: str, stream: bytes
):
    client.send(command("RPUSH", queue, "a") + stream)
    with contextlib.suppress(ConnectionError):
        client.send(b"x" * 4_000_000)  # still on its way when the server gives up

    assert await client.reply() == 1
    assert (await client.reply()).startswith("ERR Protocol error: ")
    assert await client.is_closed()


# --- the end ------------------------------------------------------------------------------


async def test_quit_is_answered_after_what_came_before_and_nothing_after_it(
    client: RawClient, connect: Clients, queue: str
):
    client.send(command("RPUSH", queue, "a") + command("QUIT") + command("RPUSH", queue, "b"))

    assert await client.replies(2) == [1, Status("OK")]
    assert await client.is_closed()
    assert [row[2] for row in await (await connect())("HMGET", queue, "mail", 9)] == [b"a"]


async def test_what_was_sent_before_a_half_close_is_answered(client: RawClient, queue: str):
    client.send(command("RPUSH", queue, "a") + command("HMGET", queue, "mail", 1) + command("PING"))
    client.writer.write_eof()

    one, rows, pong = await client.replies(3)
    assert (one, rows[0][2], pong) == (1, b"a", Status("PONG"))
    assert await client.is_closed()


async def test_a_half_close_ends_a_wait_and_what_is_behind_it_is_carried_out(
    client: RawClient, connect: Clients, queue: str
):
    other = await connect()
    client.send(command("HMGET", queue, "mail", 1, 60))
    await until_blocked(other, 1)
    client.send(
        command("RPUSH", queue, "a") + command("HMGET", queue, "mail", 1, 60) + command("PING")
        + command("HMGET", queue, "mail", 1, 60) + command("HMGET", queue, "mail", 1)
    )  # fmt: skip
    client.writer.write_eof()

    null, one, rows, pong, none_left, empty = await client.replies(6)
    assert (null, one, rows[0][2], pong) == (None, 1, b"a", Status("PONG"))
    assert (none_left, empty) == (None, []), "nobody is left to wait, and the reply is that of a wait"
    assert await client.is_closed()
    await until_blocked(other, 0)


async def test_a_read_that_would_wait_gets_what_is_there_though_its_client_has_closed_its_side(
    connect: Clients, client: RawClient, queue: str
):
    for number in range(20):
        await client("RPUSH", queue, f"{number}")
        leaving = await connect()
        leaving.send(command("HMGET", queue, "mail", 1, 60))
        leaving.writer.write_eof()
        rows = await leaving.reply()
        assert rows is not None, f"read {number} was answered null while its message was there"
        assert rows[0][2] == b"%d" % number
        assert await leaving.is_closed()


async def test_a_web_page_cannot_talk_through_a_browser(client: RawClient):
    client.send(b"POST / HTTP/1.1\r\nHost: localhost:9797\r\n\r\nRPUSH q m\r\n")

    assert (await client.reply()).startswith("UCOM")
    assert await client.is_closed()


async def test_clients_name_and_list_themselves(client: RawClient, connect: Clients):
    number = await client("CLIENT", "ID")
    assert await client("CLIENT", "SETNAME", "worker-1") == Status("OK")
    other = await connect()
    await other("PING")

    listed = (await client("CLIENT", "LIST")).decode()
    assert f"id={number} addr=127.0.0.1:" in listed
    assert "name=worker-1 " in listed
    assert listed.count("\n") >= 2
    assert await client("RESET") == Status("RESET")
    assert await client("CLIENT", "GETNAME") is None


async def test_a_clients_number_grows_and_does_not_count_the_others(client: RawClient, connect: Clients):
    # One after the other: beside each other two I/O threads may take them in any order.
    numbers = [await client("CLIENT", "ID")] + [await (await connect())("CLIENT", "ID") for _ in range(3)]

    assert numbers == sorted(set(numbers))
    assert all(abs(number / 1_000_000 - time.time()) < 3600 for number in numbers), "it is a time"
    assert await client("CLIENT", "ID") == numbers[0]


async def test_a_stop_ends_waits_and_answers_what_runs(start_server: StartServer):
    server = start_server()
    connect = Clients(server)
    waiting, pushing, idle = await connect(), await connect(), await connect()
    assert await waiting("SET", "orders", "mail") == Status("OK")
    assert await idle("PING") == Status("PONG")
    waiting.send(command("HMGET", "orders", "mail", 1, 60))
    await until_blocked(pushing, 1)
    before = await carried_out(idle)
    pushing.send(command("RPUSH", "orders", *["m" * 1000] * 5000))
    await until_others_ran(idle, before)
    server.process.send_signal(signal.SIGTERM)

    # The push may have been in time, or not; it is answered either way.
    pushed = await pushing.reply()
    assert pushed == 5000 or isinstance(pushed, ErrorReply)
    rows = await waiting.reply()
    assert isinstance(rows, ErrorReply) or len(rows) == 1
    for client in (waiting, pushing, idle):
        assert await client.is_closed()
    assert await asyncio.to_thread(server.stop) == 0
    await connect.close()


# --- scripts and keys ---------------------------------------------------------------------


async def test_pushes_that_pass_through_a_script_keep_their_order_and_are_routed(
    client: RawClient, server: RunningServer, queue: str
):
    script = (
        "function on_enqueue(msg) return { fairness_key = msg.payload_size > 1 and 'long' or 'short' } end"
    )
    name = f"{queue}-scripted"
    config = admin_pb2.QueueConfig(on_enqueue_script=script, channels=["mail"])
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name, config=config))
    client.send(
        b"".join(
            command("RPUSH", name, n) + command("RPUSH", queue, n) + command("RPUSH", name, n, n)
            for n in range(100)
        )
        + command("PING")
    )

    assert await client.replies(301) == [1, 1, 2] * 100 + [Status("PONG")]
    assert len(await client("HMGET", name, "mail", 500)) == 300
    plain = [row[2] for row in await client("HMGET", queue, "mail", 500)]
    assert plain == [str(n).encode() for n in range(100)]


async def test_without_a_key_nothing_but_auth_is_answered_and_with_one_all_that_it_may(
    start_server: StartServer,
):
    server = start_server(FILA_AUTH__ENABLED="true")
    key = await asyncio.to_thread(Path(server.data_dir, "bootstrap-key").read_text)
    connect = Clients(server)
    client = await connect()
    for words in (("RPUSH", "q", "m"), ("HMGET", "q", "c", 1), ("HDEL", "q", "c", 1), ("PING",), ("INFO",)):
        assert (await client(*words)).startswith("NOAUTH"), words
    assert (await client("AUTH", "fila_no_such")).startswith("WRONGPASS")
    client.send(
        command("AUTH", key.strip()) + command("SET", "q", "c") + command("RPUSH", "q", "a")
        + command("RPUSH", "q", "b", "c") + command("HMGET", "q", "c", 9) + command("RESET")
        + command("RPUSH", "q", "d")
    )  # fmt: skip

    ok, made, one, two, rows, reset, refused = await client.replies(7)
    assert (ok, made, one, two, reset) == (Status("OK"), Status("OK"), 1, 2, Status("RESET"))
    assert [row[2] for row in rows] == [b"a", b"b", b"c"]
    assert refused.startswith("NOAUTH")
    eager = await connect()
    eager.send(command("AUTH", key.strip()) + command("RPUSH", "q", "x" * 300_000) + command("PING"))
    assert await eager.replies(3) == [Status("OK"), 1, Status("PONG")]
    flooding = await connect()
    with contextlib.suppress(ConnectionError):
        flooding.send(command("ECHO", "x" * 1000) * 4000)
    told = 0
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while (await flooding.reply()).startswith("NOAUTH"):
            told += 1
    assert 1 <= told < 1000, "four megabytes were taken from a client without a key"
    await connect.close()
