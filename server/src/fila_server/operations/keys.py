"""Fairness keys of one queue, found by how they begin: a walk of the edge, a part of the queue's keys a command.

No part keeps the scheduler longer than some milliseconds, and messages go on between two of them.
"""

from __future__ import annotations

import heapq

from fila.v1 import watch_pb2 as pb
from fila_server import commands, seam_frames
from fila_server.broker.calls import Broker

KEYS_DEFAULT = 20
ANEW_MAX = 3
"""How often the walk begins anew because the table has grown in between."""


async def find_keys(broker: Broker, request: pb.FindKeysRequest) -> pb.FindKeysResponse:
    """Those that begin so, most pending first. Raises QueueNotFound, ChannelNotFound."""
    most = request.limit or KEYS_DEFAULT
    page = seam_frames.FindPage(
        queue=request.queue.encode(),
        channel=request.channel.encode(),
        prefix=request.prefix.encode(),
        most=most,
    )
    found: dict[str, pb.KeyState] = {}
    matched = anew = 0
    while True:
        part = seam_frames.KeyRows.FromString(await broker.call(commands.FIND_KEYS, page.SerializeToString()))
        if page.capacity and part.capacity != page.capacity:
            anew += 1
            matched = 0
        matched += part.matched
        for row in part.keys:
            key = pb.KeyState.FromString(row)
            found[key.fairness_key] = key
        if len(found) > 4 * most:
            found = {key.fairness_key: key for key in _largest(found, most)}
        page.cursor, page.capacity = part.cursor, part.capacity
        if not part.cursor or anew > ANEW_MAX:
            return pb.FindKeysResponse(keys=_largest(found, most), matched=matched)


def _largest(found: dict[str, pb.KeyState], most: int) -> list[pb.KeyState]:
    chosen = heapq.nlargest(most, found.values(), key=lambda key: key.ready + key.delayed)
    return sorted(chosen, key=lambda key: (-(key.ready + key.delayed), key.fairness_key))
