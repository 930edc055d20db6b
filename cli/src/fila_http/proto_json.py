"""Between protobuf messages and their JSON: read as judged_json.py judges it, written by written_json.py."""

from __future__ import annotations

import json
from typing import Any

import orjson
from google.protobuf.message import Message

from fila_http import judged_json
from fila_http.problems import Problem, invalid, too_large
from fila_http.written_json import as_json

DEPTH_MAX = 20
"""No request nests nearly so deep."""


VALUES_A_MEMBER, OBJECTS_A_MEMBER = 20, 4
"""Of a batch each message may have so many values on the average, and so many objects, itself among them."""


def loads(body: bytes, items_max: int) -> dict[str, Any]:
    """The object in a body; an empty body is an empty one. Raises Problem."""
    if not body.strip():
        return {}
    _check_counts(body, items_max)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"the body is no JSON: {error}", reason="INVALID_JSON") from None
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object, like {}", reason="INVALID_JSON")
    return value


def _check_counts(body: bytes, items_max: int) -> None:
    """What a body of many values costs is memory and time, many times its bytes: so they are counted before."""
    if _are_few(body, items_max):
        return
    # What stands in texts is no value, and may look like many.
    plain = _without_escapes(body)
    are_texts_few = (
        plain.count(b'"') <= 4 * VALUES_A_MEMBER * items_max
    )  # each is a value, or the name of one
    if are_texts_few and _are_few(_outside_texts(plain), items_max):
        return
    raise too_large(
        f"the body may have {VALUES_A_MEMBER * items_max:,} values, {OBJECTS_A_MEMBER * items_max:,} of them objects, "
        "and has more; send smaller batches, or start the gateway with a larger --batch-messages-max where the broker "
        "takes more"
    )


def _are_few(text: bytes, items_max: int) -> bool:
    objects = text.count(b"{")
    if objects > OBJECTS_A_MEMBER * items_max:
        return False
    # Each value but the body itself is the first in something, or behind a comma.
    return text.count(b",") + text.count(b"[") + objects <= VALUES_A_MEMBER * items_max


def _without_escapes(body: bytes) -> bytes:
    return body.replace(b"\\\\", b"").replace(b'\\"', b"")


def _outside_texts(plain: bytes) -> bytes:
    return b"".join(plain.split(b'"')[::2])


def check_once(body: bytes, members: int) -> None:
    """Raises Problem where the body has more members than were read, `members`: then one was given twice.

    orjson takes the last of two with one name, and a proxy before the gateway may have judged the first.
    """
    if _outside_texts(_without_escapes(body)).count(b":") == members:
        return
    try:
        _TWICE.decode(body.decode())
    except RecursionError:
        raise invalid(f"the body nests deeper than {DEPTH_MAX} objects", reason="INVALID_JSON") from None


def _check_names(members: list[tuple[str, Any]]) -> None:
    if len(members) == len(names := {name for name, _ in members}):
        return
    for name, _ in members:
        if name not in names:
            raise invalid(
                f"the body gives {name[:64]!r} twice in one object; leave one out: which one counts differs by reader"
            )
        names.remove(name)


_TWICE = json.JSONDecoder(object_pairs_hook=_check_names, parse_int=str, parse_float=str)
"""Finds the name. It reads all of the body once more, in Python."""


def into(message: Message, value: dict[str, Any], items_max: int, where: str = "") -> int:
    """Set the message's fields from JSON, and return how many members it had, at every depth; `where` is put before a
    refusal. Raises Problem."""
    descriptor: Any = message.DESCRIPTOR
    reading = judged_json.Reading(items_max)
    try:
        message.MergeFrom(type(message)(**reading.fields_of(value, descriptor)))
    except Problem as problem:
        raise invalid(f"{where}: {problem.detail}", reason=problem.reason) if where else problem from None
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        # What was judged fits; whatever the library finds all the same is no mistake of the gateway's.
        raise invalid(f"{where or 'the body'}: {error}") from None
    return reading.members


def dumps(message: Message) -> bytes:
    """The message as JSON's bytes."""
    return orjson.dumps(as_json(message))
