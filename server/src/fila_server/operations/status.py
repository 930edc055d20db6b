"""How the broker is, in one answer: what it is, how long it runs, what its disk and its threads say."""

from __future__ import annotations

import time

from fila.v1 import events_pb2 as pb
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames
from fila_server.errors import LimitExceeded
from fila_server.operations import machine
from fila_server.operations.pauses import Names
from fila_server.operations.trouble_words import STOPPING
from fila_server.operations.troubles import REPORTED_MAX, Sees, Troubles
from fila_server.telemetry.snapshot import decode
from fila_server.version import commit, version

_LEVELS = (pb.DISK_LEVEL_OK, pb.DISK_LEVEL_FLOOR, pb.DISK_LEVEL_FULL)


class Status:
    """Answers GetStatus."""

    def __init__(self, broker: Broker, data_dir: str, troubles: Troubles) -> None:
        self._broker = broker
        self._data_dir = data_dir
        self._troubles = troubles
        self._started_ms = time.time_ns() // 1_000_000

    async def get(
        self, request: pb.GetStatusRequest, sees: Sees | None, names: Names, *, whole: bool = True
    ) -> bytes:
        """Ask the core, and say it; but for an admin, no more than how the broker itself is. With troubles of what
        `sees` and `names` let through; without `sees` none is told. Raises LimitExceeded."""
        if request.max_troubles > REPORTED_MAX:
            raise LimitExceeded("max_troubles", f"must be at most {REPORTED_MAX}, got {request.max_troubles}")
        asked = seam_frames.MetricsAsked(without_keys=True, without_queues=True)
        snapshot = decode(await self._broker.call(commands.METRICS, asked.SerializeToString()))
        totals = snapshot.totals
        answer = pb.GetStatusResponse(
            version=version(),
            commit=commit(),
            data_dir=self._data_dir,
            disk_level=_LEVELS[min(totals.disk_level, len(_LEVELS) - 1)],
            disk_free_bytes=totals.disk_free_bytes,
            epochs=totals.epochs,
            syncs=totals.syncs,
            consumers=totals.consumers,
            queues=snapshot.queue_count,
            leases=totals.leases,
            outstanding_calls=self._broker.outstanding_count,
            lost_ranges=totals.lost_ranges,
            lost_messages=totals.lost_messages,
            draining=self._broker.is_draining,
            cpu_ms=machine.cpu_ms(),
            memory_bytes=machine.memory_bytes(),
            cpus=machine.cpus(),
            memory_bytes_max=machine.memory_bytes_max(),
        )
        if not whole:
            answer = pb.GetStatusResponse(
                version=answer.version,
                commit=answer.commit,
                disk_level=answer.disk_level,
                draining=answer.draining,
            )
        answer.started_at.FromMilliseconds(self._started_ms)
        if sees is not None:
            now_ms = time.time_ns() // 1_000_000
            answer.MergeFrom(self._troubles.reported(request, sees, names, time.monotonic(), now_ms))
        if self._broker.is_draining and not answer.troubles:
            answer.well = STOPPING
        return answer.SerializeToString()
