"""The same document in OpenAPI 3.0, which generators of clients ask for that do not know 3.1 yet."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

VERSION = "3.0.3"
NEW_IN_3_1 = frozenset(
    {"const", "examples", "prefixItems", "$defs", "if", "then", "else", "contentMediaType"}
)
"""Words of a schema that 3.0 does not have, and that nothing here says in another way."""


def as_3_0(document: Json) -> Json:
    """The document in 3.0; ValueError where it has no words for what 3.1 says."""
    told: Json = _converted({**document, "openapi": VERSION})
    return told


def _converted(part: Any) -> Any:
    if isinstance(part, list):
        return [_converted(each) for each in part]
    if not isinstance(part, dict):
        return part
    told = {name: _converted(each) for name, each in part.items()}
    if "$ref" in told and len(told) > 1:
        # Nothing may stand beside a reference.
        return {
            **{name: each for name, each in told.items() if name != "$ref"},
            "allOf": [{"$ref": told["$ref"]}],
        }
    if told.get("contentEncoding") == "base64":
        # The format says all that the pattern does.
        del told["contentEncoding"], told["pattern"]
        told["format"] = "byte"
    if isinstance(told.get("type"), list):
        _take_text(told)
    if told.keys() & NEW_IN_3_1 and "type" in told:
        raise ValueError(f"OpenAPI 3.0 has no {sorted(told.keys() & NEW_IN_3_1)}")
    return told


def _take_text(schema: Json) -> None:
    """Of numbers that are texts or numbers, the text: so they are answered, and so they are taken."""
    if schema["type"] != ["string", "integer"]:
        raise ValueError(f"OpenAPI 3.0 has one type for a value, and nothing chooses among {schema['type']}")
    schema["type"] = "string"
    for bound in ("minimum", "maximum"):
        schema.pop(bound, None)
