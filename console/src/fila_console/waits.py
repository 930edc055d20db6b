"""What of a key waits now, and where its last hour of waiting went: a row a cause, with its part of the whole."""

from __future__ import annotations

from collections.abc import Iterable

from fila.explanation import KeyExplanation, WaitCauses
from fila_console.cells import Row, cell, row
from fila_console.wording import age, counted, part


def wait_rows(waits: WaitCauses | None, words: Iterable[tuple[str, str]]) -> list[Row]:
    """No rows where it did not wait. `words`: a field of WaitCauses, and what the reader of the page calls it."""
    if waits is None:
        return []
    spent = [(text, int(getattr(waits, name))) for name, text in words]
    whole = sum(each for _, each in spent)
    if not whole:
        return []
    return [row(text, [text, age(each), cell(part(each / whole), bar=each / whole)]) for text, each in spent]


def waiting(told: KeyExplanation) -> str:
    """How many messages of a key wait, and how many of them behind its others of a higher priority."""
    behind = f", {told.behind_higher:,} of them behind a higher priority of this key"
    return counted(told.pending, "message") + (behind if told.behind_higher else "")
