"""What the threads answer to Redis clients by themselves, without a turn of the asyncio loop."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from fila_server.edge.redis.port import REDIS_COMMAND, REDIS_OPENED
from fila_server.edge.redis.socket_client import KNOWN
from tests.grpc_edge.told_edge import WAIT_S, ToldEdge
from tests.redis.raw_client import command


@pytest.fixture
def edge() -> Iterator[ToldEdge]:
    edge = ToldEdge()
    yield edge
    edge.close()


@pytest.fixture
def client(edge: ToldEdge) -> Iterator[socket.socket]:
    with socket.create_connection(edge.redis_address, timeout=WAIT_S) as sock:
        yield sock


def received(client: socket.socket, expected: bytes) -> bytes:
    data = b""
    while len(data) < len(expected):
        piece = client.recv(65536)
        assert piece, data
        data += piece
    return data


def test_ping_and_echo_wait_for_nobody(edge: ToldEdge, client: socket.socket):
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
    edge: ToldEdge, client: socket.socket, words: tuple[str, ...]
):
    _, token = edge.told()
    edge.let_in(token, KNOWN)
    client.sendall(command(*words))

    assert edge.told() == (REDIS_COMMAND, token)


def test_without_a_key_even_a_ping_is_for_python_to_refuse(edge: ToldEdge, client: socket.socket):
    _, token = edge.told()
    edge.let_in(token, 0)
    client.sendall(command("PING"))

    assert edge.told() == (REDIS_COMMAND, token)
