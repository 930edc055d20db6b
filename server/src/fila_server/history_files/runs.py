"""Lists of what the messages of each row have, read: one element says it of all of them where they are alike."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def each(decisions: pa.Table, name: str) -> pa.Array:
    """Return one element a message, in the rows' order; rows without a list must have no messages listed."""
    offsets, lists = (decisions.column(column).combine_chunks() for column in ("offsets", name))
    flat = pc.list_flatten(lists)
    rows = pc.list_parent_indices(offsets)
    if len(flat) == len(rows):
        return flat
    place = pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(rows))), 1)
    within = pc.subtract(place, _begins(offsets).take(rows))
    for_all = pc.equal(pc.list_value_length(lists), 1).take(rows)
    return flat.take(pc.add(_begins(lists).take(rows), pc.if_else(for_all, 0, within)))


def spread(values: list[int], count: int) -> list[int]:
    """Do the same for one row of so many messages."""
    return values * count if len(values) == 1 else values


def _begins(lists: pa.ListArray) -> pa.Array:
    """Where each row's elements begin among all of them; null where it has no list."""
    counts = pc.cast(pc.list_value_length(lists), pa.int64())
    return pc.subtract(pc.cumulative_sum(pc.fill_null(counts, 0)), counts)
