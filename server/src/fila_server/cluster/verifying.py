"""Reads a whole log by the rule that every node would read it by, and counts what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from fila_server import errors
from fila_server.cluster.written import READS
from fila_server.core.log.kafka import LogRefused
from fila_server.core.log.reading import LogReading
from fila_server.core.log.record import decode

if TYPE_CHECKING:
    from fila_server.core.log.reading import State

TERM, PASS, LAST_PART = 1, 2, 4
"""What the rule makes of a record (core/log/reading.pxd)."""
FOUNDED = 10
"""Why a reader without a copy halts."""

WAIT_MS = 1_000
SILENT_WAITS_MAX = 20
"""So many waits in a row without a word: the brokers are gone."""


class Readable(Protocol):
    """As much of a log as is needed to read it."""

    def read(
        self, first: int, room: int = ..., wait_ms: int = ...
    ) -> tuple[list[tuple[int, bytes]], int, int]:
        """Records from an offset on, where the log begins, and where it ends; -1 where that is not known."""
        ...


@dataclass
class Term:
    """A term, from its takeover to the next effective one."""

    offset: int
    node: str
    began_ms: int
    passes: int = 0


@dataclass
class Found:
    """What a log holds."""

    terms: list[Term] = field(default_factory=list)
    state: State | None = None
    began_with_data: bool = False
    """`cluster init` made it: what came before its first record a copy has."""
    why: str = ""
    """Why the reader halted; empty if it did not."""

    @property
    def records(self) -> int:
        """How many records were read."""
        return self.state["position"] + 1 if self.state else 0


def read_all(log: Readable, *, on_progress: Callable[[int], None] = lambda _read: None) -> Found:
    """Read from offset 0 to the end that the log has by then. Raises StartError when it cannot be read."""
    reading, found = LogReading(READS), Found()
    for offset, content in _records(log, reading):
        taken = reading.take(offset, content)
        if reading.state()["halted"] == FOUNDED:
            found.began_with_data = True
            reading.follows(decode(content)[1]["chain"])
            taken = reading.take(offset, content)
        if taken == TERM:
            fields = decode(content)[1]
            found.terms.append(Term(offset, fields["name"], fields["wall_ms"]))
        elif taken in (PASS, LAST_PART):
            found.terms[-1].passes += 1
        if reading.is_halted:
            break
        on_progress(offset + 1)
    found.state, found.why = reading.state(), reading.why
    return found


def _records(log: Readable, reading: LogReading) -> Iterator[tuple[int, bytes]]:
    at = silent = 0
    while not reading.is_halted:
        try:
            records, start, end = log.read(at, wait_ms=WAIT_MS)
        except LogRefused as refused:
            raise errors.StartError(f"{refused}; {at} records were read until then") from None
        if end >= 0 and not reading.reaches(start, end):
            return
        yield from records
        at += len(records)
        if 0 <= end <= at:
            return
        silent = 0 if records else silent + 1
        if silent == SILENT_WAITS_MAX:
            waited_s = SILENT_WAITS_MAX * WAIT_MS // 1000
            raise errors.StartError(
                f"the brokers said nothing for {waited_s} s; {at} records were read until then"
            )
