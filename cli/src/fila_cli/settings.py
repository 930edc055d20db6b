"""Every setting of a queue as a flag, for `queue create` and `queue update` alike.

One table: flag → field of QueueConfig. Create sends the fields that were given, update sends
them with a mask of exactly those, so that nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fila_cli.help import ThemedOption
from fila_cli.output import counted
from fila_cli.values import (
    BEGINNING,
    DURATION,
    RETRY,
    SIZE,
    SOME_TIME,
    SOURCE,
    WEIGHT,
    Count,
    Retry,
    duration_text,
    size_text,
)

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import Durability, QueueConfig, RetryPolicy

_HEADER, _COUNT = click.STRING, Count(min=0, max=2**32 - 1)
_RATE, _BURST = click.FloatRange(0, 1e9), click.FloatRange(1, 1e9)


@dataclass(frozen=True, slots=True)
class Setting:
    """One flag and the field it sets; a dot leads into a nested message."""

    flag: str
    field: str
    type: click.ParamType[Any] | None
    about: str
    multiple: bool = False
    metavar: str | None = None

    @property
    def parameter(self) -> str:
        return self.flag.lstrip("-").replace("-", "_")

    @property
    def section(self) -> str:
        """Where the help shows it."""
        return next(theme for theme, fields in _THEMES.items() if self.field.split(".")[0] in fields)

    @property
    def name(self) -> str:
        """What --reset calls it."""
        return self.flag.lstrip("-")


_THEMES = {
    "Who is served": (
        "fairness_key_header", "key_order", "weights", "weight_header", "cost_header", "priority_header",
        "throttle_key_headers", "key_defaults", "key_limit", "allow_producer_routing",
    ),
    "Scripts": ("on_enqueue_script", "on_failure_script", "hook_fallback"),
    "Leases and failures": (
        "visibility_timeout_ms", "max_attempts", "retry", "ttl_to_dlq", "disconnect_grace_ms",
    ),
    "Bounds and retention": ("max_depth", "max_bytes", "retention", "expires_after_idle_ms"),
    "Safety": ("durability", "dedup_window_ms"),
    "Webhooks": ("intake",),
}  # fmt: skip

SETTINGS = (
    Setting(
        "--fairness-header",
        "fairness_key_header",
        _HEADER,
        "Header whose value is the fairness key",
        metavar="NAME",
    ),
    Setting(
        "--key-order",
        "key_order",
        click.Choice(["relaxed", "strict"]),
        "strict: one message of a key at a time, in order; a failed one keeps its place",
    ),
    Setting(
        "--weight", "weights", WEIGHT, "Weight of a fairness key, 1 to 1000; repeat for more", multiple=True
    ),
    Setting("--weight-header", "weight_header", _HEADER, "Header whose value is the weight", metavar="NAME"),
    Setting(
        "--cost-header",
        "cost_header",
        _HEADER,
        "Header whose value is the cost, 0.001 to 1000000",
        metavar="NAME",
    ),
    Setting(
        "--priority-header",
        "priority_header",
        _HEADER,
        "Header whose value is the priority within the fairness key, 0 to 3; 3 goes first, 1 is usual",
        metavar="NAME",
    ),
    Setting(
        "--throttle-header",
        "throttle_key_headers",
        _HEADER,
        "Header whose value is a throttle key; repeat for more",
        multiple=True,
        metavar="NAME",
    ),
    Setting(
        "--key-rate",
        "key_defaults.rate_per_second",
        _RATE,
        "Most messages a second of each key for which nothing else was set, 0 for no bound",
    ),
    Setting(
        "--key-burst",
        "key_defaults.burst",
        _BURST,
        "How many of such a key at once after a pause [default: one second's worth]",
    ),
    Setting(
        "--key-cap",
        "key_defaults.max_in_flight",
        _COUNT,
        "Most messages of such a key leased at once in a channel, 0 for no cap",
        metavar="N",
    ),
    Setting(
        "--key-committed",
        "key_defaults.committed_per_second",
        _RATE,
        "Messages a second of such a key that go before those of keys beyond theirs, 0 for none",
    ),
    Setting(
        "--key-limit",
        "key_limit",
        BEGINNING,
        "Each message also needs the limit whose name is this and its fairness key: tenant: for tenant:acme",
        metavar="BEGINNING",
    ),
    Setting(
        "--producer-routing/--no-producer-routing",
        "allow_producer_routing",
        None,
        "Producers may say a message's fairness key, weight and cost",
    ),
    Setting("--on-enqueue", "on_enqueue_script", SOURCE, "Lua that defines on_enqueue(msg)"),
    Setting("--on-failure", "on_failure_script", SOURCE, "Lua that defines on_failure(msg, attempts)"),
    Setting(
        "--hook-fallback",
        "hook_fallback",
        click.Choice(["policy", "hold"]),
        "When on_enqueue fails: route by the flags above, or hold the message until the hook works",
    ),
    Setting(
        "--visibility-timeout",
        "visibility_timeout_ms",
        SOME_TIME,
        "How long a delivery is leased, 1s to 12h, default 30s",
    ),
    Setting(
        "--max-attempts",
        "max_attempts",
        _COUNT,
        "Failures after which a message is a dead letter; 0 for no cap",
        metavar="N",
    ),
    Setting(
        "--retry",
        "retry",
        RETRY,
        "How long a failed message waits: exponential:1s..60s, fixed:5s, with ,jitter=0..1",
    ),
    Setting("--durability", "durability", click.Choice(["broker", "fsync", "os"]), "When calls are answered"),
    Setting("--max-depth", "max_depth", Count(min=0), "Most messages, 0 for no bound", metavar="N"),
    Setting("--max-bytes", "max_bytes", SIZE, "Most stored bytes, 0 for no bound"),
    Setting(
        "--soft-retention",
        "retention.soft_period_ms",
        DURATION,
        "Keep messages this long even when all are done with them",
    ),
    Setting(
        "--soft-retention-size", "retention.soft_bytes", SIZE, "Keep this much even when all are done with it"
    ),
    Setting(
        "--hard-retention", "retention.hard_period_ms", DURATION, "Drop messages older than this, done or not"
    ),
    Setting(
        "--hard-retention-size",
        "retention.hard_bytes",
        SIZE,
        "Drop the oldest messages beyond this, done or not",
    ),
    Setting(
        "--dedup-window",
        "dedup_window_ms",
        SOME_TIME,
        "How long a dedup key is remembered, up to 24h, default 5m",
    ),
    Setting(
        "--disconnect-grace",
        "disconnect_grace_ms",
        DURATION,
        "How long a broken session may be resumed before what it held comes back, 0 for at once, default 5s",
    ),
    Setting(
        "--expires-after-idle",
        "expires_after_idle_ms",
        SOME_TIME,
        "Delete the queue after this long without use, at least 1s; it then has no dead-letter queue",
    ),
    Setting(
        "--ttl-to-dlq/--no-ttl-to-dlq", "ttl_to_dlq", None, "Messages whose time is over become dead letters"
    ),
    Setting(
        "--intake-header",
        "intake.headers",
        _HEADER,
        "Header of an HTTP sender that its messages keep, in lower case; repeat for more",
        multiple=True,
        metavar="NAME",
    ),
    Setting(
        "--intake-dedup-header",
        "intake.dedup_headers",
        _HEADER,
        "Header of an HTTP sender that is the dedup key; of several the first it sends",
        multiple=True,
        metavar="NAME",
    ),
)

NAMES_TO_RESET = [setting.name.split("/")[0] for setting in SETTINGS]


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command every flag of the table, in its order."""
    for setting in reversed(SETTINGS):
        command = _option(setting)(command)
    return command


def _option(setting: Setting) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    if setting.type is None:
        return click.option(
            setting.flag,
            _parameter(setting),
            cls=ThemedOption,
            theme=setting.section,
            default=None,
            help=setting.about,
        )
    return click.option(
        setting.flag,
        _parameter(setting),
        cls=ThemedOption,
        theme=setting.section,
        type=setting.type,
        multiple=setting.multiple,
        metavar=setting.metavar,
        help=setting.about,
    )


def _parameter(setting: Setting) -> str:
    return setting.parameter.split("/")[0]


def config_from(given: dict[str, Any]) -> tuple[QueueConfig, list[str]]:
    """Return the config the flags describe, and the paths of what was given."""
    from fila.v1 import admin_pb2

    config = admin_pb2.QueueConfig()
    paths = []
    for setting in SETTINGS:
        value = given.get(_parameter(setting))
        if value is None or value == ():
            continue
        paths.append(setting.field)
        _set(config, setting.field, value)
    return config, paths


def name_of(field: str) -> str:
    """What the flag for `field` is called."""
    return next(setting.name.split("/")[0] for setting in SETTINGS if setting.field == field)


def paths_to_reset(names: tuple[str, ...]) -> list[str]:
    field_by_name = {setting.name.split("/")[0]: setting.field for setting in SETTINGS}
    return [field_by_name[name] for name in names]


def _set(config: QueueConfig, field: str, value: Any) -> None:
    from fila.v1 import admin_pb2

    owner, _, inner = field.partition(".")
    if owner == "intake":
        getattr(config.intake, inner).extend(value)
    elif inner:
        setattr(getattr(config, owner), inner, value)
    elif field == "weights":
        config.weights.update(dict(value))
    elif field == "throttle_key_headers":
        config.throttle_key_headers.extend(value)
    elif field == "retry":
        _set_retry(config.retry, value)
    elif field == "durability":
        config.durability = durability_of(value)
    elif field == "hook_fallback":
        holds = value == "hold"
        config.hook_fallback = admin_pb2.HOOK_FALLBACK_HOLD if holds else admin_pb2.HOOK_FALLBACK_POLICY
    elif field == "key_order":
        is_strict = value == "strict"
        config.key_order = admin_pb2.KEY_ORDER_STRICT if is_strict else admin_pb2.KEY_ORDER_RELAXED
    else:
        setattr(config, field, value)


def durability_of(word: str) -> Durability:
    """Return the wire's value for `broker` (its own default), `fsync` or `os`."""
    from fila.v1 import admin_pb2

    return {
        "broker": admin_pb2.DURABILITY_UNSPECIFIED,
        "fsync": admin_pb2.DURABILITY_FSYNC,
        "os": admin_pb2.DURABILITY_OS,
    }[word]


def _set_retry(retry: RetryPolicy, value: Retry) -> None:
    from fila.v1 import admin_pb2

    fixed = value.kind == "fixed"
    retry.kind = admin_pb2.RetryPolicy.KIND_FIXED if fixed else admin_pb2.RetryPolicy.KIND_EXPONENTIAL
    retry.base_ms = value.base_ms
    if value.cap_ms is not None:
        retry.cap_ms = value.cap_ms
    if value.jitter is not None:
        retry.jitter = value.jitter


def describe(config: QueueConfig) -> list[tuple[str, str]]:
    """A queue's settings in the words of the flags; scripts by their size."""
    from fila.v1 import admin_pb2

    retry = config.retry
    kind = "fixed" if retry.kind == admin_pb2.RetryPolicy.KIND_FIXED else "exponential"
    cap = f"..{duration_text(retry.cap_ms)}" if kind == "exponential" else ""
    durability = admin_pb2.Durability.Name(config.durability).removeprefix("DURABILITY_").lower()
    kept, each_key = config.retention, config.key_defaults
    listed = [
        ("fairness-header", config.fairness_key_header),
        ("key-order", "strict" if config.key_order == admin_pb2.KEY_ORDER_STRICT else ""),
        ("weight", " ".join(f"{key}={config.weights[key]}" for key in sorted(config.weights))),
        ("weight-header", config.weight_header),
        ("cost-header", config.cost_header),
        ("priority-header", config.priority_header),
        ("throttle-header", " ".join(config.throttle_key_headers)),
        ("key-rate", _number(each_key.rate_per_second) if each_key.rate_per_second else ""),
        ("key-burst", _number(each_key.burst) if each_key.burst else ""),
        ("key-cap", str(each_key.max_in_flight or "")),
        ("key-committed", _number(each_key.committed_per_second) if each_key.committed_per_second else ""),
        ("key-limit", config.key_limit),
        ("producer-routing", "yes" if config.allow_producer_routing else ""),
        ("on-enqueue", _script(config.on_enqueue_script)),
        ("on-failure", _script(config.on_failure_script)),
        ("hook-fallback", "hold" if config.hook_fallback == admin_pb2.HOOK_FALLBACK_HOLD else ""),
        ("visibility-timeout", duration_text(config.visibility_timeout_ms)),
        ("max-attempts", str(config.max_attempts) if config.HasField("max_attempts") else ""),
        ("retry", f"{kind}:{duration_text(retry.base_ms)}{cap},jitter={retry.jitter:g}"),
        ("durability", "broker" if durability == "unspecified" else durability),
        ("max-depth", str(config.max_depth or "")),
        ("max-bytes", size_text(config.max_bytes) if config.max_bytes else ""),
        ("soft-retention", duration_text(kept.soft_period_ms) if kept.soft_period_ms else ""),
        ("soft-retention-size", size_text(kept.soft_bytes) if kept.soft_bytes else ""),
        ("hard-retention", duration_text(kept.hard_period_ms) if kept.hard_period_ms else ""),
        ("hard-retention-size", size_text(kept.hard_bytes) if kept.hard_bytes else ""),
        ("dedup-window", duration_text(config.dedup_window_ms)),
        ("ttl-to-dlq", "yes" if config.ttl_to_dlq else ""),
        (
            "disconnect-grace",
            duration_text(config.disconnect_grace_ms) if config.HasField("disconnect_grace_ms") else "",
        ),
        ("intake-header", " ".join(config.intake.headers)),
        ("intake-dedup-header", " ".join(config.intake.dedup_headers)),
        ("paused", "yes" if config.paused else ""),
        ("paused channels", " ".join(config.paused_channels)),
        (
            "expires-after-idle",
            duration_text(config.expires_after_idle_ms) if config.expires_after_idle_ms else "",
        ),
    ]
    return [(name, value) for name, value in listed if value]


def _number(value: float) -> str:
    """The shortest text that reads back exactly."""
    return str(int(value)) if value.is_integer() else repr(value)


def _script(source: str) -> str:
    return f"{counted(len(source.splitlines()), 'line')} of Lua; 'fila hook show' prints it" if source else ""
