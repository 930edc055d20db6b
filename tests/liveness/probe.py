"""A polite client: one message at a time on a queue and a connection of its own, enqueued, leased and acked."""

from __future__ import annotations

import threading
import time
from typing import Any

import grpc

from fila.v1 import admin_pb2, service_pb2, service_pb2_grpc

QUEUE = "probe"
PAUSE_S = 0.01
"""Between two messages."""
CALL_S_MAX = 20.0


class Probe:
    """Runs on a thread from `start` to `stop`; `times_s` has how long each message took."""

    def __init__(self, address: str, admin: Any) -> None:
        admin.CreateQueue(admin_pb2.CreateQueueRequest(name=QUEUE))
        options = [("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(address, options=options)
        self._stub: Any = service_pb2_grpc.FilaServiceStub(self._channel)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.times_s: list[float] = []
        self.failures: list[str] = []
        self.once()  # the connection is made, and whatever is done for the first time is over
        self.times_s.clear()

    def start(self) -> Probe:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(CALL_S_MAX + 1)
        self._channel.close()

    def served_in(self, seconds: float) -> int:
        """How many messages get through from now on, in so many seconds."""
        before = len(self.times_s)
        time.sleep(seconds)
        return len(self.times_s) - before

    def p99_s(self) -> float:
        """Of all times since the last call."""
        times, self.times_s = sorted(self.times_s), []
        return times[int(len(times) * 0.99)] if times else float("inf")

    def once(self) -> None:
        began_s = time.monotonic()
        enqueue = service_pb2.EnqueueRequest(queue=QUEUE, payload=b"polite")
        self._stub.Enqueue(enqueue, timeout=CALL_S_MAX)
        pull = service_pb2.LeaseRequest(queue=QUEUE, max_messages=1, wait_ms=10_000)
        for message in self._stub.Lease(pull, timeout=CALL_S_MAX).messages:
            ack = service_pb2.AckRequest(
                queue=QUEUE, message_id=message.id, lease_id=message.metadata.lease_id
            )
            self._stub.Ack(ack, timeout=CALL_S_MAX)
        self.times_s.append(time.monotonic() - began_s)

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            try:
                self.once()
            except grpc.RpcError as error:
                self.failures.append(f"{error.code()}: {error.details()}")
