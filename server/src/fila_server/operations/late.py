"""Who waits longest, over all queues: a walk of the edge, a part of one queue's keys a command.

No part keeps the scheduler longer than some milliseconds, and messages go on between two of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from fila.v1 import events_pb2 as pb
from fila_server import commands, errors, seam_frames
from fila_server.broker.calls import Broker
from fila_server.errors import LimitExceeded
from fila_server.operations import rules

KEYS_DEFAULT = 20
KEYS_MAX = 1_000
ANEW_MAX = 3
"""How often the walk of a queue begins anew because its table has grown in between."""


Sees = Callable[[str, str], bool]
"""Whether the caller may know of (queue, channel); an empty channel: of anything in the queue."""


def _everything(_queue: str, _channel: str) -> bool:
    return True


async def list_late(
    broker: Broker, request: pb.ListLateRequest, sees: Sees = _everything
) -> pb.ListLateResponse:
    """Rank keys by how long their next message has been waiting, of what `sees` lets through. Raises QueueNotFound."""
    if request.max_keys > KEYS_MAX:
        raise LimitExceeded("max_keys", f"must be at most {KEYS_MAX}, got {request.max_keys}")
    most = request.max_keys or KEYS_DEFAULT
    if request.queue:
        rules.check_name("queue", request.queue)
    found: dict[tuple[str, str, str], pb.LateKey] = {}
    waiting = 0
    for queue in [request.queue] if request.queue else sorted(broker.queue_configs):
        if not sees(queue, ""):
            continue
        try:
            waiting += await _walk(broker, queue, most, found, sees)
        except errors.QueueNotFound:
            if request.queue:
                raise
        if len(found) > 4 * most:
            kept = heapq.nlargest(most, found.values(), key=lambda key: key.waiting_ms)
            found = {(key.queue, key.channel, key.fairness_key): key for key in kept}
    keys = heapq.nlargest(most, found.values(), key=lambda key: key.waiting_ms)
    return pb.ListLateResponse(keys=keys, waiting_keys=waiting)


async def _walk(
    broker: Broker, queue: str, most: int, found: dict[tuple[str, str, str], pb.LateKey], sees: Sees
) -> int:
    """Put a queue's longest waits into `found`; return how many of its keys wait, of those seen."""
    cursor = capacity = anew = 0
    waiting: int = 0
    while True:
        page = seam_frames.LatePage(queue=queue.encode(), cursor=cursor, most=most, capacity=capacity)
        reply = await broker.call(commands.LATE_PAGE, page.SerializeToString())
        part = seam_frames.LateKeys.FromString(reply)
        if capacity and part.capacity != capacity:
            anew += 1
            waiting = 0
        for each in part.waiting:
            if sees(queue, each.channel.decode()):
                waiting += int(each.count)
        for row in part.keys:
            key = pb.LateKey.FromString(row)
            if sees(queue, key.channel):
                found[key.queue, key.channel, key.fairness_key] = key
        cursor, capacity = part.cursor, part.capacity
        if not cursor or anew > ANEW_MAX:
            return waiting
