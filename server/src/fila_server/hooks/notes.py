"""What scripts have to tell besides their answers: lines of fila.log, and returned fields that nobody reads."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fila_server.hooks.counters import HookCounters

LINES_A_SECOND = 10
LINES_AT_ONCE = 20
"""Of one hook; more are counted and not written."""
FIELDS_MAX = 32
"""Names that are counted apart; the rest is one sum."""

_HEAD = struct.Struct(">cIH")


@dataclass(slots=True)
class Notes:
    """Of one crossing."""

    lines: list[str] = field(default_factory=list)
    lost_lines: int = 0
    ignored: dict[str, int] = field(default_factory=dict)
    """Answers by the name of a field they had and nobody reads."""
    lost_fields: int = 0


def read_notes(packed: bytes) -> Notes:
    """Take apart what fila.lua packed."""
    notes = Notes()
    at = 0
    while at < len(packed):
        what, number, length = _HEAD.unpack_from(packed, at)
        at += _HEAD.size + length
        text = packed[at - length : at].decode("utf-8", "backslashreplace")
        if what == b"l":
            notes.lines.append(text)
        elif what == b"f":
            notes.ignored[text] = number
        elif what == b"L":
            notes.lost_lines = number
        else:
            notes.lost_fields = number
    return notes


class Notebook:
    """Counts what one hook tells, and says which of it should be written now."""

    def __init__(self) -> None:
        self._room = float(LINES_AT_ONCE)
        self._filled_ns = 0
        self._missed = 0

    def take(self, notes: Notes, counters: HookCounters, now_ns: int) -> tuple[list[str], int, list[str]]:
        """Return the lines to write, how many were not written before them, and fields never ignored so far."""
        elapsed_s = (now_ns - self._filled_ns) / 1e9 if self._filled_ns else 0.0
        self._filled_ns = now_ns
        self._room = min(self._room + elapsed_s * LINES_A_SECOND, LINES_AT_ONCE)
        written = notes.lines[: int(self._room)]
        self._room -= len(written)
        missed = self._missed
        lost = len(notes.lines) - len(written) + notes.lost_lines
        self._missed = lost if written else missed + lost
        counters.log_lines += len(written)
        counters.log_lines_dropped += lost
        return written, missed if written else 0, _count_fields(notes, counters.ignored_fields)


def _count_fields(notes: Notes, counts: dict[str, int]) -> list[str]:
    new = []
    for name, times in notes.ignored.items():
        if name not in counts and len(counts) >= FIELDS_MAX:
            counts["(others)"] = counts.get("(others)", 0) + times
            continue
        if name not in counts:
            new.append(name)
        counts[name] = counts.get(name, 0) + times
    if notes.lost_fields:
        counts["(others)"] = counts.get("(others)", 0) + notes.lost_fields
    return new
