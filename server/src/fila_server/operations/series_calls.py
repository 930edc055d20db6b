"""GetSeries: the last hour of a channel and of keys, as far as the caller may see it."""

from __future__ import annotations

import time

from fila.v1 import admin_pb2
from fila.v1 import watch_pb2 as pb
from fila_server import errors
from fila_server.access.admission import Admission, Caller
from fila_server.access.table import KEYS
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate, GateByName
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.core.protocol import commands
from fila_server.operations.requests import AdminRules
from fila_server.operations.series import RecentSeries


class SeriesCalls:
    def __init__(self, broker: Broker, admission: Admission, check: AdminRules, recent: RecentSeries) -> None:
        self._broker = broker
        self._admission = admission
        self._check = check
        self._recent = recent
        self._reads = Gate("GetSeries calls", at_once=1)
        self._own_reads = GateByName("GetSeries calls of this tenant", at_once=1)

    async def series(self, request: pb.GetSeriesRequest, caller: Caller) -> bytes:
        """What was recorded of a channel within the hour. Raises QueueNotFound, ChannelNotFound."""
        self._check.series(request)
        if request.keys:
            self._admission.check(caller, KEYS, request.queue)
        asked = admin_pb2.ListChannelsRequest(queue=request.queue)
        reply = await self._broker.call(commands.LIST_CHANNELS, asked.SerializeToString())
        place = (request.queue, request.channel or DEFAULT_CHANNEL)
        there_are = {channel.name for channel in admin_pb2.ListChannelsResponse.FromString(reply).channels}
        if place[1] not in there_are or not self._admission.sees_channel(caller, *place):
            raise errors.ChannelNotFound(*place)
        keys = [caller.tenant] if caller.tenant else list(dict.fromkeys(request.keys))
        self._recent.ask_for(place, keys, time.monotonic())
        async with self._own_reads.of(caller.tenant) if caller.tenant else self._reads:
            reported = await self._recent.report(place, keys, whole=not caller.tenant)
        if not self._admission.sees_keys(caller, request.queue):
            reported.ClearField("recorded_keys")
        return reported.SerializeToString()
