"""How large an admin request may be, seen before it is parsed.

gRPC lets messages of the largest batch in for every method, and protobuf parses on the loop's thread: a
million entries take seconds, in which nobody else is served. The bytes are bounded first, then, where
they could hold very many parts, the parts are counted up to a bound, and only then is anything parsed.
"""

from __future__ import annotations

from fila_server.config.kinds import KIB, MIB
from fila_server.config.schema import Limits
from fila_server.errors import LimitExceeded
from fila_server.operations.rules import CHANNELS_MAX, WEIGHTS_MAX

PLAIN_BYTES_MAX = 64 * KIB
"""Of a request that names a queue, a channel and a key, and little more."""

ENTRIES_FROM_BYTES = 64 * KIB
"""Of requests that have parts; fewer bytes hold at most some ten thousand of them."""

PARTS_MAX = WEIGHTS_MAX + CHANNELS_MAX + 1_000
"""Of a queue's settings: every weight, every channel, and everything else."""

_WITH_SETTINGS = ("CreateQueue", "UpdateQueue", "DryRunPolicy")
_WITH_MESSAGE = ("CreateSchedule", "UpdateSchedule", "EditDeadLetter")

_CONFIG_FIELD, _LEN, _FIXED64, _FIXED32 = 2, 2, 1, 5


class RequestBounds:
    """The bounds, from the limits of the settings."""

    def __init__(self, limits: Limits) -> None:
        # Twice what is allowed, so that a value a little too long is refused by name.
        value_bytes = 2 * (limits.config_key_bytes_max + limits.config_value_bytes_max)
        self._bytes_max_by_method = {
            **dict.fromkeys(_WITH_SETTINGS, MIB + 4 * limits.script_bytes_max),
            "SetConfig": PLAIN_BYTES_MAX + value_bytes,
            **dict.fromkeys(
                _WITH_MESSAGE,
                2 * PLAIN_BYTES_MAX
                + limits.payload_bytes_max
                + limits.headers_max * (limits.header_key_bytes_max + limits.header_value_bytes_max),
            ),
        }

    def check_bytes(self, method: str, frame: bytes) -> None:
        """Raise LimitExceeded when the request is longer than any that is right."""
        bytes_max = self._bytes_max_by_method.get(method, PLAIN_BYTES_MAX)
        if len(frame) > bytes_max:
            raise LimitExceeded(
                "request", f"must be at most {bytes_max} bytes for {method}, got {len(frame)}"
            )

    def may_have_many_parts(self, method: str, frame: bytes) -> bool:
        """Whether the request is for check_parts: of the others none has a list or a map."""
        return len(frame) > ENTRIES_FROM_BYTES and method in _WITH_SETTINGS + _WITH_MESSAGE

    def check_parts(self, method: str, frame: bytes) -> None:
        """Raise LimitExceeded when the request has more entries than any that is right."""
        if _has_more_parts_than(PARTS_MAX, frame, is_nested=method != "EditDeadLetter"):
            raise LimitExceeded("request", f"must have at most {PARTS_MAX} entries of all kinds together")


def _has_more_parts_than(most: int, frame: bytes, *, is_nested: bool = True) -> bool:
    """Count fields, and those of each nested message but texts; broken bytes end the count and fail the parse. Not
    `is_nested`: a payload stands where settings would, and nobody looks into it."""
    left = most
    frames = [(frame, True)]
    try:
        while frames:
            piece, is_outermost = frames.pop()
            at = 0
            while at < len(piece):
                left -= 1
                if left < 0:
                    return True
                tag, at = _varint(piece, at)
                wire_type = tag & 7
                if wire_type == _LEN:
                    length, at = _varint(piece, at)
                    if is_nested and is_outermost and tag >> 3 >= _CONFIG_FIELD:
                        frames.append((piece[at : at + length], False))
                    at += length
                elif wire_type == _FIXED64:
                    at += 8
                elif wire_type == _FIXED32:
                    at += 4
                else:
                    _, at = _varint(piece, at)
    except IndexError:
        return False
    return False


def _varint(piece: bytes, at: int) -> tuple[int, int]:
    byte = piece[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while byte >= 0x80 and shift < 70:
        at += 1
        byte = piece[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at + 1
