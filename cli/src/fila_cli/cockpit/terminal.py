"""A terminal's keys, by name, as they are pressed."""

from __future__ import annotations

import codecs
import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Any, Self

_ESCAPE = "\x1b"
_NAMES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1b[1~": "home",
    "\x1b[4~": "end",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "ctrl-c",
    _ESCAPE: "escape",
}


def names_of(text: str) -> list[str]:
    """The keys that a terminal says in these characters; sequences that mean nothing here are dropped."""
    found: list[str] = []
    at = 0
    while at < len(text):
        length = _length(text, at)
        piece = text[at : at + length]
        if piece in _NAMES:
            found.append(_NAMES[piece])
        elif length == 1 and piece.isprintable():
            found.append(piece)
        at += length
    return found


def _length(text: str, at: int) -> int:
    """Of the sequence that begins here: Esc, [ or O, parameters, and a letter or ~."""
    if text[at] != _ESCAPE or at + 1 == len(text) or text[at + 1] not in "[O":
        return 1
    end = at + 2
    while end < len(text) and not (text[end].isalpha() or text[end] == "~"):
        end += 1
    return min(end + 1, len(text)) - at


class Keys:
    """stdin as keys, for as long as this is entered."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._before: list[Any] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> list[str]:
        """The keys pressed within so long; returns at the first."""
        if not select.select([self._fd], [], [], max(seconds, 0.0))[0]:
            return []
        read = os.read(self._fd, 1024)
        if not read:
            return ["q"]  # the terminal is gone
        return names_of(self._decoder.decode(read))
