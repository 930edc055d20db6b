"""GetStats: the core counts what it counts anyway, and walks over all keys of a queue where that is not known yet."""

from __future__ import annotations

from fila.v1 import admin_pb2 as pb
from fila_server import commands, seam_frames
from fila_server.broker.calls import Broker
from fila_server.operations.walks import Walks, counters_of

KEPT_KEYS_MAX = 1_000
"""Longer lists are made each time they are asked for: they would fill the memory."""


class Statistics:
    """Of all queues. Belongs to the loop's thread, where one call is answered after the other."""

    def __init__(self, broker: Broker, walks: Walks[pb.GetStatsResponse] | None = None) -> None:
        self._broker = broker
        self._walks: Walks[pb.GetStatsResponse] = walks or Walks()

    async def of(self, request: pb.GetStatsRequest) -> bytes:
        """A GetStatsResponse. Raises QueueNotFound, ChannelNotFound."""
        name = (request.queue, request.channel, request.max_keys)
        if name in self._walks:
            told = pb.GetStatsResponse.FromString(await self._ask(request, without_keys=True))
            known = self._walks.known(name, counters_of(told))
            if known is not None:
                walked, age_ms = known
                told.MergeFrom(walked)
                told.oldest_age_ms += age_ms
                return told.SerializeToString()
        reply = await self._ask(request, without_keys=False)
        if request.max_keys <= KEPT_KEYS_MAX:
            self._keep(name, pb.GetStatsResponse.FromString(reply))
        return reply

    async def _ask(self, request: pb.GetStatsRequest, *, without_keys: bool) -> bytes:
        asked = seam_frames.StatsAsked(
            queue=request.queue.encode(),
            channel=request.channel.encode(),
            most=request.max_keys,
            without_keys=without_keys,
        )
        return await self._broker.call(commands.GET_STATS, asked.SerializeToString())

    def _keep(self, name: tuple[str, str, int], told: pb.GetStatsResponse) -> None:
        walked = pb.GetStatsResponse(
            active_fairness_keys=told.active_fairness_keys,
            per_key_stats=told.per_key_stats,
            per_throttle_stats=told.per_throttle_stats,
            oldest_age_ms=told.oldest_age_ms,
        )
        self._walks.keep(name, walked, told.active_fairness_keys, counters_of(told))
