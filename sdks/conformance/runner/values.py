"""From what a scenario says to what a driver is sent, and from its answers to what a scenario compares.

Payloads are base64 for drivers, bytes here, and text, `{repeat: ..}` or `{hex: ..}` in scenarios.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$([a-z_]\w*(?:\.[\w-]+)*)")
_NUMBER = re.compile(r"\{n(?:%(\d+))?\}")


class UnknownReference(Exception):
    """A scenario refers to an answer it never remembered."""


def look_up(path: str, known: Mapping[str, Any]) -> Any:
    """Return what `a.b.0` refers to."""
    first, *rest = path.split(".")
    if first not in known:
        raise UnknownReference(f"${first}; known are {', '.join(sorted(known))}")
    value = known[first]
    for part in rest:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def resolve(value: Any, known: Mapping[str, Any]) -> Any:
    """Return `value` with every `$reference` replaced; a text that is one reference becomes what it refers to."""
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole:
            return look_up(whole[1], known)
        return _REFERENCE.sub(lambda found: str(look_up(found[1], known)), value)
    if isinstance(value, dict):
        return {key: resolve(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, known) for item in value]
    return value


def to_bytes(payload: Any) -> bytes:
    """Return the bytes that a scenario's payload stands for."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode()
    if isinstance(payload, dict) and "repeat" in payload:
        text, count = payload["repeat"]
        return str(text).encode() * int(count)
    if isinstance(payload, dict) and "hex" in payload:
        return bytes.fromhex(payload["hex"])
    raise ValueError(f"a payload is a text, {{repeat: [text, n]}} or {{hex: ..}}, got {payload!r}")


def generate(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Return `count` messages whose texts have `{n}` and `{n%k}` replaced by the message's number."""

    def numbered(value: Any, n: int) -> Any:
        if isinstance(value, str):
            return _NUMBER.sub(lambda found: str(n % int(found[1]) if found[1] else n), value)
        if isinstance(value, dict):
            return {key: numbered(item, n) for key, item in value.items()}
        return value

    return [{key: numbered(value, n) for key, value in fields.items()} for n in range(count)]


def for_driver(arguments: Any) -> Any:
    """Return the arguments as they go over the line: messages generated, payloads in base64."""
    if isinstance(arguments, dict):
        if set(arguments) == {"generate"}:
            return for_driver(generate(**arguments["generate"]))
        return {
            key: base64.b64encode(to_bytes(value)).decode()
            if key == "payload" and value is not None
            else for_driver(value)
            for key, value in arguments.items()
        }
    if isinstance(arguments, list):
        return [for_driver(item) for item in arguments]
    return arguments


def from_driver(answer: Any) -> Any:
    """Return an answer with its payloads as bytes."""
    if isinstance(answer, dict):
        return {
            key: base64.b64decode(value)
            if key == "payload" and isinstance(value, str)
            else from_driver(value)
            for key, value in answer.items()
        }
    if isinstance(answer, list):
        return [from_driver(item) for item in answer]
    return answer
