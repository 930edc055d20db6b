"""Colour by meaning, for people at a terminal and for nobody else.

`--color always|never` decides; else NO_COLOR (any value) and TERM=dumb mean never, FORCE_COLOR means always, and
otherwise the stream must be a terminal. A cell that means something is `Meant`; what the colour of a meaning is
stands here alone.
"""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import IO, Any, NamedTuple


class Meaning(Enum):
    """What a colour says."""

    TROUBLE = "31"
    """Somebody should do something: dead letters, an open circuit, a floor of the disk."""
    HELD = "33"
    """Held back on purpose, or on the way to trouble: paused, capped, throttled, a backlog."""
    GOOD = "32"
    """As it should be."""
    QUIET = "2"
    """Of no interest now."""
    HEADING = "1"
    """A title or the head of a column."""


class Meant(NamedTuple):
    """A text that means something."""

    text: str
    meaning: Meaning


class _Choice:
    given = "auto"


def choose(choice: str) -> None:
    """Take the value of --color: auto, always or never."""
    _Choice.given = choice


def wanted(stream: IO[Any] | None = None) -> bool:
    """Whether to colour what goes to `stream` (stdout)."""
    if _Choice.given != "auto":
        return _Choice.given == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return (sys.stdout if stream is None else stream).isatty()


def paint(text: str, meaning: Meaning, stream: IO[Any] | None = None) -> str:
    """Return `text` in its colour, where colour is wanted."""
    return f"\x1b[{meaning.value}m{text}\x1b[0m" if text and wanted(stream) else text
