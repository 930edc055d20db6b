"""Between protobuf messages and their JSON, by the protobuf library, and stricter than it: base64 is judged.

The library's own decoder of base64 skips what does not belong to it, so that a payload sent as plain text would be
stored as other bytes than its sender meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from fila_http.problems import invalid

DEPTH_MAX = 20
"""No request nests nearly so deep."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}|[A-Za-z0-9_-]*={0,2}")
_WITHIN = re.compile(r"Failed to parse (\w+) field: ")
_NO_FIELD = re.compile(
    r'Message type "[\w.]+" has no field named "(.*?)" at "(?:\w+\.?)(.*?)"\.\s*Available', re.DOTALL
)


def loads(body: bytes) -> dict[str, Any]:
    """The object in a body; an empty body is an empty one. Raises Problem."""
    if not body.strip():
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"the body is no JSON: {error}", reason="INVALID_JSON") from None
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object, like {}", reason="INVALID_JSON")
    return value


def into(message: Message, value: dict[str, Any], where: str = "the body") -> None:
    """Set the message's fields from JSON. Raises Problem."""
    _check_bytes(value, message.DESCRIPTOR)
    try:
        ParseDict(value, message, max_recursion_depth=DEPTH_MAX)
    except ParseError as error:
        raise invalid(f"{where}: {_sentence(str(error), message)}") from None
    except (ValueError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        raise invalid(f"{where}: {error}") from None


def as_json(message: Message) -> dict[str, Any]:
    """The message as JSON: fields at zero too, messages only where they are set."""
    written: dict[str, Any] = MessageToDict(message, always_print_fields_with_no_presence=True)
    return written


def dumps(message: Message) -> bytes:
    """The message as JSON's bytes."""
    return orjson.dumps(as_json(message))


def _sentence(said: str, message: Message) -> str:
    """The library's sentence, with the fields in front and without what it says of its own inside."""
    _WITHIN.findall(said)
    said = _WITHIN.sub("", said).rstrip(".")
    if unknown := _NO_FIELD.match(said):
        name, place = unknown[1], unknown[2]
        known = ", ".join(field.json_name for field in message.DESCRIPTOR.fields)
        return (
            f"there is no field {name!r} in {place}"
            if place
            else f"there is no field {name!r}; there are {known}"
        )
    return said


def _check_bytes(value: Any, descriptor: Any) -> None:
    for path in bytes_in(descriptor):
        for text in _at(value, path):
            if not isinstance(text, str) or not _BASE64.fullmatch(text):
                raise invalid(
                    f"{'.'.join(names[0] for names in path)} must be base64 text; to send bytes as they are, POST one "
                    "message with another content type than application/json"
                )


@cache
def bytes_in(descriptor: Descriptor) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Where a message's JSON may hold bytes: paths of the names, (in JSON, in the proto)."""
    return tuple(_bytes_in(descriptor, 0))


def _bytes_in(descriptor: Descriptor, depth: int) -> Iterator[tuple[tuple[str, str], ...]]:
    for field in descriptor.fields:
        step = (field.json_name, field.name)
        if field.type == FieldDescriptor.TYPE_BYTES:
            yield (step,)
        elif field.message_type is not None and depth < DEPTH_MAX:
            for rest in _bytes_in(field.message_type, depth + 1):
                yield (step, *rest)


def _at(value: Any, path: tuple[tuple[str, str], ...]) -> Iterator[Any]:
    for item in value if isinstance(value, list) else [value]:
        if not path:
            yield item
        elif isinstance(item, dict):
            for name in path[0]:
                if item.get(name) is not None:
                    yield from _at(item[name], path[1:])
                if path[0][0] == path[0][1]:
                    break
