"""Connections by the hundred, and a system that gives few descriptors: the store always has some."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fila.v1 import admin_pb2, service_pb2
from fila_server.descriptors import KEEP_FREE_MIN, SPARE, Descriptors, count_open
from tests.e2e.conftest import RunningServer, StartServer

LIMIT = 256
KNOCKING = 400


@pytest.fixture
def crowd() -> Iterator[list[socket.socket]]:
    """Connections that a test opens; closed with it."""
    sockets: list[socket.socket] = []
    yield sockets
    for sock in sockets:
        sock.close()


def _knock(address: str, crowd: list[socket.socket]) -> None:
    host, _, port = address.rpartition(":")
    for _ in range(KNOCKING):
        sock = socket.socket()
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            sock.connect((host, int(port)))
        crowd.append(sock)


def _cpu_s(server: RunningServer) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("ports", "has_redis"),
    [(("grpc",), True), (("grpc",), False), (("redis",), True), (("grpc", "redis"), True)],
)
def test_idle_connections_leave_the_store_its_descriptors(
    start_server: StartServer, crowd: list[socket.socket], ports: tuple[str, ...], has_redis: bool
) -> None:
    server = start_server(
        open_files=f"-n {LIMIT}",
        FILA_STORAGE__MEMTABLE_BYTES=str(1 << 20),
        FILA_REDIS__ENABLED=str(has_redis).lower(),
    )
    service, admin = server.service, server.admin
    admin.CreateQueue(admin_pb2.CreateQueueRequest(name="q"))
    enqueue = service_pb2.EnqueueRequest(queue="q", payload=bytes(200_000))
    service.Enqueue(enqueue)
    for port in ports:
        _knock(server.addresses[port], crowd)
    time.sleep(0.3)

    for _ in range(60):
        service.Enqueue(enqueue, timeout=20)

    before_s = _cpu_s(server)
    time.sleep(1.0)
    assert _cpu_s(server) - before_s < 0.8, "an idle server works at the limit"
    assert server.process.poll() is None
    assert server.event("server.few_descriptors")["limit"] == LIMIT

    for sock in crowd:
        sock.close()
    # There is room again, so others are let in.
    assert server.service.Enqueue(enqueue, timeout=20).offset == 62
    assert server.stop() == 0


@pytest.mark.e2e
def test_the_soft_limit_is_raised_to_the_hard_one(start_server: StartServer) -> None:
    server = start_server(open_files="-S -n 300")
    limits = Path(f"/proc/{server.process.pid}/limits").read_text()

    soft, hard = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3:5]

    assert soft == hard


class Counted:
    """Descriptors of a process that is not ours."""

    def __init__(self, limit: int) -> None:
        self.others = 0
        self.shut: list[bool] = []
        self.before = count_open()
        self.descriptors = Descriptors(
            limit, count=lambda: self.others, shut=lambda _listener, is_shut: self.shut.append(is_shut)
        )
        self.descriptors._listeners = [socket.socket()]

    @property
    def spare(self) -> int:
        return len(self.descriptors._spare)


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted(1200)
    yield counted
    counted.descriptors.stop()


def test_the_spare_ones_are_given_up_and_listeners_shut_when_few_are_left(counted: Counted) -> None:
    counted.others = 1200 - 100
    counted.descriptors.look()
    assert (counted.spare, counted.shut) == (SPARE, [])

    counted.others += 1
    counted.descriptors.look()
    counted.descriptors.look()
    assert (counted.spare, counted.shut) == (0, [True])
    assert not counted.descriptors.may_be_kept(10)


def test_listeners_open_again_when_enough_are_free_and_not_before(counted: Counted) -> None:
    counted.others = 1200
    counted.descriptors.look()
    counted.others = 1200 - 100 - SPARE
    counted.descriptors.look()
    assert counted.shut == [True]

    counted.others -= SPARE + 1
    counted.descriptors.look()
    assert (counted.spare, counted.shut) == (SPARE, [True, False])
    assert counted.descriptors.may_be_kept(10)


def test_a_connection_that_would_take_the_last_ones_is_not_kept(counted: Counted) -> None:
    assert counted.descriptors.may_be_kept(1200 - 100 - SPARE - 1)
    assert not counted.descriptors.may_be_kept(1200 - 100 - SPARE)


def test_a_small_limit_keeps_a_few_free_all_the_same() -> None:
    counted = Counted(128)
    assert not counted.descriptors.may_be_kept(128 - KEEP_FREE_MIN - SPARE)
    counted.descriptors.stop()


@pytest.mark.parametrize(
    ("limit", "free", "wait_s"),
    [(1200, 150, 0.05), (1200, 1100, 0.5), (65_536, 65_000, 2.98), (1 << 20, 1 << 20, 5)],
)
def test_the_more_are_free_the_longer_no_look_is_needed(limit: int, free: int, wait_s: float) -> None:
    counted = Counted(limit)
    assert counted.descriptors.wait_s(free) == pytest.approx(wait_s, rel=0.01)
    counted.descriptors.stop()


def test_looking_for_listeners_leaves_nothing_open_that_is_none():
    before = count_open()
    reading, writing = os.pipe()
    descriptors = Descriptors(4096)
    descriptors.guard({1})
    os.close(writing)

    assert os.read(reading, 1) == b"", "the pipe's other end stayed open"
    os.close(reading)
    descriptors.stop()
    assert count_open() == before
