"""What JSON may say of a message, judged field by field before the protobuf library makes the message of it.

The library takes the last of a field that is given by both of its names; it skips what is no base64, so that a payload
sent as plain text would be stored as other bytes than its sender meant; it reads +99:99 as an offset of a time; and its
refusals are in words of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from fila_http.problems import Problem, invalid

SHOWN_MAX = 40
"""Characters of a wrong value that its refusal repeats."""

AS_THEY_ARE = "to send bytes as they are, POST one message with another content type than application/json"
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}|[A-Za-z0-9_-]*={0,2}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_ZONE = re.compile(r"[0-9](Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])\Z")
"""How a time ends, behind a digit of its seconds; the library takes offsets that no clock has."""
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")

_Field = FieldDescriptor
_BOUNDS = {
    kind: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    for bits, signed, kinds in (
        (32, True, (_Field.TYPE_INT32, _Field.TYPE_SINT32, _Field.TYPE_SFIXED32)),
        (32, False, (_Field.TYPE_UINT32, _Field.TYPE_FIXED32)),
        (64, True, (_Field.TYPE_INT64, _Field.TYPE_SINT64, _Field.TYPE_SFIXED64)),
        (64, False, (_Field.TYPE_UINT64, _Field.TYPE_FIXED64)),
    )
    for kind in kinds
}
WHOLE_NUMBERS = frozenset(_BOUNDS)
"""The types of fields that hold one."""
_AS_TEXT: dict[str, tuple[Callable[[], Any], str]] = {
    "google.protobuf.Timestamp": (Timestamp, "a time like 2026-11-20T14:00:00Z"),
    "google.protobuf.FieldMask": (FieldMask, "names of fields like maxAttempts,retry.baseMs"),
}
"""Messages that JSON has as a text, and what it must be."""


def check(value: object, descriptor: Descriptor, where: str = "") -> None:
    """Raises Problem where `value` is no JSON of the message; `where` is the message's own place in the request."""
    if not isinstance(value, dict):
        raise _wrong(where or "the body", "an object, like {}", value)
    known = _fields_of(descriptor)
    parts: set[str] = set()
    for name, given in value.items():
        field = known.get(name)
        if field is None:
            names = ", ".join(each.json_name for each in descriptor.fields) or "no fields"
            raise invalid(
                f"there is no field {name[:64]!r}{f' in {where}' if where else ''}; there are {names}"
            )
        place = f"{where}.{field.json_name}" if where else field.json_name
        if name != field.json_name and field.json_name in value:
            raise invalid(f"{place} is given twice, as {name} and as {field.json_name}; leave one out")
        if given is None:
            continue
        if (choice := field.containing_oneof) is not None:
            if choice.name in parts:
                names = " or ".join(each.json_name for each in choice.fields)
                raise invalid(f"of {names} one may be given; leave the others out")
            parts.add(choice.name)
        _check_field(place, field, given)


@cache
def _fields_of(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    return {name: field for field in descriptor.fields for name in (field.name, field.json_name)}


def _check_field(place: str, field: FieldDescriptor, given: object) -> None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        if not isinstance(given, dict):
            raise _wrong(place, "an object, like {}", given)
        of_value = inner.fields_by_name["value"]
        for name, each in given.items():
            _check_one(f"{place}[{name[:SHOWN_MAX]!r}]", of_value, each)
    elif field.is_repeated:
        if not isinstance(given, list):
            raise _wrong(place, "a list, like []", given)
        for index, each in enumerate(given):
            _check_one(f"{place}[{index}]", field, each)
    else:
        _check_one(place, field, given)


def _check_one(place: str, field: FieldDescriptor, given: object) -> None:
    if field.message_type is None:
        _check_scalar(place, field, given)
        return
    made, expected = _AS_TEXT.get(field.message_type.full_name, (None, ""))
    if made is None:
        check(given, field.message_type, place)
    elif not isinstance(given, str) or not _reads(made(), given):
        raise _wrong(place, expected, given)


def _check_scalar(place: str, field: FieldDescriptor, given: object) -> None:
    kind = field.type
    if kind == _Field.TYPE_STRING:
        fits, expected = isinstance(given, str), "text"
    elif kind == _Field.TYPE_BYTES:
        fits = isinstance(given, str) and _BASE64.fullmatch(given) is not None
        expected = f"base64 text ({AS_THEY_ARE})"
    elif kind == _Field.TYPE_BOOL:
        fits, expected = isinstance(given, bool), "true or false"
    elif kind == _Field.TYPE_ENUM:
        assert field.enum_type is not None
        values = field.enum_type.values_by_name
        fits = (isinstance(given, str) and given in values) or _whole(given) is not None
        expected = f"one of {', '.join(values)}"
    elif (bounds := _BOUNDS.get(kind)) is not None:
        number = _whole(given)
        fits = number is not None and bounds[0] <= number <= bounds[1]
        expected = f"a whole number from {bounds[0]} to {bounds[1]}"
    else:
        fits, expected = _is_number(given), "a number"
    if not fits:
        raise _wrong(place, expected, given)


def _reads(message: Any, text: str) -> bool:
    if isinstance(message, Timestamp) and not _ZONE.search(text):
        return False
    try:
        message.FromJsonString(text)
    except (ValueError, OverflowError):
        return False
    return True


def _whole(given: object) -> int | None:
    """The number that JSON's number or text is, if it is whole."""
    if isinstance(given, str) and not _WHOLE.fullmatch(given):
        if not _NUMBER.fullmatch(given):
            return None
        given = float(given)
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    if isinstance(given, float) and not given.is_integer():
        return None
    return int(given)


def _is_number(given: object) -> bool:
    if isinstance(given, str):
        return given in _NO_NUMBERS or bool(_NUMBER.fullmatch(given))
    return isinstance(given, int | float) and not isinstance(given, bool)


def _wrong(place: str, expected: str, given: object) -> Problem:
    return invalid(f"{place} must be {expected}, got {_shown(given)}")


def _shown(given: object) -> str:
    if isinstance(given, dict):
        return "an object"
    if isinstance(given, list):
        return "a list"
    if isinstance(given, str) and len(given) > SHOWN_MAX:
        given = f"{given[:SHOWN_MAX]}..."
    return orjson.dumps(given).decode()
