"""`fila events`: what happened, and what happens."""

from __future__ import annotations

import textwrap
import time
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from fila_cli.arguments import complete_queue, key_option
from fila_cli.colors import Meaning, paint
from fila_cli.outage import AGAIN_AFTER_S, Outage
from fila_cli.output import Format, columns, printable, show, show_streamed, to_dict
from fila_cli.session import Command, Session
from fila_cli.values import Count

if TYPE_CHECKING:
    from fila.v1.events_pb2 import Event

_TROUBLE = (
    "trouble.began",
    "dead_letters.made", "hook.failed", "hook.circuit_opened", "disk.low", "disk.critical", "store.damage_found",
    "store.range_lost", "sink.messages_lost", "events.missed", "queue.dead_letters_dropped", "message.keeps_returning",
)  # fmt: skip
_KIND_WIDTH = 28  # of the longest
_HELD = ("key.starved", "key.throttled", "queue.deleted", "queue.purged", "channel.deleted", "channel.purged")


@click.command(
    cls=Command,
    examples="""
    fila events
    fila events --follow
    fila events -f --queue orders --kind key --kind dead_letters
    fila events -f -o json --after 1763770000000000
    """,
)
@click.option("-f", "--follow", is_flag=True, help="Go on with what happens; Ctrl-C ends it")
@click.option("--queue", default="", metavar="QUEUE", shell_complete=complete_queue, help="Only this queue's")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Only these: queue.created, or queue for all of them",
)
@key_option("Only this fairness key's")
@click.option(
    "--after",
    "after",
    type=Count(0),
    default=0,
    metavar="POSITION",
    help="Only after this position, to go on",
)
@click.pass_obj
def events(
    session: Session,
    queue: str,
    kinds: tuple[str, ...],
    fairness_key: str | None,
    after: int,
    *,
    follow: bool,
) -> None:
    """Print what happened, oldest first: changes and who made them, consumers, circuits, dead letters, the disk.

    The broker keeps the last 10,000 events; the same lines are in its log.
    """
    from fila.v1 import events_pb2

    request = events_pb2.WatchEventsRequest(
        queue=queue, kinds=kinds, fairness_key=fairness_key or "", after_position=after, follow=follow
    )
    if not follow:
        found = [event for answer in session.admin.WatchEvents(request) for event in answer.events]
        value = {"events": [to_dict(event) for event in found]} if session.format is not Format.TABLE else {}
        show(session.format, value, "\n".join(_line(event) for event in found))
        return
    try:
        _follow(session, request)
    except KeyboardInterrupt:
        return


def _follow(session: Session, request: Any) -> None:
    import grpc

    began = False
    outage = Outage(session.address)
    while True:
        try:
            for answer in session.admin.WatchEvents(request):
                began = True
                outage.over()
                for event in answer.events:
                    show_streamed(
                        session.format,
                        to_dict(event) if session.format is not Format.TABLE else {},
                        _line(event),
                    )
                request.after_position = max(request.after_position, answer.next_position)
        except grpc.RpcError as error:
            if not began:
                raise
            outage.meet(error)
        time.sleep(AGAIN_AFTER_S)


def _line(event: Event) -> str:
    meaning = Meaning.TROUBLE if event.kind in _TROUBLE else Meaning.HELD if event.kind in _HELD else None
    kind = event.kind.ljust(_KIND_WIDTH)
    at = event.at.ToDatetime(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    about = [
        f"{name}={value}"
        for name, value in (
            ("queue", event.queue),
            ("channel", event.channel),
            ("key", event.fairness_key),
            ("count", str(event.count) if event.count != 1 else ""),
            *sorted(event.details.items()),
            ("by", event.principal or event.peer),
        )
        if value
    ]
    begin = f"{paint(at, Meaning.QUIET)}  {paint(kind, meaning) if meaning else kind}"
    told = printable(" ".join(about))
    if len(at) + len(kind) + len(told) + 4 <= columns():
        return f"{begin}  {told}"
    # A terminal that is too narrow has the rest below, unbroken words on lines of their own.
    below = textwrap.wrap(told, columns() - 4, break_on_hyphens=False)
    return "\n    ".join([begin.rstrip(), *below])
