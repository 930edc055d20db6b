"""A change of settings that is only tried: what it would do, as plain dataclasses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunRouting:
    """A message's routing."""

    fairness_key: str
    weight: int
    cost: float
    throttle_keys: list[str]
    priority: int = 1
    """Among the messages of its fairness key, 0 to 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunMessage:
    """One message's routing as it is, and as it would be."""

    offset: int
    before: DryRunRouting
    after: DryRunRouting
    error: str = ""
    """Why the script failed on it; it is then routed without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunDeadLetter:
    """What the `on_failure` script says of one dead letter."""

    offset: int
    action: str
    """`retry` or `dlq`; empty when the script failed."""
    delay_ms: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What would become of the newest messages and dead letters."""

    messages: list[DryRunMessage]
    dead_letters: list[DryRunDeadLetter]
    retained: int = 0
    """Messages that are retained."""
    cut: bool = False
    """The time for it, two seconds, was over before all were judged."""
