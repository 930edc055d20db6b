"""Who waits longest, over all queues: a walk of the edge, a part of one queue's keys a command.

No part keeps the scheduler longer than some milliseconds, and messages go on between two of them. What a walk over a
large queue found is told again for a while (walks.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fila.v1 import admin_pb2
from fila.v1 import events_pb2 as pb
from fila_server import commands, errors, seam_frames
from fila_server.broker.calls import Broker
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.errors import LimitExceeded
from fila_server.operations import rules
from fila_server.operations.walks import Counters, Walks, counters_of

KEYS_DEFAULT = 20
KEYS_MAX = 1_000
ANEW_MAX = 3
"""How often the walk of a queue begins anew because its table has grown in between."""


Sees = Callable[[str, str], bool]
"""Whether the caller may know of (queue, channel); an empty channel: of anything in the queue."""


def _everything(_queue: str, _channel: str) -> bool:
    return True


@dataclass(slots=True)
class Waiting:
    """Of one queue: the keys that wait longest, in no order, and how many wait, by channel."""

    most: int
    rows: dict[tuple[str, str], pb.LateKey] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def trim(self) -> int:
        """Keep the longest; return how long a key must wait to be one of them, in ms."""
        if len(self.rows) < self.most:
            return 0
        kept = heapq.nlargest(self.most, self.rows.values(), key=lambda key: key.waiting_ms)
        self.rows = {(key.channel, key.fairness_key): key for key in kept}
        return kept[-1].waiting_ms


class Late:
    """Answers ListLate. Belongs to the loop's thread, where one call is answered after the other."""

    def __init__(self, broker: Broker, walks: Walks[Waiting] | None = None) -> None:
        self._broker = broker
        self._walks: Walks[Waiting] = walks or Walks()

    async def list(self, request: pb.ListLateRequest, sees: Sees = _everything) -> pb.ListLateResponse:
        """Rank keys by how long their next message has been waiting, of what `sees` lets through. Raises
        QueueNotFound."""
        if request.max_keys > KEYS_MAX:
            raise LimitExceeded("max_keys", f"must be at most {KEYS_MAX}, got {request.max_keys}")
        most = request.max_keys or KEYS_DEFAULT
        if request.queue:
            rules.check_name("queue", request.queue)
        found: list[tuple[int, pb.LateKey]] = []
        waiting_keys = 0
        for queue in [request.queue] if request.queue else self._to_be_served():
            if not sees(queue, ""):
                continue
            try:
                waiting, age_ms = await self._of(queue, most)
                if not all(sees(queue, channel) for channel in waiting.counts):
                    # What others wait for there must not crowd out what this caller may know.
                    waiting, age_ms = await self._walk(queue, most, sees), 0
            except errors.QueueNotFound:
                if request.queue:
                    raise
                continue
            waiting_keys += sum(waiting.counts.values())
            found += ((key.waiting_ms + age_ms, key) for key in waiting.rows.values())
            if len(found) > 4 * most:
                found = heapq.nlargest(most, found, key=lambda each: each[0])
        told = pb.ListLateResponse(waiting_keys=waiting_keys)
        for waiting_ms, key in heapq.nlargest(most, found, key=lambda each: each[0]):
            told.keys.add().CopyFrom(key)
            told.keys[-1].waiting_ms = waiting_ms
        return told

    def _to_be_served(self) -> Sequence[str]:
        """Every queue but those of dead letters: they wait for an operator, and would stand before all others."""
        configs = self._broker.queue_configs
        return sorted(
            queue
            for queue in configs
            if not (queue.endswith(DLQ_SUFFIX) and queue.removesuffix(DLQ_SUFFIX) in configs)
        )

    async def _of(self, queue: str, most: int) -> tuple[Waiting, int]:
        """A queue's, and how many milliseconds ago that was so."""
        counters: Counters | None = None
        if queue in self._walks:
            counters = await self._counters(queue)
            known = self._walks.known(queue, counters)
            if known is not None and known[0].most >= most:
                return known
        waiting = await self._walk(queue, most)
        keys = sum(waiting.counts.values())
        self._walks.keep(queue, waiting, keys, counters or Counters(*[0] * len(Counters._fields)))
        return waiting, 0

    async def _counters(self, queue: str) -> Counters:
        asked = seam_frames.StatsAsked(queue=queue.encode(), without_keys=True)
        reply = await self._broker.call(commands.GET_STATS, asked.SerializeToString())
        return counters_of(admin_pb2.GetStatsResponse.FromString(reply))

    async def _walk(self, queue: str, most: int, sees: Sees = _everything) -> Waiting:
        waiting = Waiting(most)
        cursor = capacity = anew = least_ms = 0
        while True:
            page = seam_frames.LatePage(
                queue=queue.encode(), cursor=cursor, most=most, capacity=capacity, above_ms=least_ms
            )
            reply = await self._broker.call(commands.LATE_PAGE, page.SerializeToString())
            part = seam_frames.LateKeys.FromString(reply)
            if capacity and part.capacity != capacity:
                anew += 1
                waiting.counts.clear()
            for each in part.waiting:
                channel = each.channel.decode()
                if not sees(queue, channel):
                    continue
                waiting.counts[channel] = waiting.counts.get(channel, 0) + int(each.count)
            for row in part.keys:
                key = pb.LateKey.FromString(row)
                if sees(queue, key.channel):
                    waiting.rows[key.channel, key.fairness_key] = key
            least_ms = waiting.trim()
            cursor, capacity = part.cursor, part.capacity
            if not cursor or anew > ANEW_MAX:
                return waiting
