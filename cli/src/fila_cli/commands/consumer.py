"""`fila consumer`: who consumes, and what lies with whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fila_cli.arguments import complete_channel, queue_argument
from fila_cli.output import Cell, table
from fila_cli.session import Command, Group, Session

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ConsumerInfo


_SPARE = ("PEER", "RETURNED", "P50", "CHANNEL", "WINDOW")


@click.group(
    cls=Group,
    examples="""
    fila consumer list orders
    """,
)
def consumer() -> None:
    """Who consumes a queue, and what each consumer holds."""


@consumer.command(
    "list",
    cls=Command,
    examples="""
    fila consumer list orders
    fila consumer list orders --channel audit -o json
    """,
)
@queue_argument
@click.option(
    "--channel",
    default="",
    metavar="NAME",
    shell_complete=complete_channel,
    help="Only this channel's [default: every channel's]",
)
@click.pass_obj
def list_(session: Session, queue: str, channel: str) -> None:
    """List the streams and sessions of QUEUE, oldest first.

    HELD counts messages leased to a consumer, BEGUN those it works on, RETURNED what it gave back uncounted. P50 is the
    median time its program takes for a message, as the consumer reports it.
    """
    from fila.v1 import admin_pb2

    request = admin_pb2.ListConsumersRequest(queue=queue, channel=channel)
    answer = session.admin.ListConsumers(request, timeout=session.timeout_s)
    headings = ("CONSUMER", "NAME", "PEER", "CHANNEL", "HELD", "BEGUN", "RETURNED", "P50", "WINDOW", "STATE")
    rows = [_row(each) for each in answer.consumers]
    session.show(
        answer,
        table(headings, rows, _SPARE, ("NAME", "PEER")) if rows else "",
        empty=f"nobody consumes {queue} just now",
    )


def _row(each: ConsumerInfo) -> tuple[Cell, ...]:
    return (
        each.consumer_id,
        each.name or "-",
        each.peer or "-",
        each.channel,
        each.held,
        each.begun,
        each.returned_total,
        _handling_text(each.handling_time_us),
        each.window,
        _state(each),
    )


def _state(each: ConsumerInfo) -> str:
    if each.away:
        return "away"
    return "at its name's quota" if each.at_quota else "here"


def _handling_text(us: int) -> str:
    """A handling time, with as many digits as say something."""
    if us == 0:
        return "-"
    if us < 1_000:
        return f"{us}us"
    if us < 1_000_000:
        return f"{us / 1_000:.3g}ms"
    return f"{us / 1_000_000:.3g}s"
