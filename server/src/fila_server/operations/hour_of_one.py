"""An hour of one channel or key: a ring of rows of numbers, a row for each ten seconds."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import msgspec

STEP_S = 10.0
POINTS = 360
SERIES_BYTES = 400
"""Of a series besides its points: names, dictionary, object."""
_NAN = math.nan


class Series:
    """An hour of one channel or key: rows of numbers by step, NaN where there is none."""

    __slots__ = ("_columns", "_numbers", "last", "served")

    def __init__(self, columns: int, kind: str) -> None:
        self._columns = columns
        self._numbers = array(kind, [_NAN]) * (columns * POINTS)
        self.last = -1
        """The step of its newest row."""
        self.served = 0.0
        """Of a key: the sum of its second column."""

    @property
    def size(self) -> int:
        return len(self._numbers) * self._numbers.itemsize + SERIES_BYTES

    def repeat(self, count: int, ages: int | None) -> None:
        """Put the newest row `count` times more; `ages` is a column that grows by STEP_S, in ms, unless it is 0."""
        row = self._numbers[self.last % POINTS * self._columns :][: self._columns]
        for step in range(self.last + 1, self.last + 1 + count)[-POINTS:]:
            if ages is not None and row[ages]:
                row[ages] += STEP_S * 1000
            at = step % POINTS * self._columns
            if not math.isnan(old := self._numbers[at + 1]):
                self.served -= old
            self._numbers[at : at + self._columns] = row
            self.served += row[1]
        self.last += count

    def put(self, step: int, row: Sequence[float]) -> None:
        """Write the row of a step, which is newer than all before."""
        numbers = self._numbers
        # Of a new one nothing is to be overwritten: a broker begins two thousand of them at one look.
        oldest = step if self.last < 0 else max(self.last + 1, step - POINTS + 1)
        for between in range(oldest, step + 1):
            at = between % POINTS * self._columns
            if not math.isnan(old := numbers[at + 1]):
                self.served -= old
            numbers[at : at + self._columns] = array(
                numbers.typecode, row if between == step else [_NAN] * self._columns
            )
        self.served += row[1]
        self.last = step

    def numbers(self, step: int) -> bytes:
        """All rows, so that the one of `step` is the last."""
        cut = (step + 1) % POINTS * self._columns
        return (self._numbers[cut:] + self._numbers[:cut]).tobytes()

    def begin(self, last: int, step: int, numbers: bytes) -> bool:
        """Take over rows of which the last is `step`'s, and the newest that there is `last`'s; False if they are of
        another length."""
        rows: array[float] = self._numbers[:0]
        if len(numbers) != len(self._numbers) * self._numbers.itemsize:
            return False
        rows.frombytes(numbers)
        cut = len(rows) - (step + 1) % POINTS * self._columns
        self._numbers = rows[cut:] + rows[:cut]
        self.last = last
        return True

    def row(self, step: int) -> Sequence[float] | None:
        """The row of a step, None where none was recorded."""
        if not self.last - POINTS < step <= self.last:
            return None
        at = step % POINTS * self._columns
        row = self._numbers[at : at + self._columns]
        return None if math.isnan(row[0]) else row


class SavedSeries(msgspec.Struct, array_like=True):
    """A series over a restart."""

    queue: str
    channel: str
    fairness_key: str | None
    """None: the channel's own."""
    behind: int
    """By how many steps its newest row is older than the newest of all."""
    served: float
    numbers: bytes
    """Its rows, oldest first."""
