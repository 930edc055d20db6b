"""What watching tells: plain dataclasses, as `fila.answers` has for other calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fila.answers import KeyState
from fila.explanation import WaitCauses


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """One channel of a queue in numbers. Totals count since the broker started."""

    queue: str
    channel: str
    ready: int = 0
    """Its ready messages, held by a throttle or not."""
    delayed: int = 0
    in_flight: int = 0
    consumers: int = 0
    active_keys: int = 0
    oldest_age_ms: int = 0
    """Of the channel's oldest message that waits, between its retries too; 0 when none does."""
    oldest_lease_age_ms: int = 0
    """For how long the lease that began first has run."""
    enqueued_total: int = 0
    """Of the queue."""
    leased_total: int = 0
    """How often a message was sent to a consumer, also where it came back before it was begun."""
    delivered_total: int = 0
    """How often a message was begun; where nobody tracks that, how often it was leased."""
    acked_total: int = 0
    dead_lettered_total: int = 0
    """Of the queue."""
    stored_bytes: int = 0
    """Of the queue."""
    arriving_per_second: float = 0.0
    delivered_per_second: float = 0.0
    acked_per_second: float = 0.0
    """What is served, in messages."""
    failed_per_second: float = 0.0
    """Attempts that failed."""
    returned_per_second: float = 0.0
    """What came back to its place without counting an attempt."""
    failed_total: int = 0
    returned_total: int = 0
    served_total: float = 0.0
    """Cost delivered."""
    waits: WaitCauses | None = None
    """Of the last hour."""
    paused: bool = False
    """Its queue is paused, or it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedChannel:
    """One channel, as far as it changed."""

    state: QueueState
    keys: list[KeyState]
    """Those that are new or changed."""
    leading: list[str]
    """Those that lead now, in order. One that neither leads nor was named is told no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneChannel:
    """A channel that was deleted, or that may not be seen any more."""

    queue: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSums:
    """Queues together, their dead-letter queues apart."""

    queues: int = 0
    """How many queues these are."""
    waiting: int = 0
    """Ready and delayed messages; of a queue with several channels, those of the fullest."""
    in_flight: int = 0
    oldest_age_ms: int = 0
    """Of the oldest message that waits; 0 when none does."""
    arriving_per_second: float = 0.0
    acked_per_second: float = 0.0
    failed_per_second: float = 0.0
    returned_per_second: float = 0.0
    dead_letters: int = 0
    """Messages in dead-letter queues."""
    partial: bool = False
    """There are more than 2,000 queues, and this client is no admin: these are those it may see of the busiest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsChange:
    """What changed since the one before; the first, and the first after a break, tells all there is."""

    sequence: int
    full: bool
    """This is all there is: what was told before counts no more."""
    channels: list[WatchedChannel]
    gone: list[GoneChannel]
    at: datetime | None = None
    sums: QueueSums | None = None
    """All queues that this client may see, where all are watched; None where that is as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoint:
    """Ten seconds of a channel; counts for nothing where it was not recorded."""

    recorded: bool = False
    arrived: int = 0
    """Messages stored in the queue."""
    leased: int = 0
    delivered: int = 0
    acked: int = 0
    depth: int = 0
    """Ready and delayed ones at the end."""
    in_flight: int = 0
    oldest_age_ms: int = 0
    waits: WaitCauses | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySeriesPoint:
    """Ten seconds of a fairness key; counts for nothing where it was not recorded."""

    recorded: bool = False
    arrived: float = 0.0
    served: float = 0.0
    """Cost delivered."""
    due: float = 0.0
    """Cost that was its due by weight; what it asked for, where that is less."""
    pending: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySeries:
    """The last hour of one fairness key."""

    fairness_key: str
    points: list[KeySeriesPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The last hour of a channel, a point for each step, oldest first."""

    step_ms: int
    points: list[SeriesPoint]
    keys: list[KeySeries]
    recorded_keys: list[str]
    """Keys of the channel that are recorded, those served most first."""
    first_at: datetime | None = None
    """When the first point ends."""
