"""A driven core, clients that wait for its answers, and what befalls it: disks, clocks that are set, ends, damage."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila_server import errors
from fila_server.core.protocol import commands
from tests.core.driven_engine import MS, DrivenEngine
from tests.core.test_bounded_work import PASS_WORK_MAX, count
from tests.native.coreprobe import disk_becomes, store_stalls
from tests.simulation.hardship_model import Told, Witness
from tests.simulation.oracles import Broken

ROOMY, LOW, CRITICAL = 0, 1, 2
STALL = "stall"
VISIBILITY_MS = 5_000
DAY_MS = 86_400_000
HARD_PERIOD_MS = 1_200_000
HARD_BYTES = 600_000
SOFT_BYTES = 200_000
QUEUES = {
    "work": admin.QueueConfig(max_attempts=1),
    "aging": admin.QueueConfig(retention=admin.Retention(hard_period_ms=HARD_PERIOD_MS)),
    "bounded": admin.QueueConfig(retention=admin.Retention(hard_bytes=HARD_BYTES)),
    "kept": admin.QueueConfig(retention=admin.Retention(soft_bytes=SOFT_BYTES)),
}

Answer = Callable[[int, bytes], None]


class Stopped(Exception):
    """A damaged file was met while the broker ran: it says so and ends, and its next start copies what can be read."""


class TroubledBroker:
    """A driven core, who waits for its answers, and what befalls it."""

    def __init__(self, seed: int) -> None:
        self.random = rnd = random.Random(seed * 5003 + 11)
        cold: dict[str, int | str] = {"storage.hot_payload_bytes": rnd.choice([1, 30_000])}
        # Nothing is flushed beside the run: which files there are to be damaged follows from the seed alone.
        settings: dict[str, int | str] = {"storage.wal_bytes_max": 256 << 20}
        self.engine = DrivenEngine(settings | (cold if rnd.random() < 0.4 else {}), seed=seed)
        self.witness = Witness()
        self.asked: dict[int, Answer] = {}
        self.held: dict[int, tuple[str, Told]] = {}  # by lease
        self.trouble: int | str = ROOMY
        self.trouble_passes = 0
        self.trace: list[str] = []
        self.under_os = rnd.random() < 0.3
        for name, config in QUEUES.items():
            complete = admin.QueueConfig()
            complete.CopyFrom(config)
            complete.visibility_timeout_ms = VISIBILITY_MS
            complete.fairness_key_header = "k"
            complete.dedup_window_ms = DAY_MS
            complete.durability = admin.DURABILITY_OS if self.under_os else admin.DURABILITY_FSYNC
            created = admin.CreateQueueRequest(name=name, config=complete)
            self.engine.call(commands.CREATE_QUEUE, created, admin.CreateQueueResponse)

    def say(self, text: str) -> None:
        self.trace.append(f"[{self.engine.mono_ns // MS}] {text}")

    # --- passes and answers -----------------------------------------------------------------------

    def ask(self, kind: int, request: Any, answered: Answer) -> bool:
        """False where the edge itself refused."""
        try:
            token = self.engine.submit(kind, request)
        except errors.DiskFloor:
            return False
        self.asked[token] = answered
        return True

    def hear(self) -> None:
        """What came, also while somebody waited for something else (DrivenEngine.call)."""
        came = [*self.engine.others, *self.engine.core.drain()]
        self.engine.others = []
        for token, kind, status, payload in came:
            if kind == commands.REPLY and token in self.asked:
                self.asked.pop(token)(status, payload)

    def turn(self) -> None:
        for _ in range(self.random.choice([1, 2, 3])):
            self.engine.run_pass()
            self.hear()
            if self.trouble != STALL and self.random.random() < 0.6:
                self.engine.commit()
            if self.random.random() < 0.6:
                self.engine.core.load()
            if self.trouble_passes:
                self.trouble_passes -= 1
                if not self.trouble_passes:
                    self.relieve()

    def wait(self, ms: int = 0) -> None:
        for _ in range(max(1, (ms or self.random.choice([1, 100, 400, 2_000])) // 100)):
            self.engine.advance(min(ms, 100) if ms else self.random.choice([1, 100]))
            self.turn()
        self.grow_old()

    def grow_old(self) -> None:
        wall_ms = self.engine.wall_ms
        for told in self.witness.told:
            if not told.stored:
                told.since_ms = min(told.since_ms, wall_ms)
        self.witness.ages("aging", wall_ms, HARD_PERIOD_MS)

    def quiet(self) -> None:
        """No trouble, and nothing under way; housekeeping has been by."""
        self.relieve()
        for _ in range(3):
            for _ in range(400):
                again = self.engine.run_pass()
                busy = self.engine.commit() | bool(self.engine.core.load())
                before = len(self.asked)
                self.hear()
                if not busy and before == len(self.asked) and (again is None or again > self.engine.mono_ns):
                    break
            else:
                raise Broken("the core never comes to rest")
            self.engine.advance(100)
        if self.engine.core.failure() is not None:
            raise Stopped(self.engine.core.failure())
        self.grow_old()

    # --- fate ---------------------------------------------------------------------------------------

    def relieve(self) -> None:
        self.trouble, self.trouble_passes = ROOMY, 0
        store_stalls(self.engine.core, False)
        disk_becomes(self.engine.core, ROOMY)

    def befall(self) -> None:
        """The disk is low or full, or the storage engine stalls, for some passes."""
        self.relieve()
        choices: list[int | str] = [LOW, CRITICAL, STALL, STALL]
        self.trouble = self.random.choice(choices)
        self.trouble_passes = self.random.choice([1, 5, 30])
        self.say(f"trouble: {self.trouble} for {self.trouble_passes} passes")
        self.witness.judged["passes in trouble"] += self.trouble_passes
        for told in self.witness.told:
            told.not_after_ns = 0
        if self.trouble == STALL:
            store_stalls(self.engine.core, True)
        else:
            assert isinstance(self.trouble, int)
            disk_becomes(self.engine.core, self.trouble)

    def set_clock(self) -> None:
        by_ms = self.random.choice([-600_000, -1_000, 1_000, 600_000, 1_800_000])
        self.say(f"the clock is set by {by_ms}")
        self.witness.judged["clocks set"] += 1
        self.engine.wall_ns += by_ms * MS
        self.grow_old()

    def end_by(self, how: str) -> None:
        self._look_back()
        if how == "stop":
            self.engine.core.stop_cleanly(self.engine.mono_ns, self.engine.wall_ns)
            self.hear()
            self.engine.core.close()
        else:
            (self.engine.cut_power if how == "power" else self.engine.kill)()
        self.engine.reopen(self.random.choice([0, 1_000, 600_000, -600_000]))
        self.say(f"{how} and restart")
        self.witness.judged[f"ended by {how}"] += 1
        if how == "stop":
            report = self.engine.core.open_report()
            self.witness.judge("a clean stop leaves a sound store", not any(report.values()), report)
        self.asked.clear()
        self.held.clear()
        self.witness.restarted()
        self.grow_old()

    def _look_back(self) -> None:
        """On a life that ends."""
        self.witness.judged["frames written anew"] += count(self.engine, "rewrites")
        work = count(self.engine, "pass_work_max")
        self.witness.judge("no pass does more than its bound", work <= PASS_WORK_MAX, work)

    def damage(self) -> None:
        """One byte of one file, while the broker is down; what is lost is told."""
        self._look_back()
        self.engine.kill()
        files = [
            path
            for kind in ("*.log", "*.sst", "*.blob")
            for path in sorted((self.engine.directory / "rocksdb").glob(kind))
            if path.stat().st_size
        ]
        if files:
            path = self.random.choice(files)
            content = bytearray(path.read_bytes())
            content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
            path.write_bytes(content)
            self.say(f"a byte of {path.name} is wrong")
            self.witness.judged["files damaged"] += 1
        self.start_over()

    def start_over(self) -> None:
        self.engine.reopen()
        self.asked.clear()
        self.held.clear()
        self.witness.restarted()
        self.witness.is_damaged |= any(self.engine.core.open_report().values())
