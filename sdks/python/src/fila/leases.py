"""Which leases this client holds, so that `ack(queue, message_id)` can name the delivery it means.

Bounded without order-keeping: two generations of a dict. What is not settled by the time a whole
further generation was delivered is forgotten; acking it by id then settles whatever lease is
current, as for a client that remembers nothing.
"""

from __future__ import annotations

LEASES_PER_GENERATION_MAX = 32_768
"""Twice this many leases are remembered for each queue, channel and consumer: some 10 MB at worst."""


class LeaseMemory:
    """lease_id by message_id, newest wins."""

    __slots__ = ("_newer", "_older", "_per_generation_max")

    def __init__(self, per_generation_max: int = LEASES_PER_GENERATION_MAX) -> None:
        self._newer: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._per_generation_max = per_generation_max

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def remember(self, message_id: str, lease_id: int) -> None:
        """Keep the lease of a delivery."""
        newer = self._newer
        if len(newer) >= self._per_generation_max:
            self._older = newer
            newer = self._newer = {}
        newer[message_id] = lease_id

    def get(self, message_id: str) -> int | None:
        """Return the lease under which the message was last delivered here, if it is still known."""
        return self._newer.get(message_id) or self._older.get(message_id)

    def forget(self, message_id: str, lease_id: int) -> None:
        """Drop a lease that is being settled. A newer delivery of the same message stays."""
        for generation in (self._newer, self._older):
            if generation.get(message_id) == lease_id:
                del generation[message_id]
                return

    def take_all(self, other: LeaseMemory) -> None:
        """Move what `other` remembers here."""
        for generation in (other._older, other._newer):
            for message_id, lease_id in generation.items():
                self.remember(message_id, lease_id)
            generation.clear()
