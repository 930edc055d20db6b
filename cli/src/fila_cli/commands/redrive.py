"""`fila redrive`: dead letters back to where they failed."""

from __future__ import annotations

import click

from fila_cli.session import Command, Session, complete_queue


@click.command(
    cls=Command,
    examples="""
    fila redrive orders.dlq
    fila redrive orders.dlq --count 100
    fila redrive orders.dlq --rate 50
    """,
)
@click.argument("dlq", shell_complete=complete_queue)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Most to move, oldest first [default: all that are there now]",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Move so many a second [default: as fast as it goes]",
)
@click.pass_obj
def redrive(session: Session, dlq: str, count: int, rate: float | None) -> None:
    """Move dead letters of DLQ back to their source queue, attempts at zero, routed by today's policy."""
    from fila.v1 import admin_pb2

    request = admin_pb2.RedriveRequest(dlq_queue=dlq, count=count, rate_per_second=rate or 0)
    # A paced or large redrive takes as long as it takes; only Ctrl-C ends it early.
    answer = session.admin.Redrive(request)
    session.show(answer, f"{answer.redriven} dead letters moved back")
