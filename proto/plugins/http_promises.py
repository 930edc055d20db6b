"""What the HTTP API has ever promised, a line a promise, so that /v1 only grows.

`make gen` adds the lines of what is new. A line whose promise the protos and http.yaml do not keep any more fails it,
and `make check` with it: a route, a parameter or a field is taken away, or its type changes, in a /v2 alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from http_rows import PAYLOAD, BadRow, Row

HEADER = (
    "# Generated from proto/ by `make gen`; do not edit. What the HTTP API has ever promised: lines are added,\n"
    "# and none is taken away while the paths begin with /v1.\n"
)


def promises(rows: list[Row]) -> list[str]:
    """Every route with where its fields stand, and every field that may come or go in a body."""
    lines: set[str] = set()
    messages: dict[str, Descriptor] = {}
    for row in rows:
        lines.add(f"{row.verb} {row.url} {row.name}")
        lines |= {f"{row.verb} {row.url} query {each.json_name} {type_of(each)}" for each in row.in_query}
        lines |= {f"{row.verb} {row.url} body {each.json_name} {type_of(each)}" for each in row.in_body}
        if row.body or row.raw:
            lines.add(f"{row.verb} {row.url} body is {row.body or PAYLOAD}")
        for message in (row.request, row.response):
            _gather(message, messages)
    for name, message in messages.items():
        lines |= {f"{name}.{each.json_name} {type_of(each)}" for each in message.fields}
        lines |= set(_values(message))
    return sorted(lines)


def _gather(message: Descriptor, found: dict[str, Descriptor]) -> None:
    if message.full_name in found or message.full_name.startswith("google."):
        return
    found[message.full_name] = message
    for each in message.fields:
        if each.message_type is not None:
            _gather(each.message_type, found)


def _values(message: Descriptor) -> Iterator[str]:
    for each in message.fields:
        if each.enum_type is not None:
            for value in each.enum_type.values:
                yield f"{each.enum_type.full_name} {value.name}"


def type_of(field: FieldDescriptor) -> str:
    """The field's type in a word or two."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        return f"map of {type_of(key)} to {type_of(value)}"
    named = field.message_type or field.enum_type
    word = named.full_name if named is not None else _WORDS[field.type]
    return f"list of {word}" if field.is_repeated else word


_WORDS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


def grown(file: Path, rows: list[Row]) -> str:
    """The file's text with what is new. Raises BadRow where a promise is not kept."""
    made = promises(rows)
    kept = (
        [line for line in file.read_text().splitlines() if not line.startswith("#")] if file.exists() else []
    )
    if broken := sorted(set(kept) - set(made)):
        raise BadRow(
            f"/v1 only grows, and this was taken away or changed: {'; '.join(broken[:5])}"
            f"{f' and {len(broken) - 5} more' if len(broken) > 5 else ''}. Put it back, or make a /v2 beside it"
        )
    return HEADER + "".join(f"{line}\n" for line in made)
