"""`fila log`: what a queue's log holds, read without leasing anything."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import key_option, queue_argument
from fila_cli.messages import print_message
from fila_cli.outage import Outage
from fila_cli.session import Group, Session
from fila_cli.values import POSITION, Count

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ReadLogRequest

_LOOK_AGAIN_S = 0.5


@click.group(cls=Group, examples="fila log tail orders --follow")
def log() -> None:
    """What a queue's log holds, read without leasing."""


@log.command(
    examples="""
    fila log tail orders
    fila log tail orders --follow --key acme
    fila log tail orders --from -10m -o json
    """
)
@queue_argument
@click.option("-f", "--follow", is_flag=True, help="Go on with what is appended; Ctrl-C ends it")
@click.option(
    "-n", "--count", type=Count(min=0), default=10, show_default=True, help="Begin so many from the end"
)
@click.option("--from", "start", type=POSITION, metavar="oldest|OFFSET|TIME", help="Begin there instead")
@key_option("Only this fairness key's messages")
@click.option("-v", "--verbose", is_flag=True, help="Id, fairness key and headers before each payload")
@click.pass_obj
def tail(
    session: Session,
    queue: str,
    count: int,
    start: int | datetime | str | None,
    fairness_key: str | None,
    *,
    follow: bool,
    verbose: bool,
) -> None:
    """Print what QUEUE was sent last, whoever consumed it, as far as it is retained."""
    from fila.v1 import admin_pb2

    request = admin_pb2.ReadLogRequest(queue=queue, fairness_key=fairness_key or "", max_batch=100)
    _begin_at(session, request, start, count)
    outage = Outage(session.address) if follow else None
    try:
        while True:
            _print_on(session, request, outage, verbose=verbose)
            if not follow:
                return
            request.ClearField("from_time")
            time.sleep(_LOOK_AGAIN_S)
    except KeyboardInterrupt:
        return


def _begin_at(
    session: Session, request: ReadLogRequest, start: int | datetime | str | None, count: int
) -> None:
    from fila.v1 import admin_pb2

    if isinstance(start, datetime):
        request.from_time.FromDatetime(start)
    elif isinstance(start, int):
        request.from_offset = start
    elif start != "oldest":
        asked = admin_pb2.GetStatsRequest(queue=request.queue, max_keys=1)
        head = session.admin.GetStats(asked, timeout=session.timeout_s).head_offset
        request.from_offset = max(1, head - (0 if start == "head" else count))


def _print_on(session: Session, request: ReadLogRequest, outage: Outage | None, *, verbose: bool) -> None:
    """Print from where the request begins to the end of the log, and let it begin there the next time. Without an
    `outage` there is no next time."""
    import grpc

    try:
        for piece in session.admin.ReadLog(request):
            for message in piece.messages:
                print_message(session.format, message, verbose=verbose)
            request.from_offset = piece.next_offset or request.from_offset
    except grpc.RpcError as error:
        if outage is None or not request.from_offset:
            raise
        outage.meet(error)
    else:
        if outage is not None:
            outage.over()
