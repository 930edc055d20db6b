"""`fila log`: what a queue's log holds, read without leasing anything."""

from __future__ import annotations

import time
from bisect import bisect_left
from datetime import datetime
from typing import TYPE_CHECKING

import click

from fila_cli.arguments import key_option, queue_argument
from fila_cli.messages import print_message
from fila_cli.outage import Outage
from fila_cli.session import Command, Session
from fila_cli.values import POSITION, Count

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ReadLogRequest

_LOOK_AGAIN_S = 0.5
_BATCH_MAX = 1_000


class _Log(Command):
    """`fila log tail QUEUE` is as good as `fila log QUEUE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args[1:] if args[:1] == ["tail"] and len(args) > 1 else args)


@click.command(
    cls=_Log,
    examples="""
    fila log orders
    fila log orders --follow --key acme
    fila log orders --from -10m -o json
    """,
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
def log(
    session: Session,
    queue: str,
    count: int,
    start: int | datetime | str | None,
    fairness_key: str | None,
    *,
    follow: bool,
    verbose: bool,
) -> None:
    """Print what QUEUE was sent last, as far as it is retained, consumed or not."""
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
        stats = session.admin.GetStats(asked, timeout=session.timeout_s)
        request.from_offset = stats.head_offset
        if start != "head" and count:
            request.from_offset = _newest(session, request, stats.tail_offset, stats.head_offset, count)


def _newest(session: Session, request: ReadLogRequest, oldest: int, head: int, count: int) -> int:
    """The offset from which on there are `count` messages below `head`, or all.

    Offsets have gaps: a crash leaves out up to a million of them, and retention may take a message among others.
    """
    from fila.v1 import admin_pb2

    def are_there(most: int, offset: int) -> bool:
        asked = admin_pb2.ReadLogRequest(
            queue=request.queue, from_offset=offset, max_batch=min(most, _BATCH_MAX)
        )
        found = 0
        pieces = session.admin.ReadLog(asked, timeout=session.timeout_s)
        for piece in pieces:
            found += len(piece.messages)
            if found >= most:
                pieces.cancel()
                return True
        return False

    def highest(most: int, high: int) -> int:
        """The highest offset below `high` from which on so many are there; the oldest where there is none."""
        at = bisect_left(range(low, high), True, key=lambda offset: not are_there(most, offset))
        return max(low, low + at - 1)

    low = max(1, oldest)
    if not are_there(1, max(low, head - 1)):  # single messages first: these are many reads, across a wide gap
        head = highest(1, head) + 1
    first = max(low, head - count)
    return first if are_there(count, first) else highest(count, first)


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
