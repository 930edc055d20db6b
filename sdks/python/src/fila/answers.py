"""What operators' calls answer: plain dataclasses, which show every field, zeros included.

Each has the fields of the wire's message of the same name, with moments as datetimes, enumerations as lower-case
words, and None where the broker said nothing. What a newer broker adds and this version does not know is left out.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from fila.explanation import Pause, WaitCauses
from fila.moments import to_datetime
from fila.principals import Intake

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDefaults:
    """What each fairness key may have for which no operator set anything else."""

    rate_per_second: float = 0.0
    burst: float = 0.0
    """0: one second's worth."""
    max_in_flight: int = 0
    """0: no cap."""
    committed_per_second: float = 0.0
    """Messages of a key that go, a second, before those of keys that are not within theirs; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long a failed message waits before it is ready again."""

    kind: str = "exponential"
    """`exponential` or `fixed`."""
    base_ms: int = 0
    cap_ms: int = 0
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long messages are kept: soft, done ones too; hard, no others either. 0: no bound."""

    soft_period_ms: int = 0
    soft_bytes: int = 0
    hard_period_ms: int = 0
    hard_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """A queue's settings, defaults filled in; `fila.QueueSettings` explains each."""

    on_enqueue_script: str = ""
    on_failure_script: str = ""
    visibility_timeout_ms: int = 0
    max_attempts: int = 0
    durability: str = ""
    """`fsync` or `os`."""
    max_depth: int = 0
    max_bytes: int = 0
    fairness_key_header: str = ""
    key_order: str = ""
    """`relaxed` or `strict`."""
    weight_header: str = ""
    weights: dict[str, int] = field(default_factory=dict)
    cost_header: str = ""
    throttle_key_headers: list[str] = field(default_factory=list)
    retry: RetryPolicy | None = None
    hook_fallback: str = ""
    """`policy` or `hold`."""
    retention: Retention | None = None
    channels: list[str] = field(default_factory=list)
    dedup_window_ms: int = 0
    ttl_to_dlq: bool = False
    paused: bool = False
    disconnect_grace_ms: int | None = None
    expires_after_idle_ms: int = 0
    intake: Intake | None = None
    key_defaults: KeyDefaults | None = None
    key_limit: str = ""
    paused_channels: list[str] = field(default_factory=list)
    allow_producer_routing: bool = False
    priority_header: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDetails:
    """One queue."""

    queue: str
    config: QueueConfig
    created_at: datetime | None = None
    version: int = 0
    """Of its settings."""
    pause: Pause | None = None
    """Where it is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueVersion:
    """One version of a queue's settings."""

    number: int
    at: datetime | None = None
    """When it was written; None: before versions were kept."""
    principal: str = ""
    peer: str = ""
    comment: str = ""
    changed: list[str] = field(default_factory=list)
    """Paths such as `retry.base_ms`; empty for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueVersionDetails:
    """One version, with its settings."""

    version: QueueVersion
    config: QueueConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """One queue of a list."""

    name: str
    depth: int
    """Pending messages: ready, throttled or delayed."""
    in_flight: int
    """Leased ones."""
    active_consumers: int
    leader_node_id: int = 0
    enqueued_total: int = 0
    totals_since: datetime | None = None
    """Since when this and the other totals count: the broker's start, or the queue's creation after it."""
    delivered_total: int = 0
    acked_total: int = 0
    dead_lettered_total: int = 0
    oldest_age_ms: int = 0
    """Of the oldest message that waits, between its retries too; 0 when none does."""
    oldest_lease_age_ms: int = 0
    """For how long the lease that began first has run."""
    active_fairness_keys: int = 0
    """Keys with ready or delayed messages, of the channel with most."""
    paused: bool = False
    breaker_state: str = ""
    """`closed`, `half_open` or `open`; empty without hooks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelInfo:
    """One channel in numbers."""

    name: str
    depth: int
    in_flight: int
    tail_offset: int
    """The oldest offset it has not finished."""
    head_offset: int
    """The next offset the queue will give."""
    consumers: int
    created_at: datetime | None = None
    replay_offset: int = 0
    """While a seek brings messages back: it has come to this offset."""
    paused: bool = False
    """It delivers nothing: it, or its queue, is paused."""
    pause: Pause | None = None
    """Where it is paused itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FairnessKeyStats:
    """One fairness key in numbers."""

    key: str
    pending_count: int
    current_deficit: int
    """Thousandths of a message it may still send in its turn."""
    weight: int
    in_flight: int
    oldest_age_ms: int
    """Of its next ready message."""
    delivered_total: int
    served_cost_total: float
    paused: bool
    max_in_flight: int = 0
    """Most of its messages leased at once in a channel; 0 when there is no cap."""
    rate_per_second: float = 0.0
    """Most of its messages delivered a second; 0 when there is no rate."""
    burst: float = 0.0
    """How many may be delivered at once after a pause."""
    throttled: bool = False
    """All that it has ready waits for tokens, in some channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleKeyStats:
    """One token bucket in numbers."""

    key: str
    tokens: float
    rate_per_second: float
    burst: float
    waiting: int
    """Messages that wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookStats:
    """One hook of a queue in numbers, since the queue first had a script for it."""

    hook: str
    """`on_enqueue` or `on_failure`."""
    runs: int
    errors: int
    fallbacks: int
    """Messages that the declarative policy decided in its place."""
    held: int
    """Messages that waited for it to work again."""
    breaker_state: str
    """`closed`, `open` or `half_open`."""
    last_error: str = ""
    last_error_at: datetime | None = None
    last_error_headers: dict[str, str] = field(default_factory=dict)
    """Of the message it failed on."""
    ignored_fields: dict[str, int] = field(default_factory=dict)
    """Answers by the name of a field that they had and nobody reads."""
    log_lines: int = 0
    """Lines that fila.log wrote to the server's log."""
    log_lines_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A queue, or one of its channels, in numbers."""

    depth: int
    in_flight: int
    active_fairness_keys: int
    active_consumers: int
    quantum: int
    per_key_stats: list[FairnessKeyStats]
    per_throttle_stats: list[ThrottleKeyStats]
    leader_node_id: int = 0
    replication_count: int = 0
    oldest_age_ms: int = 0
    """Of the oldest message that waits, between its retries too; 0 when none does."""
    oldest_lease_age_ms: int = 0
    """For how long the lease that began first has run."""
    hook_fallbacks: int = 0
    hard_dropped: int = 0
    dead_lettered_total: int = 0
    enqueued_total: int = 0
    leased_total: int = 0
    """How often a message was sent to a consumer, also where it came back before it was begun."""
    delivered_total: int = 0
    """How often a message was begun; where nobody tracks that, how often it was leased."""
    acked_total: int = 0
    nacked_total: int = 0
    expired_total: int = 0
    ttl_dropped_total: int = 0
    head_offset: int = 0
    tail_offset: int = 0
    stored_bytes: int = 0
    stale_acks_total: int = 0
    channels: list[ChannelInfo] = field(default_factory=list)
    hook_errors: int = 0
    breaker_state: str = ""
    """`closed`, `open` or `half_open`."""
    weights_clamped_total: int = 0
    unbegun: int = 0
    """Of the leased ones, those that no program has seen yet."""
    returned_total: int = 0
    """Deliveries that came back uncounted."""
    dead_letters_dropped_total: int = 0
    hooks: list[HookStats] = field(default_factory=list)
    creation_id: str = ""
    """Tells this queue from every other one, also from one that had its name before or has it later."""
    totals_since: datetime | None = None
    """Since when the totals count: the broker's start, or the queue's creation after it."""
    retention: Retention = field(default_factory=Retention)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicy:
    """What an operator said of one fairness key."""

    weight: int
    paused: bool
    max_in_flight: int
    """0: no cap."""
    rate_per_second: float = 0.0
    """Most of its messages delivered a second, over all channels; 0: no rate."""
    burst: float = 0.0
    """How many may be delivered at once after a pause."""
    pending: int = 0
    """Its pending messages; 0: nothing waits under this key just now, so it may be mistyped."""
    cap_by_default: bool = False
    """Its cap is the queue's default."""
    rate_by_default: bool = False
    """Its rate and burst are the queue's default."""
    committed_per_second: float = 0.0
    """Its messages a second that go before those of keys that are not within theirs; 0: none."""
    committed_by_default: bool = False
    """Its committed rate is the queue's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """One fairness key in one channel, in numbers. Totals count since the broker started or last forgot the key."""

    fairness_key: str
    state: str
    """As in `KeyExplanation`."""
    blocking_bucket: str = ""
    until: datetime | None = None
    ready: int = 0
    delayed: int = 0
    in_flight: int = 0
    waiting_ms: int = 0
    """How long its next ready message has been waiting."""
    weight: int = 0
    paused: bool = False
    max_in_flight: int = 0
    rate_per_second: float = 0.0
    burst: float = 0.0
    arrived_total: int = 0
    delivered_total: int = 0
    arriving_per_second: float = 0.0
    delivered_per_second: float = 0.0
    served_per_second: float = 0.0
    """Cost delivered a second."""
    due_per_second: float = 0.0
    """Cost a second that was its due by weight; what it asked for, where that is less."""
    served_total: float = 0.0
    due_total: float = 0.0
    waits: WaitCauses | None = None
    """Of the last hour."""
    cap_by_default: bool = False
    rate_by_default: bool = False
    committed_per_second: float = 0.0
    """Its messages a second that go before those of keys that are not within theirs; 0: none."""
    committed_by_default: bool = False
    blocking_part: str = ""
    """What of `blocking_bucket`'s limit holds it back: `rate`, `slots` or `budget`."""
    blocking_rate: int = 0
    """Which of that limit's rates does, where it has several: 1 is the first."""
    nobody_consumes: bool = False
    """Where its state is `no_consumer`: nobody consumes the channel at all, with room or without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKeys:
    """Fairness keys that begin alike."""

    keys: list[KeyState]
    matched: int
    """How many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeekPreview:
    """What a seek would do."""

    offset: int
    """Where the channel would be."""
    replayed: int
    """Messages it is done with and would deliver again."""
    skipped: int
    """Messages it is not done with and would not deliver any more."""
    leases_revoked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerInfo:
    """One consumer of a queue."""

    consumer_id: int
    name: str
    peer: str
    channel: str
    held: int
    """Messages leased to it."""
    begun: int
    """Of these, the ones its program has in hand."""
    returned_total: int
    handling_time_us: int
    """The median time its program takes for a message, as it measured; 0 while unknown."""
    window: int
    tracks_begun: bool
    connected_at: datetime | None = None
    away: bool = False
    """Its connection broke, and its leases wait for it to come back."""
    at_quota: bool = False
    """It is given nothing for now: its name has as many messages in flight as its quota allows."""


# How a message of the wire becomes one of these.


def answer(kind: type[AnswerT], message: Message) -> AnswerT:
    """Return a message of the wire as its dataclass."""
    given: dict[str, Any] = {}
    known = message.DESCRIPTOR.fields_by_name
    for name, hint in _hints(typing.cast("Any", kind)).items():
        if name in known and not _is_left_out(known[name], message):
            given[name] = _value(hint, known[name], message, name)
    return kind(**given)


def _is_left_out(described: Any, message: Message) -> bool:
    """An `optional` number that the broker did not give: the dataclass has the default."""
    is_optional = described.has_presence and described.message_type is None
    return bool(is_optional and not message.HasField(described.name))


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {part.name: hints[part.name] for part in dataclasses.fields(kind)}


def _value(hint: Any, described: Any, message: Message, name: str) -> Any:
    inner = [part for part in typing.get_args(hint) if part is not type(None)]
    if isinstance(hint, types.UnionType):
        return _value(inner[0], described, message, name) if message.HasField(name) else None
    value = getattr(message, name)
    if (origin := typing.get_origin(hint)) is dict:
        return dict(value)
    if origin is list:
        return [_item(inner[0], item) for item in value]
    if isinstance(value, Timestamp):
        return to_datetime(value)
    if dataclasses.is_dataclass(hint):
        return answer(typing.cast("type[Any]", hint), value)
    if described.enum_type is not None:
        return _word(described.enum_type, value)
    return value


def _item(hint: Any, item: Any) -> Any:
    if isinstance(item, Timestamp):
        return to_datetime(item)
    return answer(hint, item) if isinstance(item, Message) else item


def _word(enum: Any, number: int) -> str:
    """Return DURABILITY_FSYNC as `fsync`; a number this version has no name for as itself."""
    known = enum.values_by_number.get(number)
    if known is None:
        return str(number)
    # Every enumeration's first value is PREFIX_UNSPECIFIED.
    word = known.name.removeprefix(enum.values_by_number[0].name.removesuffix("UNSPECIFIED")).lower()
    return "" if word == "unspecified" else word
