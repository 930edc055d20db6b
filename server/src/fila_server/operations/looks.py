"""Who watches what: requests of WatchStats and GetHistory as the caller may have them answered."""

from __future__ import annotations

import time

from fila.v1 import admin_pb2
from fila.v1 import watch_pb2 as pb
from fila_server import commands, errors
from fila_server.access.door import Caller, Door
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate, GateByName
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.operations.hour import Hour
from fila_server.operations.requests import AdminRules
from fila_server.operations.watch_stats import Watcher

TOP_DEFAULT = 20


def watcher_of(request: pb.WatchStatsRequest, caller: Caller) -> Watcher:
    """A tenant's watches its own key and is told of no other, and of no queue in all. Raises PermissionDenied."""
    channel = request.channel or DEFAULT_CHANNEL
    places = tuple(dict.fromkeys((queue, channel) for queue in request.queues))
    order = request.order or pb.WatchStatsRequest.ORDER_BACKLOG
    top = request.top if request.HasField("top") else TOP_DEFAULT
    keys = tuple(dict.fromkeys(request.keys))
    if caller.tenant:
        if not places:
            raise errors.PermissionDenied(
                f'queues: this key is bound to tenant "{caller.tenant}": name the queues to watch'
            )
        top, keys = 0, (caller.tenant,)
    return Watcher(places, order, top if places else 0, keys, tenant=caller.tenant)


class Looks:
    """Answers GetHistory."""

    def __init__(self, broker: Broker, door: Door, check: AdminRules, hour: Hour) -> None:
        self._broker = broker
        self._door = door
        self._check = check
        self._hour = hour
        self._tellings = Gate("GetHistory calls", at_once=1)
        self._own_tellings = GateByName("GetHistory calls of this tenant", at_once=1)

    async def history(self, request: pb.GetHistoryRequest, caller: Caller) -> bytes:
        """What was recorded of a channel within the hour. Raises QueueNotFound, ChannelNotFound."""
        self._check.history(request)
        asked = admin_pb2.ListChannelsRequest(queue=request.queue)
        reply = await self._broker.call(commands.LIST_CHANNELS, asked.SerializeToString())
        place = (request.queue, request.channel or DEFAULT_CHANNEL)
        there_are = {channel.name for channel in admin_pb2.ListChannelsResponse.FromString(reply).channels}
        if place[1] not in there_are or not self._door.sees_channel(caller, *place):
            raise errors.ChannelNotFound(*place)
        keys = [caller.tenant] if caller.tenant else list(dict.fromkeys(request.keys))
        self._hour.ask_for(place, keys, time.monotonic())
        async with self._own_tellings.of(caller.tenant) if caller.tenant else self._tellings:
            return (await self._hour.tell(place, keys, whole=not caller.tenant)).SerializeToString()
