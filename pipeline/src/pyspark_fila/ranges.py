"""Ranges of logs, the tasks they are split into, and reading one of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import pyarrow as pa
from google.protobuf.timestamp_pb2 import Timestamp
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_fila.broker import BrokerLog
from pyspark_fila.columns import arrow_batch, arrow_schema
from pyspark_fila.errors import DataLoss
from pyspark_fila.identity import check_same
from pyspark_fila.options import ReadOptions
from pyspark_fila.wire import admin_pb2 as pb

MESSAGES_PER_TASK_MIN = 1000
"""A task costs milliseconds; fewer messages are not worth one."""

log = logging.getLogger("pyspark_fila")


@dataclass(frozen=True)
class LogRange(InputPartition):
    """`start <= offset < end` of one queue's log, and what of it is wanted."""

    start: int
    end: int
    fairness_key: str = ""
    from_time: datetime | None = None
    """At this moment or later."""
    to_time: datetime | None = None
    """Before this moment."""
    complete: bool = True
    """Whether a message that is gone from it is a loss; not so where the read asked for whatever is retained."""
    creation: str = ""
    """The queue's creation id when this was planned."""
    queue: str = ""


@dataclass(frozen=True)
class LogPart(InputPartition):
    """What one task reads: a stretch of one queue's log, or of several, one after the other."""

    ranges: tuple[LogRange, ...]


def split(wholes: Sequence[LogRange], tasks_max: int) -> list[LogPart]:
    """Split ranges into equal parts, so that the tasks of one trigger share their messages evenly."""
    wholes = [whole for whole in wholes if whole.end > whole.start]
    length = sum(whole.end - whole.start for whole in wholes)
    if not length:
        return []
    count = max(1, min(tasks_max, length // MESSAGES_PER_TASK_MIN))
    edges = [length * i // count for i in range(count + 1)]
    return [LogPart(tuple(_cut(wholes, start, end))) for start, end in pairwise(edges)]


def _cut(wholes: Sequence[LogRange], start: int, end: int) -> Iterator[LogRange]:
    """What stands from `start` to below `end` where the ranges are laid end to end."""
    before = 0
    for whole in wholes:
        length = whole.end - whole.start
        low, high = max(start - before, 0), min(end - before, length)
        if low < high:
            yield replace(whole, start=whole.start + low, end=whole.start + high)
        before += length


def read_part(options: ReadOptions, schema: StructType, part: LogPart) -> Iterator[pa.RecordBatch]:
    """Read what one task is to read as Arrow batches. Runs in a worker; a task that is tried again reads the same."""
    for stretch in part.ranges:
        yield from _read_range(options, schema, stretch)


def _read_range(options: ReadOptions, schema: StructType, part: LogRange) -> Iterator[pa.RecordBatch]:
    broker = BrokerLog(options.connection, part.queue)
    request = pb.ReadLogRequest(
        queue=part.queue,
        from_offset=part.start,
        to_offset=part.end,
        fairness_key=part.fairness_key,
        max_batch=options.batch_size,
    )
    if part.from_time is not None:
        request.from_time.CopyFrom(_timestamp(part.from_time))
    if part.to_time is not None:
        request.to_time.CopyFrom(_timestamp(part.to_time))
    filtered = bool(part.fairness_key or part.from_time or part.to_time)
    columns, gaps = arrow_schema(schema), _Gaps(part.start)
    for response in broker.responses(request):
        if response.messages:
            if not filtered:
                gaps.see([message.metadata.offset for message in response.messages])
            yield arrow_batch(response.messages, columns, part.queue)
    if filtered:
        gaps.lowest = part.start
    else:
        gaps.end(part.end)
    _check_nothing_was_taken(broker, options, part, gaps)


class _Gaps:
    """Offsets that were asked for and did not come: never given to a message, or taken while this was read."""

    def __init__(self, start: int) -> None:
        self._next = start
        self.lowest: int | None = None

    def see(self, offsets: list[int]) -> None:
        dense = offsets[0] == self._next and offsets[-1] - offsets[0] == len(offsets) - 1
        if not dense and self.lowest is None:
            for offset in offsets:
                if offset != self._next:
                    break
                self._next += 1
            self.lowest = self._next
        self._next = offsets[-1] + 1

    def end(self, end: int) -> None:
        if self._next < end and self.lowest is None:
            self.lowest = self._next


def _check_nothing_was_taken(broker: BrokerLog, options: ReadOptions, part: LogRange, gaps: _Gaps) -> None:
    """Retention takes from the oldest on: what it took of this part while it was read lies below the oldest now. A
    queue that was made anew meanwhile has other messages."""
    bounds = broker.bounds()
    check_same(part.queue, part.creation, bounds)
    if gaps.lowest is None or not part.complete:
        return
    oldest = bounds.oldest
    if oldest <= gaps.lowest:
        return
    problem = (
        f"retention took messages of queue {part.queue} while they were read: offsets {gaps.lowest} to "
        f"{min(oldest, part.end) - 1} are gone; keep them longer, or set failOnDataLoss to false"
    )
    if options.fail_on_data_loss:
        raise DataLoss(problem)
    log.warning(problem)


def _timestamp(moment: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp
