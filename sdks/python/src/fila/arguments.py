"""Arguments of a wrong type or out of range, told by their name where they were given.

protobuf says "bad argument type for built-in operation" and leaves the caller to guess which. Here a request
that cannot be made is looked at again, field by field; one that can be made costs nothing more. What would
only come to light later, on a task that serves others too, is looked at before it gets there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

MessageT = TypeVar("MessageT", bound=Message)
Field = Any
"""A FieldDescriptor; its stubs have two classes of that name, and miss part of what it can do."""

U64_MAX = 2**64 - 1
_MOST_BY_INTEGER = {
    FieldDescriptor.CPPTYPE_UINT32: 2**32 - 1,
    FieldDescriptor.CPPTYPE_UINT64: U64_MAX,
}
_SHOWN_MAX = 60


def make(kind: type[MessageT], **fields: Any) -> MessageT:
    """Return a message of these fields. TypeError and ValueError name the one that is wrong."""
    try:
        return kind(**fields)
    except (TypeError, ValueError) as failure:
        raise _first_wrong(kind, fields, "") or failure from None


def require_text(name: str, value: object) -> None:
    """Refuse what is no str; for arguments that are sent later, or never by themselves."""
    if not isinstance(value, str):
        raise _wrong_type(name, "str", value)


def require_texts(name: str, values: object) -> None:
    """Refuse what is no list or tuple of str; a str alone would be read letter by letter."""
    if not isinstance(values, (list, tuple)):
        raise _wrong_type(name, "list of str", values)
    for value in values:
        require_text(name, value)


def require_count(name: str, value: object) -> None:
    """Refuse what asks for no message at all: on the wire 0 means that nothing was said."""
    most = _MOST_BY_INTEGER[FieldDescriptor.CPPTYPE_UINT32]
    if not isinstance(value, int):
        raise _wrong_type(name, "int", value)
    if not 1 <= value <= most:
        raise ValueError(f"{name} must be from 1 to {most}, got {value}")


def require_number(name: str, value: object) -> None:
    """Refuse what is no unsigned number of 64 bits."""
    if not isinstance(value, int):
        raise _wrong_type(name, "int", value)
    if not 0 <= value <= U64_MAX:
        raise ValueError(f"{name} must be from 0 to {U64_MAX}, got {value}")


def at_index(failure: TypeError | ValueError, name: str, index: int) -> TypeError | ValueError:
    """Return the failure of one of many, with its place."""
    kind = TypeError if isinstance(failure, TypeError) else ValueError
    return kind(f"{name}[{index}]: {failure}")


def _wrong_type(name: str, wanted: str, value: object) -> TypeError:
    return TypeError(f"{name} must be {wanted}, got {type(value).__name__}")


def _first_wrong(
    kind: type[Message], fields: Mapping[str, Any], before: str
) -> TypeError | ValueError | None:
    for name, value in fields.items():
        try:
            kind(**{name: value})
        except (TypeError, ValueError):
            field = kind.DESCRIPTOR.fields_by_name.get(name)
            return None if field is None else _wrong_field(field, before + name, value)
    return None


def _wrong_field(field: Field, name: str, value: Any) -> TypeError | ValueError | None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return _wrong_map(inner.fields_by_name["key"], inner.fields_by_name["value"], name, value)
    if inner is not None:
        is_mapping = isinstance(value, Mapping)
        return _first_wrong(inner._concrete_class, value, f"{name}.") if is_mapping else None
    if not _is_repeated(field):
        return _wrong_scalar(field, name, value)
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return _wrong_type(name, "a sequence", value)
    for i, item in enumerate(value):
        wrong = _wrong_scalar(field, f"{name}[{i}]", item)
        if wrong is not None:
            return wrong
    return None


def _is_repeated(field: Field) -> bool:
    # Older protobufs have a label instead, which newer ones have given up.
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _wrong_map(
    key_field: Field, value_field: Field, name: str, entries: Any
) -> TypeError | ValueError | None:
    if not isinstance(entries, Mapping):
        return _wrong_type(name, "a mapping", entries)
    for key, value in entries.items():
        wrong = _wrong_scalar(key_field, f"a key of {name}", key)
        wrong = wrong or _wrong_scalar(value_field, f"{name}[{_shown(key)}]", value)
        if wrong is not None:
            return wrong
    return None


def _wrong_scalar(field: Field, name: str, value: Any) -> TypeError | ValueError | None:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return None if isinstance(value, bytes) else _wrong_type(name, "bytes", value)
    if field.type == FieldDescriptor.TYPE_STRING:
        if not isinstance(value, str):
            return _wrong_type(name, "str", value)
        try:
            value.encode()
        except UnicodeEncodeError:
            return ValueError(f"{name} must be str that can be written as UTF-8, got {_shown(value)}")
    most = _MOST_BY_INTEGER.get(field.cpp_type)
    if most is not None:
        if not isinstance(value, int):
            return _wrong_type(name, "int", value)
        if not 0 <= value <= most:
            return ValueError(f"{name} must be from 0 to {most}, got {value}")
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE and not isinstance(value, (int, float)):
        return _wrong_type(name, "a number", value)
    return None


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN_MAX else shown[: _SHOWN_MAX - 3] + "..."
