"""A range of the log, the tasks it is split into, and reading one of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
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


def split(whole: LogRange, tasks_max: int) -> list[LogRange]:
    """Split a range into equal parts, so that the tasks of one trigger share its messages evenly."""
    length = whole.end - whole.start
    if length <= 0:
        return []
    count = max(1, min(tasks_max, length // MESSAGES_PER_TASK_MIN))
    edges = [whole.start + length * i // count for i in range(count + 1)]
    return [replace(whole, start=start, end=end) for start, end in pairwise(edges)]


def read_range(options: ReadOptions, schema: StructType, part: LogRange) -> Iterator[pa.RecordBatch]:
    """Read one part of the log as Arrow batches. Runs in a worker; a task that is tried again reads the same."""
    broker = BrokerLog(options.connection, options.queue)
    request = pb.ReadLogRequest(
        queue=options.queue,
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
            yield arrow_batch(response.messages, columns)
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
    check_same(options.queue, part.creation, bounds)
    if gaps.lowest is None or not part.complete:
        return
    oldest = bounds.oldest
    if oldest <= gaps.lowest:
        return
    problem = (
        f"retention took messages of queue {options.queue} while they were read: offsets {gaps.lowest} to "
        f"{min(oldest, part.end) - 1} are gone; keep them longer, or set failOnDataLoss to false"
    )
    if options.fail_on_data_loss:
        raise DataLoss(problem)
    log.warning(problem)


def _timestamp(moment: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp
