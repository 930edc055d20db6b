"""Who waits longest, over all queues: a walk of the edge, a part of one queue's keys a command.

No part keeps the scheduler longer than some milliseconds, and messages go on between two of them. What a walk over a
large queue found is told again for a while (walks.py).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fila.v1 import admin_pb2
from fila.v1 import events_pb2 as pb
from fila_server import errors
from fila_server.broker.calls import Broker
from fila_server.broker.mirror import DLQ_SUFFIX
from fila_server.core.protocol import commands, seam_frames
from fila_server.errors import LimitExceeded
from fila_server.operations import rules
from fila_server.operations.key_walk import walk_keys
from fila_server.operations.walks import KEYS_MIN, Counters, Walks, counters_of

KEYS_DEFAULT = 20
KEYS_MAX = 1_000
AT_ONCE = 32
"""Queues asked about together: a pass of the scheduler answers many small ones."""
SHARED_KEYS_MAX = 256
"""A large queue is walked for so many keys at most where fewer are asked for: for those that ask for more in turn with
them."""

Reported = list[tuple["Waiting", int]]
"""What waits, and how many milliseconds ago that was so."""
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

    @property
    def channels(self) -> list[str]:
        """In which something waits."""
        return sorted({*self.counts, *(channel for channel, _ in self.rows)})

    def trim(self) -> int:
        """Keep the longest; return how long a key must wait to be one of them, in ms."""
        if len(self.rows) < self.most:
            return 0
        kept = heapq.nlargest(self.most, self.rows.values(), key=lambda key: key.waiting_ms)
        self.rows = {(key.channel, key.fairness_key): key for key in kept}
        return kept[-1].waiting_ms


class WaitingLongest:
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
        least_ms = 0  # a key that waits no longer is none of the longest
        waiting_keys = 0
        queues = [request.queue] if request.queue else self._to_be_served()
        seen = [queue for queue in queues if sees(queue, "")]
        for at in range(0, len(seen), AT_ONCE):
            asked = seen[at : at + AT_ONCE]
            waits = await asyncio.gather(*(self._seen_of(queue, most, least_ms, sees) for queue in asked))
            if request.queue and waits == [None]:
                raise errors.QueueNotFound(request.queue)
            for waiting, age_ms in itertools.chain.from_iterable(each or () for each in waits):
                waiting_keys += sum(waiting.counts.values())
                found += ((key.waiting_ms + age_ms, key) for key in waiting.rows.values())
            if len(found) > 4 * most:
                found = heapq.nlargest(most, found, key=lambda each: each[0])
                least_ms = found[-1][0]
        reported = pb.ListLateResponse(waiting_keys=waiting_keys)
        for waiting_ms, key in heapq.nlargest(most, found, key=lambda each: each[0]):
            reported.keys.add().CopyFrom(key)
            reported.keys[-1].waiting_ms = waiting_ms
        return reported

    async def _seen_of(self, queue: str, most: int, above_ms: int, sees: Sees) -> Reported | None:
        """A queue's, of what `sees` lets through; None where there is no such queue any more."""
        try:
            reported = await self._of(queue, most, above_ms=above_ms)
            channels = reported[0].channels
            if all(sees(queue, channel) for channel in channels):
                return [reported]
            # What waits elsewhere must neither be told nor crowd out what this caller may know.
            return [
                await self._of(queue, most, channel, above_ms=above_ms)
                for channel in channels
                if sees(queue, channel)
            ]
        except errors.QueueNotFound:
            return None

    def _to_be_served(self) -> Sequence[str]:
        """Every queue but those of dead letters: they wait for an operator, and would stand before all others."""
        configs = self._broker.queue_configs
        return sorted(
            queue
            for queue in configs
            if not (queue.endswith(DLQ_SUFFIX) and queue.removesuffix(DLQ_SUFFIX) in configs)
        )

    async def _of(
        self, queue: str, most: int, channel: str = "", *, above_ms: int = 0
    ) -> tuple[Waiting, int]:
        """A queue's, or one channel's, and how many milliseconds ago that was so. Of a small one no key is wanted that
        waits at most `above_ms`."""
        counters: Counters | None = None
        name = (queue, channel)
        if name in self._walks:
            counters = await self._counters(queue)
            known = self._walks.known(name, counters)
            if known is not None and known[0].most >= most:
                return known
            # One walk for all who ask, or those that ask for few and for many would have it walked in turns.
            last = self._walks.last(name)
            most = max(most, min(last.most, SHARED_KEYS_MAX) if last is not None else 0)
        waiting = await self._walk(queue, most, channel, 0 if name in self._walks else above_ms)
        keys = sum(waiting.counts.values())
        if keys >= KEYS_MIN and above_ms and name not in self._walks:
            # Large, as nobody knew: what is kept of it is for all who ask.
            waiting = await self._walk(queue, most, channel, 0)
        if counters is None and keys >= KEYS_MIN:
            counters = await self._counters(queue)
        if counters is not None:
            self._walks.keep(name, waiting, keys, counters)
        return waiting, 0

    async def _counters(self, queue: str) -> Counters:
        asked = seam_frames.StatsAsked(queue=queue.encode(), without_keys=True)
        reply = await self._broker.call(commands.GET_STATS, asked.SerializeToString())
        return counters_of(admin_pb2.GetStatsResponse.FromString(reply))

    async def _walk(self, queue: str, most: int, channel: str, above_ms: int) -> Waiting:
        waiting = Waiting(most)
        page = seam_frames.WaitingLongestPage(
            queue=queue.encode(), most=most, channel=channel.encode(), above_ms=above_ms
        )
        async for part in walk_keys(
            self._broker.call, commands.WAITING_LONGEST_PAGE, page, seam_frames.WaitingLongestKeys
        ):
            if part is None:
                waiting, page.above_ms = Waiting(most), above_ms
                continue
            for each in part.waiting:
                name = each.channel.decode()
                waiting.counts[name] = waiting.counts.get(name, 0) + int(each.count)
            for row in part.keys:
                key = pb.LateKey.FromString(row)
                waiting.rows[key.channel, key.fairness_key] = key
            if part.keys:
                page.above_ms = max(above_ms, waiting.trim())
        return waiting
