"""Three ways to show an answer: a table for people, json and yaml for programs.

json and yaml carry the fields of the wire contract under their own names. Two departures
from protobuf's JSON make them pleasant in a shell: 64-bit numbers are numbers, and a
payload that is UTF-8 is text (`payload`), any other is `payload_base64`. What says nothing here is left out:
nodes and copies of a cluster, a tenant where there is none, words that are not known.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fila_cli.colors import Meaning, Meant, paint

if TYPE_CHECKING:
    from google.protobuf.message import Message

_VALUE_COLUMNS_MIN = 20
_SHORTENED_MIN = 8
_CUT_FROM = 20
"""Columns of a text that count more than another column; beyond them it is cut first."""
_CUT = "..."
_OF_A_CLUSTER = frozenset({"cluster_node_count", "leader_node_id", "replication_count"})
Cell = str | int | float | Meant


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    spare: Sequence[str] = (),
    cut: Sequence[str] = (),
) -> str:
    """Columns two spaces apart; a column of numbers stands right-aligned under its heading.

    On a terminal that is too narrow for them, columns of `spare` are left out, the first ones first; then texts in
    columns of `cut` are shortened, the longest first.
    """
    listed = [list(row) for row in rows]
    for heading in spare:
        if _table_width(headings, listed, cut) <= columns():
            break
        if heading not in headings:
            continue
        left_out = headings.index(heading)
        headings = [*headings[:left_out], *headings[left_out + 1 :]]
        listed = [row[:left_out] + row[left_out + 1 :] for row in listed]
    listed = _shortened(headings, listed, cut)
    right = [_is_column_of_numbers([row[i] for row in listed]) for i in range(len(headings))]
    cells: list[list[Cell]] = [[Meant(heading, Meaning.HEADING) for heading in headings], *listed]
    widths = [max(width_of(_cell(line[i])) for line in cells) for i in range(len(headings))]
    return "\n".join(_line(line, widths, right) for line in cells)


def _table_width(headings: Sequence[str], rows: Sequence[Sequence[Cell]], cut: Sequence[str] = ()) -> int:
    """Its columns, those of `cut` only as far as they are worth another's place."""
    widths = [max(width_of(_cell(line[i])) for line in (headings, *rows)) for i in range(len(headings))]
    needed = [
        min(width, _CUT_FROM) if heading in cut else width
        for heading, width in zip(headings, widths, strict=True)
    ]
    return sum(needed) + 2 * (len(needed) - 1)


def _shortened(headings: Sequence[str], rows: list[list[Cell]], cut: Sequence[str]) -> list[list[Cell]]:
    """The rows, so that the table fits, as far as columns of `cut` may be shortened for it."""
    too_wide = _table_width(headings, rows) - columns()
    places = [place for place, heading in enumerate(headings) if heading in cut]
    widths = {place: max(width_of(_cell(row[place])) for row in rows) for place in places if rows}
    while too_wide > 0 and widths:
        widest = max(widths, key=lambda place: widths[place])
        if widths[widest] <= max(_SHORTENED_MIN, len(headings[widest])):
            break
        widths[widest] -= 1
        too_wide -= 1
    return [
        [_cut(cell, widths[place]) if place in widths else cell for place, cell in enumerate(row)]
        for row in rows
    ]


def _cut(cell: Cell, width: int) -> Cell:
    text = _cell(cell)
    if width_of(text) <= width:
        return cell
    while width_of(text) > width - len(_CUT):
        text = text[:-1]
    return Meant(text + _CUT, cell.meaning) if isinstance(cell, Meant) else text + _CUT


def columns() -> int:
    """How wide the terminal is; what a program reads is never too wide."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def _line(cells: Sequence[Cell], widths: list[int], right: list[bool]) -> str:
    shown = ""
    owed = 0  # blanks before the next text; at the end of a line they are left out
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        text = _cell(cell)
        blanks = width - width_of(text)
        before = blanks if to_right else 0
        if text:
            shown += " " * (owed + before) + (paint(text, cell.meaning) if isinstance(cell, Meant) else text)
            owed = 0
        owed += 2 + blanks - (before if text else 0)
    return shown


def width_of(text: str) -> int:
    """How many columns a terminal gives it: two to an ideograph, none to an accent of its own."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


def titled(title: str, body: str) -> str:
    """A table or list under a line that says what it is; nothing for an empty body."""
    return f"{paint(title, Meaning.HEADING)}\n{body}" if body else ""


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 message`, `2 messages`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def more_wait(count: int) -> str:
    """What a list of keys leaves out."""
    return f"{count} more {'key waits' if count == 1 else 'keys wait'}"


def printable(text: str) -> str:
    """Text that cannot steer a terminal: control characters stand as `\\x1b`, as do those that turn text around."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == " " else _spelled(each) for each in text)


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def for_terminal(payload: bytes) -> bytes:
    """A payload as lines of text that cannot steer a terminal; line ends and tabs stay."""
    lines = payload.decode("utf-8", "backslashreplace").split("\n")
    return "\n".join("\t".join(printable(part) for part in line.split("\t")) for line in lines).encode()


def facts(pairs: Iterable[tuple[str, Cell]]) -> str:
    """One fact a line, values in one column; on a terminal, a long value goes on below in that column."""
    listed = list(pairs)
    width = max(len(name) for name, _ in listed)
    room = max(columns() - width - 2, _VALUE_COLUMNS_MIN)
    lines = []
    for name, value in listed:
        parts = (
            textwrap.wrap(_cell(value), room, break_on_hyphens=False)
            if len(_cell(value)) > room
            else [_cell(value)]
        )
        meaning = value.meaning if isinstance(value, Meant) else None
        for part, before in zip(parts, [name, *[""] * len(parts)], strict=False):
            shown = paint(part, meaning) if meaning else part
            lines.append(f"{before.ljust(width)}  {shown}".rstrip())
    return "\n".join(lines)


# Letters that json leaves as they are and a terminal obeys.
_OBEYED = {
    code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).translate(_OBEYED)


def as_json_line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).translate(_OBEYED)


def as_yaml(value: object) -> str:
    """YAML in its plainest shape; text is quoted as JSON quotes it, which YAML reads the same."""
    return "\n".join(_yaml_lines(value))


def show(format_: Format, value: object, as_table: str, *, empty: str = "") -> None:
    """Print one answer in the format asked for.

    Where there is nothing, a terminal is told so by `empty`, on stderr; a program that reads tables gets no line.
    """
    if format_ is Format.JSON:
        print(as_json(value))
    elif format_ is Format.YAML:
        print(as_yaml(value))
    elif as_table:
        print(as_table)
    elif empty and sys.stderr.isatty():
        print(printable(empty), file=sys.stderr)


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
    """A protobuf message under its own field names, defaults included, what is absent or says nothing left out."""
    fields: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if _says_nothing(field, value):
            continue
        if field.type == field.TYPE_BYTES:
            fields.update(_payload(field.name, value))
        else:
            fields[field.name] = _field(field, value)
    return fields


def _says_nothing(field: Any, value: Any) -> bool:
    if field.enum_type is not None and not field.is_repeated and value == 0:
        return str(field.enum_type.values_by_number[0].name).endswith("_UNSPECIFIED")
    return field.name in _OF_A_CLUSTER or (field.name == "tenant" and not value)


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


def _is_number(cell: Cell) -> bool:
    text = cell.text if isinstance(cell, Meant) else cell
    if isinstance(text, int | float):
        return True
    # A rate is written with its one decimal, in whatever row.
    return text.isdigit() if isinstance(cell, Meant) else "." in text and text.replace(".", "", 1).isdigit()


def _is_column_of_numbers(cells: Sequence[Cell]) -> bool:
    """A dash is a number that there is none of."""
    return any(map(_is_number, cells)) and all(_is_number(cell) or cell == "-" for cell in cells)


def _cell(value: Cell) -> str:
    if isinstance(value, Meant):
        return printable(value.text)
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


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
        yield indent + as_json_line(value)


def _yaml_entry(head: str, item: object, indent: str) -> Iterable[str]:
    if isinstance(item, dict | list) and item:
        yield head
        yield from _yaml_lines(item, indent)
    elif isinstance(item, str) and "\n" in item and _stands_as_block(item):
        yield f"{head} |{'' if item.endswith(chr(10)) else '-'}"
        yield from (indent + line if line else "" for line in item.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {as_json_line(item)}"


def _yaml_key(key: str) -> str:
    return key if key.isidentifier() else as_json_line(key)


def _stands_as_block(text: str) -> bool:
    """Scripts read best as they were written; a block may not begin with a blank or hold what yaml would change."""
    lines = text.removesuffix("\n").split("\n")
    return (
        bool(lines[0]) and not lines[0][0].isspace() and bool(lines[-1]) and all(map(str.isprintable, lines))
    )
