"""Which leases this client holds, so that `ack(queue, message_id)` can name the delivery it means.

Bounded without order-keeping: two generations of a dict. What is not settled by the time a whole
further generation was delivered is forgotten; acking it by id then settles whatever lease is
current, as for a client that remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

LEASES_PER_GENERATION_MAX = 32_768
"""Twice this many leases are remembered for each queue and channel that is pulled from: some 10 MB at worst."""

LOST_LEASES_MAX = 10_000
"""Of so many lost leases the reason is kept."""


class Answer:
    """The broker's answer to a settlement, when it is there."""

    __slots__ = ("answered_s",)

    def __init__(self, answered_s: float | None = None) -> None:
        self.answered_s = answered_s
        """When it came, on the client's clock; None before."""


class HeldLeases(Protocol):
    """Leases by message: a LeaseMemory, or what a consumer's session has in hand."""

    def __len__(self) -> int: ...

    def get(self, message_id: str) -> int | None:
        """Return the lease under which the message was last delivered here, if it is still known."""

    def forget(self, message_id: str, lease_id: int, settled_by: Answer) -> None:
        """Drop a lease that is being settled. A newer delivery of the same message stays."""


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

    def forget(self, message_id: str, lease_id: int, settled_by: Answer) -> None:  # noqa: ARG002 - as the protocol
        """Drop a lease that is being settled. A newer delivery of the same message stays."""
        for generation in (self._newer, self._older):
            if generation.get(message_id) == lease_id:
                del generation[message_id]
                return

    def remember_all(self, leases: Iterable[tuple[str, int]]) -> None:
        """Keep the leases of a consumer that is over."""
        for message_id, lease_id in leases:
            self.remember(message_id, lease_id)


class LostLeases:
    """Leases that ended while the program worked on their messages, and who wants to know."""

    __slots__ = ("_callbacks", "_reasons", "is_watched")

    def __init__(self) -> None:
        self.is_watched = False
        """Whether anybody ever wanted to be called."""
        self._reasons: dict[int, str] = {}
        self._callbacks: dict[int, list[Callable[[], object]]] = {}

    def add(self, lease_id: int, reason: str) -> None:
        """The broker took this lease back."""
        if len(self._reasons) >= LOST_LEASES_MAX:
            del self._reasons[next(iter(self._reasons))]
        self._reasons[lease_id] = reason
        for callback in self._callbacks.pop(lease_id, ()):
            callback()

    def reason(self, lease_id: int) -> str:
        """Return why a lease was lost; empty when it was not."""
        return self._reasons.get(lease_id, "")

    def call_when_lost(self, lease_id: int, callback: Callable[[], object]) -> None:
        """Call back once the lease is lost; at once if it is already."""
        if lease_id in self._reasons:
            callback()
        else:
            self.is_watched = True
            self._callbacks.setdefault(lease_id, []).append(callback)

    def settled(self, lease_id: int) -> None:
        """Nobody needs to know any more."""
        self._callbacks.pop(lease_id, None)
