"""The core's own threads under ThreadSanitizer: what two of them touch without an order between them is told.

    python -m tests.threads 60          a load for so many seconds

Mailbox, outbox, reader, commit, watch and upkeep are built with -fsanitize=thread in build/threads, and run with the
real store and the real clock, payloads away and read back. Exit code 1 when anything was told.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server import errors
from fila_server.core.protocol import commands
from fila_server.core.runtime.scheduler_thread import Engine
from tests import sanitized
from tests.core.driven_engine import fresh_directory

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "threads"
ROOMS = ("threads", "requests", "runtime", "storage")
PRODUCERS = 3
KNOWN = Path(__file__).with_suffix(".supp")
OPTIONS = f"halt_on_error=0:exitcode=66:ignore_noninstrumented_modules=1:report_signal_unsafe=0:suppressions={KNOWN}"
"""Python and RocksDB are not built so; the order that their locks make is seen all the same."""


class Load:
    """Producers that post, and one thread that takes answers, leases and acks."""

    def __init__(self) -> None:
        self.directory = fresh_directory()
        settings: dict[str, int | str] = {"storage.min_free_bytes": 0, "storage.hot_payload_bytes": 20_000}
        self.engine = Engine(
            str(self.directory), settings, mono_ns=time.monotonic_ns(), wall_ns=time.time_ns(), seed=1
        )
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.tokens = 0
        self.leases: set[int] = set()
        self.answers = 0
        self.acked = 0

    def submit(self, kind: int, frame: bytes) -> int:
        with self.lock:
            self.tokens += 1
            token = self.tokens
            if kind == commands.LEASE:
                self.leases.add(token)
        try:
            self.engine.submit(kind, token, frame)
        except errors.Overloaded:
            time.sleep(0.01)
        return token

    def produce(self, number: int) -> None:
        chance = random.Random(number)
        while not self.stopping.is_set():
            batch = service.EnqueueBatchRequest(queue="q")
            for _ in range(chance.choice((1, 5, 50))):
                message = batch.messages.add(payload=b"x" * chance.choice((10, 5_000)))
                if chance.random() < 0.1:
                    message.options.ttl_ms = 20
            self.submit(commands.ENQUEUE_BATCH, batch.SerializeToString())
            time.sleep(chance.choice((0, 0.001)))

    def consume(self) -> None:
        pull = service.LeaseRequest(queue="q", max_messages=200, wait_ms=50).SerializeToString()
        for _ in range(4):
            self.submit(commands.LEASE, pull)
        while not self.stopping.is_set():
            if not select.select([self.engine.wake_fd], [], [], 0.1)[0]:
                continue
            os.read(self.engine.wake_fd, 8)
            for token, kind, status, payload in self.engine.drain():
                self.answers += 1
                if token not in self.leases or kind != commands.REPLY:
                    continue
                found = service.LeaseResponse.FromString(payload).messages if status == 0 else []
                items = [service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in found]
                if items:
                    self.acked += len(items)
                    ack = service.AckBatchRequest(queue="q", items=items)
                    self.submit(commands.ACK_BATCH, ack.SerializeToString())
                self.submit(commands.LEASE, pull)

    def run(self, seconds: float) -> None:
        created = admin.CreateQueueRequest(name="q", config=admin.QueueConfig(visibility_timeout_ms=1_000))
        self.engine.start()
        self.submit(commands.CREATE_QUEUE, created.SerializeToString())
        time.sleep(0.2)
        threads = [threading.Thread(target=self.produce, args=(number,)) for number in range(PRODUCERS)]
        threads.append(threading.Thread(target=self.consume))
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.stopping.set()
        for thread in threads:
            thread.join()
        loads = self.engine.counters()["loads"]
        self.engine.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
        print(f"{self.answers} answers, {self.acked} acked, {loads} frames read back")


def main(words: list[str]) -> int:
    """Build, and run the load in a process of its own."""
    seconds = float(words[0]) if words else 60.0
    if os.environ.get("FILA_THREADS"):
        Load().run(seconds)
        return 0
    modules = [path for room in ROOMS for path in (ROOT / sanitized.CORE / room).glob("*.pyx")]
    sanitized.prepare(COPY, modules)
    sanitized.build(COPY, modules, sanitizers="thread")
    environ = {**sanitized.environment(COPY, "libtsan.so"), "TSAN_OPTIONS": OPTIONS, "FILA_THREADS": "1"}
    environ.pop("PYTHONMALLOC")
    # Its shadow has fixed addresses, which random ones may run into.
    command = ["setarch", "-R", sys.executable, "-m", "tests.threads", str(seconds)]
    done = subprocess.run(command, cwd=ROOT, env=environ, check=False)
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
