"""A queue's settings as text, and what differs between two texts, line by line."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any, NamedTuple

from fila.answers import QueueConfig, Retention, RetryPolicy

CONTEXT_LINES = 2
_NESTED: dict[str, Any] = {"retry": RetryPolicy(), "retention": Retention()}
# A queue's channels are made and deleted by calls of their own.
_NAMES = tuple(each.name for each in dataclasses.fields(QueueConfig) if each.name != "channels")
_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\0", "\\0"))


class Difference(NamedTuple):
    """What differs in one setting."""

    name: str
    lines: list[str]
    """Each begins with + (only afterwards), - (only before), a space (in both), or is … for what was left out."""


def as_sent(text: str) -> str:
    """What a browser sends back of a text that a page gave it to edit: every kind of newline as one, and no NUL."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def in_one_line(key: str) -> str:
    """A key as a line of a text field can hold it; `from_one_line` reads it."""
    for character, escape in _ESCAPES:
        key = key.replace(character, escape)
    return key


def from_one_line(line: str) -> str:
    """The key that `in_one_line` wrote."""
    escapes = {escape: character for character, escape in _ESCAPES}
    parts, at = [], 0
    while at < len(line):
        pair = line[at : at + 2]
        parts.append(escapes.get(pair, line[at]))
        at += 2 if pair in escapes else 1
    return "".join(parts)


def text_of(value: Any) -> str:
    """A setting's value as text, a line for each of its parts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return "\n".join(f"{in_one_line(str(key))}={each}" for key, each in sorted(value.items()))
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def difference(name: str, before: str, after: str) -> Difference:
    """Compare two texts of one setting."""
    compared = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=CONTEXT_LINES)
    # Its first lines name files; each later @@ stands for lines in between that are the same.
    lines = ["…" if line.startswith("@@") else line for line in [*compared][3:]]
    return Difference(name, lines)


def settings_back(wanted: QueueConfig, now: QueueConfig) -> dict[str, Any]:
    """What to set so that a queue with the settings `now` has those of `wanted`; its channels stay."""
    settings: dict[str, Any] = {}
    for name in _NAMES:
        value = _value(wanted, name)
        if value != _value(now, name):
            settings[name] = dataclasses.asdict(value) if name in _NESTED else value
    return settings


def differences(before: QueueConfig, after: QueueConfig) -> list[Difference]:
    """Every setting that differs."""
    told = ((name, text_of(_value(before, name)), text_of(_value(after, name))) for name in _NAMES)
    return [difference(name, old, new) for name, old, new in told if old != new]


def _value(config: QueueConfig, name: str) -> Any:
    value = getattr(config, name)
    return _NESTED.get(name) if value is None else value
