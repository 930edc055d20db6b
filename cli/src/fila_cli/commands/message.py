"""`fila message`: what single messages are doing."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import channel_option, check_named, key_option, queue_argument
from fila_cli.explanation import whereabouts
from fila_cli.messages import priority_of
from fila_cli.moments import shown
from fila_cli.output import Cell, facts, table
from fila_cli.session import Group, Session
from fila_cli.values import Count, age_text
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import GetMessageResponse, PendingMessage


@click.group(
    cls=Group,
    examples="""
    fila message show orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001
    fila message show reminders --dedup-key trial-4711
    fila message list orders --key acme
    """,
)
def message() -> None:
    """Single messages, and what they are doing. To take one back: fila cancel."""


@message.command(
    examples="""
    fila message show orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001
    fila message show orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001 --watch
    fila message show reminders --dedup-key trial-4711 -o json
    """
)
@queue_argument
@click.argument("message_id", metavar="[ID]", required=False, default="")
@click.option("--dedup-key", default="", metavar="KEY", help="The key it was enqueued with, in place of ID")
@channel_option
@watch_option
@click.pass_obj
def show(
    session: Session, queue: str, message_id: str, dedup_key: str, channel: str, watch_ms: int | None
) -> None:
    """Say where one message of QUEUE is: it waits, is delayed, leased, failed, dead, or not known any more."""
    from fila.v1 import admin_pb2

    check_named(message_id, dedup_key)

    def look() -> tuple[GetMessageResponse, str]:
        request = admin_pb2.GetMessageRequest(
            queue=queue, channel=channel, message_id=message_id, dedup_key=dedup_key
        )
        answer = session.admin.GetMessage(request, timeout=session.timeout_s)
        return answer, facts(whereabouts(answer))

    show_or_watch(session, watch_ms, look)


@message.command(
    "list",
    examples="""
    fila message list orders
    fila message list orders --key acme --count 1000 -o json
    fila message list orders.dlq --after 1500
    """,
)
@queue_argument
@channel_option
@click.option(
    "-n", "--count", type=Count(1, 1000), default=20, show_default=True, help="Most messages to list"
)
@click.option(
    "--after", type=Count(min=0), default=0, metavar="OFFSET", help="Only messages after this offset"
)
@key_option("Only this fairness key's messages")
@click.pass_obj
def listed(
    session: Session, queue: str, channel: str, count: int, after: int, fairness_key: str | None
) -> None:
    """List what is not done in QUEUE: what each message is doing and since when, without its headers and payload.

    DUE says when its delay or its lease ends. The right to view is enough; 'fila queue peek' shows the payloads.
    """
    from fila.v1 import admin_pb2

    request = admin_pb2.ListPendingRequest(
        queue=queue, channel=channel, max_messages=count, after_offset=after, fairness_key=fairness_key or ""
    )
    answer = session.admin.ListPending(request, timeout=session.timeout_s)
    headings = ["OFFSET", "ID", "KEY", "STATE", "AGE", "DUE", "ATTEMPTS", "COST"]
    rows = [_row(each) for each in answer.messages]
    if any(each.HasField("priority") for each in answer.messages):
        headings.append("PRIORITY")
        rows = [[*row, priority_of(each)] for row, each in zip(rows, answer.messages, strict=True)]
    text = table(headings, rows, ("COST", "ATTEMPTS", "KEY")) if rows else ""
    session.show(answer, text, empty=f"nothing is pending in {queue}")


def _row(pending: PendingMessage) -> list[Cell]:
    from fila.v1.admin_pb2 import GetMessageResponse

    return [
        pending.offset,
        pending.message_id,
        pending.fairness_key,
        GetMessageResponse.State.Name(pending.state).removeprefix("STATE_").lower(),
        age_text(pending.age_ms),
        shown(pending.due_at.ToDatetime(UTC)) if pending.HasField("due_at") else "-",
        pending.attempts,
        f"{pending.cost:g}",
    ]
