"""What `explain_key` answers: why a fairness key waits, who is served meanwhile, and when it will go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCauses:
    """Where the last hour of a key's waiting went, in milliseconds."""

    no_consumer_ms: int = 0
    share_ms: int = 0
    throttle_ms: int = 0
    delay_ms: int = 0
    held_ms: int = 0
    """The key was paused, had used up its rate, as much of it was leased as its cap allows, or an earlier message of
    it was not done where they go in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedKey:
    """What one key was served."""

    fairness_key: str
    share: float
    """Its part of the cost that the channel delivered, 0 to 1."""
    cost: float
    """In messages of cost 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedMeanwhile:
    """Who was served while a key's next message waited."""

    keys: list[ServedKey]
    """Those that got most, most first."""
    others_share: float = 0.0
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelConsumers:
    """Who consumes a channel, and how full they are."""

    count: int = 0
    with_room: int = 0
    waiting_pulls: int = 0
    """Lease calls that wait for messages."""
    window: int = 0
    """Messages they may hold at once, all together."""
    held: int = 0
    begun: int = 0
    at_quota: int = 0
    """Of `count`, those given nothing because their name has as many messages in flight as its quota allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When a message will go: nine times in ten between the first and the last of these, if nobody pauses, weighs or
    scales anything meanwhile."""

    earliest_ms: int = 0
    likely_ms: int = 0
    latest_ms: int = 0
    unknown: str = ""
    """Why there is none: `nothing_pending`, `paused`, `delayed`, `no_consumer`, `no_tokens` or `not_watched`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastChange:
    """A forecast as things are, and as they would be."""

    before: Forecast
    after: Forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLoss:
    """A key that would wait longer."""

    fairness_key: str
    pending: int
    tail: ForecastChange
    """When the last of its ready messages would go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicyPreview:
    """What a change of a key's policy would do."""

    head: ForecastChange
    """The key's next message."""
    tail: ForecastChange
    """The last message it has now."""
    losing: list[KeyLoss]
    """Whose last message would wait longest for it, longest first; at most ten."""
    pending: int = 0
    weight_before: int = 0
    weight_after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause of a queue or of a fairness key, as far as it was kept."""

    since: datetime | None = None
    by: str = ""
    """The name of a key where keys are asked for, otherwise an address; told to admins, and to the one who did it."""
    comment: str = ""
    """Why, as people said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHead:
    """The message of a key that goes before all others of it, where they go in order: leased, or failed."""

    message_id: str
    offset: int = 0
    attempts: int = 0
    """How often it failed."""
    leased_at: datetime | None = None
    consumer_id: int = 0
    """Who has it; 0 when it was pulled."""
    consumer_name: str = ""
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedMessage:
    """What `skip_message` made a dead letter."""

    message_id: str
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExplanation:
    """What holds a fairness key's next message."""

    state: str
    """`no_consumer`, `not_its_turn`, `throttled`, `delayed`, `leased`, `paused`, `capped`, `rate_limited`, `in_order`,
    `beyond_committed`, `succeeds` (it replaces a message that is leased) or `empty`."""
    blocking_bucket: str = ""
    blocking_part: str = ""
    """What of that bucket's limit holds it back: `rate`, `slots` or `budget`."""
    blocking_rate: int = 0
    """Which of that limit's rates does, where it has several: 1 is the first."""
    nobody_consumes: bool = False
    """Of `no_consumer`: nobody consumes the channel at all, with room or without; a tenant is not told."""
    learned_per_second: float = 0.0
    """Of that bucket, if its limit learns: messages a second that it lets go now."""
    refused_at: datetime | None = None
    """When a provider last refused there."""
    until: datetime | None = None
    share: float = 0.0
    due_share: float = 0.0
    waits: WaitCauses | None = None
    pending: int = 0
    in_flight: int = 0
    oldest_age_ms: int = 0
    weight: int = 0
    returning_offset: int = 0
    """A message that came back often uncounted; 0 when there is none."""
    returning_count: int = 0
    served_meanwhile: ServedMeanwhile | None = None
    consumers: ChannelConsumers | None = None
    head_forecast: Forecast | None = None
    """When its next message will go."""
    tail_forecast: Forecast | None = None
    """When the last message it has now will go."""
    waits_for: KeyHead | None = None
    """What its other messages wait for, where the queue's `key_order` is strict; or the leased message that one of its
    own replaces."""
    by_default: bool = False
    """The cap or the rate that holds it back is the queue's default, not an operator's word for this key."""
    behind_higher: int = 0
    """Its ready messages that wait behind others of this key with a higher priority; those at a limit are not
    counted."""
    pause: Pause | None = None
    """Where it is paused: of the key, where that is not paused itself of its channel, else of its queue."""
