"""What a seek would do, counted without doing it: a walk of the edge, a part of the channel's frames a command."""

from __future__ import annotations

from fila.v1 import admin_pb2 as pb
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames


async def preview_seek(broker: Broker, request: pb.SeekChannelRequest) -> pb.SeekChannelResponse:
    """Raises QueueNotFound, ChannelNotFound. What changes meanwhile is counted as it is met."""
    part = seam_frames.SeekPart(queue=request.queue.encode(), channel=request.channel.encode())
    if request.WhichOneof("target") == "time":
        part.time = request.time.SerializeToString()
    else:
        part.offset = request.offset
    reported = pb.SeekChannelResponse()
    while True:
        reply = await broker.call(commands.SEEK_PREVIEW, part.SerializeToString())
        count = seam_frames.SeekCount.FromString(reply)
        reported.replayed += count.replayed
        reported.skipped += count.skipped
        if not part.from_offset:
            reported.offset, reported.leases_revoked = count.offset, count.leases
            # The moment is looked up once: later parts count by the offset it stands for.
            part.ClearField("time")
            part.offset = count.offset
        if not count.from_offset:
            return reported
        part.from_offset = count.from_offset
