"""Clients of Redis while the core answers nothing yet, as on a slow disk; and what comes to those who left."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from fila_server.access.rights import PRODUCE
from fila_server.edge.redis.port import REDIS_GONE
from tests.grpc_edge.told_edge import CALLER, ToldEdge
from tests.redis.raw_client import command

KEPT_AND_STARTED_BYTES_MAX = 16 << 20
"""What the edge keeps and what it has begun is 5 MiB; the rest lies in the buffers of both sockets."""


@pytest.fixture
def edge() -> Iterator[ToldEdge]:
    edge = ToldEdge()
    edge.engine.create_queue("orders", channels=["mail"])
    yield edge
    edge.close()


def received(edge: ToldEdge, client: socket.socket, is_whole: Callable[[bytes], bool]) -> bytes:
    """What comes while passes are run, up to where it is whole."""
    data = b""
    client.setblocking(False)

    def take() -> bool:
        nonlocal data
        with contextlib.suppress(BlockingIOError):
            data += client.recv(65536)
        return is_whole(data)

    edge.run_until(take, "replies came")
    return data


def test_pushes_go_on_while_others_wait_for_the_disk_and_a_read_overtakes_none_of_them(edge: ToldEdge):
    with edge.redis_client() as client:
        for text in (b"a", b"b", b"c"):
            client.sendall(command("RPUSH", "orders", text) + command("RPUSH", "orders", text, text))
            edge.until_read()
        client.sendall(command("HMGET", "orders", "mail", 20))
        client.sendall(command("RPUSH", "orders", "d"))
        edge.until_read()

        edge.engine.run_pass()
        assert (edge.count("frames_in"), edge.count("leases")) == (6, 0)
        replies = received(edge, client, lambda data: data.endswith(b"\r\nc\r\n:1\r\n"))
        assert replies.startswith(b":1\r\n:2\r\n" * 3 + b"*9\r\n*3\r\n:1\r\n")


def test_input_of_a_client_whose_pushes_wait_for_the_disk_is_bounded(edge: ToldEdge):
    push = command("RPUSH", "orders", b"x" * 10_000) * 10
    with edge.redis_client() as client:
        client.settimeout(0.5)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < KEPT_AND_STARTED_BYTES_MAX:
                client.sendall(push)
                sent += len(push)

    assert sent < KEPT_AND_STARTED_BYTES_MAX


def test_what_a_client_was_given_when_it_had_left_goes_to_the_next_reader(edge: ToldEdge):
    leaving, other = edge.redis_client(), edge.redis_client()
    leaving.sendall(command("HMGET", "orders", "mail", 1, 60))
    edge.until_blocked(1)
    edge.engine.settle_down()
    other.sendall(command("RPUSH", "orders", "m"))
    edge.until_read()
    # The next pass gives it away, and only then finds the word that nobody waits any more.
    leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    leaving.close()
    assert edge.told()[0] == REDIS_GONE
    edge.until_read()
    edge.run_until(lambda: edge.engine.stats("orders").in_flight == 0, "message was given back")

    other.sendall(command("HMGET", "orders", "mail", 1))
    received(edge, other, lambda data: data.endswith(b"$1\r\nm\r\n"))
    other.close()


@pytest.fixture
def producers() -> Iterator[ToldEdge]:
    """One whose only key may produce."""
    edge = ToldEdge(grants=[(PRODUCE, "orders", "")])
    edge.engine.create_queue("orders", channels=["mail"])
    yield edge
    edge.close()


def test_a_read_without_its_right_is_refused_for_that_also_where_rights_of_others_change_meanwhile(
    producers: ToldEdge,
):
    with producers.redis_client(CALLER) as client:
        client.sendall(command("HMGET", "orders", "mail", 1, 60))
        producers.until_begun(1)
        producers.change_rights_of_another()
        producers.until_read()
        assert received(producers, client, lambda data: data.endswith(b"\r\n")).startswith(
            b"-NOPERM consume: "
        )
