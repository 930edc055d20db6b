"""A client that does nothing wrong, beside one that does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.waiting import RunningClock


@contextmanager
def served_meanwhile(channel: grpc.Channel) -> Iterator[None]:
    """It is answered more than once a second all the while."""
    name = f"polite-{time.monotonic_ns()}"
    admin_pb2_grpc.FilaAdminStub(channel).CreateQueue(admin_pb2.CreateQueueRequest(name=name))
    service = service_pb2_grpc.FilaServiceStub(channel)
    stop, slowest, failed = threading.Event(), [0.0], []
    clock = RunningClock()

    def enqueue() -> None:
        while not stop.is_set():
            begun = clock.now_s
            try:
                service.Enqueue(service_pb2.EnqueueRequest(queue=name, payload=b"x"), timeout=10)
            except grpc.RpcError as error:
                failed.append(error)
                return
            slowest[0] = max(slowest[0], clock.now_s - begun)
            time.sleep(0.01)

    polite = threading.Thread(target=enqueue)
    polite.start()
    try:
        yield
    finally:
        stop.set()
        polite.join()
        clock.stop()
    assert not failed
    assert slowest[0] < 1.0
