"""Which commands of one client may run side by side: those of one lane.

Pushes run beside pushes, acks beside acks, reads that do not wait beside their like; all else runs alone. The mailbox
keeps the order within a lane; changing lanes waits for the answers.
"""

from __future__ import annotations

from fila_server.edges.redis import codec

ALONE, PUSHES, ACKS, READS = range(4)
LANES = {codec.PUSHES: PUSHES, codec.PUSH_MANY: PUSHES, codec.ACKS: ACKS, codec.LEASE: READS}
"""By kind of item, of those that messages pass; other kinds run alone."""


def lane_of(item: codec.Item) -> int:
    """The lane of a decoded item."""
    if item[0] == codec.LEASE and item[2] > 0:
        return ALONE  # it may wait for minutes, and what follows must not overtake it
    return LANES.get(item[0], ALONE)


def size_of(item: codec.Item) -> int:
    """Bytes that a decoded item keeps."""
    body = item[1]
    return sum(map(len, body)) if isinstance(body, list) else len(body)
