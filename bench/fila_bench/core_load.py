"""The compiled core without its edges: frames in by `submit`, frames out by `drain`, one process.

What is left out is gRPC and the sockets, on both sides; what is left in is everything else:
parsing, group commit, scheduling, leases, acks, the disk.
"""

from __future__ import annotations

import os
import select
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fila.v1 import admin_pb2
from fila_bench import frames, scanner
from fila_bench.plan import ProducerPlan

_PRODUCER, _CONSUMER, _ADMIN = 1, 2, 3
_QUEUE = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreLoad:
    """One producer with a window of frames and one session that acks every delivery."""

    payload_bytes: int = 1024
    batch: int = 100
    keys: int = 10
    window_frames: int = 32
    durability: Literal["fsync", "os"] = "fsync"
    history: bool = False
    """Whether it is recorded."""

    warm_up_s: float = 1.0
    seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreRun:
    """Rates of the measured stretch."""

    produced_per_s: float
    acked_per_s: float
    cpu_us_per_message: float
    thread_us: dict[str, float]
    """The same by thread: scheduler, commit, history and so on."""


def run(load: CoreLoad, pipe: Any) -> None:
    """Process: open a core in a temporary directory, load it, send back a CoreRun."""
    from fila_server.config.schema import Config, History, Storage
    from fila_server.core.runtime.scheduler_thread import Engine

    with tempfile.TemporaryDirectory(prefix="fila-bench-") as directory:
        # Nothing here runs between validation and the core, so the settings are the defaults but for these.
        history = History(enabled=load.history, dir=str(Path(directory, "history")))
        config = Config(storage=Storage(durability=load.durability), history=history)
        data = str(Path(directory, "data"))
        engine = Engine(
            data, config.engine_settings(), mono_ns=time.monotonic_ns(), wall_ns=time.time_ns(), seed=1
        )
        engine.start()
        recorder = None
        if engine.recording is not None:
            from fila_server.history_files.recorder import Recorder

            recorder = Recorder(engine.recording, history)
            recorder.start()
        try:
            pipe.send(_Driver(engine, load).run())
        finally:
            engine.stop()
            if recorder is not None:
                recorder.finish(timeout_s=10)


def _thread_cpu_s() -> dict[str, float]:
    """What each thread of this process that Python knows has used so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = {}
    for thread in threading.enumerate():
        fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rsplit(")", 1)[1].split()
        used[thread.name] = (int(fields[11]) + int(fields[12])) / ticks
    return used


class _Driver:
    """Answers what the core says: an enqueue's answer by the next enqueue, a delivery by its ack."""

    def __init__(self, engine: Any, load: CoreLoad) -> None:
        self._engine = engine
        self._load = load
        self._scan = scanner.load()
        plan = ProducerPlan(
            address="", queue=_QUEUE, payload_bytes=load.payload_bytes, batch=load.batch, keys=load.keys
        )
        self._bodies = plan.bodies()
        self._sent = self._acks = 0
        self._produced = self._acked = 0
        self._count_by_ack: dict[int, int] = {}

    def run(self) -> CoreRun:
        from fila_server.core.protocol import commands

        request = admin_pb2.CreateQueueRequest(name=_QUEUE)
        request.config.fairness_key_header = "tenant"
        self._engine.submit(commands.CREATE_QUEUE, _ADMIN, request.SerializeToString())
        self._turn(wait_s=5)
        opened = frames.session_open(_QUEUE, max_in_flight=4096)
        self._engine.submit(commands.SESSION_OPEN, _CONSUMER, opened)
        for _ in range(self._load.window_frames):
            self._enqueue()
        self._turns(self._load.warm_up_s)
        threads = _thread_cpu_s()
        began, cpu, produced, acked = time.monotonic(), time.process_time(), self._produced, self._acked
        self._turns(self._load.seconds)
        elapsed = time.monotonic() - began
        each = 1e6 / max(1, self._acked - acked)
        return CoreRun(
            produced_per_s=(self._produced - produced) / elapsed,
            acked_per_s=(self._acked - acked) / elapsed,
            cpu_us_per_message=(time.process_time() - cpu) * each,
            thread_us={name: (used - threads[name]) * each for name, used in _thread_cpu_s().items()},
        )

    def _turns(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._turn(wait_s=1)

    def _turn(self, wait_s: float) -> None:
        from fila_server.core.protocol import commands

        select.select([self._engine.wake_fd], [], [], wait_s)
        for token, kind, status, payload in self._engine.drain():
            assert not status, payload
            if token == _PRODUCER:
                stored, _ = self._scan.enqueue_results(payload)
                self._produced += stored
                self._enqueue()
            elif kind == commands.DELIVERY:
                self._engine.submit(commands.WRITTEN, _CONSUMER, b"")
                self._ack(payload)
            elif token == _CONSUMER and payload[:1] == b"\x1a":
                self._acked += self._count_by_ack.pop(next(iter(self._count_by_ack)))

    def _enqueue(self) -> None:
        from fila_server.core.protocol import commands

        self._sent += 1
        frame = frames.sequence(self._sent) + self._bodies[self._sent % len(self._bodies)]
        self._engine.submit(commands.ENQUEUE_STREAM, _PRODUCER, frame)

    def _ack(self, delivery: bytes) -> None:
        from fila_server.core.protocol import commands

        count, packed, _ = self._scan.delivery(delivery)
        self._acks += 1
        self._count_by_ack[self._acks] = count
        self._engine.submit(commands.SESSION, _CONSUMER, frames.session_ack(self._acks, packed))
