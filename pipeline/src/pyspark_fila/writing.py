"""Writing to queues: tasks stage rows, the driver publishes what they staged, once.

    task      write(rows) ──► Stage, frame by frame ──► StagedRows: what travels to the driver
    driver    commit(all of them) ──► Publish            abort ──► Drop, which undoes nothing that was published

A stream's sink is named after its query's id, and its batches are Spark's. A batch write is batch 0 of a sink of its
own, or of the one that `sinkId` names: then a second write under that name changes nothing. With `sinkVersion` it is
the batch of that number, and nothing is asked of the numbers before: what calls it (foreachBatch) may skip some.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_fila.broker_sink import BrokerSink
from pyspark_fila.errors import FilaSourceError, SinkRefused
from pyspark_fila.options import WriteOptions
from pyspark_fila.rows import FRAME_BYTES_MAX, messages_of
from pyspark_fila.wire import sink_pb2 as pb

UNDER_WAY_MAX = 4
"""Frames of one task that are not answered yet: at most 2 MiB each, unless a message is larger."""
SINK_PREFIX = "spark-"
"""Of the names of sinks that are not named by hand: a key needs the right to produce there, too."""
ONE_JOB_KEEP_MS = 86_400_000
"""How long the broker remembers a batch write's own sink: nobody comes back to it."""

log = logging.getLogger("pyspark_fila")


@dataclass
class StagedRows(WriterCommitMessage):
    """What one task staged."""

    sink_id: str
    epoch: int
    batch: int
    partition: int
    attempt: int
    messages: int
    checksum: int


class _Task:
    """One attempt of one task: rows to frames, frames to the broker."""

    def __init__(self, options: WriteOptions, sink_id: str, epoch: int, batch: int) -> None:
        context = TaskContext.get()
        assert context is not None
        self._options = options
        self._sink = BrokerSink(options.connection, sink_id)
        self._frames = 0
        self._under_way: deque[tuple[Any, Any]] = deque()
        """Frames that are not answered yet, oldest first: the request and its future."""
        self._over = False
        self.staged = StagedRows(
            sink_id=sink_id,
            epoch=epoch,
            batch=batch,
            partition=context.partitionId(),
            attempt=context.taskAttemptId(),
            messages=0,
            checksum=0,
        )

    def stage_all(self, batches: Iterator[pa.RecordBatch]) -> StagedRows:
        waiting: dict[str, list[Any]] = {}
        sizes: dict[str, int] = {}
        for batch in batches:
            for queue, message, size in messages_of(batch, self._options.queue):
                frame = waiting.setdefault(queue, [])
                if frame and sizes[queue] + size > FRAME_BYTES_MAX:
                    self._stage(queue, frame)
                    sizes[queue] = 0
                frame.append(message)
                sizes[queue] = sizes.get(queue, 0) + size
                if len(frame) >= self._options.batch_size:
                    self._stage(queue, frame)
                    sizes[queue] = 0
                if self._over:
                    return self.staged
        for queue, frame in waiting.items():
            self._stage(queue, frame)
        self._settle(0)
        return self.staged

    def _stage(self, queue: str, frame: list[Any]) -> None:
        if not frame or self._over:
            return
        staged = self.staged
        request = pb.StageRequest(
            queue=queue,
            messages=frame,
            epoch=staged.epoch,
            batch=staged.batch,
            partition=staged.partition,
            attempt=staged.attempt,
            frame=self._frames,
        )
        frame.clear()
        self._frames += 1
        self._under_way.append((request, self._sink.stage_ahead(request)))
        self._settle(UNDER_WAY_MAX - 1)

    def _settle(self, left: int) -> None:
        """Wait until at most so many frames are under way: the broker syncs one while the next ones are made."""
        while len(self._under_way) > left and not self._over:
            try:
                answer = self._under_way[0][1].result()
            except grpc.RpcError:
                self._stage_again()
                continue
            self._under_way.popleft()
            self._answered(answer)
        if self._over:
            self._under_way.clear()

    def _stage_again(self) -> None:
        """One of them failed, and with it perhaps those behind it, which the broker takes in order only: each once
        more, one after the other, with the patience of `stage`. One that had arrived is not stored twice."""
        for _, future in self._under_way:
            future.cancel()
        while self._under_way and not self._over:
            self._answered(self._sink.stage(self._under_way.popleft()[0]))

    def _answered(self, answer: Any) -> None:
        self._over = answer.already_published
        self.staged.messages, self.staged.checksum = answer.messages, answer.checksum


def _publish(options: WriteOptions, messages: Sequence[Any], *, accept_gap: bool) -> Any:
    """Publish what the tasks of one batch staged."""
    first = messages[0]
    sink = BrokerSink(options.connection, first.sink_id)
    epoch = max(message.epoch for message in messages)
    answer = sink.publish(epoch, first.batch, _listed(messages), accept_gap=accept_gap)
    if answer.lost:
        raise FilaSourceError(
            f"{answer.lost} messages of batch {first.batch} came into no queue: a queue was deleted by force while "
            "they were on their way, or the broker's disk is damaged; the others are there"
        )
    return answer


def _listed(messages: Sequence[Any]) -> list[Any]:
    return [
        pb.StagedAttempt(
            partition=message.partition,
            attempt=message.attempt,
            messages=message.messages,
            checksum=message.checksum,
        )
        for message in messages
        if message.messages
    ]


def _give_up(options: WriteOptions, messages: Sequence[Any]) -> None:
    """Drop what was staged. Spark also calls this after a commit that raised: what was published stays."""
    there = [message for message in messages if message is not None]
    if not there:
        return
    try:
        sink = BrokerSink(options.connection, there[0].sink_id)
        sink.drop(there[0].epoch, there[0].batch, _listed(there))
    except SinkRefused:
        return
    except FilaSourceError as problem:
        log.warning("what was staged could not be dropped, and goes by its age: %s", problem)


class QueueWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._sink_id = options.sink_id or f"{SINK_PREFIX}{uuid.uuid4()}"
        self._batch = options.sink_version or 0
        sink = BrokerSink(options.connection, self._sink_id)
        self._epoch = sink.open(str(uuid.uuid4()), 0 if options.sink_id else ONE_JOB_KEEP_MS)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage a task's rows, in a worker."""
        return _Task(self._options, self._sink_id, self._epoch, self._batch).stage_all(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish, in the driver."""
        answer = _publish(
            self._options,
            [message for message in messages if message is not None],
            accept_gap=self._options.sink_version is not None,
        )
        if not answer.already_published:
            return
        if self._options.sink_version is None:
            log.warning("sink %s was written before: this write changed nothing", self._sink_id)
        else:
            log.warning(
                "sink %s has published sinkVersion %d or a later one: this write changed nothing",
                self._sink_id,
                self._batch,
            )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Give up."""
        _give_up(self._options, messages)


class QueueStreamWriter(DataSourceStreamArrowWriter):
    """A streaming write. Spark makes one for each micro-batch, so nothing is kept here from one to the next."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage a task's rows, in a worker. Which query, run and batch they belong to only a task can tell."""
        context = TaskContext.get()
        assert context is not None
        sink_id = f"{SINK_PREFIX}{_told(context, 'sql.streaming.queryId')}"
        batch = int(_told(context, "streaming.sql.batchId"))
        sink = BrokerSink(self._options.connection, sink_id)
        epoch = sink.open(_told(context, "spark.jobGroup.id"), 0)
        return _Task(self._options, sink_id, epoch, batch).stage_all(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Publish, in the driver. A batch that Spark runs again was published, and stays as it is."""
        there = [message for message in messages if message is not None]
        _publish(self._options, there, accept_gap=self._options.accept_gap)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Give up."""
        _give_up(self._options, messages)


def _told(context: TaskContext, name: str) -> str:
    value = context.getLocalProperty(name)
    if not value:
        raise FilaSourceError(
            f"Spark does not tell {name}, by which a batch is known again; write from a streaming query"
        )
    return str(value)
