"""`--watch`: the same answer again and again, in place on a terminal, one a line with -o json."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fila_cli.outage import Outage
from fila_cli.output import Format, show_streamed, to_dict
from fila_cli.values import SOME_TIME

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from fila_cli.session import Session

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"

watch_option = click.option(
    "--watch",
    "watch_ms",
    type=SOME_TIME,
    is_flag=False,
    flag_value=2_000,
    metavar="[INTERVAL]",
    help="Again and again, every 2s unless said otherwise; Ctrl-C ends it",
)


def show_or_watch(
    session: Session, watch_ms: int | None, look: Callable[[], tuple[Message, str]], *, empty: str = ""
) -> None:
    """Show what `look` returns, the answer and the same as text: once, or every `watch_ms`."""
    if watch_ms is None:
        answer, text = look()
        session.show(answer, text, empty=empty)
        return
    outage = Outage(session.address)
    try:
        while True:
            _show_again(session, look, outage)
            time.sleep(watch_ms / 1000)
    except KeyboardInterrupt:
        return


def _show_again(session: Session, look: Callable[[], tuple[Any, str]], outage: Outage) -> None:
    import grpc

    try:
        answer, text = look()
    except grpc.RpcError as error:
        # Watching goes on over a restart of the broker.
        outage.meet(error)
        return
    outage.over()
    show_anew(session, answer, text)


def show_anew(session: Session, answer: Message, text: str) -> None:
    """Show an answer in the place of the one before: on a terminal over it, elsewhere behind it."""
    if session.format is Format.TABLE and sys.stdout.isatty():
        text = f"{_HOME_AND_CLEAR}{time.strftime('%H:%M:%S')}  {session.address}   Ctrl-C ends\n\n{text}"
    show_streamed(session.format, to_dict(answer) if session.format is not Format.TABLE else {}, text)
