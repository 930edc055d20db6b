"""A disk that fills up under load: refused, drained, and on again when there is room; nothing answered is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import grpc
import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.e2e.conftest import RunningServer, StartServer

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(120)]

MIB = 1 << 20
SMALL_DISK_BYTES = 420 * MIB
SETTINGS = {
    "FILA_STORAGE__MIN_FREE_BYTES": str(128 * MIB),
    "FILA_STORAGE__BALLAST_BYTES": str(32 * MIB),
    "FILA_STORAGE__WAL_BYTES_MAX": str(48 * MIB),
}


def _eventually(happens: Callable[[], Any], within_s: float = 20.0) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := happens()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
    return found


class Producer:
    """Enqueues frames in a thread; remembers what was answered and how it was refused."""

    def __init__(self, server: RunningServer) -> None:
        self.service = server.service
        self.stored: set[str] = set()
        self.refusals: list[str] = []
        self.other: list[grpc.RpcError] = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join(20)

    def _run(self) -> None:
        while not self.stopping.is_set():
            self.send(100)

    def send(self, count: int) -> int:
        messages = [{"payload": os.urandom(4_000)} for _ in range(count)]
        request = service_pb2.EnqueueBatchRequest(queue="orders", messages=messages)
        try:
            results = self.service.EnqueueBatch(request, timeout=20).results
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                self.other.append(error)
                self.stopping.set()
            time.sleep(0.02)
            return 0
        stored = [result.message_id for result in results if not result.error.code]
        self.stored |= set(stored)
        self.refusals += [result.error.reason for result in results if result.error.code]
        if len(stored) < count:
            time.sleep(0.02)
        return len(stored)


def _drain(server: RunningServer, most: int) -> set[str]:
    """Lease and ack up to `most`; the ids whose ack was answered."""
    acked: set[str] = set()
    service = server.service
    while len(acked) < most:
        leased = service.Lease(
            service_pb2.LeaseRequest(queue="orders", max_messages=200), timeout=20
        ).messages
        if not leased:
            break
        items = [{"message_id": m.id, "lease_id": m.metadata.lease_id} for m in leased]
        results = service.AckBatch(
            service_pb2.AckBatchRequest(queue="orders", items=items), timeout=20
        ).results
        acked |= {m.id for m, result in zip(leased, results, strict=True) if not result.code}
    return acked


def _pending(server: RunningServer) -> set[str]:
    pending: set[str] = set()
    after = 0
    while True:
        request = admin_pb2.PeekMessagesRequest(queue="orders", max_messages=1_000, after_offset=after)
        page = server.admin.PeekMessages(request, timeout=20).messages
        if not page:
            return pending
        pending |= {message.id for message in page}
        after = page[-1].metadata.offset


def _free(disk: Path) -> int:
    space = os.statvfs(disk)
    return space.f_bavail * space.f_frsize


@pytest.mark.costly("a server that fills a disk")
def test_a_disk_that_fills_up_refuses_enqueues_goes_on_delivering_and_recovers_by_itself(
    small_disk: Path, start_server: StartServer
) -> None:
    server = start_server(small_disk / "data", **SETTINGS)
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))

    with Producer(server) as producer:
        _eventually(lambda: producer.refusals or producer.other, within_s=60)
        assert _free(small_disk) > 64 * MIB, "the floor refuses, long before the disk is full"
        acked = _drain(server, 2_000)
        assert len(acked) >= 2_000, "acks and deliveries go on under the floor"
    assert not producer.other
    assert set(producer.refusals) == {"DISK_FLOOR"}
    assert server.process.poll() is None
    assert _pending(server) == producer.stored - acked

    acked |= _drain(server, len(producer.stored))
    assert acked == producer.stored
    _eventually(lambda: producer.send(10))


@contextlib.contextmanager
def _hogging(disk: Path) -> Iterator[None]:
    """Somebody else takes every byte but 6 MiB, also those that are given back, until this is left."""
    stopping = threading.Event()

    def take() -> None:
        with (disk / "hog").open("wb") as file:
            while not stopping.is_set():
                if _free(disk) > 7 * MIB:
                    file.write(bytes(MIB))
                    file.flush()
                time.sleep(0.002)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    yield
    stopping.set()
    thread.join()
    (disk / "hog").unlink()


def test_others_who_take_the_last_of_the_disk_stop_the_server_no_longer_than_they_hold_it(
    small_disk: Path, start_server: StartServer
) -> None:
    server = start_server(small_disk / "data", **SETTINGS)
    server.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    with Producer(server) as producer:
        _eventually(lambda: len(producer.stored) > 5_000, within_s=30)
        with _hogging(small_disk):
            _eventually(lambda: not (small_disk / "data" / "ballast").exists())
            _eventually(lambda: _free(small_disk) < 12 * MIB)
            time.sleep(0.5)  # the space is looked at ten times a second
            assert server.process.poll() is None
            # What must be written waits until there is room, and is not answered before.
            setting = server.admin.SetConfig.future(
                admin_pb2.SetConfigRequest(key="a", value="b"), timeout=30
            )
            count = len(producer.stored)
        _eventually(lambda: len(producer.stored) > count or producer.other)
    setting.result()
    assert not producer.other
    assert server.process.poll() is None

    server.stop(signal.SIGKILL)
    again = start_server(small_disk / "data", **SETTINGS)
    assert _pending(again) == producer.stored
    assert again.admin.GetConfig(admin_pb2.GetConfigRequest(key="a")).value == "b"
