"""What the threads answer to Redis clients by themselves, without a turn of the asyncio loop."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila_server.core.drive.engine import CoreEngine
from fila_server.edges.native.edge import NativeEdge
from fila_server.edges.native.redis_client import KNOWN
from fila_server.edges.native.redis_port import REDIS_COMMAND, REDIS_OPENED
from tests.redis.raw_client import command

WAIT_S = 10.0


class Edge:
    """Threads whose loop is this test."""

    def __init__(self, data_dir: Path) -> None:
        self._engine = CoreEngine(str(data_dir), {}, mono_ns=1, wall_ns=time.time_ns(), seed=1)
        self._edge = NativeEdge(
            self._engine,
            threads=1,
            message_bytes_max=1 << 20,
            unread_bytes_max=1 << 20,
            calls_outstanding_max=9,
        )
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self.address = listener.getsockname()
        self._edge.listen_redis([listener.detach()])
        self._edge.start([])

    def told(self) -> tuple[int, int]:
        """What comes next, and of which client."""
        assert select.select([self._edge.event_fd], [], [], WAIT_S)[0], "nothing was told"
        ((what, token, *_),) = self._edge.take()
        return what, token

    def let_in(self, token: int, client_is: int) -> None:
        self._edge.redis_reply(token, client_is, 0, b"")

    def has_told(self) -> bool:
        return bool(self._edge.take())

    def close(self) -> None:
        self._edge.drain(0)
        self._edge.join()
        self._engine.close()


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    edge = Edge(tmp_path / "data")
    yield edge
    edge.close()


@pytest.fixture
def client(edge: Edge) -> Iterator[socket.socket]:
    with socket.create_connection(edge.address, timeout=WAIT_S) as sock:
        yield sock


def received(client: socket.socket, expected: bytes) -> bytes:
    data = b""
    while len(data) < len(expected):
        piece = client.recv(65536)
        assert piece, data
        data += piece
    return data


def test_ping_and_echo_wait_for_nobody(edge: Edge, client: socket.socket):
    what, token = edge.told()
    assert what == REDIS_OPENED
    edge.let_in(token, KNOWN)
    message = b"\0\r\n" + b"x" * 100_000
    client.sendall(
        command("PING") + command("ping", "hello") + b"Echo inline\r\n" + command("ECHO", message)
        + command("PING", b"")
    )  # fmt: skip

    replies = b"+PONG\r\n$5\r\nhello\r\n$6\r\ninline\r\n$100003\r\n" + message + b"\r\n$0\r\n\r\n"
    assert received(client, replies) == replies
    assert not edge.has_told()


@pytest.mark.parametrize(
    "words", [("PING", "a", "b"), ("ECHO",), ("ECHO", "a", "b"), ("PINGS",), ("INFO",), ("HINT", "a")]
)
def test_what_is_asked_wrongly_is_for_python_to_explain(
    edge: Edge, client: socket.socket, words: tuple[str, ...]
):
    _, token = edge.told()
    edge.let_in(token, KNOWN)
    client.sendall(command(*words))

    assert edge.told() == (REDIS_COMMAND, token)


def test_without_a_key_even_a_ping_is_for_python_to_refuse(edge: Edge, client: socket.socket):
    _, token = edge.told()
    edge.let_in(token, 0)
    client.sendall(command("PING"))

    assert edge.told() == (REDIS_COMMAND, token)
