"""A message as JSON, as the protobuf library's `MessageToDict` writes it: fields at zero too, messages only where they
are set, what is set before what is not. The library looks up how to write each field of each message. Here that is
looked up once a kind of message.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

Write = Callable[[Any], Any]
"""From what protobuf has to what JSON has."""

_Field = FieldDescriptor
_LONG = (_Field.CPPTYPE_INT64, _Field.CPPTYPE_UINT64)
_AS_TEXT = ("google.protobuf.Timestamp", "google.protobuf.FieldMask")


def as_json(message: Any) -> dict[str, Any]:
    """The message as JSON."""
    written: dict[str, Any] = _message_writer(message.DESCRIPTOR)(message)
    return written


@cache
def _message_writer(descriptor: Descriptor) -> Write:
    rows: list[tuple[str, str, bool, Write, Any]] = []

    def write(message: Any) -> dict[str, Any]:
        if not rows:  # made when first needed: a message may hold itself
            rows.extend(_row(field) for field in sorted(descriptor.fields, key=lambda field: field.number))
        written: dict[str, Any] = {}
        unset: dict[str, Any] = {}
        for name, json_name, has_presence, write_one, at_zero in rows:
            if has_presence:
                if message.HasField(name):
                    written[json_name] = write_one(getattr(message, name))
                continue
            value = getattr(message, name)
            if value:
                written[json_name] = write_one(value)
            else:
                unset[json_name] = at_zero if isinstance(at_zero, str | int | float) else type(at_zero)()
        return written | unset if unset else written

    return write


def _row(field: FieldDescriptor) -> tuple[str, str, bool, Write, Any]:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        write_value = _one_writer(inner.fields_by_name["value"])
        return (
            field.name,
            field.json_name,
            False,
            lambda values: {name: write_value(value) for name, value in values.items()},
            {},
        )
    write_one = _one_writer(field)
    if field.is_repeated:
        return field.name, field.json_name, False, lambda values: [write_one(each) for each in values], []
    at_zero = None if field.has_presence else write_one(field.default_value)
    return field.name, field.json_name, field.has_presence, write_one, at_zero


def _one_writer(field: FieldDescriptor) -> Write:
    if field.message_type is not None:
        if field.message_type.full_name in _AS_TEXT:
            return lambda message: message.ToJsonString()
        return _message_writer(field.message_type)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, number)
    if field.type == _Field.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode("ascii")
    if field.cpp_type in _LONG:
        return str
    return _number if field.cpp_type == _Field.CPPTYPE_DOUBLE else _same


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _same(value: Any) -> Any:
    return value
