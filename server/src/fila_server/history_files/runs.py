"""Lists of what the messages of each row have, read: one element says it of all of them where they are alike."""

from __future__ import annotations

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc


class Messages:
    """The messages of decisions, one element each, in the rows' order; a row without a list must list no messages."""

    def __init__(self, decisions: pa.Table) -> None:
        self._decisions = decisions
        lists = decisions.column("offsets").combine_chunks()
        self.rows = pc.list_parent_indices(lists)
        """Of each message, the row that tells of it."""
        self.offsets = pc.list_flatten(lists)
        self._first = _begins(lists)

    def with_offsets(self, names: list[str]) -> pa.Table:
        """What its row says of each message in these columns, and its offset."""
        return self._decisions.select(names).take(self.rows).append_column("offset", self.offsets)

    def each(self, name: str) -> pa.Array:
        """What a column of lists has of each message."""
        lists = self._decisions.column(name).combine_chunks()
        flat = pc.list_flatten(lists)
        if len(flat) == len(self.rows):
            return flat
        for_all = pc.equal(pc.list_value_length(lists), 1)
        if len(flat) == len(lists) and pc.all(for_all, skip_nulls=False).as_py():
            return flat.take(self.rows)
        begins = _begins(lists)
        begins = pc.if_else(for_all, begins, pc.subtract(begins, self._first)).take(self.rows)
        within = pc.if_else(for_all.take(self.rows), 0, self._place)
        return flat.take(pc.add(begins, within))

    @cached_property
    def _place(self) -> pa.Array:
        ones = pa.repeat(pa.scalar(1, pa.int64()), len(self.rows))
        return pc.subtract(pc.cumulative_sum(ones), 1)


def spread(values: list[int], count: int) -> list[int]:
    """Do the same for one row of so many messages."""
    return values * count if len(values) == 1 else values


def _begins(lists: pa.ListArray) -> pa.Array:
    """Where each row's elements begin among all of them; null where it has no list."""
    counts = pc.cast(pc.list_value_length(lists), pa.int64())
    return pc.subtract(pc.cumulative_sum(pc.fill_null(counts, 0)), counts)
