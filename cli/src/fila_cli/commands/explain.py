"""`fila explain`: why is this key late?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fila_cli.arguments import channel_option, key_argument, queue_argument
from fila_cli.explanation import explained
from fila_cli.output import Format, facts
from fila_cli.session import Command, Session
from fila_cli.troubles import above, ask_what_is_wrong, told
from fila_cli.watching import show_or_watch, watch_option

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ExplainKeyResponse


@click.command(
    cls=Command,
    examples="""
    fila explain orders acme
    fila explain orders acme --watch
    fila explain orders acme --channel audit -o json
    """,
)
@queue_argument
@key_argument
@channel_option
@watch_option
@click.pass_obj
def explain(session: Session, queue: str, key: str, channel: str, watch_ms: int | None) -> None:
    """Say what KEY's next message in QUEUE waits for, who is served meanwhile, and when it will go.

    The times hold nine times in ten, if nobody pauses, weighs or scales anything meanwhile.
    """
    from fila.v1 import admin_pb2

    def look() -> tuple[ExplainKeyResponse, str]:
        request = admin_pb2.ExplainKeyRequest(queue=queue, channel=channel, fairness_key=key)
        answer = session.admin.ExplainKey(request, timeout=session.timeout_s)
        if session.format is not Format.TABLE:
            return answer, ""
        wrong = told(ask_what_is_wrong(session, queue, key))
        return answer, above(wrong, facts(explained(key, answer)))

    show_or_watch(session, watch_ms, look)
