"""Whether a standby's disk has room for what it reads of the log, and what is said where it has none."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from fila_server.core.runtime.store_copy import LOW, ROOMY
from fila_server.events import emit
from fila_server.telemetry.series import Disk

LOOK_S = 0.1
_KINDS = ("disk.roomy", "disk.low", "disk.critical")


class HasDisk(Protocol):
    """As much of a copy as tells of its disk (StoreCopy)."""

    def look_at_disk(self) -> tuple[int, int]:
        """Its level, and its free bytes."""
        ...


class Room:
    """Of one data directory. One thread asks; any may read what it saw."""

    def __init__(self, min_free_bytes: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._min_free_bytes, self._now_s = min_free_bytes, now_s
        self._looked_s = float("-inf")
        self.disk = Disk(ROOMY, -1)

    def why_none(self, copy: HasDisk, *, is_served: bool) -> str:
        """Why nothing more is taken of the log; empty: there is room. Where no other node serves, a disk that is low is
        room enough: somebody has to, and acks give disk back."""
        if self._now_s() - self._looked_s >= LOOK_S:
            self._looked_s = self._now_s()
            before, self.disk = self.disk, Disk(*copy.look_at_disk())
            if (level := self.disk.level) != before.level:
                emit(_KINDS[level], level="warning" if level else "info", free_bytes=self.disk.free_bytes)
        if self.disk.level == ROOMY or (self.disk.level == LOW and not is_served):
            return ""
        if self.disk.level == LOW:
            bound = f"less than {self._min_free_bytes >> 20} MiB free (storage.min_free_bytes)"
        else:
            bound = "hardly a MiB free that is not kept for what was taken already"
        return (
            f"the disk of the data directory has {bound}: nothing more of the log is taken until there is room. Make "
            "room on it"
        )
