"""What the broker's own core says of a recording, start by start; the words are those of fila_server.history_files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Row

    from fila_server.history_files.segments import Segment

SAME, DIFFERENT, REFUSED, NO_BASE = "same", "different", "refused", "no base"
OTHER_VERSION, OTHER_BUILD, OLDER_RULES = "other version", "other build", "older rules"
NOTHING_NEW = "nothing new"
WRONG = (DIFFERENT, REFUSED, OTHER_BUILD)
"""Outcomes of what does not follow."""
CHECKPOINTS, CHECKPOINT_SUFFIX = "checkpoints", ".checkpoint"
"""The folder of a history that they lie in, and how their names end."""


@dataclass(frozen=True)
class Verdict:
    """What came of one segment."""

    run: str
    outcome: str
    passes: int = 0
    decisions: int = 0
    deliveries: int = 0
    said: str = ""
    since: str = ""
    """The moment of the checkpoint that it begins at, ISO 8601; empty: the start of the broker."""


def segments(entries: Sequence[Row], directory: str) -> list[Segment]:
    """Sort the list's entries into segments, oldest first. The broker's core must be at hand."""
    from fila_server.history_files.segments import segments as sorted_out

    return sorted_out([entry.asDict() for entry in entries], directory)
