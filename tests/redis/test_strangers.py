"""What a client may send before it has said who it is."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from fila_server.config.schema import Limits, Redis
from fila_server.edge.redis import entry
from fila_server.edge.redis.port import RedisPort
from fila_server.edge.redis.socket_client import RedisClient
from tests.admissions import keyed_admission
from tests.e2e.conftest import RunningServer, launch, wait_until_started
from tests.redis.conftest import connected_to
from tests.redis.raw_client import Status, command, until


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that asks for keys."""
    folder = tmp_path_factory.mktemp("guarded")
    running = wait_until_started(launch(folder / "data", folder / "server.log", FILA_AUTH__ENABLED="true"))
    yield running
    assert running.stop() == 0, running.log_file.read_text()


@pytest.fixture
def key(guarded: RunningServer) -> str:
    return (guarded.data_dir / "bootstrap-key").read_text().strip()


@pytest.mark.e2e
async def test_what_lies_behind_a_key_is_no_strangers_though_it_comes_before_the_key_is_judged(
    guarded: RunningServer, key: str
):
    client = await connected_to(guarded)
    client.send(command("AUTH", key) + command("ECHO", "x" * 300_000) + command("PING"))

    assert await client.replies(3) == [Status("OK"), b"x" * 300_000, Status("PONG")]
    await client.close()


@pytest.mark.e2e
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
async def test_a_stranger_is_sent_away_after_64_kib(guarded: RunningServer, stream: bytes, told: int):
    client = await connected_to(guarded)
    client.send(stream)

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


class _Threads:
    """What the edge's threads would be told."""

    def __init__(self) -> None:
        self.ended: list[bool] = []

    def redis_reply(self, token: int, client_is: int, caller: int, reply: bytes) -> None:
        pass

    def redis_end(self, token: int, at_once: bool) -> None:
        self.ended.append(at_once)


@dataclass
class Port:
    """A Redis port that asks for keys, over threads that are none, and one key."""

    port: RedisPort
    threads: _Threads
    key: str

    def stranger(self) -> RedisClient:
        client = RedisClient(self.port, self.threads, 1, [b":peer", b"ipv4:127.0.0.1:4711"])
        client.come_in(3)
        return client


@pytest.fixture
async def port(tmp_path: Path) -> Port:
    admission, key = await keyed_admission(tmp_path)
    threads, no_broker = _Threads(), cast("Any", _NoBroker())
    return Port(
        RedisPort(cast("Any", threads), no_broker, Redis(), Limits(), "data", lambda _: True, admission),
        threads,
        key,
    )


class _NoBroker:
    """Strangers reach none; what was set while running is nothing."""

    runtime_config: dict[str, str] = {}  # noqa: RUF012 - nobody writes it


def is_gone(kept: weakref.ref[Any]) -> bool:
    gc.collect()
    return kept() is None


async def test_a_stranger_that_leaves_is_kept_by_nothing_until_its_time_would_be_over(
    port: Port, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(entry, "WITHOUT_KEY_S_MAX", 3600.0)
    stranger = port.stranger()
    kept = weakref.ref(stranger)
    stranger.gone()
    del stranger
    assert is_gone(kept)


async def test_a_client_that_said_who_it_is_stays(port: Port, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(entry, "WITHOUT_KEY_S_MAX", 0.2)
    known, stranger = port.stranger(), port.stranger()
    known.entry.authenticate(port.key.encode())

    await until(lambda: port.threads.ended)
    assert (known.entry.caller is not None, stranger.entry.caller, port.threads.ended) == (True, None, [True])
    for client in (known, stranger):
        client.gone()
