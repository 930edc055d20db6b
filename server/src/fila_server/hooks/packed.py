"""Messages and routings as they cross into Lua, for the few that are in no frame of the core's.

core/requests/parsed_frame.pyx has the layout and does the same for frames; dead letters on their way back come
one by one (operations/redrive.py), and are asked about by the same scripts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_GIVEN_FAIRNESS_KEY, _GIVEN_WEIGHT, _GIVEN_COST, _GIVEN_THROTTLE_KEYS = 1, 2, 4, 8
_HEAD = struct.Struct(">BBHd")


class Routing(NamedTuple):
    """What a script decided; None leaves a field to the declarative policy."""

    fairness_key: bytes | None = None
    weight: int | None = None
    cost: float | None = None
    throttle_keys: tuple[bytes, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLimits:
    """What a key may be. Mirrors section `[limits]` of the settings."""

    fairness_key_bytes: int = 256
    throttle_key_bytes: int = 256
    throttle_keys: int = 16


def pack_messages(messages: Iterable[tuple[Sequence[tuple[bytes, bytes]], int]]) -> bytes:
    """Pack messages, each its headers and the size of its payload."""
    parts = []
    for headers, payload_size in messages:
        parts.append(struct.pack(">II", payload_size, len(headers)))
        for text in (text for header in headers for text in header):
            parts += (struct.pack(">I", len(text)), text)
    return b"".join((*parts, bytes(8)))


HEADERS_SHOWN_MAX = 16
HEADER_CHARACTERS_MAX = 200


def first_headers(packed: bytes) -> dict[str, str]:
    """Return the headers of the first of packed messages, as many and as long as people read."""
    _, count = struct.unpack_from(">II", packed, 0)
    at = 8
    texts = []
    for _ in range(2 * min(count, HEADERS_SHOWN_MAX)):
        (length,) = struct.unpack_from(">I", packed, at)
        texts.append(packed[at + 4 : at + 4 + length])
        at += 4 + length
    return shown_headers(list(zip(texts[::2], texts[1::2], strict=True)))


def shown_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers as people read them."""
    return {
        name.decode("utf-8", "backslashreplace")[:HEADER_CHARACTERS_MAX]: value.decode(
            "utf-8", "backslashreplace"
        )[:HEADER_CHARACTERS_MAX]
        for name, value in headers[:HEADERS_SHOWN_MAX]
    }


def unpack_routings(
    packed: bytes, start: int, count: int, limits: KeyLimits
) -> tuple[list[Routing], str | None, int]:
    """Unpack `count` routings from byte `start` on; fewer when the core could not take one.

    Returns them, what is wrong with the next one, or None, and the byte behind them and it.
    """
    routings: list[Routing] = []
    at = start
    for _ in range(count):
        given, key_count, weight, cost = _HEAD.unpack_from(packed, at)
        at += _HEAD.size
        keys = []
        for _ in range(1 + key_count):
            (length,) = struct.unpack_from(">H", packed, at)
            keys.append(packed[at + 2 : at + 2 + length])
            at += 2 + length
        problem = _problem_of(keys[0], keys[1:], limits)
        if problem is not None:
            return routings, problem, at
        routings.append(
            Routing(
                keys[0] if given & _GIVEN_FAIRNESS_KEY else None,
                weight if given & _GIVEN_WEIGHT else None,
                cost if given & _GIVEN_COST else None,
                tuple(keys[1:]) if given & _GIVEN_THROTTLE_KEYS else None,
            )
        )
    return routings, None, at


def _problem_of(fairness_key: bytes, throttle_keys: Sequence[bytes], limits: KeyLimits) -> str | None:
    if len(fairness_key) > limits.fairness_key_bytes:
        return f"fairness_key must be at most {limits.fairness_key_bytes} bytes, got {len(fairness_key)}"
    if len(throttle_keys) > limits.throttle_keys:
        return f"throttle_keys must be at most {limits.throttle_keys}, got {len(throttle_keys)}"
    for key in throttle_keys:
        if len(key) > limits.throttle_key_bytes:
            return f"throttle_keys must be at most {limits.throttle_key_bytes} bytes each, got {len(key)}"
        if not _is_text(key):
            return "throttle_keys must be valid UTF-8"
    return None if _is_text(fairness_key) else "fairness_key must be valid UTF-8"


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
