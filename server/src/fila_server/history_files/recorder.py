"""The thread that writes the history: it takes full blocks from the core and must never hold it up.

It has the lowest priority there is, until the core is closed. Where it is too slow the core empties blocks by itself
and says so in the next one; where the disk refuses, what was open is given up and the thread looks again later. Both
are gaps in the list.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import structlog

from fila_server.config.schema import History
from fila_server.core.history.tap import RecordedBlock, Recording
from fila_server.history_files import columns, upkeep
from fila_server.history_files.files import RunFiles
from fila_server.history_files.signing import Signer

log = structlog.get_logger("fila_server.history_files")

TAKE_MS = 200
RETRY_S = 5.0
PARTS_S = 0.6
"""Within that a core that nobody asks for anything runs a pass, which cuts the block."""
NICE = 19
DROPPED = "blocks were dropped: the history could not be written as fast as things happened"


@dataclass(frozen=True)
class Bounds:
    """How much is kept, and in files of which size."""

    roll_ms: int
    roll_bytes: int
    retention_bytes: int
    retention_age_ms: int


class Recorder:
    """Writes what one core records until that core is closed."""

    def __init__(
        self,
        recording: Recording,
        settings: History,
        run: str | None = None,
        signer: Signer | None = None,
        of_term: Mapping[str, Any] | None = None,
    ) -> None:
        """`of_term`: of a group's owner, what each entry of the list says of its term (terms.py)."""
        self._recording = recording
        self._directory = Path(settings.dir)
        self._bounds = Bounds(
            settings.roll_ms, settings.roll_bytes, settings.retention_bytes, settings.retention_age_ms
        )
        self._sample = settings.sample
        self._signer, self._of_term = signer, of_term
        self._run = run or f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.urandom(3).hex()}"
        self._files: RunFiles | None = None
        self._gaps: list[tuple[int, int, str]] = []
        self._failing = False
        self._retry_s = 0.0
        self._cut_s = time.monotonic()
        self._close_s = math.inf
        self._is_handed_over = self._is_parted = False
        self._thread = threading.Thread(target=self._write_all, name="history", daemon=True)

    @property
    def run(self) -> str:
        """The name that this run's files begin with."""
        return self._run

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def finish(self, timeout_s: float) -> bool:
        """Wait, once the core is closed, until its last blocks are in files that are listed; False: no time left.

        By now there is nobody to hold up. On a busy machine the lowest priority would be too low to end in time, so a
        thread that has its turn as others do writes what is left.
        """
        self._is_handed_over = True
        last = threading.Thread(target=self._write_rest, name="history-end", daemon=True)
        last.start()
        last.join(timeout_s)
        return not last.is_alive()

    def part(self, timeout_s: float) -> bool:
        """End the run, though the core goes on: its term is over, and the process begins anew. False: no time left."""
        self._is_parted = True
        if self._thread.native_id is not None:
            _set_priority(self._thread.native_id, os.getpriority(os.PRIO_PROCESS, 0))
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    # --- the thread ---------------------------------------------------------------------------

    def _write_all(self) -> None:
        _set_priority(threading.get_native_id(), NICE)
        while not self._is_handed_over and not self._is_parted and self._write_next():
            pass
        if self._is_parted:
            self._recording.cut()
            ends_s = time.monotonic() + PARTS_S
            while time.monotonic() < ends_s and self._write_next():
                pass
            self._attempt(self._end)

    def _write_rest(self) -> None:
        if self._thread.native_id is not None:
            _set_priority(self._thread.native_id, os.getpriority(os.PRIO_PROCESS, 0))
        self._thread.join()
        while self._write_next():
            pass
        self._attempt(self._end)

    def _write_next(self) -> bool:
        """False: the core is closed, and all that it recorded is written."""
        # Asked before the block is: what the core closes with may come in between.
        is_closed = self._recording.closed
        if self._failing and time.monotonic() < self._retry_s and not is_closed:
            time.sleep(TAKE_MS / 1000)
            return True
        block = self._recording.take(TAKE_MS)
        if block is not None:
            self._attempt(functools.partial(self._take_in, block))
            block.give_back()
        elif is_closed:
            return False
        self._attempt(self._roll)
        return True

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (OSError, pa.ArrowException) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Give up what is open, and look again in a while: the broker goes on whatever the disk says."""
        lost = None
        if self._files is not None:
            with contextlib.suppress(OSError):
                lost = self._files.abandon()
        if lost is not None:
            self._gaps.append((*lost, f"the history's disk refused: {_said(error)}"))
        if not self._failing:
            log.warning("history.stopped", dir=str(self._directory), error=_said(error), retry_s=RETRY_S)
        self._failing = True
        self._retry_s = time.monotonic() + RETRY_S

    def _opened(self) -> RunFiles:
        if self._files is None:
            files = RunFiles(self._directory, self._run, self._sample, self._signer, self._of_term)
            for run in upkeep.end_dead_runs(self._directory, time.time_ns() // 1_000_000, self._signer):
                log.info("history.gap_marked", run=run)
            self._files = files
        return self._files

    def _take_in(self, block: RecordedBlock) -> None:
        missing, from_ms, to_ms = block.gap
        if missing:
            self._opened().close()  # no file goes on over a gap: each is whole by itself
            self._gaps.append((from_ms, to_ms, DROPPED))
            log.warning("history.blocks_dropped", blocks=missing)
        first_ms, last_ms = block.times
        if not first_ms:
            return
        try:
            self._opened().write(columns.tables(block), first_ms, last_ms)
        except (OSError, pa.ArrowException) as error:
            self._gaps.append((first_ms, last_ms, f"the history's disk refused: {_said(error)}"))
            raise
        if self._failing:
            self._failing = False
            log.info("history.goes_on", dir=str(self._directory))

    def _roll(self) -> None:
        """Close files that are long or old enough, and list gaps."""
        files = self._opened()
        while self._gaps:
            files.gap(*self._gaps[0])
            del self._gaps[0]
        now_s = time.monotonic()
        if now_s - self._cut_s >= self._bounds.roll_ms / 1000:
            self._cut_s = now_s
            self._close_s = (
                now_s + 2 * TAKE_MS / 1000
            )  # what the core has by now comes before the end of the file
            self._recording.cut()
        if now_s >= self._close_s or files.open_bytes >= self._bounds.roll_bytes:
            self._close_s = math.inf
            files.close()
            self._retain()

    def _retain(self) -> None:
        now_ms = time.time_ns() // 1_000_000
        due = upkeep.due(self._directory, self._bounds.retention_bytes, self._bounds.retention_age_ms, now_ms)
        if due and "number" in due[-1]:
            self._opened().removes(due[-1])
        removed = upkeep.remove(self._directory, due)
        if removed:
            log.info("history.removed_old_files", files=removed)

    def _end(self) -> None:
        files = self._opened()
        for gap in self._gaps:
            files.gap(*gap)
        files.end()


def _set_priority(thread: int, nice: int) -> None:
    with contextlib.suppress(OSError):  # a container may forbid it, and only root may raise one
        os.setpriority(os.PRIO_PROCESS, thread, nice)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
