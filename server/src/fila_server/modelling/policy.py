"""The policy of a model: settings of queues and limits of buckets, read from TOML, in place of the recorded ones.

    [queues.orders]
    max_attempts = 5
    weights = { acme = 3 }
    retry = { kind = "fixed", base_ms = 1000 }
    on_enqueue_script = "function on_enqueue(msg) return { cost = 2 } end"

    [limits]
    openai = { rate = 100, burst = 20 }
    slow = "none"

A queue's settings are the fields of QueueConfig by their names. What is named here holds from the recording's
beginning to its end, whatever was set meanwhile; the rest stays as it was recorded.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format

from fila.v1 import admin_pb2
from fila_server import errors
from fila_server.config.schema import Limits
from fila_server.operations import rules

FIXED = ("channels", "expires_after_idle_ms")
"""Settings that a queue keeps from its making."""

PER_TENANT = ("fairness_key_header", "weight_header", "weights", "key_order", "key_defaults", "key_limit")
"""Settings by which a queue tells its tenants apart: first in, first out has none of them."""

_FIELDS = admin_pb2.QueueConfig.DESCRIPTOR.fields_by_name


class PolicyRefused(Exception):
    """The policy is none, or cannot be tried on this recording; the text says what to change."""


@dataclass(frozen=True)
class Policy:
    """What is not as it was recorded; nothing at all is a policy, too."""

    queues: Mapping[str, admin_pb2.QueueConfig] = field(default_factory=dict)
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By queue, the settings that it names."""
    limits: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    """Rate and burst by bucket; None takes the limit away."""
    fifo: bool = False
    """First in, first out: all messages of a queue are one tenant's, whatever else was recorded about tenants."""

    def config(self, queue: str, recorded: admin_pb2.QueueConfig) -> admin_pb2.QueueConfig:
        """Return the queue's settings in the model. Raises PolicyRefused for those that no queue may have."""
        changed = admin_pb2.QueueConfig()
        changed.CopyFrom(recorded)
        for name in PER_TENANT if self.fifo else ():
            changed.ClearField(name)
        if queue not in self.queues:
            return changed
        for name in self.named[queue]:
            changed.ClearField(name)
        changed.MergeFrom(self.queues[queue])
        try:
            return rules.complete(changed, Limits(), default_channel=False)
        except errors.FilaServerError as refused:
            raise PolicyRefused(f"queues.{queue}: {refused}") from None

    def sets(self, queue: str, name: str) -> bool:
        """Return whether it names this setting of this queue."""
        return name in self.named.get(queue, ())

    def limits_config(self, config_key: str) -> bool:
        """Return whether this key of the runtime config is about a bucket whose limit it names."""
        if config_key.startswith("throttle."):
            return config_key.removeprefix("throttle.") in self.limits
        if config_key.startswith("throttle:"):
            return config_key.removeprefix("throttle:").rpartition(":")[0] in self.limits
        return False


def read_policy(text: str) -> Policy:
    """Read a policy. Raises PolicyRefused, which names the field."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyRefused(f"the policy is no TOML: {error}") from None
    unknown = sorted(set(given) - {"queues", "limits"})
    if unknown:
        raise PolicyRefused(f"{unknown[0]}: a policy has the tables queues and limits")
    queues, named = {}, {}
    for queue, settings in _table(given, "queues").items():
        if not isinstance(settings, dict):
            raise PolicyRefused(f"queues.{queue} must be a table of the queue's settings")
        queues[queue] = _settings(queue, settings)
        named[queue] = tuple(settings)
    limits = {bucket: _limit(bucket, limit) for bucket, limit in _table(given, "limits").items()}
    if not queues and not limits:
        raise PolicyRefused(
            "the policy changes nothing; name a setting under [queues.NAME], or a bucket under [limits]"
        )
    return Policy(queues, named, limits)


def _table(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = given.get(name, {})
    if not isinstance(table, dict):
        raise PolicyRefused(f"{name} must be a table")
    return table


def _settings(queue: str, settings: Mapping[str, Any]) -> admin_pb2.QueueConfig:
    for name in settings:
        if name not in _FIELDS:
            known = ", ".join(sorted(set(_FIELDS) - set(FIXED)))
            raise PolicyRefused(f"queues.{queue}.{name}: a queue has no such setting; there are {known}")
        if name in FIXED:
            raise PolicyRefused(f"queues.{queue}.{name} is set when a queue is made, and not changed later")
    words = {name: _words(_FIELDS[name], value) for name, value in settings.items()}
    config = admin_pb2.QueueConfig()
    try:
        json_format.ParseDict(words, config)
    except json_format.ParseError as error:
        raise PolicyRefused(f"queues.{queue}: {error}") from None
    return config


def _words(of: Any, value: Any) -> Any:
    """Short words for enums, as the command line has them: `fixed` for KIND_FIXED."""
    if of.enum_type is not None and isinstance(value, str):
        full = [each for each in of.enum_type.values_by_name if each.endswith("_" + value.upper())]
        return full[0] if full else value
    if of.message_type is not None and isinstance(value, dict) and not of.message_type.GetOptions().map_entry:
        inner = of.message_type.fields_by_name
        return {name: _words(inner[name], each) if name in inner else each for name, each in value.items()}
    return value


def _limit(bucket: str, limit: Any) -> tuple[float, float] | None:
    if limit == "none":
        return None
    numbers = (
        [limit.get(name) for name in ("rate", "burst")] if isinstance(limit, dict) and len(limit) == 2 else []
    )
    if len(numbers) != 2 or any(
        isinstance(n, bool) or not isinstance(n, int | float) or n < 0 for n in numbers
    ):
        raise PolicyRefused(
            f'limits.{bucket} must be {{ rate = NUMBER, burst = NUMBER }}, from 0 on, or "none"'
        )
    rate, burst = numbers
    return float(rate or 0), float(burst or 0)
