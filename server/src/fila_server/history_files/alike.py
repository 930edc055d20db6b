"""Recorded rows beside those that are made anew: the first that differs, and in which column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fila_server.history_files.runs import Messages

GROUP_MAX = 1024
"""Messages that are decided on together at most (core/threads/blocks.pxd)."""

OF_ROW = ("pass", "kind", "queue", "channel", "fairness_key", "consumer")
OF_ROW_TOO = ("at", "weight", "bucket", "reason", "messages", "priority", "replaces")
OF_MESSAGE = {
    "offsets": "offset",
    "attempts": "attempt",
    "costs": "cost",
    "held_ms": "held_ms",
    "wait_no_consumer_ms": "wait_no_consumer_ms",
    "wait_share_ms": "wait_share_ms",
    "wait_throttle_ms": "wait_throttle_ms",
    "wait_delay_ms": "wait_delay_ms",
    "wait_held_ms": "wait_held_ms",
}
"""Lists of a decision, and what one of a message is called."""
BETWEEN_KEYS = "\x1f"
PRIORITY_USUAL = 1


@dataclass(frozen=True)
class Difference:
    """The first row that is not the recorded one; None: there is none on that side."""

    recorded: dict[str, Any] | None
    replayed: dict[str, Any] | None
    column: str = ""
    """In which they differ first; empty: one is not there."""

    def __str__(self) -> str:
        if self.column in ("", *OF_ROW, "offset", "attempt") or not (self.recorded and self.replayed):
            return f"recorded {_said(self.recorded)}, replayed {_said(self.replayed)}"
        one, other = self.recorded[self.column], self.replayed[self.column]
        return f"{self.column} recorded {one!s}, replayed {other!s}, of {_said(self.recorded)}"


class Comparison:
    """Takes what is made anew in pieces, and the recorded rows as they are needed.

    Rows of many messages are compared whole. Where one differs, or is cut at another message than its fellow, the rows
    of both sides are laid out, a message each, until nothing is left of either.
    """

    def __init__(
        self,
        recorded: Iterable[pa.Table],
        first: pa.Table | None = None,
        laid_out: Callable[[pa.Table], pa.Table] | None = None,
    ) -> None:
        """first: recorded rows that come before all others, laid out. laid_out: how rows are; None: they are."""
        self._recorded = iter(recorded)
        self._laid_out = laid_out
        self._left: dict[bool, pa.Table | None] = {True: None, False: first}
        self._is_laid_out = laid_out is None or bool(first)
        self.compared = 0
        self.delivered = 0
        self.difference: Difference | None = None
        self.lacking: set[str] = set()
        """Columns that were not recorded."""

    @property
    def recorded_left(self) -> pa.Table | None:
        """What was recorded, and not made so far, laid out."""
        self._lay_out()
        return self._left[False]

    def take(self, made: pa.Table) -> None:
        """Compare with as much as was recorded. What lies in `made` may change afterwards."""
        self._add(True, made)
        while self.difference is None and self._length(True):
            if not self._length(False) and not self._more():
                break
            count = min(self._length(True), self._length(False))
            if self._is_laid_out:
                self._compare(count)
            elif not self._are_the_same(count):
                self._lay_out()
        left = self._left[True]
        if left is not None and len(left):
            self._left[True] = left.take(pa.array(range(len(left))))

    def end(self, last_pass: int) -> None:
        """All is replayed: what is left on one side, before the last pass, is a difference."""
        while self.difference is None and self._more():
            pass
        self._lay_out()
        for is_made in (True, False):
            left = self._left[is_made]
            if self.difference is None and left is not None and len(left):
                early = left.filter(pc.less(left.column("pass"), last_pass))
                if len(early):
                    row = early.slice(0, 1).to_pylist()[0]
                    self.difference = Difference(None if is_made else row, row if is_made else None)

    def _length(self, is_made: bool) -> int:
        left = self._left[is_made]
        return len(left) if left is not None else 0

    def _add(self, is_made: bool, part: pa.Table) -> None:
        if not (self._length(True) or self._length(False)):
            self._is_laid_out = self._laid_out is None
        elif self._is_laid_out and self._laid_out is not None:
            part = self._laid_out(part)
        if self._length(is_made):
            part = pa.concat_tables([self._left[is_made], part], promote_options="default")
        self._left[is_made] = part

    def _more(self) -> bool:
        part = next(self._recorded, None)
        if part is not None:
            self._add(False, part)
        return part is not None

    def _lay_out(self) -> None:
        if self._is_laid_out or self._laid_out is None:
            return
        self._is_laid_out = True
        for is_made, left in self._left.items():
            if left is not None:
                self._left[is_made] = self._laid_out(left)

    def _are_the_same(self, count: int) -> bool:
        """Pass over as many rows as both sides have, if they are the same in every column."""
        made, recorded = self._left[True], self._left[False]
        assert made is not None
        assert recorded is not None
        one, other = made.slice(0, count), recorded.slice(0, count)
        if set(one.column_names) != set(other.column_names):
            return False
        if not all(one.column(name).equals(other.column(name)) for name in one.column_names):
            return False
        messages = pc.list_value_length(one.column("offsets"))
        self.compared += pc.sum(messages).as_py() or 0
        delivered = pc.equal(one.column("kind"), "delivered")
        self.delivered += pc.sum(messages.filter(delivered)).as_py() or 0
        self._left[True], self._left[False] = made.slice(count), recorded.slice(count)
        return True

    def _compare(self, count: int) -> None:
        made, recorded = self._left[True], self._left[False]
        assert made is not None
        assert recorded is not None
        one, other = made.slice(0, count), recorded.slice(0, count)
        first, column = count, ""
        for name in one.column_names:
            if name not in other.column_names:
                self.lacking.add(name)
                continue
            at = _first_other(one.column(name), other.column(name))
            if 0 <= at < first:
                first, column = at, name
        self.compared += first
        self.delivered += pc.sum(pc.equal(one.column("kind").slice(0, first), "delivered")).as_py() or 0
        if first < count:
            row, row_made = (part.slice(first, 1).to_pylist()[0] for part in (other, one))
            self.difference = Difference(row, row_made, column)
        self._left[True], self._left[False] = made.slice(count), recorded.slice(count)


def flat(decisions: pa.Table) -> pa.Table:
    """One row a message, with what is compared, in the order in which it was decided."""
    there = set(decisions.column_names)
    messages = Messages(decisions)
    order = None  # of before there were places each row was one key's, in the order of decisions
    if "places" in there:
        order = _as_decided(pc.list_flatten(decisions.column("places").combine_chunks()))
    plain = decisions.select([*OF_ROW, *(name for name in OF_ROW_TOO if name in there)])
    if "throttle_keys" in there:
        plain = plain.append_column(
            "throttle_keys", pc.binary_join(decisions.column("throttle_keys"), BETWEEN_KEYS)
        )
    plain = plain.take(_in_order(messages.rows, order))
    if "priority" not in there:
        usual = pa.repeat(pa.scalar(PRIORITY_USUAL, pa.int32()), len(plain))
        plain = plain.append_column("priority", usual)  # of before there were others
    for name, of_one in OF_MESSAGE.items():
        if name in there:
            values = messages.offsets if name == "offsets" else messages.each(name)
            plain = plain.append_column(of_one, _in_order(values, order))
    return plain


def _in_order(values: pa.Array, order: pa.Array | None) -> pa.Array:
    return values if order is None else values.take(order)


def _as_decided(places: pa.Array) -> pa.Array:
    """In which order to take messages: a group begins with the one at place 0, and its rows follow one another."""
    groups = pc.cumulative_sum(pc.cast(pc.equal(places, 0), pa.int64()))
    return pc.sort_indices(pc.add(pc.multiply(groups, GROUP_MAX), places))


def _first_other(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int:
    """Where two columns differ first; -1: nowhere."""
    same = pc.fill_null(pc.equal(one, other), False)
    same = pc.or_(same, pc.and_(pc.is_null(one), pc.is_null(other)))
    begin = 0
    while (at := pc.index(same, False, begin).as_py()) >= 0:
        if not _alike_as_json(one[at].as_py(), other[at].as_py()):
            return int(at)
        begin = at + 1
    return -1


def _alike_as_json(one: Any, other: Any) -> bool:
    """Whether two texts say the same: a queue's settings have maps, whose order means nothing."""
    if not (isinstance(one, str) and isinstance(other, str) and one[:1] == other[:1] == "{"):
        return False
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def _said(row: dict[str, Any] | None) -> str:
    if row is None:
        return "nothing"
    if "offset" not in row:  # a change
        of = row["queue"] or row["name"] or "the broker"
        return f"the change {row['kind']} of {of} in pass {row['pass']}"
    consumer = f" to consumer {row['consumer']}" if row["consumer"] is not None else ""
    return (
        f"{row['kind']} of {row['queue']}/{row['channel']} key {row['fairness_key']!r} offset {row['offset']} "
        f"attempt {row['attempt']}{consumer} in pass {row['pass']}"
    )
