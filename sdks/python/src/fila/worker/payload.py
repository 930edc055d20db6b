"""From a message's bytes to what a handler takes, by the annotation of its first parameter.

bytes                                   as they came
str                                     UTF-8
dict, list, Any, no annotation          JSON
a pydantic model                        pydantic
a msgspec.Struct, dataclass, TypedDict  msgspec
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import typing
from collections.abc import Callable
from typing import Any, get_origin

Decode = Callable[[bytes], Any]


class BadHandler(TypeError, ValueError):
    """A handler that can't be run as it was registered; the text says what to change."""


def payload_type(handler: Callable[..., Any], *, batch: bool) -> Any:
    """Return the annotation of the handler's first parameter; of a batch, of one element of its list."""
    parameters = list(inspect.signature(handler).parameters.values())
    if not parameters:
        raise BadHandler(f"{handler.__name__} must take the payload as its first parameter")
    hint = typing.get_type_hints(handler).get(parameters[0].name, Any)
    if not batch or hint is Any:
        return hint
    arguments = typing.get_args(hint)
    if get_origin(hint) is None or len(arguments) != 1:
        raise BadHandler(
            f"{handler.__name__} handles batches: annotate its first parameter as list[...], not {hint}"
        )
    return arguments[0]


def wants_message(handler: Callable[..., Any]) -> bool:
    """Whether a handler has a second parameter, for the message itself."""
    return len(inspect.signature(handler).parameters) > 1


def decoder(wanted: Any, handler: str = "the handler") -> Decode:
    """Return what decodes into a type. Raises BadHandler for one that nothing installed can decode into."""
    if wanted is bytes:
        return lambda payload: payload
    if wanted is str:
        return lambda payload: payload.decode()
    origin = get_origin(wanted) or wanted
    if origin in (Any, dict, list):
        # Plain ones need no library; with arguments (dict[str, int]) msgspec checks them where it is installed.
        return _by_msgspec(wanted) if get_origin(wanted) and _has("msgspec") else json.loads
    if hasattr(wanted, "model_validate_json"):
        decode: Decode = wanted.model_validate_json
        return decode
    if _has("msgspec") and _is_structured(wanted):
        return _by_msgspec(wanted)
    raise BadHandler(
        f"{handler} can't be given a payload of type {getattr(wanted, '__name__', wanted)}: take bytes, str, dict, a "
        "pydantic model or (with msgspec installed: pip install msgspec) a dataclass, or pass decode=..."
    )


def _is_structured(wanted: Any) -> bool:
    import msgspec

    is_struct = isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)
    return (
        is_struct
        or dataclasses.is_dataclass(wanted)
        or typing.is_typeddict(wanted)
        or bool(get_origin(wanted))
    )


def _by_msgspec(wanted: Any) -> Decode:
    import msgspec

    decode: Decode = msgspec.json.Decoder(wanted).decode
    return decode


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
