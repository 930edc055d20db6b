"""`fila message`: one message, and what it is doing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fila_cli.arguments import channel_option, queue_argument
from fila_cli.explanation import whereabouts
from fila_cli.output import facts
from fila_cli.session import Group, Session
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import GetMessageResponse


@click.group(
    cls=Group,
    examples="""
    fila message show orders 0198c2f0-5d3e-7c11-9d5a-2f6f3f7a0001
    fila message show reminders --dedup-key trial-4711
    """,
)
def message() -> None:
    """One message, and what it is doing. To take it back: fila cancel."""


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

    if bool(message_id) == bool(dedup_key):
        raise click.UsageError("name the message by ID or by --dedup-key, and not by both")

    def look() -> tuple[GetMessageResponse, str]:
        request = admin_pb2.GetMessageRequest(
            queue=queue, channel=channel, message_id=message_id, dedup_key=dedup_key
        )
        answer = session.admin.GetMessage(request, timeout=session.timeout_s)
        return answer, facts(whereabouts(answer))

    show_or_watch(session, watch_ms, look)
