"""Durations, sizes and retry policies as people write them: "5s", "16mb", "exponential:1s..60s"."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal, TypedDict

_MS_BY_UNIT = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTES_BY_UNIT = {"": 1, "b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")
U64_MAX = 2**64 - 1


def parse_duration(text: str) -> int:
    """Return `30s`, `500ms` or `1h30m` in milliseconds. A bare number would leave the unit to luck."""
    parts = _DURATION_PART.findall(text)
    if text != "0" and (not parts or "".join(number + unit for number, unit in parts) != text):
        raise ValueError(f"{text!r} is no duration; write it like 500ms, 30s, 5m or 1h30m")
    ms = sum(float(number) * _MS_BY_UNIT[unit] for number, unit in parts)
    if ms > U64_MAX or (0 < ms < 1):
        raise ValueError(f"{text!r} is out of range; durations are whole milliseconds")
    return math.ceil(ms)


def duration_text(ms: int) -> str:
    """The shortest text that `parse_duration` reads back: 30s, 1h30m, 250ms; 0 for none."""
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, _MS_BY_UNIT[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0"


def parse_size(text: str) -> int:
    """Return `64kb`, `16mb`, `1gb` or plain bytes in bytes; units are powers of 1024."""
    found = _SIZE.fullmatch(text.lower())
    if found is None or found[2] not in _BYTES_BY_UNIT:
        raise ValueError(f"{text!r} is no size; write it like 64kb, 16mb or 1gb")
    size = int(float(found[1]) * _BYTES_BY_UNIT[found[2]])
    if size > U64_MAX:
        raise ValueError(f"{text!r} is out of range")
    return size


class RetryParts(TypedDict, total=False):
    """What was said of a retry policy."""

    kind: Literal["exponential", "fixed"]
    base_ms: int
    cap_ms: int
    jitter: float


def parse_retry(text: str) -> RetryParts:
    """Return `exponential:1s..60s` or `fixed:5s`, either with `,jitter=0.5`, as the parts of a retry policy that were
    said: kind, base_ms, cap_ms, jitter."""
    kind, separator, rest = text.partition(":")
    delays, has_jitter, jitter_text = rest.partition(",jitter=")
    base, has_cap, cap = delays.partition("..")
    if not separator or kind not in ("exponential", "fixed") or (kind == "fixed" and has_cap):
        raise ValueError(f"{text!r} is no retry policy; write exponential:1s..60s or fixed:5s")
    policy: RetryParts = {
        "kind": "fixed" if kind == "fixed" else "exponential",
        "base_ms": _parse_some_time(base),
    }
    if has_cap:
        policy["cap_ms"] = _parse_some_time(cap)
    if has_jitter:
        policy["jitter"] = _parse_jitter(jitter_text)
    return policy


def _parse_some_time(text: str) -> int:
    ms = parse_duration(text)
    if ms == 0:
        raise ValueError("must be longer than 0; for the default, leave it out")
    return ms


def _parse_jitter(text: str) -> float:
    try:
        jitter = float(text)
    except ValueError:
        jitter = math.nan
    if not 0 <= jitter <= 1:
        raise ValueError(f"jitter must be from 0 to 1, not {text!r}")
    return jitter


def duration_ms(name: str, value: object) -> int:
    """Return an argument in milliseconds: a number of them, or a duration. TypeError and ValueError name it."""
    return _number(name, value, parse_duration, 'a number of milliseconds or a duration such as "5s"')


def size_bytes(name: str, value: object) -> int:
    """Return an argument in bytes: a number of them, or a size. TypeError and ValueError name it."""
    return _number(name, value, parse_size, 'a number of bytes or a size such as "16mb"')


def _number(name: str, value: object, parse: Callable[[str], int], wanted: str) -> int:
    if isinstance(value, str):
        try:
            return parse(value)
        except ValueError as wrong:
            raise ValueError(f"{name}: {wrong}") from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be {wanted}, got {value!r}")
    if not 0 <= value <= U64_MAX:
        raise ValueError(f"{name} must be from 0 to {U64_MAX}, got {value}")
    return value
