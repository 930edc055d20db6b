"""The Redis protocol under a load as redis-benchmark makes it: raw sockets, deep pipelines."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import hiredis

from fila_bench.plan import PROCESSES
from fila_bench.registry import Budget, benchmark
from fila_bench.report import Finding
from fila_bench.server import Server

_QUEUE, _CHANNEL = "bench", "work"
_RECEIVE_BYTES = 1 << 18


class Connection:
    """A socket and a reply parser; commands go out as bytes made beforehand."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()

    def ask(self, pipeline: bytes, replies: int) -> list[object]:
        """Send a pipeline and wait for that many replies."""
        self.socket.sendall(pipeline)
        return [self.reply() for _ in range(replies)]

    def reply(self) -> object:
        while (reply := self._reader.gets()) is False:
            received = self.socket.recv(_RECEIVE_BYTES)
            if not received:
                raise ConnectionError("the server closed the connection")
            self._reader.feed(received)
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply


def command(*words: bytes | str | int) -> bytes:
    encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Push:
    port: int
    connections: int
    pipeline: int
    payload_bytes: int
    seconds: float


@benchmark("redis-push", "RPUSH of 100 B, pipelines of 100, 4 connections")
def redis_push(budget: Budget) -> Iterator[Finding]:
    for durability, reach in (("os", 120_000), ("fsync", 80_000)):
        with Server(durability=durability, redis=True) as server:
            Connection(server.redis_port).ask(command("SET", _QUEUE, _CHANNEL, "NX"), 1)
            plan = _Push(
                port=server.redis_port, connections=4, pipeline=100, payload_bytes=100, seconds=budget.seconds
            )
            with PROCESSES.Pool(1) as pool:
                rate = pool.apply(_push, (plan,))
        yield Finding(
            benchmark="redis-push",
            case=f"4 connections, pipelines of 100, {durability}",
            value=rate,
            unit="msg/s",
            reach=reach,
        )


def _push(plan: _Push) -> float:
    pipeline = command("RPUSH", _QUEUE, b"x" * plan.payload_bytes) * plan.pipeline
    pushed = [0] * plan.connections
    until = time.monotonic() + plan.seconds

    def run(number: int) -> None:
        connection = Connection(plan.port)
        while time.monotonic() < until:
            connection.ask(pipeline, plan.pipeline)
            pushed[number] += plan.pipeline

    threads = [threading.Thread(target=run, args=(number,)) for number in range(plan.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(pushed) / plan.seconds


@benchmark("redis-life", "RPUSH, HMGET 100, HDEL: full life of 1 KB messages in batches of 100")
def redis_life(budget: Budget) -> Iterator[Finding]:
    with Server(redis=True) as server:
        Connection(server.redis_port).ask(command("SET", _QUEUE, _CHANNEL, "NX"), 1)
        with PROCESSES.Pool(2) as pool:
            producing = pool.apply_async(_push_batches, (server.redis_port, budget.seconds))
            done = pool.apply(_take, (server.redis_port, budget.seconds))
            produced = producing.get()
    yield Finding(
        benchmark="redis-life",
        case="1 KB, batches of 100, fsync",
        value=done / budget.seconds,
        unit="msg/s",
        reach=60_000,
        details={"pushed/s": produced / budget.seconds},
    )


def _push_batches(port: int, seconds: float) -> int:
    connection, pushed = Connection(port), 0
    batch = command("RPUSH", _QUEUE, *([b"x" * 1024] * 100))
    until = time.monotonic() + seconds
    # Two under way, so that the server always has one in hand.
    connection.socket.sendall(batch)
    while time.monotonic() < until:
        connection.ask(batch, 1)
        pushed += 100
    return pushed


def _take(port: int, seconds: float) -> int:
    connection, done = Connection(port), 0
    wanted = command("HMGET", _QUEUE, _CHANNEL, 100, 1)
    until = time.monotonic() + seconds
    connection.socket.sendall(wanted)
    while time.monotonic() < until:
        taken = connection.reply()
        tickets = [entry[1] for entry in taken] if isinstance(taken, list) else []
        acks = command("HDEL", _QUEUE, _CHANNEL, *tickets) if tickets else b""
        connection.socket.sendall(acks + wanted)
        if tickets:
            done += int(str(connection.reply()))
    return done


@benchmark("redis-blocked", "1,000 connections blocked in HMGET, then one push to each of 1,000 queues")
def redis_blocked(_budget: Budget) -> Iterator[Finding]:
    count = 1_000
    with Server(redis=True, redis__max_connections=count + 100) as server:
        pusher = Connection(server.redis_port)
        pusher.ask(b"".join(command("SET", f"q{number}", _CHANNEL) for number in range(count)), count)
        readers = [Connection(server.redis_port) for _ in range(count)]
        for number, reader in enumerate(readers):
            reader.socket.sendall(command("HMGET", f"q{number}", _CHANNEL, 1, 30))
        time.sleep(1)
        began = time.monotonic()
        pusher.ask(b"".join(command("RPUSH", f"q{number}", b"x") for number in range(count)), count)
        for reader in readers:
            reader.reply()
        took_s = time.monotonic() - began
    yield Finding(
        benchmark="redis-blocked",
        case="all 1,000 answered after",
        value=took_s * 1e3,
        unit="ms",
        reach=200,
        better="less",
    )
