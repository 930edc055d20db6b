"""GetStats: the core counts what it counts anyway; all keys of a queue are walked over where what they add up to is not
known yet, those of a large one part after part."""

from __future__ import annotations

import heapq

from fila.v1 import admin_pb2 as pb
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.key_walk import walk_keys
from fila_server.operations.walks import Walks, counters_of

KEYS_DEFAULT = 1_000
BUCKETS_MAX = 50_000
"""Of a queue whose keys name more, those with the longest lines so far are kept: what is told of the others is less."""
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
            reported = pb.GetStatsResponse.FromString(await self._ask(request, without_keys=True))
            known = self._walks.known(name, counters_of(reported))
            if known is not None:
                walked, age_ms = known
                reported.MergeFrom(walked)
                for key in reported.per_key_stats:
                    if key.oldest_age_ms:
                        key.oldest_age_ms += age_ms
                return reported.SerializeToString()
        reply = await self._ask(request, without_keys=False)
        if seam_frames.StatsLeft.FromString(reply).keys_left:
            reply = (await self._walk(request, pb.GetStatsResponse.FromString(reply))).SerializeToString()
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

    async def _walk(self, request: pb.GetStatsRequest, reported: pb.GetStatsResponse) -> pb.GetStatsResponse:
        reported.DiscardUnknownFields()
        most = request.max_keys or KEYS_DEFAULT
        page = seam_frames.StatsPage(
            queue=request.queue.encode(), channel=request.channel.encode(), most=most
        )
        keys: dict[str, pb.PerFairnessKeyStats] = {}
        buckets: dict[str, pb.PerThrottleKeyStats] = {}
        async for part in walk_keys(self._broker.call, commands.STATS_PAGE, page, seam_frames.StatsPart):
            if part is None:
                reported.active_fairness_keys = page.least = 0
                keys.clear()
                buckets.clear()
                continue
            reported.active_fairness_keys += part.active
            for row in part.keys:
                key = pb.PerFairnessKeyStats.FromString(row)
                keys[key.key] = key
            if len(keys) >= most:
                kept = heapq.nlargest(most, keys.values(), key=lambda key: key.pending_count)
                keys = {key.key: key for key in kept}
                page.least = kept[-1].pending_count + 1  # in the parts that follow only these would be told
            for row in part.buckets:
                bucket = pb.PerThrottleKeyStats.FromString(row)
                if bucket.key in buckets:
                    bucket.waiting += buckets[bucket.key].waiting
                buckets[bucket.key] = bucket
            if len(buckets) > BUCKETS_MAX:
                buckets = {bucket.key: bucket for bucket in _longest(buckets, BUCKETS_MAX // 2)}
        reported.per_key_stats.extend(sorted(keys.values(), key=lambda key: -key.pending_count))
        reported.per_throttle_stats.extend(_longest(buckets, most))
        return reported

    def _keep(self, name: tuple[str, str, int], reported: pb.GetStatsResponse) -> None:
        walked = pb.GetStatsResponse(
            active_fairness_keys=reported.active_fairness_keys,
            per_key_stats=reported.per_key_stats,
            per_throttle_stats=reported.per_throttle_stats,
        )
        self._walks.keep(name, walked, reported.active_fairness_keys, counters_of(reported))


def _longest(buckets: dict[str, pb.PerThrottleKeyStats], most: int) -> list[pb.PerThrottleKeyStats]:
    return heapq.nlargest(most, buckets.values(), key=lambda bucket: bucket.waiting)
