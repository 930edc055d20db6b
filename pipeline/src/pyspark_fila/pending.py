"""What is pending now, as a table: each message that is not done, with what it is doing, and without its bytes.

Tasks share the offsets from the oldest unfinished one to the log's end. Each turns pages of a call that looks at the
broker as it is: a message that moves meanwhile (a dead letter, a redrive) may be missed or come twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_fila.broker import BrokerLog
from pyspark_fila.columns import arrow_schema, micros
from pyspark_fila.errors import QueueNotFound
from pyspark_fila.options import ReadOptions
from pyspark_fila.ranges import LogPart, LogRange, split
from pyspark_fila.subscribed import DEAD_LETTERS, met
from pyspark_fila.wire import admin_pb2 as pb

PAGE = 1000
_STATES = {value: name.removeprefix("STATE_").lower() for name, value in pb.GetMessageResponse.State.items()}


class BrokerPending(BrokerLog):
    """One queue's messages that are not done."""

    def bounds_of(self, channel: str) -> tuple[int, int]:
        """Return the oldest offset that the channel is not done with, and the log's end."""
        request = pb.GetStatsRequest(queue=self.queue, channel=channel or "default", max_keys=1)
        stats = self._call("GetStats", request, pb.GetStatsResponse)
        return int(stats.tail_offset), int(stats.head_offset)

    def pages(self, request: Any) -> Iterator[Any]:
        """Loop over the pages of a ListPendingRequest."""
        while True:
            page = self._call("ListPending", request, pb.ListPendingResponse).messages
            if page:
                request.after_offset = page[-1].offset
                yield page
            if len(page) < PAGE:
                return


class PendingReader(DataSourceReader):
    """Reads what is pending in one queue and its dead-letter queue, or in several queues."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Ask the broker what the queues may still have, and split it."""
        ranges = [each for queue in self._queues() if (each := self._range_of(queue)) is not None]
        return split(ranges, self._options.partitions) or [LogPart(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part, in a worker."""
        assert isinstance(partition, LogPart)
        columns = arrow_schema(self._schema)
        for part in partition.ranges:
            request = pb.ListPendingRequest(
                queue=part.queue,
                channel=self._channel(part.queue),
                max_messages=PAGE,
                after_offset=part.start - 1,
                before_offset=part.end,
                fairness_key=part.fairness_key,
            )
            for page in BrokerPending(self._options.connection, part.queue).pages(request):
                yield _batch(page, columns, part.queue)

    def _queues(self) -> list[str]:
        queues = met(self._options)
        if self._options.queue and not self._options.queue.endswith(DEAD_LETTERS):
            return [*queues, self._options.queue + DEAD_LETTERS]
        return queues

    def _channel(self, queue: str) -> str:
        """Dead letters are of each channel, and wait in one."""
        return "" if queue == self._options.queue + DEAD_LETTERS else self._options.channel

    def _range_of(self, queue: str) -> LogRange | None:
        broker = BrokerPending(self._options.connection, queue)
        try:
            start, end = broker.bounds_of(self._channel(queue))
        except QueueNotFound:
            if queue == self._options.queue + DEAD_LETTERS:
                return None  # it has none, or this key may not see them
            raise
        return replace(LogRange(start, end, self._options.fairness_key), queue=queue)


def _batch(page: Sequence[Any], columns: pa.Schema, queue: str) -> pa.RecordBatch:
    values = {
        "queue": lambda _: queue,
        "id": lambda pending: pending.message_id,
        "fairness_key": lambda pending: pending.fairness_key,
        "state": lambda pending: _STATES.get(pending.state, "unspecified"),
        "enqueued_at": lambda pending: micros(pending.enqueued_at),
        "due_at": lambda pending: micros(pending.due_at) if pending.HasField("due_at") else None,
        "attempts": lambda pending: pending.attempts,
        "age_ms": lambda pending: pending.age_ms,
        "cost": lambda pending: pending.cost,
    }
    arrays = [pa.array(list(map(values[field.name], page)), type=field.type) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
