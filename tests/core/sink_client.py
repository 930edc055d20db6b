"""A sink's calls on a driven engine, as a task and a driver of Spark make them."""

from collections.abc import Iterable
from dataclasses import dataclass

from fila.v1 import service_pb2 as service
from fila.v1 import sink_pb2 as pb
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

Staged = pb.StagedAttempt


@dataclass
class SinkClient:
    """One run of one sink."""

    engine: DrivenEngine
    sink_id: str = "s"
    run_id: str = "run-1"
    epoch: int = 0

    def open(self, **options: int) -> pb.OpenSinkResponse:
        request = pb.OpenSinkRequest(sink_id=self.sink_id, run_id=self.run_id, **options)
        answer = self.engine.call(commands.OPEN_SINK, request, pb.OpenSinkResponse)
        self.epoch = answer.epoch
        return answer

    def request(
        self,
        batch: int,
        messages: Iterable[bytes | service.EnqueueMessage],
        *,
        queue: str = "q",
        partition: int = 0,
        attempt: int = 0,
        frame: int = 0,
    ) -> pb.StageRequest:
        return pb.StageRequest(
            queue=queue,
            messages=[m if not isinstance(m, bytes) else service.EnqueueMessage(payload=m) for m in messages],
            sink_id=self.sink_id,
            epoch=self.epoch,
            batch=batch,
            partition=partition,
            attempt=attempt,
            frame=frame,
        )

    def stage(
        self, batch: int, messages: Iterable[bytes | service.EnqueueMessage], **key: int | str
    ) -> pb.StageResponse:
        request = self.request(batch, messages, **key)  # type: ignore[arg-type]
        return self.engine.call(commands.STAGE, request, pb.StageResponse)

    def staged(
        self, batch: int, messages: Iterable[bytes | service.EnqueueMessage], **key: int | str
    ) -> pb.StagedAttempt:
        """Stage the frame; the attempt as it is listed in Publish."""
        answer = self.stage(batch, messages, **key)
        return Staged(
            partition=int(key.get("partition", 0)),
            attempt=int(key.get("attempt", 0)),
            messages=answer.messages,
            checksum=answer.checksum,
        )

    def publish_request(
        self, batch: int, attempts: Iterable[Staged], *, reset: bool = False
    ) -> pb.PublishRequest:
        return pb.PublishRequest(
            sink_id=self.sink_id, epoch=self.epoch, batch=batch, attempts=attempts, reset=reset
        )

    def publish(
        self, batch: int, attempts: Iterable[Staged] = (), *, reset: bool = False
    ) -> pb.PublishResponse:
        request = self.publish_request(batch, attempts, reset=reset)
        return self.engine.call(commands.PUBLISH, request, pb.PublishResponse)

    def drop(self, batch: int, attempts: Iterable[Staged] = ()) -> pb.DropResponse:
        request = pb.DropRequest(sink_id=self.sink_id, epoch=self.epoch, batch=batch, attempts=attempts)
        return self.engine.call(commands.DROP_STAGED, request, pb.DropResponse)


def log_of(engine: DrivenEngine, queue: str = "q") -> list[bytes]:
    """Every message of the queue's log, in its order: what was put into it, however often."""
    from fila.v1 import admin_pb2 as admin

    reader = engine.core.log_reader(admin.ReadLogRequest(queue=queue, max_batch=10_000).SerializeToString())
    found: list[bytes] = []
    while (piece := reader.read()) is not None:
        found += [m.payload for m in admin.ReadLogResponse.FromString(piece).messages]
    return found
