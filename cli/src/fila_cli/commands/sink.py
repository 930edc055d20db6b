"""`fila sink`: what engines such as Spark have staged, and which batch of each was published last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fila_cli.output import Cell, table
from fila_cli.session import Command, Group, Session
from fila_cli.values import rough_size_text

if TYPE_CHECKING:
    from fila.v1.sink_pb2 import SinkInfo


@click.group(
    cls=Group,
    examples="""
    fila sink list
    """,
)
def sink() -> None:
    """Sinks: batches that are staged aside, and published once."""


@sink.command(
    "list",
    cls=Command,
    examples="""
    fila sink list
    fila sink list --prefix spark- -o json
    """,
)
@click.option("--prefix", default="", metavar="TEXT", help="Only sinks whose names begin with this")
@click.pass_obj
def list_(session: Session, prefix: str) -> None:
    """List the sinks that the broker remembers, by name.

    LAST is the batch that was published last, STAGED and BYTES what is not published yet, PUBLISHING the
    batch that is on its way into its queues and how far it is.
    """
    from fila.v1 import sink_pb2

    request, told = sink_pb2.ListSinksRequest(prefix=prefix, limit=1000), sink_pb2.ListSinksResponse()
    while True:
        page = session.sinks.ListSinks(request, timeout=session.timeout_s)
        told.sinks.extend(page.sinks)
        told.staged_bytes, told.staged_bytes_max = page.staged_bytes, page.staged_bytes_max
        if not page.next_after:
            break
        request.after = page.next_after
    headings = ("SINK", "EPOCH", "LAST", "ATTEMPTS", "STAGED", "BYTES", "PUBLISHING", "USED")
    rows = table(headings, [_row(each) for each in told.sinks]) if told.sinks else "no sinks"
    staged = f"{rough_size_text(told.staged_bytes)} of {rough_size_text(told.staged_bytes_max)} staged"
    session.show(told, f"{rows}\n{staged}")


def _row(each: SinkInfo) -> tuple[Cell, ...]:
    on_its_way = each.publishing
    return (
        each.sink_id,
        each.epoch,
        each.next_batch - 1 if each.next_batch else "-",
        each.attempts,
        each.staged_messages,
        each.staged_bytes,
        f"{on_its_way.batch}: {on_its_way.moved} of {on_its_way.messages}"
        if each.HasField("publishing")
        else "-",
        each.used_at.ToDatetime().isoformat(timespec="seconds") + "Z",
    )
