"""What JSON may say of a message, judged field by field; of what fits it makes the arguments of the message's class.

The protobuf library's own reader takes the last of a field that is given by both of its names; it skips what is no
base64, so that a payload sent as plain text would be stored as other bytes than its sender meant; it reads +99:99 as an
offset of a time; its refusals are in words of Python; and it costs several times as much, field by field in Python.
"""

from __future__ import annotations

import binascii
import contextlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from fila_http.problems import Problem, invalid

Read = Callable[[Any, "Reading"], Any]
"""From what JSON has to what protobuf takes. Raises Misfit."""

SHOWN_MAX = 40
"""Characters of a wrong value that its refusal repeats."""

_FROM_URLS = bytes.maketrans(b"-_", b"+/")
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
_NARROWER = {
    "fila.v1.EnqueueOptions.priority": (0, 3, ", or left out, and the queue's priority_header decides"),
}
"""By field: bounds of its own, narrower than those of its type, and what else to do."""
_AS_TEXT: dict[str, tuple[Callable[[], Any], str]] = {
    "google.protobuf.Timestamp": (Timestamp, "a time like 2026-11-20T14:00:00Z"),
    "google.protobuf.FieldMask": (FieldMask, "names of fields like maxAttempts,retry.baseMs"),
}
"""Messages that JSON has as a text, and what it must be."""


class Misfit(Exception):
    """What does not fit; `say` makes the sentence of the place where it stands, which grows on the way out."""

    def __init__(self, say: Callable[[str], str], reason: str = "INVALID_FIELD") -> None:
        super().__init__()
        self._say = say
        self._reason = reason
        self._place = ""

    def within(self, step: str) -> Misfit:
        """It stands in that field, or at that index, of what is around."""
        dot = "." if self._place and not self._place.startswith("[") else ""
        self._place = f"{step}{dot}{self._place}"
        return self

    def problem(self) -> Problem:
        """The refusal."""
        return invalid(self._say(self._place), reason=self._reason)


class Reading:
    """One message while it is read."""

    __slots__ = ("items_max", "members")

    def __init__(self, items_max: int) -> None:
        self.items_max = items_max
        """Members of one list or map."""

        self.members = 0
        """Of all objects that were read."""

    def fields_of(self, value: object, descriptor: Descriptor) -> dict[str, Any]:
        """The message's fields as its class takes them. Raises Problem; ValueError for what only protobuf refuses."""
        try:
            fields: dict[str, Any] = _message_reader(descriptor)(value, self)
        except Misfit as misfit:
            raise misfit.problem() from None
        return fields


@cache
def _message_reader(descriptor: Descriptor) -> Read:
    known = {name: field for field in descriptor.fields for name in (field.name, field.json_name)}
    reads: dict[str, Read] = {}  # made when first needed: a message may hold itself

    def read(value: object, reading: Reading) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong("an object, like {}", value)
        reading.members += len(value)
        found: dict[str, Any] = {}
        parts: set[str] = set()
        for name, given in value.items():
            field = known.get(name)
            if field is None:
                raise _unknown(name, descriptor)
            if name != field.json_name and field.json_name in value:
                raise _twice(name, field)
            if given is None:
                continue
            if field.containing_oneof is not None:
                _note_part(field, parts)
            reader = reads.get(field.name)
            if reader is None:
                reader = reads[field.name] = _reader_of(field)
            try:
                found[field.name] = reader(given, reading)
            except Misfit as misfit:
                raise misfit.within(field.json_name) from None
        return found

    return read


def _unknown(name: str, descriptor: Descriptor) -> Misfit:
    names = ", ".join(each.json_name for each in descriptor.fields) or "no fields"
    return Misfit(
        lambda where: f"there is no field {name[:64]!r}{f' in {where}' if where else ''}; there are {names}"
    )


def _twice(name: str, field: FieldDescriptor) -> Misfit:
    twice = Misfit(lambda place: f"{place} is given twice, as {name} and as {field.json_name}; leave one out")
    return twice.within(field.json_name)


def _note_part(field: FieldDescriptor, parts: set[str]) -> None:
    choice: Any = field.containing_oneof
    if choice.name in parts:
        names = " or ".join(each.json_name for each in choice.fields)
        raise Misfit(lambda _: f"of {names} one may be given; leave the others out")
    parts.add(choice.name)


def _reader_of(field: FieldDescriptor) -> Read:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return _map_reader(_one_reader(inner.fields_by_name["value"]))
    return _list_reader(_one_reader(field)) if field.is_repeated else _one_reader(field)


def _map_reader(read_one: Read) -> Read:
    def read(given: object, reading: Reading) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise _wrong("an object, like {}", given)
        _check_count(len(given), "members", reading.items_max)
        reading.members += len(given)
        found: dict[str, Any] = {}
        for name, each in given.items():
            try:
                found[name] = read_one(each, reading)
            except Misfit as misfit:
                raise misfit.within(f"[{name[:SHOWN_MAX]!r}]") from None
        return found

    return read


def _list_reader(read_one: Read) -> Read:
    def read(given: object, reading: Reading) -> list[Any]:
        if not isinstance(given, list):
            raise _wrong("a list, like []", given)
        _check_count(len(given), "items", reading.items_max)
        found: list[Any] = []
        for each in given:
            try:
                found.append(read_one(each, reading))
            except Misfit as misfit:
                raise misfit.within(f"[{len(found)}]") from None
        return found

    return read


def _check_count(count: int, what: str, most: int) -> None:
    if count > most:
        raise Misfit(
            lambda place: (
                f"{place} may have {most:,} {what}, and has {count:,}; send fewer at a time, or start the gateway "
                "with a larger --batch-messages-max where the broker takes more"
            ),
            "LIMIT_EXCEEDED",
        )


def _one_reader(field: FieldDescriptor) -> Read:
    if field.message_type is None:
        return _scalar_reader(field)
    made, expected = _AS_TEXT.get(field.message_type.full_name, (None, ""))
    if made is None:
        return _message_reader(field.message_type)

    def read(given: object, _: Reading) -> object:
        message: Any = made()
        if not isinstance(given, str) or not _reads(message, given):
            raise _wrong(expected, given)
        return message

    return read


def _scalar_reader(field: FieldDescriptor) -> Read:
    kind = field.type
    if kind == _Field.TYPE_STRING:
        return _text
    if kind == _Field.TYPE_BYTES:
        return _bytes
    if kind == _Field.TYPE_BOOL:
        return _truth
    if kind == _Field.TYPE_ENUM:
        assert field.enum_type is not None
        return _enum_reader({name: value.number for name, value in field.enum_type.values_by_name.items()})
    if (bounds := _BOUNDS.get(kind)) is not None:
        return _whole_reader(*_NARROWER.get(field.full_name, bounds))
    return _number


def _text(given: object, _: Reading) -> str:
    if not isinstance(given, str):
        raise _wrong("text", given)
    return given


def _bytes(given: object, _: Reading) -> bytes:
    if isinstance(given, str):
        with contextlib.suppress(ValueError):  # no ASCII, or no base64
            return _from_base64(given.encode("ascii"))
    raise _wrong("base64 text", given)


def _from_base64(text: bytes) -> bytes:
    """Of either alphabet, with its padding or without."""
    if b"-" in text or b"_" in text:
        text = text.translate(_FROM_URLS) if b"+" not in text and b"/" not in text else b"?"
    bare = text.rstrip(b"=")
    if len(text) - len(bare) > 2:
        raise ValueError("more padding than there ever is")
    return binascii.a2b_base64(bare + b"=="[: -len(bare) % 4], strict_mode=True)


def _truth(given: object, _: Reading) -> bool:
    if not isinstance(given, bool):
        raise _wrong("true or false", given)
    return given


def _enum_reader(values: dict[str, int]) -> Read:
    def read(given: object, _: Reading) -> int:
        number = values.get(given) if isinstance(given, str) else None
        if number is None:
            number = _whole(given)
        if number is None:
            raise _wrong(f"one of {', '.join(values)}", given)
        return number

    return read


def _whole_reader(least: int, most: int, otherwise: str = "") -> Read:
    def read(given: object, _: Reading) -> int:
        number = _whole(given)
        if number is None or not least <= number <= most:
            raise _wrong(f"a whole number from {least} to {most}{otherwise}", given)
        return number

    return read


def _number(given: object, _: Reading) -> float:
    if isinstance(given, str) and (given in _NO_NUMBERS or _NUMBER.fullmatch(given)):
        return float(given)
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise _wrong("a number", given)
    return given


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


def _wrong(expected: str, given: object) -> Misfit:
    return Misfit(lambda place: f"{place or 'the body'} must be {expected}, got {_shown(given)}")


def _shown(given: object) -> str:
    if isinstance(given, dict):
        return "an object"
    if isinstance(given, list):
        return "a list"
    if isinstance(given, str) and len(given) > SHOWN_MAX:
        given = f"{given[:SHOWN_MAX]}..."
    return orjson.dumps(given).decode()
