"""`fila operation`: the broker itself moves dead letters back or drops them, and its caller may go away."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import any_dlq_argument, complete_operation, dlq_argument, key_option, yes_option
from fila_cli.output import Cell, Format, counted, facts, show_streamed, table, to_dict
from fila_cli.session import Command, Group, Session, confirm
from fila_cli.values import MOMENT, PAIR, RATE, REASON, Count

if TYPE_CHECKING:
    from fila.v1.operation_pb2 import Operation

_KINDS = ("redrive", "delete", "purge")


@click.group(
    cls=Group,
    examples="""
    fila operation start orders.dlq redrive --rate 50
    fila operation list
    fila operation watch orders.dlq 1767225600000-0badcafe
    fila operation cancel orders.dlq 1767225600000-0badcafe
    """,
)
def operation() -> None:
    """Long operations on dead letters: start, list, watch, cancel."""


@operation.command(
    examples="""
    fila operation start orders.dlq redrive --rate 50
    fila operation start orders.dlq redrive --error timeout --key acme
    fila operation start orders.dlq delete --reason rejected --yes
    fila operation start orders.dlq purge --yes
    """
)
@dlq_argument
@click.argument("kind", type=click.Choice(_KINDS))
@click.option("--reason", type=REASON, help="Only those given up for this reason")
@click.option("--error", default="", metavar="TEXT", help="Only those whose last error has this in it")
@key_option("Only this fairness key's")
@click.option("--channel", default="", help="Only those that failed in this channel")
@click.option("--died-from", type=MOMENT, help="Only those that died at this moment or later")
@click.option("--died-before", type=MOMENT, help="Only those that died before this moment")
@click.option("--rate", type=RATE, metavar="N", help="Most a second [default: as fast as it goes]")
@yes_option
@click.pass_obj
def start(
    session: Session,
    dlq: str,
    kind: str,
    reason: str | None,
    error: str,
    fairness_key: str | None,
    channel: str,
    died_from: datetime | None,
    died_before: datetime | None,
    rate: float | None,
    *,
    yes: bool,
) -> None:
    """Start to move the dead letters of DLQ back, or to drop them. It runs in the broker until it is done."""
    from fila.v1 import operation_pb2

    if kind != "redrive":
        confirm(f"Drop {'all' if kind == 'purge' else 'these'} dead letters of {dlq} for good?", yes=yes)
    wanted = operation_pb2.DeadLetterFilter(
        fairness_key=fairness_key or "", reason=reason or "", error=error, source_channel=channel
    )
    if died_from is not None:
        wanted.died_from.FromDatetime(died_from)
    if died_before is not None:
        wanted.died_before.FromDatetime(died_before)
    request = operation_pb2.StartOperationRequest(
        dlq_queue=dlq, kind=f"KIND_{kind.upper()}", filter=wanted, rate_per_second=rate or 0.0
    )
    answer = session.admin.StartOperation(request, timeout=session.timeout_s)
    session.show(answer, facts(_facts(answer.operation)))


@operation.command(
    name="list",
    examples="""
    fila operation list
    fila operation list orders.dlq -o json
    """,
)
@any_dlq_argument
@click.pass_obj
def list_(session: Session, dlq: str) -> None:
    """List operations, newest first, those that have ended, too."""
    from fila.v1 import operation_pb2

    request = operation_pb2.ListOperationsRequest(dlq_queue=dlq)
    answer = session.admin.ListOperations(request, timeout=session.timeout_s)
    rows: list[tuple[Cell, ...]] = [
        (
            each.id,
            each.request.dlq_queue,
            _kind(each),
            _state(each),
            f"{each.done} of {each.total}",
            each.stuck,
            each.started_at.ToJsonString(),
        )
        for each in answer.operations
    ]
    headings = ("ID", "QUEUE", "WHAT", "STATE", "DONE", "STUCK", "STARTED")
    session.show(answer, table(headings, rows) if rows else "", empty="no operations")


@operation.command(examples="fila operation watch orders.dlq 1767225600000-0badcafe")
@dlq_argument
@click.argument("operation_id", metavar="ID", shell_complete=complete_operation)
@click.pass_obj
def watch(session: Session, dlq: str, operation_id: str) -> None:
    """Follow an operation until it has ended."""
    from fila.v1 import operation_pb2

    request = operation_pb2.WatchOperationRequest(dlq_queue=dlq, id=operation_id)
    for told in session.admin.WatchOperation(request):
        each = told.operation
        line = f"{_state(each)}: {each.done} of {each.total} done, {each.stuck} stuck"
        show_streamed(session.format, to_dict(told) if session.format is not Format.TABLE else {}, line)


@operation.command(examples="fila operation cancel orders.dlq 1767225600000-0badcafe")
@dlq_argument
@click.argument("operation_id", metavar="ID", shell_complete=complete_operation)
@click.pass_obj
def cancel(session: Session, dlq: str, operation_id: str) -> None:
    """End an operation; what it did is done."""
    from fila.v1 import operation_pb2

    request = operation_pb2.CancelOperationRequest(dlq_queue=dlq, id=operation_id)
    answer = session.admin.CancelOperation(request, timeout=session.timeout_s)
    session.show(answer, facts(_facts(answer.operation)))


@click.command(
    cls=Command,
    examples="""
    fila dlq edit orders.dlq 17 --header tenant=acme --payload '{"amount": 1}'
    fila dlq edit orders.dlq 17 --header tenant=acme --payload-file fixed.json
    """,
)
@dlq_argument
@click.argument("offset", type=Count(1, 2**64 - 1))
@click.option("-H", "--header", "headers", type=PAIR, multiple=True, help="A header of it; repeat for more")
@click.option("--payload", help="Its payload from now on")
@click.option("--payload-file", type=click.Path(path_type=Path), help="The same, from a file")
@click.pass_obj
def edit(
    session: Session,
    dlq: str,
    offset: int,
    headers: tuple[tuple[str, str], ...],
    payload: str | None,
    payload_file: Path | None,
) -> None:
    """Send a dead letter back with these headers and this payload in place of its own, as a new message."""
    from fila.v1 import operation_pb2

    if (payload is None) == (payload_file is None):
        raise click.UsageError("give either --payload or --payload-file")
    try:
        content = payload.encode() if payload is not None else payload_file.read_bytes()  # type: ignore[union-attr]
    except OSError as error:
        raise click.BadParameter(str(error), param_hint="'--payload-file'") from error
    request = operation_pb2.EditDeadLetterRequest(
        dlq_queue=dlq, offset=offset, headers=dict(headers), payload=content
    )
    answer = session.admin.EditDeadLetter(request, timeout=session.timeout_s)
    session.show(answer, f"sent back as {answer.message_id}")


def _kind(each: Operation) -> str:
    from fila.v1 import operation_pb2

    kind = operation_pb2.StartOperationRequest.Kind.Name(each.request.kind)
    return kind.removeprefix("KIND_").lower()


def _state(each: Operation) -> str:
    from fila.v1 import operation_pb2

    return operation_pb2.Operation.State.Name(each.state).removeprefix("STATE_").lower()


def _facts(each: Operation) -> list[tuple[str, Cell]]:
    listed: list[tuple[str, Cell]] = [
        ("id", each.id),
        ("queue", each.request.dlq_queue),
        ("what", _kind(each)),
        ("state", _state(each)),
        ("done", f"{each.done} of {counted(each.total, 'dead letter')}"),
        ("stuck", each.stuck),
        ("started", each.started_at.ToJsonString()),
    ]
    if each.HasField("ended_at"):
        listed.append(("ended", each.ended_at.ToJsonString()))
    if each.error:
        listed.append(("error", each.error))
    return listed
