"""What hooks had decided about the messages of a recorded command, changed before the command is offered again.

A recorded command begins with the number of its routings, and with each, behind the number of its message and its
length in bytes (core/history/inputs.pyx); core/requests/parsed_frame.pyx has the layout of one.
"""

from __future__ import annotations

import struct

GIVEN_FAIRNESS_KEY = 1
HEAD = struct.Struct(">BBHd")
LENGTH = struct.Struct(">H")


def without_keys(data: bytes) -> bytes:
    """Return a recorded command whose routings name no fairness key; all else in them stays."""
    count, at = _varint(data, 0)
    if not count:
        return data
    kept = [_as_varint(count)]
    for _ in range(count):
        message, at = _varint(data, at)
        length, at = _varint(data, at)
        routing = _without_key(data[at : at + length])
        kept += (_as_varint(message), _as_varint(len(routing)), routing)
        at += length
    return b"".join((*kept, data[at:]))


def _without_key(routing: bytes) -> bytes:
    given, throttle_keys, weight, cost = HEAD.unpack_from(routing)
    (key_bytes,) = LENGTH.unpack_from(routing, HEAD.size)
    head = HEAD.pack(given & ~GIVEN_FAIRNESS_KEY, throttle_keys, weight, cost)
    return head + LENGTH.pack(0) + routing[HEAD.size + LENGTH.size + key_bytes :]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _as_varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)
