"""`fila trace`: one message's life, from its arrival to where it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fila.shell_words import shell_word
from fila_cli.arguments import channel_option, check_named, queue_argument
from fila_cli.explanation import whereabouts
from fila_cli.output import Cell, facts, table
from fila_cli.session import Command, Session
from fila_cli.values import Count, age_text

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import GetMessageResponse, MessagePast, PastEvent


@click.command(
    "trace",
    cls=Command,
    examples="""
    fila trace orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001
    fila trace reminders --dedup-key trial-4711 -o json
    """,
)
@queue_argument
@click.argument("message_id", metavar="[ID]", required=False, default="")
@click.option("--dedup-key", default="", metavar="KEY", help="The key it was enqueued with, in place of ID")
@channel_option
@click.option(
    "--offset",
    type=Count(0),
    default=0,
    metavar="OFFSET",
    help="Its place in the queue's log, where it is done and several came at its time",
)
@click.pass_obj
def trace(session: Session, queue: str, message_id: str, dedup_key: str, channel: str, offset: int) -> None:
    """Tell one message's life: each delivery and failure that the broker's history has, and where it is now.

    Where it is now, the broker knows itself. What happened before, it knows where it records a history.
    """
    from fila.v1 import admin_pb2

    check_named(message_id, dedup_key)
    request = admin_pb2.GetMessageRequest(
        queue=queue,
        channel=channel,
        message_id=message_id,
        dedup_key=dedup_key,
        with_past=True,
        offset=offset,
    )
    answer = session.admin.GetMessage(request, timeout=session.timeout_s)
    shown = [*whereabouts(answer), *_payload(queue, channel, answer)]
    session.show(answer, f"{facts(shown)}\n\n{_past(answer.past)}")


def _payload(queue: str, channel: str, answer: GetMessageResponse) -> list[tuple[str, Cell]]:
    """The command that shows headers and payload; it asks for the right to consume. A look shows nothing leased."""
    from fila.v1 import admin_pb2

    states = admin_pb2.GetMessageResponse
    places = {states.STATE_WAITING: queue, states.STATE_DELAYED: queue, states.STATE_DEAD: f"{queue}.dlq"}
    where = places.get(answer.state)
    if where is None or not answer.offset:
        return []
    command = f"fila queue peek {shell_word(where)} --after {answer.offset - 1} --count 1 -o json"
    if channel and where == queue:
        command += f" --channel {shell_word(channel)}"
    return [("payload", command)]


def _past(past: MessagePast) -> str:
    if past.missing:
        return f"before that: {past.missing}"
    rows = [
        (
            event.at.ToJsonString(),
            event.kind.replace("_", " "),
            event.consumer_id or "-",
            _took(event),
            event.reason or event.bucket or "-",
        )
        for event in past.events
    ]
    text = table(("AT", "DECISION", "CONSUMER", "AFTER", "WHY"), rows, ("CONSUMER",), ("WHY",))
    more = "; there is more behind that, in fila history export" if past.more else ""
    return f"{text}\nrecorded up to {past.until.ToJsonString()}{more}"


def _took(event: PastEvent) -> Cell:
    """What it waited before a delivery; how long it was held or will wait otherwise."""
    ms = event.waited_ms if event.kind == "delivered" else event.held_ms
    return age_text(ms) if ms else "-"
