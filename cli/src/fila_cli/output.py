"""Three ways to show an answer: a table for people, json and yaml for programs.

json and yaml carry the fields of the wire contract under their own names. Two departures
from protobuf's JSON make them pleasant in a shell: 64-bit numbers are numbers, and a
payload that is UTF-8 is text (`payload`), any other is `payload_base64`.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.message import Message

Cell = str | int | float


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def table(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Columns two spaces apart; a column of numbers stands right-aligned under its heading."""
    listed = [list(row) for row in rows]
    right = [
        bool(listed) and all(isinstance(row[i], int | float) for row in listed) for i in range(len(headings))
    ]
    texts = [[str(heading) for heading in headings], *([_cell(cell) for cell in row] for row in listed)]
    widths = [max(len(line[i]) for line in texts) for i in range(len(headings))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in texts
    )


def facts(pairs: Iterable[tuple[str, Cell]]) -> str:
    """One fact a line, values in one column."""
    listed = list(pairs)
    width = max(len(name) for name, _ in listed)
    return "\n".join(f"{name.ljust(width)}  {_cell(value)}".rstrip() for name, value in listed)


def as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def as_json_line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def as_yaml(value: object) -> str:
    """YAML in its plainest shape; text is quoted as JSON quotes it, which YAML reads the same."""
    return "\n".join(_yaml_lines(value))


def show(format_: Format, value: object, as_table: str) -> None:
    """Print one answer in the format asked for."""
    if format_ is Format.JSON:
        print(as_json(value))
    elif format_ is Format.YAML:
        print(as_yaml(value))
    elif as_table:
        print(as_table)


def show_streamed(format_: Format, value: object, as_text: str) -> None:
    """Print one of many answers: a line of json each, or a yaml document each."""
    if format_ is Format.JSON:
        print(as_json_line(value))
    elif format_ is Format.YAML:
        print("---\n" + as_yaml(value))
    else:
        print(as_text)
    sys.stdout.flush()


def to_dict(message: Message) -> dict[str, Any]:
    """A protobuf message under its own field names, defaults included, absent parts left out."""
    fields: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.type == field.TYPE_BYTES:
            fields.update(_payload(field.name, value))
        else:
            fields[field.name] = _field(field, value)
    return fields


def _field(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return {key: value[key] for key in sorted(value)}
    if field.is_repeated:
        return [_single(field, item) for item in value]
    return _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        is_moment = field.message_type.full_name == "google.protobuf.Timestamp"
        return value.ToJsonString() if is_moment else to_dict(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return value


def _payload(name: str, payload: bytes) -> dict[str, str]:
    try:
        return {name: payload.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(payload).decode()}


def _cell(value: Cell) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _yaml_lines(value: object, indent: str = "") -> Iterable[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _yaml_entry(f"{indent}{_yaml_key(key)}:", item, indent + "  ")
    elif isinstance(value, list) and value:
        for item in value:
            lines = list(_yaml_lines(item, indent + "  "))
            # The first line of an item stands beside its dash.
            yield f"{indent}- {lines[0].lstrip()}"
            yield from lines[1:]
    else:
        yield indent + json.dumps(value, ensure_ascii=False)


def _yaml_entry(head: str, item: object, indent: str) -> Iterable[str]:
    if isinstance(item, dict | list) and item:
        yield head
        yield from _yaml_lines(item, indent)
    else:
        yield f"{head} {json.dumps(item, ensure_ascii=False)}"


def _yaml_key(key: str) -> str:
    return key if key.isidentifier() else json.dumps(key, ensure_ascii=False)
