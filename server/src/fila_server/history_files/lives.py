"""What a history says of one message, from its arrival on: the rows that name its offset.

    decisions/date=2026-03-02/hour=09/*.parquet    from the hour of its arrival on, oldest first

The list is not read, which has an entry for each file of a month: folders tell the hour, and each file the moments that
it is about. Of a history as long as it may be only READ_BYTES_MAX are read, and it is said where that ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fila_server.history_files.columns import DECISIONS

READ_BYTES_MAX = 256 << 20
EVENTS_MAX = 1_000
ARRIVALS = ("enqueued", "redriven")
STORED_WITHIN = timedelta(seconds=2)
"""A message is seen by its queue, and so recorded, once it is on the disk; its id is of before."""
ENDS = ("acked", "dead_lettered", "dropped")
_WAITS = tuple(f"wait_{cause}_ms" for cause in ("no_consumer", "share", "throttle", "delay", "held"))
_COLUMNS = [
    *("at", "pass", "kind", "queue", "channel", "fairness_key", "consumer", "bucket", "reason"),
    *("offsets", "attempts", "held_ms", *_WAITS),
]


class Event(NamedTuple):
    """Something that was decided about the message; what does not apply is empty."""

    at: datetime
    number: int
    """Of the pass."""
    kind: str
    channel: str
    fairness_key: str
    consumer: int
    bucket: str
    reason: str
    attempts: int
    held_ms: int
    waited_ms: int


class Life(NamedTuple):
    """What was found."""

    events: list[Event]
    until: datetime | None
    """Up to when the files that were read tell; None: there is none of then."""
    is_cut: bool = False
    """There is more that was not read."""


def life_of(
    directory: Path, queue: str, channel: str, offset: int, since: datetime, *, to_its_end: bool
) -> Life:
    """The message's life in a channel from a moment on; `to_its_end`: not beyond its first end. Raises OSError."""
    reading = _Reading(directory, queue, since)
    found: dict[Event, None] = {}  # a file that was merged stands beside those that it replaces, for a while
    for table in reading.tables():
        for row in _rows_of(table, offset):
            event = _event(row, offset)
            if event.channel in ("", channel):
                found[event] = None
        if len(found) >= EVENTS_MAX or (to_its_end and any(event.kind in ENDS for event in found)):
            break
    return Life([*found][:EVENTS_MAX], reading.until, reading.is_cut)


def arrivals(directory: Path, queue: str, at: datetime) -> tuple[set[int], datetime | None]:
    """The offsets of what came into a queue at about the moment of an id, and up to when the files tell. Raises
    OSError."""
    reading = _Reading(directory, queue, at)
    found: set[int] = set()
    for table in reading.tables():
        came = table.filter(pc.is_in(table.column("kind"), pa.array(ARRIVALS)))
        for row in came.select(["at", "offsets"]).to_pylist():
            if at <= row["at"] < at + STORED_WITHIN:
                found.update(row["offsets"] or ())
        if reading.until is not None and reading.until > at + STORED_WITHIN:
            break
    return found, reading.until


class _Reading:
    """Row groups of a queue from a moment on, in order."""

    def __init__(self, directory: Path, queue: str, since: datetime) -> None:
        self._directory = directory / DECISIONS
        self._queue = queue
        self._since = since
        self.until: datetime | None = None
        self.is_cut = False

    def tables(self) -> Iterator[pa.Table]:
        left = READ_BYTES_MAX
        for path in self._files():
            try:
                file = pq.ParquetFile(path)
            except FileNotFoundError:
                continue  # retention took it
            with file:
                for group in range(file.num_row_groups):
                    newest = file.metadata.row_group(group).column(0).statistics.max
                    if newest < self._since:
                        continue
                    left -= file.metadata.row_group(group).total_byte_size
                    if left < 0:
                        self.is_cut = True
                        return
                    table = file.read_row_group(group, columns=_COLUMNS, use_threads=False)
                    self.until = max(newest, self.until or newest)
                    yield table.filter(pc.equal(table.column("queue"), self._queue))

    def _files(self) -> Iterator[Path]:
        hour = self._since.astimezone(UTC).strftime("date=%Y-%m-%d/hour=%H")
        folders = (f"{folder.parent.name}/{folder.name}" for folder in self._directory.glob("date=*/hour=*"))
        for folder in sorted(name for name in folders if name >= hour):
            yield from sorted(self._directory.glob(f"{folder}/[!_]*.parquet"))


def _rows_of(table: pa.Table, offset: int) -> Iterator[dict[str, Any]]:
    offsets = table.column("offsets").combine_chunks()
    hits = pc.indices_nonzero(pc.equal(pc.list_flatten(offsets), offset))
    for row in pc.list_parent_indices(offsets).take(hits).to_pylist():
        yield table.slice(row, 1).to_pylist()[0]


def _event(row: dict[str, Any], offset: int) -> Event:
    place = row["offsets"].index(offset)

    def own(name: str) -> int:
        """A list has one element a message, or one for all of them."""
        values = row[name] or [0]
        return int(values[0] if len(values) == 1 else values[place])

    return Event(
        at=row["at"].astimezone(UTC),
        number=row["pass"],
        kind=row["kind"],
        channel=row["channel"] or "",
        fairness_key=row["fairness_key"] or "",
        consumer=row["consumer"] or 0,
        bucket=row["bucket"] or "",
        reason=row["reason"] or "",
        attempts=own("attempts"),
        held_ms=own("held_ms"),
        waited_ms=sum(own(name) for name in _WAITS),
    )
