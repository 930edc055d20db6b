"""Calls that the threads leave to Python: bounded before it takes them, and not begun for clients that left."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from fila_server.core.runtime.engine import CoreEngine
from fila_server.edge.io.edge import NativeEdge
from fila_server.edge.python_calls import CALL, GONE, UNWELCOME, PythonCalls
from fila_server.edge.redis.port import REDIS_GONE, REDIS_OPENED
from tests.grpc_edge.raw_http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    RawClient,
    frame,
    headers,
    message,
)

OFFERED_MAX = 1000
CHECK = headers("/grpc.health.v1.Health/Check")


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[NativeEdge]:
    """Threads whose loop is this test."""
    engine = CoreEngine(str(tmp_path / "data"), {}, mono_ns=1, wall_ns=time.time_ns(), seed=1)
    edge = NativeEdge(
        engine, threads=1, message_bytes_max=1 << 20, unread_bytes_max=1 << 20, calls_outstanding_max=9
    )
    yield edge
    edge.drain(0)
    edge.join()
    engine.close()


@pytest.fixture
def listener() -> socket.socket:
    """Clients connect to it before anybody serves it, too."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"{host}:{port}"


def call(stream: int) -> bytes:
    return frame(HEADERS, END_HEADERS, stream, CHECK) + frame(DATA, END_STREAM, stream, message(b""))


def refused(client: RawClient, count: int) -> None:
    """So many calls are answered; nobody but the threads is here to do it."""
    for _ in range(count):
        client.until(lambda answer: answer.kind == HEADERS and bool(answer.flags & END_STREAM), wait_s=60)


def test_calls_that_python_has_not_taken_are_bounded_and_what_is_taken_makes_room(
    edge: NativeEdge, listener: socket.socket
):
    address = address_of(listener)
    edge.start([listener.detach()])
    with RawClient(address) as client:
        client.send(b"".join(call(1 + 2 * number) for number in range(OFFERED_MAX + 300)))
        refused(client, 300)

        taken = [what for what, *_ in edge.take()]
        assert OFFERED_MAX // 2 <= taken.count(CALL) <= OFFERED_MAX

        client.send(b"".join(call(10_001 + 2 * number) for number in range(OFFERED_MAX + 1)))
        ends_s, more = time.monotonic() + 60, 0
        while more < OFFERED_MAX // 2:
            assert time.monotonic() < ends_s, f"{more} calls were offered after all were taken"
            more += [what for what, *_ in edge.take()].count(CALL)
            time.sleep(0.001)


def test_a_client_that_floods_leaves_places_for_others(edge: NativeEdge, listener: socket.socket):
    """Nothing is taken meanwhile, so no place becomes free by itself."""
    address = address_of(listener)
    edge.start([listener.detach()])
    with RawClient(address) as greedy, RawClient(address) as other:
        greedy.send(b"".join(call(1 + 2 * number) for number in range(OFFERED_MAX + 200)))
        refused(greedy, 200)
        other.send(frame(HEADERS, END_HEADERS, 1, headers("/other.Service/Call")))
        other.send(frame(PING, 0, 0, b"12345678"))
        other.until(lambda answer: answer.kind == PING and bool(answer.flags & ACK), wait_s=60)

        taken = [about for what, _, _, about, _ in edge.take() if what == CALL]
    assert any(b"/other.Service/Call" in about for about in taken), "the other's call was refused"


def test_a_client_with_many_calls_has_a_turn_as_others_have(edge: NativeEdge, listener: socket.socket):
    address = address_of(listener)
    with RawClient(address) as greedy, RawClient(address) as other:
        greedy.send(b"".join(call(1 + 2 * number) for number in range(900)))
        other.send(frame(HEADERS, END_HEADERS, 1, headers("/other.Service/Call")))
        edge.start([listener.detach()])

        begun: list[bytes] = []
        ends_s = time.monotonic() + 60
        while not any(b"/other.Service/Call" in about for about in begun):
            assert time.monotonic() < ends_s, f"{len(begun)} calls of the greedy one, and none of the other"
            begun += [about for what, _, _, about, _ in edge.take() if what == CALL]
            time.sleep(0.001)
        before = next(place for place, about in enumerate(begun) if b"/other.Service/Call" in about)
        assert before < 250, f"{before} calls of one client were begun before the first of another"


def test_of_a_call_of_the_health_service_only_what_it_asks_for_is_kept(
    edge: NativeEdge, listener: socket.socket
):
    """A byte of a header block names a field that was sent before, and is a copy of it for Python."""
    address = address_of(listener)
    edge.start([listener.detach()])
    name, value = b"grpc-accept-encoding", b"gzip," * 20
    once = b"\x40" + bytes((len(name),)) + name + bytes((len(value),)) + value
    with RawClient(address) as client:
        client.send(frame(HEADERS, END_HEADERS, 1, CHECK + once + b"\xbe" * 200))
        client.send(frame(PING, 0, 0, b"12345678"))
        client.until(lambda answer: answer.kind == PING and bool(answer.flags & ACK), wait_s=60)

        [about] = [about for what, _, _, about, _ in edge.take() if what == CALL]
    assert b"/grpc.health.v1.Health/Check" in about
    assert len(about) < 256


class Told:
    """Threads of which only what they say matters."""

    def __init__(self) -> None:
        self.events: list[tuple[int, int, int, bytes, None]] = []

    def take(self) -> list[tuple[int, int, int, bytes, None]]:
        return self.events


@pytest.mark.parametrize(("comes", "leaves"), [(CALL, GONE), (UNWELCOME, GONE), (REDIS_OPENED, REDIS_GONE)])
def test_nothing_is_begun_for_a_call_that_came_and_left_between_two_turns(comes: int, leaves: int):
    begun: list[tuple[int, int]] = []
    edge = Told()
    calls = PythonCalls(cast("Any", edge), cast("Any", None), [], 9, lambda _: None)
    calls.redis = lambda what, token, *_: begun.append((what, token))
    cast("Any", calls)._begin = lambda token, _: begun.append((CALL, token))
    cast("Any", calls)._turn_away = lambda token, _: begun.append((UNWELCOME, token))
    cast("Any", calls)._gone = lambda token: begun.append((GONE, token))
    edge.events = [
        (comes, 1, 0, b"", None),
        (comes, 2, 0, b"", None),
        (leaves, 1, 0, b"", None),
        (leaves, 3, 0, b"", None),
    ]

    calls.take_events()

    assert begun == [(comes, 2), (leaves, 3)]
