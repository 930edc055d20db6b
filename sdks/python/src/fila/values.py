"""Durations, sizes and retry policies as people write them: "5s", "16mb", "exponential:1s..60s"."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

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


def parse_size(text: str) -> int:
    """Return `64kb`, `16mb`, `1gb` or plain bytes in bytes; units are powers of 1024."""
    found = _SIZE.fullmatch(text.lower())
    if found is None or found[2] not in _BYTES_BY_UNIT:
        raise ValueError(f"{text!r} is no size; write it like 64kb, 16mb or 1gb")
    size = int(float(found[1]) * _BYTES_BY_UNIT[found[2]])
    if size > U64_MAX:
        raise ValueError(f"{text!r} is out of range")
    return size


def parse_retry(text: str) -> tuple[str, int, int]:
    """Return `fixed:5s` or `exponential:1s..60s` as kind, base and cap in milliseconds; a cap of 0 is the default."""
    kind, _, delays = text.partition(":")
    base, separator, cap = delays.partition("..")
    shape = f"{text!r} is no retry policy; write it like fixed:5s or exponential:1s..60s"
    if kind not in ("fixed", "exponential") or not base or (kind == "fixed" and separator):
        raise ValueError(shape)
    try:
        base_ms, cap_ms = parse_duration(base), parse_duration(cap) if separator else 0
    except ValueError as wrong:
        raise ValueError(f"{shape}: {wrong}") from None
    if 0 in (base_ms, cap_ms if separator else 1):
        raise ValueError(f"{text!r}: a delay must be longer than 0")
    if separator and cap_ms < base_ms:
        raise ValueError(f"{text!r}: the first delay is longer than the longest")
    return kind, base_ms, cap_ms


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
