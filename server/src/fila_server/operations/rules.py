"""What a queue may be called and how it may be set up; defaults filled in.

The core is given complete, checked configs only, so that it can take them as they are
and a default changed in a later version does not change queues that exist.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from google.protobuf.message import Message

from fila.v1 import admin_pb2
from fila_server.config.schema import Limits
from fila_server.errors import Invalid, LimitExceeded

DLQ_SUFFIX = ".dlq"
RESERVED_PREFIX = "_fila"
NAME_BYTES_MAX = 251
"""So that `<name>.dlq` fits into 255."""
NAME_WITH_SUFFIX_BYTES_MAX = NAME_BYTES_MAX + len(DLQ_SUFFIX)

VISIBILITY_TIMEOUT_MS_MIN = 1_000
VISIBILITY_TIMEOUT_MS_MAX = 12 * 3600 * 1000
VISIBILITY_TIMEOUT_MS_DEFAULT = 30_000
MAX_ATTEMPTS_DEFAULT = 20
RETRY_BASE_MS_DEFAULT = 100
RETRY_CAP_MS_DEFAULT = 60_000
RETRY_MS_MAX = 7 * 24 * 3600 * 1000
RETRY_JITTER_DEFAULT = 1.0
DEDUP_WINDOW_MS_DEFAULT = 300_000
DEDUP_WINDOW_MS_MAX = 24 * 3600 * 1000
DISCONNECT_GRACE_MS_DEFAULT = 5_000
DISCONNECT_GRACE_MS_MAX = 12 * 3600 * 1000
EXPIRES_AFTER_IDLE_MS_MIN = 1_000
EXPIRES_AFTER_IDLE_MS_MAX = 365 * 24 * 3600 * 1000
RETENTION_MS_MAX = 1_000 * 365 * 24 * 3600 * 1000
WEIGHT_MAX = 1000
WEIGHTS_MAX = 10_000
CHANNELS_MAX = 1_000
INTAKE_HEADERS_MAX = 32
KEY_LIMIT_BYTES_MAX = 64
RATE_MIN = 1e-6
RATE_MAX = 1e9
"""Messages a second; below the least a token would take more than twelve days."""

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", re.ASCII)
_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
"""As HTTP has them, in lower case."""
_NOT_TAKEN_IN = re.compile(r"fila-.*|authorization|proxy-authorization|cookie", re.ASCII)
"""What senders say to the gateway, or would not want stored."""
_Config = admin_pb2.QueueConfig


def check_name(field: str, name: str, *, bytes_max: int = NAME_WITH_SUFFIX_BYTES_MAX) -> None:
    """Refuse what could not be a queue's or channel's name."""
    if not 1 <= len(name.encode()) <= bytes_max:
        raise Invalid(field, f"must be 1 to {bytes_max} bytes, got {len(name.encode())}")
    if _NAME.fullmatch(name) is None:
        raise Invalid(field, 'must be of A-Z a-z 0-9 . _ - and must not start with "."')


def check_new_name(field: str, name: str) -> None:
    """As check_name, for a queue that is about to be made."""
    check_name(field, name, bytes_max=NAME_BYTES_MAX)
    if name.startswith(RESERVED_PREFIX):
        raise Invalid(field, f'must not start with "{RESERVED_PREFIX}": those names are the broker\'s own')


def complete(config: _Config, limits: Limits, *, default_channel: bool = True) -> _Config:
    """Return a checked copy with every default filled in."""
    full = _Config()
    full.CopyFrom(config)
    for check in (
        _check_scripts,
        _check_headers,
        _check_weights,
        _check_enums,
        _check_channels,
        _check_intake,
        _check_key_defaults,
        _check_key_limit,
    ):
        check(full, limits)
    if not full.visibility_timeout_ms:
        full.visibility_timeout_ms = VISIBILITY_TIMEOUT_MS_DEFAULT
    _check_between(
        "config.visibility_timeout_ms",
        full.visibility_timeout_ms,
        VISIBILITY_TIMEOUT_MS_MIN,
        VISIBILITY_TIMEOUT_MS_MAX,
    )
    if not full.HasField("max_attempts"):
        full.max_attempts = MAX_ATTEMPTS_DEFAULT
    if not full.dedup_window_ms:
        full.dedup_window_ms = DEDUP_WINDOW_MS_DEFAULT
    _check_between("config.dedup_window_ms", full.dedup_window_ms, 1, DEDUP_WINDOW_MS_MAX)
    if not full.HasField("disconnect_grace_ms"):
        full.disconnect_grace_ms = DISCONNECT_GRACE_MS_DEFAULT
    _check_between("config.disconnect_grace_ms", full.disconnect_grace_ms, 0, DISCONNECT_GRACE_MS_MAX)
    check_idle("config.expires_after_idle_ms", full.expires_after_idle_ms)
    for period in ("soft_period_ms", "hard_period_ms"):
        _check_between(f"config.retention.{period}", getattr(full.retention, period), 0, RETENTION_MS_MAX)
    _complete_retry(full)
    if default_channel and not full.channels:
        full.channels.append("default")
    return full


def report_defaults(config: _Config, durability: str) -> None:
    """Say what holds where a queue leaves it to the broker. What is stored stays as it was asked for."""
    if config.durability == admin_pb2.DURABILITY_UNSPECIFIED:
        config.durability = admin_pb2.DURABILITY_FSYNC if durability == "fsync" else admin_pb2.DURABILITY_OS
    if config.hook_fallback == admin_pb2.HOOK_FALLBACK_UNSPECIFIED:
        config.hook_fallback = admin_pb2.HOOK_FALLBACK_POLICY
    if config.key_order == admin_pb2.KEY_ORDER_UNSPECIFIED:
        config.key_order = admin_pb2.KEY_ORDER_RELAXED


def check_idle(field: str, after_ms: int) -> None:
    """Refuse a time without use that is no time: 0 is never."""
    if after_ms:
        _check_between(field, after_ms, EXPIRES_AFTER_IDLE_MS_MIN, EXPIRES_AFTER_IDLE_MS_MAX)


def merge(current: _Config, update: admin_pb2.UpdateQueueRequest) -> _Config:
    """Return `current` with the fields the mask names taken from the request."""
    if not update.update_mask.paths:
        raise Invalid("update_mask", "must name at least one field of config")
    merged = _Config()
    merged.CopyFrom(current)
    for path in update.update_mask.paths:
        if path == "channels":
            raise Invalid("update_mask", "must not name channels: use CreateChannel and DeleteChannel")
        _take(merged, update.config, path)
    if bool(merged.expires_after_idle_ms) != bool(current.expires_after_idle_ms):
        raise Invalid(
            "config.expires_after_idle_ms",
            "is not switched on or off later, because a queue that expires has no dead-letter queue: "
            "create another queue",
        )
    return merged


def _take(target: Message, source: Message, path: str) -> None:
    *outer, last = path.split(".")
    for name in outer:
        if not _is_message(target, name):
            raise _unknown_path(path)
        source = getattr(source, name)
        target = getattr(target, name)
    if last not in target.DESCRIPTOR.fields_by_name:
        raise _unknown_path(path)
    target.ClearField(last)
    # A field the request leaves out goes back to its default: that is what naming it asks for.
    value = {field.name: value for field, value in source.ListFields()}.get(last)
    if value is None:
        return
    if _is_map(target, last):
        getattr(target, last).update(value)
    elif isinstance(value, Message):
        getattr(target, last).CopyFrom(value)
    elif target.DESCRIPTOR.fields_by_name[last].is_repeated:
        getattr(target, last).extend(value)
    else:
        setattr(target, last, value)


def _unknown_path(path: str) -> Invalid:
    return Invalid("update_mask", f'names "{path}", which is no field of QueueConfig')


def _is_map(message: Message, name: str) -> bool:
    entry = message.DESCRIPTOR.fields_by_name[name].message_type
    return entry is not None and entry.GetOptions().map_entry


def _is_message(message: Message, name: str) -> bool:
    field = message.DESCRIPTOR.fields_by_name.get(name)
    return field is not None and field.message_type is not None and not field.is_repeated


def _check_scripts(config: _Config, limits: Limits) -> None:
    for name in ("on_enqueue_script", "on_failure_script"):
        size = len(getattr(config, name).encode())
        if size > limits.script_bytes_max:
            raise LimitExceeded(
                f"config.{name}", f"must be at most {limits.script_bytes_max} bytes, got {size}"
            )


def _check_headers(config: _Config, limits: Limits) -> None:
    for name in ("fairness_key_header", "weight_header", "cost_header", "priority_header"):
        _check_length(f"config.{name}", getattr(config, name), limits.header_key_bytes_max)
    if config.priority_header and config.key_order == admin_pb2.KEY_ORDER_STRICT:
        raise Invalid(
            "config.priority_header",
            "must be empty where config.key_order is strict, because then no message of a key goes before an earlier "
            "one: leave out the one or the other",
        )
    if len(config.throttle_key_headers) > limits.throttle_keys_max:
        raise LimitExceeded(
            "config.throttle_key_headers",
            f"must be at most {limits.throttle_keys_max} headers, got {len(config.throttle_key_headers)}",
        )
    for i, header in enumerate(config.throttle_key_headers):
        if not header:
            raise Invalid(f"config.throttle_key_headers[{i}]", "must not be empty")
        _check_length(f"config.throttle_key_headers[{i}]", header, limits.header_key_bytes_max)


def _check_weights(config: _Config, limits: Limits) -> None:
    if len(config.weights) > WEIGHTS_MAX:
        raise LimitExceeded(
            "config.weights", f"must be at most {WEIGHTS_MAX} keys, got {len(config.weights)}"
        )
    for key, weight in sorted(config.weights.items()):
        if not key:
            raise Invalid("config.weights", "must not have an empty fairness key")
        _check_length("config.weights key", key, limits.fairness_key_bytes_max)
        _check_between(f'config.weights["{key}"]', weight, 1, WEIGHT_MAX)


def _check_enums(config: _Config, _limits: Limits) -> None:
    checks: tuple[tuple[str, int, Callable[[], list[int]]], ...] = (
        ("durability", config.durability, admin_pb2.Durability.values),
        ("hook_fallback", config.hook_fallback, admin_pb2.HookFallback.values),
        ("key_order", config.key_order, admin_pb2.KeyOrder.values),
        ("retry.kind", config.retry.kind, admin_pb2.RetryPolicy.Kind.values),
    )
    for name, value, known in checks:
        if value not in known():
            raise Invalid(f"config.{name}", f"must be one of {', '.join(map(str, known()))}, got {value}")


def _check_channels(config: _Config, _limits: Limits) -> None:
    for field in ("channels", "paused_channels"):
        names, place = getattr(config, field), f"config.{field}"
        if len(names) > CHANNELS_MAX:
            raise LimitExceeded(place, f"must be at most {CHANNELS_MAX}, got {len(names)}")
        for i, channel in enumerate(names):
            check_name(f"{place}[{i}]", channel, bytes_max=NAME_BYTES_MAX)
            if channel in names[:i]:
                raise Invalid(f"{place}[{i}]", f'must be named once, got "{channel}" again')


def _check_intake(config: _Config, limits: Limits) -> None:
    for field in ("headers", "dedup_headers"):
        names, place = getattr(config.intake, field), f"config.intake.{field}"
        if len(names) > INTAKE_HEADERS_MAX:
            raise LimitExceeded(place, f"must be at most {INTAKE_HEADERS_MAX} names, got {len(names)}")
        for i, name in enumerate(names):
            _check_length(f"{place}[{i}]", name, limits.header_key_bytes_max)
            if _HEADER_NAME.fullmatch(name) is None:
                raise Invalid(f"{place}[{i}]", f"must be a header's name in lower case, got {name[:64]!r}")
            if _NOT_TAKEN_IN.fullmatch(name):
                raise Invalid(f"{place}[{i}]", f"must not be {name!r}, which is not for messages")
            if name in names[:i]:
                raise Invalid(f"{place}[{i}]", f"must be named once, got {name!r} again")


def check_rate(field: str, value: float, least: float) -> None:
    """Refuse what is neither 0 nor a rate, or a burst; not a number is neither."""
    if value and not least <= value <= RATE_MAX:
        raise Invalid(field, f"must be 0, or from {least:g} to {RATE_MAX:g}, got {value}")


def _check_key_defaults(config: _Config, _limits: Limits) -> None:
    defaults = config.key_defaults
    check_rate("config.key_defaults.rate_per_second", defaults.rate_per_second, RATE_MIN)
    check_rate("config.key_defaults.burst", defaults.burst, 1.0)
    check_rate("config.key_defaults.committed_per_second", defaults.committed_per_second, RATE_MIN)
    if defaults.burst and not defaults.rate_per_second:
        raise Invalid(
            "config.key_defaults.burst", "needs a rate: give config.key_defaults.rate_per_second, too"
        )


def _check_key_limit(config: _Config, limits: Limits) -> None:
    prefix, field = config.key_limit, "config.key_limit"
    if not prefix:
        return
    if "*" in prefix:
        raise Invalid(
            field,
            f"must have no *, because a fairness key goes on behind it, got {prefix[:64]!r}: "
            f"give what the names begin with, and set a limit named {prefix.partition('*')[0][:64] + '*'!r}",
        )
    size, bytes_max = len(prefix.encode()), min(KEY_LIMIT_BYTES_MAX, limits.throttle_key_bytes_max - 1)
    if size > bytes_max:
        raise LimitExceeded(
            field,
            f"must be at most {bytes_max} bytes, got {size}: choose a shorter one, because with the fairness key "
            f"behind it a name has at most {limits.throttle_key_bytes_max} (limits.throttle_key_bytes_max)",
        )
    if len(config.throttle_key_headers) >= limits.throttle_keys_max:
        raise LimitExceeded(
            field,
            f"names one limit more beside the {len(config.throttle_key_headers)} of config.throttle_key_headers, "
            f"and a message has at most {limits.throttle_keys_max}: leave out one of the headers, or key_limit",
        )


def _complete_retry(config: _Config) -> None:
    kinds = admin_pb2.RetryPolicy
    if not config.HasField("retry"):
        config.retry.jitter = RETRY_JITTER_DEFAULT
    retry = config.retry
    if retry.kind == kinds.KIND_UNSPECIFIED:
        retry.kind = kinds.KIND_EXPONENTIAL
    retry.base_ms = retry.base_ms or RETRY_BASE_MS_DEFAULT
    retry.cap_ms = retry.cap_ms or max(RETRY_CAP_MS_DEFAULT, retry.base_ms)
    if retry.kind == kinds.KIND_FIXED:
        # Every delay is the base; a cap that an update leaves behind must not stand in its way.
        retry.cap_ms = max(retry.cap_ms, retry.base_ms)
    _check_between("config.retry.base_ms", retry.base_ms, 1, RETRY_MS_MAX)
    _check_between("config.retry.cap_ms", retry.cap_ms, retry.base_ms, RETRY_MS_MAX)
    if not (math.isfinite(retry.jitter) and 0.0 <= retry.jitter <= 1.0):
        raise Invalid("config.retry.jitter", f"must be from 0 to 1, got {retry.jitter}")


def _check_length(field: str, text: str, bytes_max: int) -> None:
    size = len(text.encode())
    if size > bytes_max:
        raise LimitExceeded(field, f"must be at most {bytes_max} bytes, got {size}")


def _check_between(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise Invalid(field, f"must be from {least} to {most}, got {value}")
