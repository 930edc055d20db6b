"""What the broker saw at one look that may be a trouble. How long it must be so, and what is said of it, is judged in
troubles.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from fila.v1.limit_pb2 import LIMIT_PART_RATE
from fila_server.telemetry.snapshot import Channel, Key

ACKNOWLEDGED = "loss.acknowledged"
"""The runtime config value that holds up to when an admin has acknowledged loss and damage."""

Place = tuple[str, str]
"""Queue and channel."""


class Found(NamedTuple):
    """Loss or damage that nobody acknowledged."""

    since_ms: int
    ranges: int = 0
    messages: int = 0


class Disk(NamedTuple):
    is_full: bool
    """Every write is refused, and not enqueues alone."""
    free_bytes: int


class Circuit(NamedTuple):
    queue: str
    hook: str


class Unserved(NamedTuple):
    """A channel with something ready and nobody who consumes."""

    queue: str
    channel: str
    ready: int
    delivered: int


class Pause(NamedTuple):
    """A key, a channel or a queue (neither key nor channel) that is paused and has something ready."""

    queue: str
    fairness_key: str
    ready: int
    is_queue: bool = False
    since_ms: int = 0
    """0: not known."""
    by: str = ""
    comment: str = ""
    """Why, as people said it."""
    channel: str = ""


class Failing(NamedTuple):
    """A queue of whose deliveries some failed of late: counts, and what they were when that began."""

    queue: str
    acked: int
    failed: int
    dead: int
    acked_before: int
    failed_before: int
    dead_before: int
    began_ago_s: float
    ready: int = 0


class Limit(NamedTuple):
    """A throttle whose limit messages wait for."""

    throttle_key: str
    rate: float
    burst: float
    """Both of its first rate."""
    passed: int
    messages: int
    places: tuple[tuple[str, str, int], ...]
    """Where most of them wait: queue, channel, messages."""
    is_compound: bool = False
    """It is more than one rate in messages."""
    part: int = LIMIT_PART_RATE
    """What of it holds them, a v1.LimitPart."""
    slots: int = 0
    amount: float = 0
    """Of its budget; `in_cost`, or in messages."""
    in_cost: bool = False
    period_ms: int = 0
    ends_ms: int = 0
    """When the period ends, on the wall clock."""


@dataclass(slots=True)
class Facts:
    """Everything of one look."""

    lost: Found | None = None
    damaged: Found | None = None
    disk: Disk | None = None
    circuits: Sequence[Circuit] = ()
    unserved: Sequence[Unserved] = ()
    pauses: Sequence[Pause] = ()
    failing: Sequence[Failing] = ()
    limits: Sequence[Limit] = ()
    keys: Sequence[Key] = ()
    """The busiest of the broker, as telemetry lists them; floods are looked for among these."""
    channels: Mapping[tuple[bytes, bytes], Channel] = field(default_factory=dict)


def acknowledged_ms(value: str) -> int:
    """Up to when loss is acknowledged; 0: never."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return 0
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
