"""Queues as a file says they shall be: TOML in, what differs from the broker out, and back.

    [config]
    "throttle.stripe" = "100,200"

    [limits."tenant:*"]
    rate = ["60/m", "1000cost/m"]
    slots = 4
    budget = "5000cost/day"

    [queues.orders]
    fairness-header = "tenant"
    weight = { acme = 3 }
    visibility-timeout = "5m"
    on-enqueue = "@route.lua"
    channels = ["default", "audit"]      # made with the queue, and added later; none is ever deleted
    paused = false                       # lifts an operator's pause; left out, it stays; a text pauses, and says why
    paused-channels = { audit = "why" }  # true without a reason; {} lifts all; left out, they stay

    [queues.orders.keys.acme]            # what an operator set for one fairness key: see declared_keys.py
    cap = 10

    [queues.orders.schedules.daily]      # see declared_schedules.py
    cron = "0 9 * * 1-5"

The words are the flags of `fila queue create`, the values theirs too. What a queue's table leaves out is its default.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fila_cli.declared_keys import KeySettings, key_settings
from fila_cli.declared_schedules import schedules_of
from fila_cli.limits import NAMES, limit_from, terms
from fila_cli.settings import SETTINGS, Setting, config_from, describe
from fila_cli.values import is_pause

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import QueueConfig
    from fila.v1.limit_pb2 import Limit
    from fila.v1.schedule_pb2 import ScheduleSettings

_CHANNELS, _PAUSED, _KEYS, _SCHEDULES = "channels", "paused", "keys", "schedules"
_PAUSED_CHANNELS = "paused-channels"
_TABLES = (_CHANNELS, _PAUSED, _PAUSED_CHANNELS, _KEYS, _SCHEDULES)
"""What a queue's table has beside settings."""
_SCRIPTS = ("on-enqueue", "on-failure")


@dataclass(slots=True)
class Declared:
    """What a file asks for."""

    queues: dict[str, QueueConfig] = field(default_factory=dict)
    paused: dict[str, bool | str] = field(default_factory=dict)
    """Of queues of which the file says so; a text is the reason."""
    keys: dict[str, dict[str, KeySettings]] = field(default_factory=dict)
    """Of queues, by fairness key."""
    config: dict[str, str] = field(default_factory=dict)
    limits: dict[str, Limit] = field(default_factory=dict)
    schedules: dict[tuple[str, str], tuple[ScheduleSettings, str | None]] = field(default_factory=dict)
    """By queue and name: the settings, and why it is paused; None where the file does not say whether it is."""
    paused_channels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of queues of which the file says so: the channels, and why each is paused."""


def read(path: Path) -> Declared:
    """Read a file; raises BadParameter naming the place of what is wrong."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(f"{path}: {error}") from error
    declared = Declared()
    for name, table in tables.items():
        if name == "config" and isinstance(table, dict):
            declared.config = {key: _value_of(path, key, value) for key, value in table.items()}
        elif name == "queues" and isinstance(table, dict):
            for queue, settings in table.items():
                declared.queues[queue] = _config_of(path, queue, settings)
                if _PAUSED in settings:
                    declared.paused[queue] = settings[_PAUSED]
                if _PAUSED_CHANNELS in settings:
                    declared.paused_channels[queue] = _paused_channels_of(
                        path, queue, settings[_PAUSED_CHANNELS]
                    )
                if _KEYS in settings:
                    declared.keys[queue] = key_settings(f"queues.{queue}.{_KEYS}", settings[_KEYS])
                if _SCHEDULES in settings:
                    declared.schedules |= schedules_of(path, queue, settings[_SCHEDULES], _wrong)
        elif name == "limits" and isinstance(table, dict):
            declared.limits = {key: _limit_of(path, key, parts) for key, parts in table.items()}
        else:
            known = "[config], [limits.NAME] and [queues.NAME]"
            raise _wrong(f"{path}: {name} is no table of such a file; known are {known}")
    return declared


def _value_of(path: Path, key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(f"{path}: config.{key} must be text or a number")
    return str(value)


def _limit_of(path: Path, name: str, parts: Any) -> Limit:
    try:
        return limit_from(f"{path}: limits.{quoted(name)}", name, parts)
    except click.BadParameter as error:
        raise _wrong(error.message) from error


def _config_of(path: Path, queue: str, settings: Any) -> QueueConfig:
    if not isinstance(settings, dict):
        raise _wrong(f"{path}: queues.{queue} must be a table")
    by_name = {setting.name.split("/")[0]: setting for setting in SETTINGS}
    given: dict[str, Any] = {}
    for name, value in settings.items():
        if name in _TABLES:
            continue
        if name not in by_name:
            known = ", ".join([*by_name, *_TABLES])
            raise _wrong(f"{path}: queues.{queue}.{name} is no setting; known are {known}")
        setting = by_name[name]
        given[setting.parameter.split("/")[0]] = _converted(path, queue, setting, value)
    config, _ = config_from(given)
    channels = settings.get(_CHANNELS, [])
    if not (isinstance(channels, list) and all(isinstance(each, str) for each in channels)):
        raise _wrong(f'{path}: queues.{queue}.{_CHANNELS} must be a list of names, as ["default", "audit"]')
    config.channels.extend(channels)
    if not is_pause(settings.get(_PAUSED, False)):
        raise _wrong(f"{path}: queues.{queue}.{_PAUSED} must be true, false, or a text that says why")
    config.paused = bool(settings.get(_PAUSED, False))
    return config


def _paused_channels_of(path: Path, queue: str, given: Any) -> dict[str, str]:
    """Channels by name, and why each is paused."""
    if not (isinstance(given, dict) and all(is_pause(each) and each for each in given.values())):
        said, step = '{ audit = "why" }, or true in place of the reason', ""
        if isinstance(given, list) and all(isinstance(each, str) for each in given):
            step = f": write {_PAUSED_CHANNELS} = {paused_channels_text(dict.fromkeys(given, ''))}"
        elif isinstance(given, dict) and any(each is False for each in given.values()):
            step = "; leave out a channel that is to go on"
        raise _wrong(f"{path}: queues.{queue}.{_PAUSED_CHANNELS} must be a table, as {said}{step}")
    return {name: "" if why is True else why for name, why in given.items()}


def _converted(path: Path, queue: str, setting: Setting, value: Any) -> Any:
    if setting.type is None:
        if not isinstance(value, bool):
            raise _wrong(f"{path}: queues.{queue}.{setting.name.partition('/')[0]} must be true or false")
        return value
    if isinstance(value, str) and value.startswith("@"):
        value = f"@{path.parent / value[1:]}"  # files are looked for beside the one that names them
    try:
        if isinstance(value, dict):
            return tuple(setting.type.convert(f"{key}={each}", None, None) for key, each in value.items())
        if isinstance(value, list):
            return tuple(setting.type.convert(str(each), None, None) for each in value)
        converted = setting.type.convert(value if isinstance(value, str) else str(value), None, None)
    except click.BadParameter as error:
        raise _wrong(f"{path}: queues.{queue}.{setting.name}: {error.message}") from error
    return (converted,) if setting.multiple else converted


def _wrong(text: str) -> click.BadParameter:
    return click.BadParameter(text, param_hint="'FILE'")


def differing(wanted: QueueConfig, there: QueueConfig) -> list[str]:
    """The fields of QueueConfig, as an update's mask names them, in which the two differ; channels, and which of them
    are paused, apart."""
    from fila.v1 import admin_pb2

    full = admin_pb2.QueueConfig()
    full.CopyFrom(_with_defaults(wanted))
    apart = (_CHANNELS, "paused_channels")
    names = [field.name for field in admin_pb2.QueueConfig.DESCRIPTOR.fields if field.name not in apart]
    return [name for name in names if _value(full, name) != _value(there, name)]


class Difference(NamedTuple):
    """A setting in the words of a file: what it is, and what it would be; empty where a file leaves it out."""

    name: str
    old: str
    new: str


def differences(
    wanted: QueueConfig, there: QueueConfig, fields: Iterable[str], *, why: str = "", why_there: str = ""
) -> list[Difference]:
    """Say of `fields`, as `differing` names them, what would become of what; `why` it would be paused, or is."""
    old, new = _told(there, why_there), _told(_with_defaults(wanted), why)
    names = [setting.name.split("/")[0] for setting in SETTINGS if setting.field.split(".")[0] in fields]
    names += [_PAUSED] if _PAUSED in fields else []
    found = [Difference(name, old.get(name, ""), new.get(name, "")) for name in names]
    return [
        each._replace(new=each.new.replace(" line", " other line", 1)) if each.old == each.new else each
        for each in found
        if each.old != each.new or (each.name in _SCRIPTS and each.new)
    ]


def _told(config: QueueConfig, why: str) -> dict[str, str]:
    """Settings by their names, as a file writes them; of a script only how long it is."""
    listed = _lines_of(config, why)
    sizes = {name: text.partition(";")[0] for name, text in describe(config) if name in _SCRIPTS}
    return {name: sizes.get(name, value) for name, value in listed}


def _value(config: QueueConfig, name: str) -> Any:
    value = getattr(config, name)
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString(deterministic=True)
    return dict(value) if hasattr(value, "items") else list(value) if hasattr(value, "append") else value


def _with_defaults(config: QueueConfig) -> QueueConfig:
    """As the broker will store it, so that what a file leaves out does not look changed."""
    from fila.v1 import admin_pb2

    full = admin_pb2.QueueConfig()
    full.CopyFrom(config)
    full.visibility_timeout_ms = full.visibility_timeout_ms or 30_000
    full.dedup_window_ms = full.dedup_window_ms or 300_000
    if not full.HasField("max_attempts"):
        full.max_attempts = 20
    if not full.HasField("disconnect_grace_ms"):
        full.disconnect_grace_ms = 5_000
    if not full.HasField("retry"):
        full.retry.jitter = 1.0
    full.retry.kind = full.retry.kind or admin_pb2.RetryPolicy.KIND_EXPONENTIAL
    full.retry.base_ms = full.retry.base_ms or 100
    full.retry.cap_ms = full.retry.cap_ms or max(60_000, full.retry.base_ms)
    full.hook_fallback = full.hook_fallback or admin_pb2.HOOK_FALLBACK_POLICY
    full.key_order = full.key_order or admin_pb2.KEY_ORDER_RELAXED
    return full


def limit_differences(wanted: Limit, there: Limit | None) -> list[Difference]:
    """What of a limit differs, in the words of a file."""
    old, new = _limit_lines(there) if there is not None else {}, _limit_lines(wanted)
    return [
        Difference(name, old.get(name, ""), new.get(name, ""))
        for name in NAMES
        if old.get(name) != new.get(name)
    ]


def _limit_lines(limit: Limit) -> dict[str, str]:
    found = {}
    for name, text in terms(limit).items():
        if isinstance(text, list):
            found[name] = _list(text)
        else:
            found[name] = {"slots": text, "shadow": "true"}.get(name) or quoted(text)
    return found


def paused_channels_text(paused: dict[str, str]) -> str:
    """Paused channels by name, and why each is, as a file has them."""
    pairs = (f"{quoted(name)} = {quoted(why) if why else 'true'}" for name, why in sorted(paused.items()))
    return f"{{ {', '.join(pairs)} }}"


def as_toml(
    queues: dict[str, QueueConfig],
    config: dict[str, str],
    limits: Iterable[Limit] = (),
    *,
    why: str = "",
    paused_channels: dict[str, str] | None = None,
) -> str:
    """A file that says what there is; `why` its queues are paused, where they are, and which of their channels. Of a
    paused name without a channel (`settings.channels` has not got it) the reason is not known, which a comment says.
    """
    lines: list[str] = []
    if config:
        lines += [
            "[config]",
            *(f"{quoted(key)} = {quoted(value)}" for key, value in config.items()),
            "",
        ]
    for limit in limits:
        lines.append(f"[limits.{quoted(limit.name)}]")
        lines += [f"{name} = {value}" for name, value in _limit_lines(limit).items()]
        lines.append("")
    for queue, settings in queues.items():
        lines.append(f"[queues.{quoted(queue)}]")
        lines += [f"{name} = {value}" for name, value in _lines_of(settings, why)]
        if paused_channels:
            lines += [
                f"# There is no channel {quoted(name)} yet, so why it is paused is not known here."
                for name in sorted({*paused_channels} - {*settings.channels})
            ]
            lines.append(f"{_PAUSED_CHANNELS} = {paused_channels_text(paused_channels)}")
        lines.append("")
    return "\n".join(lines)


def _lines_of(config: QueueConfig, why: str) -> list[tuple[str, str]]:
    listed = []
    lists = {
        "throttle-header": config.throttle_key_headers,
        "intake-header": config.intake.headers,
        "intake-dedup-header": config.intake.dedup_headers,
    }
    for name, text in describe(config):
        if name == "paused channels":
            continue  # with their reasons, apart
        if name == "weight":
            pairs = ", ".join(f"{quoted(key)} = {config.weights[key]}" for key in sorted(config.weights))
            listed.append((name, f"{{ {pairs} }}"))
        elif name in lists:
            listed.append((name, _list(lists[name])))
        elif name in _SCRIPTS:
            listed.append((name, _script(getattr(config, f"{name.replace('-', '_')}_script"))))
        elif name == _PAUSED:
            listed.append((name, quoted(why) if why else "true"))
        elif name in ("ttl-to-dlq", "producer-routing"):
            listed.append((name, "true"))
        else:
            listed.append((name, text if text.isdigit() else quoted(text)))
    if config.channels:
        listed.append((_CHANNELS, _list(config.channels)))
    return listed


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


def _script(source: str) -> str:
    """As it was written, where TOML can say it so: the file is for people to read."""
    stands = all(letter.isprintable() or letter in "\n\t" for letter in source)
    if "\n" in source and stands and "'''" not in source and not source.endswith("'"):
        return f"'''\n{source}'''"
    return quoted(source)


def quoted(text: str) -> str:
    """Text as a file has it.

    JSON's escapes are TOML's, but that beyond 16 bits JSON writes two, and that TOML takes no DEL as it is.
    """
    return "".join(
        letter if letter.isprintable() else f"\\U{ord(letter):08x}"
        for letter in json.dumps(text, ensure_ascii=False)
    )
