"""The compiled core under a simulated clock: calls in, answers out, kills and power cuts at will.

`DrivenEngine` owns a data directory and both clocks. Nothing happens unless it is told to: a pass, a commit (the
sync that a thread does in the server), a load (the reads that another thread does). `kill` closes the store without
any last word; `cut_power` also forgets what was written after the last sync.
"""

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message as Proto

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.runtime.engine import CoreEngine
from tests.native.storeprobe import make_families

MS = 1_000_000
WALL_START_NS = 1_700_000_000_000 * MS
PASSES_MAX = 200
BALLAST_BYTES = 65_536
"""A thousandth of what a server keeps there: in memory all of it is written, each time a store is made."""
WAL_BYTES_MAX = 2 << 20
"""RocksDB sets room for a log aside, and in memory that room is written, each time a store is opened or made."""

P = TypeVar("P", bound=Proto)
Out = tuple[int, int, int, bytes]


class Refused(Exception):
    """The core's answer was an error."""

    def __init__(self, code: int, status: messages.ItemStatus) -> None:
        super().__init__(f"{code} {status.reason}: {status.message}")
        self.code = code
        self.reason = status.reason


def _in_memory() -> Path:
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fila-", dir=shared if shared.is_dir() else None))


def fresh_directory() -> Path:
    """In memory where there is such a place: a simulation syncs thousands of times."""
    return _in_memory()


@cache
def _families() -> Path:
    """RocksDB makes its families one by one, and for each writes its file of options anew: most of what it takes to
    open an engine. So that is done once, and copied; no record is in it, and the engine that opens the copy starts as
    the first."""
    made = _in_memory()
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    make_families(str(made))
    return made / "rocksdb"


def empty_directory() -> Path:
    """A directory with an empty store in it."""
    made = fresh_directory()
    shutil.copytree(_families(), made / "rocksdb")
    return made


class DrivenEngine:
    """One data directory, its clocks, and the core that has it open."""

    def __init__(
        self, settings: dict[str, int | str] | None = None, seed: int = 7, directory: Path | None = None
    ) -> None:
        """`directory`: one that there is; without it, a new one is made."""
        self.directory = directory or empty_directory()
        ours = {
            "storage.min_free_bytes": 0,
            "storage.ballast_bytes": BALLAST_BYTES,
            "storage.wal_bytes_max": WAL_BYTES_MAX,
        }
        self.settings = {**ours, **(settings or {})}
        self.seed = seed
        self.mono_ns = 1_000 * MS
        self.wall_ns = WALL_START_NS
        self.tokens = 0
        self.synced: dict[str, int] = {}
        self.others: list[Out] = []
        self.core = self._open()

    def _open(self) -> CoreEngine:
        core = CoreEngine(
            str(self.directory), self.settings, mono_ns=self.mono_ns, wall_ns=self.wall_ns, seed=self.seed
        )
        self._note_synced()
        return core

    # --- time and passes --------------------------------------------------------------------

    def advance(self, ms: int) -> None:
        self.mono_ns += ms * MS
        self.wall_ns += ms * MS

    @property
    def wall_ms(self) -> int:
        return self.wall_ns // MS

    def run_pass(self) -> int | None:
        return self.core.run_pass(self.mono_ns, self.wall_ns)

    def commit(self) -> bool:
        done = self.core.commit()
        if done:
            self._note_synced()
        return done

    def settle_down(self) -> list[Out]:
        """Passes, commits and loads until none of them brings anything, the clock standing still."""
        outs: list[Out] = []
        for _ in range(PASSES_MAX):
            again = self.run_pass()
            busy = self.commit() | bool(self.core.load())
            found = self.core.drain()
            outs += found
            if not (busy or found or (again is not None and again <= self.mono_ns)):
                return outs
        raise AssertionError(f"the core is still busy after {PASSES_MAX} passes of a clock that stands still")

    def sleep(self, ms: int, step_ms: int = 0) -> None:
        """Let time go by, in steps; what is answered meanwhile is kept in `others`."""
        end_ns = self.mono_ns + ms * MS
        while self.mono_ns < end_ns:
            self.advance(min(step_ms or ms, (end_ns - self.mono_ns) // MS))
            self.others += self.settle_down()

    def listen(self, ms: int, step_ms: int = 100) -> None:
        """Let time go by as `sleep`, the edge saying at each step that it reads its sockets."""
        self.submit(commands.LISTENED)
        for _ in range(ms // step_ms):
            self.sleep(step_ms)
            self.submit(commands.LISTENED)
        self.others += self.settle_down()

    # --- calls ------------------------------------------------------------------------------

    def submit(self, kind: int, request: Proto | bytes = b"", token: int | None = None) -> int:
        if token is None:
            self.tokens += 1
            token = self.tokens
        frame = request if isinstance(request, bytes) else request.SerializeToString()
        self.core.submit(kind, token, frame)
        return token

    def answer_of(self, token: int) -> tuple[int, bytes]:
        for i, (owner, kind, status, payload) in enumerate(self.others):
            if owner == token and kind == commands.REPLY:
                del self.others[i]
                return status, payload
        raise LookupError(f"nothing was answered to {token}")

    def call(self, kind: int, request: Proto | bytes, answer: type[P]) -> P:
        token = self.submit(kind, request)
        self.others += self.settle_down()
        status, payload = self.answer_of(token)
        if status:
            raise Refused(status, messages.ItemStatus.FromString(payload))
        return answer.FromString(payload)

    def create_queue(self, name: str, **config: Any) -> None:
        request = admin.CreateQueueRequest(name=name, config=admin.QueueConfig(**config))
        self.call(commands.CREATE_QUEUE, request, admin.CreateQueueResponse)

    def enqueue(
        self, queue: str, payload: bytes = b"x", headers: dict[str, str] | None = None, **options: Any
    ) -> int:
        """Enqueue one message; returns its offset."""
        request = service.EnqueueRequest(queue=queue, payload=payload, headers=headers or {})
        if options:
            request.options.CopyFrom(service.EnqueueOptions(**options))
        return self.call(commands.ENQUEUE, request, service.EnqueueResponse).offset

    def lease(
        self, queue: str, most: int = 100, channel: str = "", wait_ms: int = 0
    ) -> list[messages.Message]:
        request = service.LeaseRequest(queue=queue, channel=channel, max_messages=most, wait_ms=wait_ms)
        return list(self.call(commands.LEASE, request, service.LeaseResponse).messages)

    def payloads(self, queue: str, most: int = 100, channel: str = "") -> list[bytes]:
        return [message.payload for message in self.lease(queue, most, channel)]

    def ack(self, queue: str, leased: list[messages.Message], channel: str = "") -> list[int]:
        items = [service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id) for m in leased]
        request = service.AckBatchRequest(queue=queue, channel=channel, items=items)
        return [r.code for r in self.call(commands.ACK_BATCH, request, service.SettleBatchResponse).results]

    def nack(
        self, queue: str, leased: list[messages.Message], delay_ms: int = 0, channel: str = ""
    ) -> list[int]:
        items = [
            service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id, delay_ms=delay_ms, error="no")
            for m in leased
        ]
        request = service.NackBatchRequest(queue=queue, channel=channel, items=items)
        return [r.code for r in self.call(commands.NACK_BATCH, request, service.SettleBatchResponse).results]

    def stats(self, queue: str, channel: str = "") -> admin.GetStatsResponse:
        request = admin.GetStatsRequest(queue=queue, channel=channel)
        return self.call(commands.GET_STATS, request, admin.GetStatsResponse)

    def set_config(self, key: str, value: str) -> None:
        self.call(commands.SET_CONFIG, admin.SetConfigRequest(key=key, value=value), admin.SetConfigResponse)

    # --- ends -------------------------------------------------------------------------------

    def _note_synced(self) -> None:
        self.synced = {}
        for log in self._logs():
            with suppress(FileNotFoundError):  # RocksDB has just deleted it: what was in it is in tables
                self.synced[log.name] = log.stat().st_size

    def _logs(self) -> list[os.DirEntry[str]]:
        with os.scandir(self.directory / "rocksdb") as found:
            return [each for each in found if each.name.endswith(".log")]

    def kill(self) -> None:
        """`kill -9`: what was written stays written."""
        self.core.close()

    def cut_power(self) -> None:
        """What was written to the log after the last sync is gone."""
        self.core.close()
        *older, newest = sorted(Path(log) for log in self._logs())
        for path in [*older, newest]:
            kept = self.synced.get(path.name, 0)
            if path.stat().st_size > kept:
                # RocksDB syncs a log before it writes tables of what is in it; here that would not be seen.
                assert path is newest, "a log was ended since the last sync: give the test more wal_bytes_max"
                with path.open("r+b") as log:
                    log.truncate(kept)

    def stop(self) -> None:
        self.core.stop_cleanly(self.mono_ns, self.wall_ns)
        self.core.close()

    def reopen(self, away_ms: int = 0) -> None:
        """Start again; the monotonic clock begins elsewhere, and the wall clock may have been set back."""
        self.wall_ns += away_ms * MS
        self.mono_ns = 5_000 * MS
        self.others = []
        self.core = self._open()

    def remove(self) -> None:
        self.core.close()
        shutil.rmtree(self.directory, ignore_errors=True)
