"""The calls of a sink: open it, stage frames, publish a batch once, give one up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import grpc

from pyspark_fila.broker import CALL_S_MAX, BrokerLog
from pyspark_fila.connection import Connection
from pyspark_fila.errors import BrokerFailed, SinkRefused
from pyspark_fila.wire import events_pb2
from pyspark_fila.wire import sink_pb2 as pb


class BrokerSink(BrokerLog):
    """One sink at one broker. Every call may be repeated without harm, and is, for as long as `timeout_ms`."""

    service = "FilaSink"
    repeatable = (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    )

    def __init__(self, connection: Connection, sink_id: str) -> None:
        super().__init__(connection, "")
        self._sink_id = sink_id

    def open(self, run_id: str, keep_ms: int) -> int:
        """Begin a run, or go on with it; returns its epoch."""
        request = pb.OpenSinkRequest(sink_id=self._sink_id, run_id=run_id, keep_ms=keep_ms)
        return int(self._call("OpenSink", request, pb.OpenSinkResponse).epoch)

    def stage(self, request: Any) -> Any:
        """Store a frame aside; returns the StageResponse."""
        request.sink_id = self._sink_id
        return self._call("Stage", request, pb.StageResponse)

    def stage_ahead(self, request: Any) -> Any:
        """Begin to store a frame aside; returns a future of its StageResponse. If it fails, call `stage`."""
        request.sink_id = self._sink_id
        stage: Any = self._method("Stage", pb.StageResponse)
        return stage.future(request, timeout=CALL_S_MAX, metadata=self._connection.metadata())

    def publish(self, epoch: int, batch: int, attempts: Iterable[Any], *, accept_gap: bool) -> Any:
        """Publish the listed attempts; returns the PublishResponse once all of them is in the queues."""
        request = pb.PublishRequest(
            sink_id=self._sink_id, epoch=epoch, batch=batch, attempts=attempts, reset=accept_gap
        )
        return self._call("Publish", request, pb.PublishResponse)

    def drop(self, epoch: int, batch: int, attempts: Sequence[Any]) -> None:
        """Give up attempts that were not published; raises SinkRefused for a batch that was."""
        request = pb.DropRequest(sink_id=self._sink_id, epoch=epoch, batch=batch, attempts=attempts)
        self._call("Drop", request, pb.DropResponse)

    def _translated(self, error: grpc.RpcError) -> Exception:
        if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
            return SinkRefused(f"the broker at {self.address} refused it: {error.details()}")
        if error.code() == grpc.StatusCode.INVALID_ARGUMENT:
            return BrokerFailed(f"the broker at {self.address} refused the messages: {error.details()}")
        return super()._translated(error)


class BrokerQueues(BrokerLog):
    """What a write asks of the broker before its first task."""

    def check(self) -> None:
        """Raise unless the broker answers and, where one is named, the queue exists."""
        if self.queue:
            self.bounds()
        else:
            self._call("GetStatus", events_pb2.GetStatusRequest(), events_pb2.GetStatusResponse)
