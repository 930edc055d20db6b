"""The streaming read: offsets that can be replayed, a limit a trigger, and what happens when the log lost some.

Spark calls everything here but `read` in one process a query, in this order for each micro-batch: `latestOffset`,
`partitions`, the tasks, and at the next `latestOffset` everything below its `start` is in the query's checkpoint.
That is when the channel is moved. `commit` comes a batch late, and for the last batch never.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_fila.errors import OptionInvalid
from pyspark_fila.identity import Offset
from pyspark_fila.options import OFFSET_MAX, ReadOptions
from pyspark_fila.query_progress import QueryProgress
from pyspark_fila.ranges import LogPart, read_part, split


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads queues' logs as micro-batches. Making one contacts nobody: Spark makes it in several processes."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._progress = QueryProgress(options)

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where a query without a checkpoint begins."""
        return self._progress.initial()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit a trigger."""
        options = self._options
        if not (options.messages_per_trigger or options.bytes_per_trigger or options.least_per_trigger):
            return ReadAllAvailable()
        return ReadMaxRows(options.messages_per_trigger or OFFSET_MAX)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return where the next micro-batch ends; `start` when there is nothing new. Asked 80 times a second."""
        return self._progress.next_end(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end: what is appended from now on is the next run's."""
        self._progress.fix_end()

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Return the logs' ends, for the query's progress: their distance from `endOffset` is the lag."""
        return self._progress.latest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Split a micro-batch evenly; also one that is replayed after a restart."""
        return split(self._progress.kept_ranges(start, end), self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part, in a worker."""
        assert isinstance(partition, LogPart)
        return read_part(self._options, self._schema, partition)

    def commit(self, end: Offset) -> None:
        """Do nothing: see the module's docstring."""

    def stop(self) -> None:
        """Do nothing: there is nothing to release."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to workers without what belongs to the driver's process."""
        return LogStreamReader, (self._options, self._schema)


class RefusedReader(DataSourceStreamReader):
    """A stream that cannot be read: the first question of Spark is answered with the reason."""

    def __init__(self, problem: OptionInvalid) -> None:
        self._problem = problem

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Raise the reason."""
        raise self._problem

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802, ARG002
        """Raise the reason."""
        raise self._problem

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Raise the reason."""
        raise self._problem

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Raise the reason."""
        raise self._problem
