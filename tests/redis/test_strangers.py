"""What a client may send before it has said who it is."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits, Redis
from fila_server.edges.native.redis_client import RedisClient
from fila_server.edges.redis import entry
from fila_server.edges.redis import server as redis_server
from tests.doors import PLAIN, keyed_door
from tests.redis.model_engine import ModelEngine
from tests.redis.raw_client import RawClient, Status, command, until


@pytest.fixture
async def guarded(engine: ModelEngine, settings: Redis, tmp_path: Path) -> AsyncIterator[Guarded]:
    """A server that asks for keys, and one."""
    door, key = await keyed_door(tmp_path)
    broker = Broker(engine)
    await broker.start()
    server = await redis_server.start(broker, settings, Limits(), data_dir="data", door=door, tls=PLAIN)
    yield Guarded(server, key)
    await server.close()
    await broker.stop()


@dataclass
class Guarded:
    server: redis_server.Server
    key: str

    async def receives(self, *pieces: bytes) -> RawClient:
        """A client whose bytes come in these pieces, one right after the other."""
        client = RawClient(*await asyncio.open_connection(*self.server.address))
        await until(lambda: self.server.connections)
        connection: Any = next(iter(self.server.connections))
        for piece in pieces:
            connection.data_received(piece)
        return client


async def test_what_lies_behind_a_key_is_no_strangers_though_it_comes_before_the_key_is_judged(
    guarded: Guarded,
):
    large = command("ECHO", "x" * 300_000)
    client = await guarded.receives(command("AUTH", guarded.key) + large[:1000], large[1000:200_000])
    client.send(large[200_000:] + command("PING"))

    assert await client.replies(3) == [Status("OK"), b"x" * 300_000, Status("PONG")]
    await client.close()


@pytest.mark.parametrize(
    ("stream", "told"),
    [
        (command("ECHO", "x" * 100_000), 1),
        (command("ECHO", "x" * 100_000)[:90_000], 1),
        (command("ECHO", "x" * 1000) * 4000, 66),
        (command("AUTH", "fila_no_such") + command("ECHO", "x" * 1000) * 200, 67),
        (b"\r\n" * 40_000, 1),
    ],
    ids=["one command", "a half of one", "many", "many behind a wrong key", "nothing"],
)
async def test_a_stranger_is_sent_away_after_64_kib(guarded: Guarded, stream: bytes, told: int):
    client = await guarded.receives(stream[:100_000], stream[100_000:])

    replies: list[str] = []
    is_over = False
    while not is_over:
        try:
            replies.append(await client.reply())
        except asyncio.IncompleteReadError:
            is_over = True
    assert {reply.split()[0] for reply in replies} <= {"NOAUTH", "WRONGPASS"}
    assert abs(len(replies) - told) <= 1
    await client.close()


class _Orders:
    """What the threads of the native edge would be told."""

    def __init__(self) -> None:
        self.ended: list[bool] = []

    def redis_reply(self, token: int, client_is: int, caller: int, reply: bytes) -> None:
        pass

    def redis_end(self, token: int, at_once: bool) -> None:
        self.ended.append(at_once)


def a_stranger_of_the_threads(guarded: Guarded, orders: _Orders) -> RedisClient:
    client = RedisClient(guarded.server, orders, 1, [b":peer", b"ipv4:127.0.0.1:4711"])
    client.come_in(3)
    return client


def is_gone(kept: weakref.ref[Any]) -> bool:
    gc.collect()
    return kept() is None


async def test_a_stranger_that_leaves_is_kept_by_nothing_until_its_time_would_be_over(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(entry, "WITHOUT_KEY_S_MAX", 3600.0)
    client = await guarded.receives()
    kept = weakref.ref(next(iter(guarded.server.connections)))
    await client.close()
    await until(lambda: is_gone(kept))

    of_the_threads = a_stranger_of_the_threads(guarded, _Orders())
    kept = weakref.ref(of_the_threads)
    of_the_threads.gone()
    del of_the_threads
    assert is_gone(kept)


async def test_a_client_that_said_who_it_is_stays(guarded: Guarded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(entry, "WITHOUT_KEY_S_MAX", 0.2)
    orders = _Orders()
    known, stranger = (a_stranger_of_the_threads(guarded, orders) for _ in range(2))
    known.entry.authenticate(guarded.key.encode())

    await until(lambda: orders.ended)
    assert (known.entry.caller is not None, stranger.entry.caller, orders.ended) == (True, None, [True])
    for client in (known, stranger):
        client.gone()
