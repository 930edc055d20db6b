"""How much of its log a group forgets. It reads no clock, no log and no socket.

    read        the log goes on: so much of it there is by now, in records and in bytes
    synced      a node says up to where it has the log on its disk
    decide      below which offset the owner is to truncate now

Two synced copies hold all that is truncated: it ends before the second-highest offset that nodes which answer have
synced, by an hour and a gigabyte of log at least. So a node that was away for less finds what it lacks in the log. With
one copy nothing is truncated.

Times are of one clock, which may be the log's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

KEPT_MS = 3_600_000
KEPT_BYTES = 1 << 30
MARKS_A_TIME, MARKS_A_SIZE = 60, 16
"""So often within what is kept it is kept in mind where the log is."""
MARK_MS_MIN, MARK_BYTES_MIN = 1_000, 1 << 20
MARKS_MAX = 512
"""More of them, and of the older half each second one is forgotten."""
FRESH_MS = 10_000
"""For so long it counts what a node has said."""
EVERY_MS = 60_000
AGAIN_MS = 600_000
"""After the brokers refused it."""
ALONE_MS = 600_000
ALONE_AGAIN_MS = 3_600_000
"""There is but one copy: this is said after so long, and again after so long."""


class Mark(NamedTuple):
    """Where the log was at some moment."""

    at_ms: int
    position: int
    bytes: int
    """Of all records up to there, from some moment on."""


class Step(NamedTuple):
    """What an owner does now."""

    below: int | None = None
    """Truncate what is below this offset."""
    why: str = ""
    """What an operator is to know."""


class Truncation:
    """What one node knows of its group's log."""

    def __init__(self, kept_ms: int = KEPT_MS, kept_bytes: int = KEPT_BYTES) -> None:
        self.kept_ms, self.kept_bytes = kept_ms, kept_bytes
        self.mark_ms = max(kept_ms // MARKS_A_TIME, MARK_MS_MIN)
        self.mark_bytes = max(kept_bytes // MARKS_A_SIZE, MARK_BYTES_MIN)
        self.every_ms = EVERY_MS
        self.marks: list[Mark] = []
        """The oldest first."""
        self._synced: dict[int, tuple[int, int]] = {}
        self._below = 0
        self._next_ms: int | None = None
        self._alone_ms: int | None = None
        self._said_ms: int | None = None

    def restore(self, marks: Sequence[Mark], position: int) -> int:
        """Marks of an earlier process of this node, whose copy is at `position` by now; how many bytes they count."""
        self.marks = [mark for mark in marks if mark.position <= position]
        return self.marks[-1].bytes if self.marks else 0

    def read(self, now_ms: int, position: int, read_bytes: int) -> bool:
        """The log up to there is read. True: there is a new mark."""
        if self.marks:
            last = self.marks[-1]
            if position <= last.position:
                return False
            if now_ms < last.at_ms + self.mark_ms and read_bytes < last.bytes + self.mark_bytes:
                return False
        self.marks.append(Mark(now_ms, position, read_bytes))
        if len(self.marks) > MARKS_MAX:
            half = MARKS_MAX // 2
            self.marks[:half] = self.marks[:half:2]
        return True

    def synced(self, now_ms: int, node: int, position: int) -> None:
        """A node has the log up to there on its disk; -1: it has no copy."""
        self._synced[node] = now_ms, position

    def decide(self, now_ms: int) -> Step:
        """What to do now, as the owner."""
        held = sorted(
            (
                position
                for at_ms, position in self._synced.values()
                if now_ms <= at_ms + FRESH_MS and position >= 0
            ),
            reverse=True,
        )
        if len(held) < 2:
            return Step(why=self._alone(now_ms))
        self._alone_ms = self._said_ms = None
        if self._next_ms is not None and now_ms < self._next_ms:
            return Step()
        below = self._end(held[1])
        if below <= self._below:
            return Step()
        self._next_ms = now_ms + self.every_ms
        return Step(below)

    def truncated(self, below: int) -> None:
        """It was done."""
        self._below = below

    def failed(self, now_ms: int) -> None:
        """The brokers did not do it."""
        self._next_ms = now_ms + AGAIN_MS

    def _end(self, held: int) -> int:
        """Below which offset nothing is needed, where two copies have the log up to `held`; -1: it is not known."""
        base = next((mark for mark in reversed(self.marks) if mark.position <= held), None)
        if base is None:
            return -1
        at_ms, size = base.at_ms - self.kept_ms, base.bytes - self.kept_bytes
        ends = (mark.position for mark in reversed(self.marks) if mark.at_ms <= at_ms and mark.bytes <= size)
        return next(ends, -1)

    def _alone(self, now_ms: int) -> str:
        if self._alone_ms is None:
            self._alone_ms = now_ms
        alone_ms = now_ms - self._alone_ms
        due_ms = self._alone_ms + ALONE_MS if self._said_ms is None else self._said_ms + ALONE_AGAIN_MS
        if now_ms < due_ms:
            return ""
        self._said_ms = now_ms
        return (
            f"for {alone_ms // 60_000} min this node has had the only copy that is synced: nothing of the log is "
            "truncated until another node has one"
        )
