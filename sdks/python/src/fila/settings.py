"""A queue's settings as keywords, and how they become the wire's.

Durations are numbers of milliseconds or text such as "5s", sizes numbers of bytes or text such as "16mb", a retry
policy a mapping or text such as "exponential:1s..60s". What is wrong is told by its name, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from google.protobuf.field_mask_pb2 import FieldMask

from fila.arguments import make
from fila.v1 import admin_pb2 as wire
from fila.values import duration_ms, parse_retry, size_bytes

Duration = int | str
"""Milliseconds, or text such as "500ms", "30s", "5m", "1h30m"."""

Size = int | str
"""Bytes, or text such as "64kb", "16mb", "1gb"."""


class RetrySettings(TypedDict, total=False):
    """How long a failed message waits before it is ready again."""

    kind: Literal["exponential", "fixed"]
    base_ms: Duration
    """The first delay; 0 for the default, 100 ms."""
    cap_ms: Duration
    """The longest delay; 0 for the default, 60 s or base_ms, whichever is longer."""
    jitter: float
    """The part of the delay that is random, 0 to 1."""


class RetentionSettings(TypedDict, total=False):
    """How long messages are kept: soft, done ones too; hard, no others either."""

    soft_period_ms: Duration
    soft_bytes: Size
    hard_period_ms: Duration
    hard_bytes: Size


class IntakeSettings(TypedDict, total=False):
    """What a queue's messages keep of an HTTP sender's headers, where the gateway stores a body as it is."""

    headers: Sequence[str]
    """Headers that become the message's, at most 32 in lower case."""
    dedup_headers: Sequence[str]
    """The first of them that the sender gives is the dedup key; at most 32 in lower case."""


class KeyDefaultsSettings(TypedDict, total=False):
    """What each fairness key may have for which no operator set anything else."""

    rate_per_second: float
    """Most messages of a key delivered a second, over all channels; 0 for no rate."""
    burst: float
    """How many of a key may be delivered at once after a pause, at least 1; 0 for one second's worth."""
    max_in_flight: int
    """Most messages of a key leased at once in a channel; 0 for no cap."""
    committed_per_second: float
    """Messages of a key that go, a second, before those of keys that are not within theirs; 0 for none."""


class QueueSettings(TypedDict, total=False):
    """A queue's settings; what is left out has its default (create) or stays (update)."""

    on_enqueue_script: str
    """Lua source that defines on_enqueue(msg)."""
    on_failure_script: str
    """Lua source that defines on_failure(msg, attempts)."""
    visibility_timeout_ms: Duration
    """How long a delivery is leased, and after how long a silent consumer is gone: 1 s to 12 h; 0: 30 s."""
    max_attempts: int
    """Failures after which a message becomes a dead letter; default 20, 0 for no cap."""
    durability: Literal["fsync", "os"]
    """When calls are answered: after the fsync, or after the write to the operating system."""
    max_depth: int
    """Most pending and leased messages; 0 for no bound."""
    max_bytes: Size
    """Most stored bytes; 0 for no bound."""
    fairness_key_header: str
    """The header whose value is the fairness key."""
    key_order: Literal["relaxed", "strict"]
    """`strict`: of each fairness key one message at a time, in order; a failed one keeps its place."""
    weight_header: str
    """The header whose value is the weight of the fairness key."""
    weights: Mapping[str, int]
    """Weight by fairness key, 1 to 1000."""
    cost_header: str
    """The header whose value is the cost."""
    priority_header: str
    """The header whose value is the priority within the fairness key, 0 to 3. Not with a strict `key_order`."""
    throttle_key_headers: Sequence[str]
    """Headers whose values are the throttle keys."""
    retry: RetrySettings | str
    """A mapping, or text such as "fixed:5s" and "exponential:1s..60s,jitter=0.5"."""
    hook_fallback: Literal["policy", "hold"]
    """What happens when on_enqueue fails."""
    retention: RetentionSettings
    channels: Sequence[str]
    """Channels to make with the queue; only when it is created."""
    dedup_window_ms: Duration
    """How long a dedup_key is remembered, at most 24 h; 0 for the default, 5 min."""
    ttl_to_dlq: bool
    """Messages whose time to live is over become dead letters instead of being dropped."""
    paused: bool
    """Deliver nothing until this is false again; enqueues, acks and what is leased already go on."""
    disconnect_grace_ms: Duration
    """How long a consumer that lost its connection may come back before what it had begun fails; default 5 s."""
    expires_after_idle_ms: Duration
    """The queue is deleted when nobody used it for this long, at least 1 s; 0 for never."""
    intake: IntakeSettings
    key_defaults: KeyDefaultsSettings
    """What holds for every fairness key, new ones included, until an operator sets something else for it."""
    allow_producer_routing: bool
    """Producers may say a message's fairness key, weight and cost when they enqueue it."""
    key_limit: str
    """With a message's fairness key behind it, the name of a limit that the message needs, too: `tenant:`; "" for
    none."""
    paused_channels: Sequence[str]
    """Channels that deliver nothing until they are named here no more; the others go on."""


_WORDS_BY_FIELD = {
    "durability": ("DURABILITY_", ("fsync", "os")),
    "hook_fallback": ("HOOK_FALLBACK_", ("policy", "hold")),
    "key_order": ("KEY_ORDER_", ("relaxed", "strict")),
    "retry.kind": ("KIND_", ("exponential", "fixed")),
}
_LISTS = ("channels", "paused_channels", "throttle_key_headers", "intake.headers", "intake.dedup_headers")
_KIND_BY_NESTED: dict[str, Any] = {
    "retry": wire.RetryPolicy,
    "retention": wire.Retention,
    "intake": wire.Intake,
    "key_defaults": wire.KeyDefaults,
}


def resolve(settings: QueueSettings) -> dict[str, Any]:
    """Return the settings with numbers for texts and the wire's names for words. TypeError and ValueError name
    what is wrong."""
    given: dict[str, Any] = dict(settings)
    if isinstance(given.get("retry"), str):
        try:
            given["retry"] = parse_retry(given["retry"])
        except ValueError as wrong:
            raise ValueError(f"retry: {wrong}") from None
    return _resolved(given, wire.QueueConfig, "queue setting", "")


def _resolved(given: Mapping[str, Any], kind: Any, noun: str, before: str) -> dict[str, Any]:
    known = kind.DESCRIPTOR.fields_by_name
    resolved: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"unknown {noun} {name!r}; known are {', '.join(sorted(known))}")
        resolved[name] = _value(before + name, value)
    return resolved


def _value(name: str, value: Any) -> Any:
    if name in _KIND_BY_NESTED:
        if not isinstance(value, Mapping):
            raise TypeError(f"{name} must be a mapping, got {value!r}")
        return _resolved(value, _KIND_BY_NESTED[name], f"part of {name}", f"{name}.")
    if name in _WORDS_BY_FIELD:
        prefix, words = _WORDS_BY_FIELD[name]
        if value not in words:
            raise ValueError(f"{name} must be {' or '.join(map(repr, words))}, got {value!r}")
        return prefix + value.upper()
    if isinstance(value, str) and name in _LISTS:
        raise TypeError(f"{name} must be a sequence, got {value!r}")
    if isinstance(value, str) and name.endswith("_ms"):
        return duration_ms(name, value)
    if isinstance(value, str) and name.endswith("_bytes"):
        return size_bytes(name, value)
    return value


def encode_settings(resolved: Mapping[str, Any]) -> wire.QueueConfig:
    """Return resolved settings as the wire has them."""
    return make(wire.QueueConfig, **resolved)


def mask_of(resolved: Mapping[str, Any]) -> FieldMask:
    """Return the mask of exactly the settings given; of a nested one, the parts given."""
    paths: list[str] = []
    for name, value in resolved.items():
        if name in _KIND_BY_NESTED:
            paths += [f"{name}.{part}" for part in value]
        else:
            paths.append(name)
    return FieldMask(paths=paths)
