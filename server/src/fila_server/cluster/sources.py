"""Whom a node that lacks a copy asks for one, and what it does where nobody gives one. It reads no clock and no socket.

lacks a copy because    it has none yet (EMPTY); its own ends before the log begins, or a gap follows it (BEHIND);
                        its own is damaged (DAMAGED); the group began with a broker's data (FOUNDED)
takes one from          a standby, the one that is furthest first; from the owner where no standby has one
reads the log           where it has none, the log still begins at 0, and nobody gives one
waits                   for nodes that do not answer, for one that is giving a copy to another node, and a while
                        after each try that failed
halts                   where all answer and none has a copy. It asks on: a node that has one may come back
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

ASK_MS = 2_000
"""So long the others have to say how they are, before one of them is chosen."""
AGAIN_MS = 10_000
"""A node that gave no whole copy is asked again after so long."""


class Lack(enum.Enum):
    """Why a node has no copy to go on with."""

    EMPTY = "this node has no copy yet"
    BEHIND = "the log no longer has what follows this copy"
    DAMAGED = "the copy is damaged"
    ANEW = "the group was reseeded with the copy of another node"
    FOUNDED = "the group began with a broker's data, and this node has no copy of it"


class Act(enum.Enum):
    """What is to be done."""

    TAKE = enum.auto()
    READ = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True)
class Seen:
    """Another node, as it answered last."""

    address: str
    is_asked: bool = True
    """It has answered, or has not answered, once."""
    answers: bool = True
    gives: bool = False
    owns: bool = False
    position: int = -1
    """Of the last record that it has read."""
    name: str = ""


@dataclass(frozen=True)
class Step:
    """What a node does now."""

    act: Act
    source: Seen | None = None
    why: str = ""
    """What it waits for."""
    is_halt: bool = False
    """Only people can help: nobody who answers has a copy."""


@dataclass
class _Failed:
    at_ms: int
    why: str


class Search:
    """One node's way to a copy."""

    def __init__(self, now_ms: int, lack: Lack, needed: int = -1) -> None:
        """`needed` is the least position of a copy that is of use."""
        self.lack, self.needed = lack, needed
        self._begun_ms = now_ms
        self._log_start: int | None = None
        self._failed: dict[str, _Failed] = {}
        self._own: _Failed | None = None

    def log_begins(self, start: int) -> None:
        """The log answered: the offset of its first record."""
        self._log_start = start
        self.needed = max(self.needed, start - 1)

    def failed(self, now_ms: int, address: str, why: str, *, is_own: bool = False) -> None:
        """No whole copy came from there; `is_own`: it is this node that could not take it."""
        self._failed[address] = _Failed(now_ms, why)
        self._own = _Failed(now_ms, why) if is_own else None

    def decide(self, now_ms: int, others: Sequence[Seen]) -> Step:
        """What to do, with what is known of the other nodes."""
        if self._log_start is None:
            return Step(Act.WAIT, why="the log does not answer")
        if self._own is not None and now_ms < self._own.at_ms + AGAIN_MS:
            return Step(Act.WAIT, why=self._own.why)
        if now_ms < self._begun_ms + ASK_MS and not all(other.is_asked for other in others):
            return Step(Act.WAIT)
        able = [other for other in others if other.answers and other.gives and other.position >= self.needed]
        ready = [other for other in able if self._may_be_asked(now_ms, other.address)]
        if ready:
            return Step(Act.TAKE, min(ready, key=lambda other: (other.owns, -other.position, other.address)))
        if self.lack is Lack.EMPTY and self._log_start == 0:
            return Step(Act.READ)
        if able:
            return Step(Act.WAIT, why=self._failed[able[0].address].why)
        silent = [other.name or other.address for other in others if not other.answers]
        if silent:
            return Step(Act.WAIT, why=f"{self._reason}; it waits for a copy of {', '.join(sorted(silent))}")
        return Step(Act.WAIT, why=self._halt(others), is_halt=True)

    def _may_be_asked(self, now_ms: int, address: str) -> bool:
        failed = self._failed.get(address)
        return failed is None or now_ms >= failed.at_ms + AGAIN_MS

    @property
    def _reason(self) -> str:
        if self.lack in (Lack.DAMAGED, Lack.FOUNDED, Lack.ANEW):
            return str(self.lack.value)
        return f"the log begins at offset {self._log_start}, and this node lacks what came before"

    def _halt(self, others: Sequence[Seen]) -> str:
        who = "no other node has a copy of it" if others else "the group has no other node"
        if self.lack is Lack.DAMAGED:
            way = "Bring back a node that has a copy"
            if self._log_start == 0:
                way += "; or move the data directory away, and this node reads the whole log"
            return f"{self._reason}, and {who}. {way}"
        if self.lack is Lack.FOUNDED:
            return f"{self._reason}, and {who}. Bring back a node that has one, or start the one whose data it was"
        return f"{self._reason}, and {who}. Bring back a node that has one; a new group needs a new topic"
