"""When a key is late, and whose doing it is."""

from __future__ import annotations

LATE_MS = 10_000
"""A key whose next message waits this long is late."""
OTHERS_TURNS = frozenset(("not_its_turn", "no_consumer"))
"""Causes for which others' messages are to blame: they were served, or hold the consumers."""
_FLOOD_PART = 0.5


def floods(part: float, cause: str) -> bool:
    """Whether a late key has so much of a queue's backlog that it waits behind itself, while others are served."""
    return cause in OTHERS_TURNS and part > _FLOOD_PART
