"""What is told of the broker itself: its state, late keys, what was set for single keys, what happens. Answers as those
of `fila.answers`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from fila.explanation import Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerTrouble:
    """Something that somebody should look at; docs/operations/troubles.md of the broker tells the kinds."""

    kind: str
    """`lost`, `damaged`, `disk`, `circuit_open`, `nobody_consumes`, `failing`, `paused`, `limit_behind`, `budget_spent`
    or `flood`."""
    text: str
    """A sentence: the cause, since when, and whom it hurts."""
    since: datetime | None = None
    queue: str = ""
    channel: str = ""
    fairness_key: str = ""
    throttle_key: str = ""
    waiting: int = 0
    """Ready messages that wait for it to end."""
    lever: str = ""
    """What to do, in a few words."""
    command: str = ""
    """The command line that does it, or shows more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """How the broker is."""

    version: str
    commit: str
    started_at: datetime | None = None
    data_dir: str = ""
    disk_level: str = ""
    """`ok`, `floor` (enqueues are refused) or `full`."""
    disk_free_bytes: int = 0
    epochs: int = 0
    syncs: int = 0
    consumers: int = 0
    queues: int = 0
    leases: int = 0
    outstanding_calls: int = 0
    lost_ranges: int = 0
    lost_messages: int = 0
    draining: bool = False
    cpu_ms: int = 0
    """Processor time it has used since it started."""
    memory_bytes: int = 0
    cpus: int = 0
    """Processors it may use."""
    memory_bytes_max: int = 0
    """Memory it may use; 0 where nobody can say."""
    troubles: list[BrokerTrouble] = field(default_factory=list)
    """What is wrong, the worst first, of what this key may see."""
    more_troubles: int = 0
    well: str = ""
    """Where there is no trouble: that all is well, and of what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateKey:
    """A fairness key whose next message waits."""

    queue: str
    channel: str
    fairness_key: str
    cause: str
    """`no_consumer`, `not_its_turn`, `throttled`, `paused`, `capped`, `rate_limited`, `in_order` or
    `beyond_committed`."""
    blocking_bucket: str = ""
    until: datetime | None = None
    waiting_ms: int = 0
    since: datetime | None = None
    pending: int = 0
    in_flight: int = 0
    weight: int = 0
    by_default: bool = False
    """The cap or the rate that holds it back is the queue's default."""
    blocking_part: str = ""
    """What of `blocking_bucket`'s limit holds it back: `rate`, `slots` or `budget`."""
    blocking_rate: int = 0
    """Which of that limit's rates does, where it has several: 1 is the first."""
    nobody_consumes: bool = False
    """Of `no_consumer`: nobody consumes the channel at all, with room or without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateKeys:
    """The keys that wait longest, longest first."""

    keys: list[LateKey]
    waiting_keys: int
    """How many have something that waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicyState:
    """What an operator said of one fairness key, and how it stands."""

    fairness_key: str
    weight: int
    """The operator's; 0: none."""
    paused: bool
    max_in_flight: int
    """0: no cap."""
    rate_per_second: float = 0.0
    """Most of its messages delivered a second; 0: no rate."""
    burst: float = 0.0
    effective_weight: int = 0
    pending: int = 0
    in_flight: int = 0
    cap_by_default: bool = False
    """Its cap is the queue's default."""
    rate_by_default: bool = False
    """Its rate and burst are the queue's default."""
    committed_per_second: float = 0.0
    """Its messages a second that go before those of keys that are not within theirs; 0: none."""
    committed_by_default: bool = False
    """Its committed rate is the queue's default."""
    pause: Pause | None = None
    """Where it is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened; docs/events.md of the broker tells the kinds."""

    position: int
    """Its place among all events; a later `watch_events` goes on after it."""
    kind: str
    at: datetime | None = None
    queue: str = ""
    channel: str = ""
    fairness_key: str = ""
    principal: str = ""
    peer: str = ""
    count: int = 0
    details: dict[str, str] = field(default_factory=dict)
