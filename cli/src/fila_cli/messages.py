"""Messages as people read them: in a table, or one after the other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING

from fila_cli.colors import Meaning, Meant
from fila_cli.moments import shown
from fila_cli.output import Cell, Format, for_terminal, printable, show_streamed, table, to_dict

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import GetMessageResponse, PendingMessage
    from fila.v1.messages_pb2 import Message, MessageMetadata

_PREVIEW_CHARACTERS = 60


def peeked(messages: Sequence[Message]) -> str:
    """Pending messages; with their priorities, when they are due and why they are dead, where some have that."""
    headings = ["OFFSET", "ID", "KEY", "ATTEMPTS", "PAYLOAD"]
    are_dead = any(message.metadata.HasField("dead_letter") for message in messages)
    are_delayed = any(message.timestamps.HasField("due_at") for message in messages)
    have_priorities = any(message.metadata.HasField("priority") for message in messages)
    rows: list[list[Cell]] = []
    for message in messages:
        about = message.metadata
        row: list[Cell] = [
            about.offset,
            message.id,
            about.fairness_key,
            # A dead letter's own queue has not delivered it yet; what people look for is how often it failed.
            about.dead_letter.attempts if are_dead else about.attempt_count,
            preview(message.payload),
        ]
        if have_priorities:
            row[4:4] = [priority_of(about)]
        if are_delayed:
            row[4:4] = [_due(message)]
        if are_dead:
            row[4:4] = [Meant(about.dead_letter.reason, Meaning.TROUBLE), about.dead_letter.last_error]
        rows.append(row)
    if have_priorities:
        headings[4:4] = ["PRIORITY"]
    if are_delayed:
        headings[4:4] = ["DUE"]
    if are_dead:
        headings[4:4] = ["REASON", "LAST ERROR"]
    spare = ("ATTEMPTS", "PAYLOAD", "OFFSET", "KEY", "REASON") if are_dead else ("ATTEMPTS", "KEY")
    return table(headings, rows, spare, ("LAST ERROR", "PAYLOAD"))


def priority_of(told: MessageMetadata | PendingMessage | GetMessageResponse) -> int:
    """Within its key; the usual one is left out on the wire."""
    return told.priority if told.HasField("priority") else 1


def _due(message: Message) -> str:
    due = message.timestamps
    return shown(due.due_at.ToDatetime(UTC)) if due.HasField("due_at") else "now"


def preview(payload: bytes) -> str:
    """Enough of a payload to recognise it, on one line."""
    text = payload[: _PREVIEW_CHARACTERS * 4].decode(errors="replace")
    shown = "".join(character if character.isprintable() else "." for character in text)
    return shown if len(shown) <= _PREVIEW_CHARACTERS else shown[: _PREVIEW_CHARACTERS - 3] + "..."


def print_message(format_: Format, message: Message, *, verbose: bool) -> None:
    """Print one message of many: its payload's bytes as they are, or what a terminal may safely be shown."""
    if format_ is not Format.TABLE:
        show_streamed(format_, to_dict(message), "")
        return
    if verbose:
        about = message.metadata
        line = f"{message.id}  offset={about.offset} key={about.fairness_key} attempts={about.attempt_count}"
        line += "".join(f" {name}={message.headers[name]}" for name in sorted(message.headers))
        print(printable(line))
        sys.stdout.flush()
    # What was stored is what the next program in the pipe reads; a terminal would obey what is in it.
    payload = for_terminal(message.payload) if sys.stdout.isatty() else message.payload
    sys.stdout.buffer.write(payload + b"\n")
    sys.stdout.buffer.flush()
