"""The batch read: what the logs of queues retain when the query is planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from pyspark_fila.broker import BrokerLog, LogBounds
from pyspark_fila.errors import DataLoss
from pyspark_fila.filters import OFFSET_END, take_over
from pyspark_fila.options import EARLIEST, LATEST, ReadOptions
from pyspark_fila.ranges import LogPart, LogRange, log, read_part, split
from pyspark_fila.subscribed import met


class LogReader(DataSourceReader):
    """Plans and reads ranges of logs, where Spark pushes no filters down."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        start, end = options.starting_offset, options.ending_offset
        self._wanted = LogRange(
            start=start if isinstance(start, int) else 0,
            end=end if isinstance(end, int) else OFFSET_END,
            fairness_key=options.fairness_key,
            from_time=options.starting_time,
            to_time=options.ending_time,
            complete=isinstance(start, int),
        )

    def partitions(self) -> Sequence[InputPartition]:
        """Ask the broker where the logs begin and end, and split what is wanted of them."""
        ranges = [self._range_of(name) for name in met(self._options) if self._wanted.queue in ("", name)]
        # Spark takes no list of nothing for an empty table.
        return split(ranges, self._options.partitions) or [LogPart(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part, in a worker."""
        assert isinstance(partition, LogPart)
        return read_part(self._options, self._schema, partition)

    def _range_of(self, queue: str) -> LogRange:
        broker = BrokerLog(self._options.connection, queue)
        bounds = broker.bounds()
        self._check_start(queue, bounds)
        wanted = self._wanted
        start = bounds.head if self._options.starting_offset == LATEST else max(wanted.start, bounds.oldest)
        end = min(wanted.end, bounds.head)
        # By offset, so that tasks share evenly what is wanted rather than what there is.
        if wanted.from_time is not None:
            start = max(start, broker.offset_at(wanted.from_time, bounds))
        if wanted.to_time is not None:
            end = min(end, broker.offset_at(wanted.to_time, bounds))
        first = broker.first_from(start) if start < end else None
        start = first[0] if first else end
        return replace(
            wanted, start=start, end=end, from_time=None, to_time=None, creation=bounds.creation, queue=queue
        )

    def _check_start(self, queue: str, bounds: LogBounds) -> None:
        start = self._options.starting_offset
        if start in (EARLIEST, LATEST) or int(start) >= bounds.oldest:
            return
        problem = (
            f"queue {queue} keeps nothing below offset {bounds.oldest} any more, and startingOffset is "
            f"{start}; start at 'earliest', or set failOnDataLoss to false"
        )
        if self._options.fail_on_data_loss:
            raise DataLoss(problem)
        log.warning(problem)


class FilteringLogReader(LogReader):
    """The same where Spark pushes filters down."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take over what the broker can filter by: queue, fairness key, offsets, append times."""
        self._wanted, left = take_over(filters, self._wanted)
        return left
