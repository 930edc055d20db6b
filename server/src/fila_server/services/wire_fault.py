"""Say which field of a broken request is broken.

protobuf only says "cannot parse". Admin calls are rare and typed by hand, so their
author deserves the field's name; this walks the frame again, along the descriptor,
until it meets the fault. The hot calls get the same from the core's own parser.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from fila_server.errors import Invalid

_NESTING_MAX = 16
_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5


class _Fault(Exception):
    def __init__(self, path: str, bound: str) -> None:
        super().__init__(path)
        self.path = path
        self.bound = bound


def explain(frame: bytes, message: Any) -> Invalid:
    """Return the error for a frame that could not be parsed as the message of this descriptor."""
    try:
        _walk(frame, message, "", 0)
    except _Fault as fault:
        return Invalid(fault.path or "request", fault.bound)
    return Invalid("request", f"is not a valid {message.full_name}")


def _walk(frame: bytes, message: Descriptor, path: str, depth: int) -> None:
    at = 0
    while at < len(frame):
        tag, at = _varint(frame, at, path)
        number, wire_type = tag >> 3, tag & 7
        field = message.fields_by_number.get(number)
        name = f"{path}.{field.name}" if path and field else field.name if field else path
        if number == 0:
            raise _Fault(path, "is not a valid protobuf message: field number 0")
        if wire_type == _VARINT:
            _, at = _varint(frame, at, name)
        elif wire_type in (_FIXED64, _FIXED32):
            at += 8 if wire_type == _FIXED64 else 4
        elif wire_type == _LEN:
            length, at = _varint(frame, at, name)
            if at + length > len(frame):
                raise _Fault(name, "is cut off: its length goes beyond the end of the request")
            _check_text(frame[at : at + length], field, name, depth)
            at += length
        else:
            raise _Fault(name, f"is not valid protobuf: wire type {wire_type}")
        if at > len(frame):
            raise _Fault(name, "is cut off: it goes beyond the end of the request")


def _check_text(value: bytes, field: FieldDescriptor | None, name: str, depth: int) -> None:
    if field is None:
        return
    if field.type == FieldDescriptor.TYPE_STRING:
        try:
            value.decode("utf-8")
        except UnicodeDecodeError:
            raise _Fault(name, "must be valid UTF-8") from None
    elif field.message_type is not None and depth < _NESTING_MAX:
        _walk(value, field.message_type, name, depth + 1)


def _varint(frame: bytes, at: int, path: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(frame):
            raise _Fault(path, "is cut off in the middle of a number")
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _Fault(path, "holds a number of more than 64 bits")
