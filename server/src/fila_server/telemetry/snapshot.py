"""The core's numbers at one moment, as core/admin/metrics.pyx writes them.

Totals and a queue's counters have the names that the core gives them; of the others the order of the fields is the
contract.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fila_server.core.admin.metrics import QUEUE_COUNTERS, SUMS, TOTALS

SNAPSHOT_VERSION = 1


def _of(name: str, numbers: tuple[str, ...]) -> Any:
    return msgspec.defstruct(name, [(number, int) for number in numbers], array_like=True, frozen=True)


if TYPE_CHECKING:
    Totals = Any
    QueueCounts = Any
    Sums = Any
else:
    Totals = _of("Totals", TOTALS)
    """Of the whole broker."""
    QueueCounts = _of("QueueCounts", QUEUE_COUNTERS)
    """What happened in one queue since the server started."""
    Sums = _of("Sums", SUMS)
    """Over all queues, those too for which there was no room; the dead-letter queues apart."""


class Channel(msgspec.Struct, array_like=True, frozen=True):
    """One view of a queue."""

    name: bytes
    ready: int
    delayed: int
    in_flight: int
    consumers: int
    waiting_pulls: int
    has_room: int
    active_keys: int
    rounds: int
    leased: int
    delivered: int
    """Begun messages; where nobody tracks what is begun, leased ones."""
    acked: int
    served: int
    """Cost, in thousandths."""
    served_last_hour: float
    waited_ms: tuple[float, float, float, float, float]
    """Message-milliseconds, in the order of WAIT_CAUSES."""
    unbegun: int
    oldest_ms: int
    oldest_lease_ms: int
    failed: int
    returned: int
    is_paused: int = 0


class Queue(msgspec.Struct, array_like=True, frozen=True):
    """One queue."""

    name: bytes
    depth: int
    in_flight: int
    stored_bytes: int
    keys: int
    oldest_ms: int
    oldest_lease_ms: int
    head_offset: int
    """1: it never held a message."""
    is_paused: int
    paused_keys: int
    longest_paused_ms: int
    """Of these keys, for how long the one that was paused first is paused."""
    counts: QueueCounts
    latency: list[int]
    """Leases by the bit length of the milliseconds that their messages waited."""
    latency_ms: int
    channels: list[Channel]


class Key(msgspec.Struct, array_like=True, frozen=True):
    """One of the busiest fairness keys, in one channel."""

    queue: bytes
    channel: bytes
    fairness_key: bytes
    delivered: int
    served_last_hour: float
    due_last_hour: float
    pending: int
    in_flight: int
    weight: int
    oldest_ms: int
    totals: tuple[float, float, float, float, float, float, float]
    """Message-milliseconds in the order of WAIT_CAUSES, then cost served and cost due, in thousandths."""
    arrived: int = 0
    """Messages that came into the channel since the row began."""
    is_paused: int = 0

    @property
    def served(self) -> float:
        return self.totals[5]

    @property
    def share_ratio(self) -> float:
        """What it was served within the hour for each unit it was due; 1 when it asked for nothing."""
        return self.served_last_hour / self.due_last_hour if self.due_last_hour > 0 else 1.0


class Limit(msgspec.Struct, array_like=True, frozen=True):
    """One limit as it was set: of a throttle key, or of all that begin alike."""

    throttle_key: bytes
    tokens: float
    rate: float
    burst: float
    passed: int
    held: int
    waiting: int
    would_hold: int
    has_no_tokens: int
    """Its throttle keys have some each, or it has no rate."""
    learned_rate: float = 0.0
    """0: it follows no provider."""


class Snapshot(msgspec.Struct, array_like=True, frozen=True):
    """All of it."""

    version: int
    totals: Totals
    refused: list[tuple[bytes, int]]
    sync_us: list[int]
    """Syncs by the bit length of the microseconds they took."""
    sync_us_sum: int
    batch: list[int]
    """Passes that stored messages, by the bit length of how many."""
    batch_messages: int
    queue_count: int
    """Dead-letter queues included."""
    left_out: int
    """Queues for which there was no room. Dead-letter queues that never held a letter are not told and not counted."""
    queues: list[Queue]
    keys: list[Key]
    limits: list[Limit]
    quantum: int
    sums: Sums | None = None
    """All 0 where queues were not asked for."""


WAIT_CAUSES = ("no_consumer", "share", "throttle", "delay", "held")

_decoder = msgspec.msgpack.Decoder(Snapshot)


def decode(payload: bytes) -> Snapshot:
    """Read the answer to METRICS."""
    return _decoder.decode(payload)


def text_of(name: bytes) -> str:
    """A name as a label's value. A hook may make a key of bytes that are no text; it stays tellable from others."""
    return name.decode("utf-8", "backslashreplace")
