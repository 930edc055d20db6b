"""Between protobuf messages and their JSON, by the protobuf library, and stricter than it (judged_json.py)."""

from __future__ import annotations

import json
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from fila_http import judged_json
from fila_http.problems import Problem, invalid

DEPTH_MAX = 20
"""No request nests nearly so deep."""


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
    try:
        _TWICE.decode(body.decode())
    except RecursionError:
        raise invalid(f"the body nests deeper than {DEPTH_MAX} objects", reason="INVALID_JSON") from None
    return value


def _check_once(members: list[tuple[str, Any]]) -> None:
    if len(members) == len(names := {name for name, _ in members}):
        return
    for name, _ in members:
        if name not in names:
            raise invalid(
                f"the body gives {name[:64]!r} twice in one object; leave one out: which one counts differs by reader"
            )
        names.remove(name)


_TWICE = json.JSONDecoder(object_pairs_hook=_check_once, parse_int=str, parse_float=str)
"""orjson takes the last of two members with one name, and a proxy before the door may have judged the first."""


def into(message: Message, value: dict[str, Any], where: str = "") -> None:
    """Set the message's fields from JSON; `where` is put before a refusal. Raises Problem."""
    descriptor: Any = message.DESCRIPTOR
    try:
        judged_json.check(value, descriptor)
        ParseDict(value, message, max_recursion_depth=DEPTH_MAX)
    except Problem as problem:
        raise invalid(f"{where}: {problem.detail}") if where else problem from None
    except (ParseError, ValueError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        # What was judged fits; whatever the library finds all the same is no mistake of the door's.
        raise invalid(f"{where or 'the body'}: {error}") from None


def as_json(message: Message) -> dict[str, Any]:
    """The message as JSON: fields at zero too, messages only where they are set."""
    written: dict[str, Any] = MessageToDict(message, always_print_fields_with_no_presence=True)
    return written


def dumps(message: Message) -> bytes:
    """The message as JSON's bytes."""
    return orjson.dumps(as_json(message))
