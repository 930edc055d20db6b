"""What the broker carries out in pieces: how far it has come, while somebody waits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol

from fila_cli.progress import Progress
from fila_cli.session import Session, Stopped

if TYPE_CHECKING:
    from fila.v1.admin_pb2 import ChannelInfo

_LOOK_EVERY_S = 0.5


class Answering(Protocol):
    """A call under way, as grpc hands it out."""

    def result(self, timeout: float | None = None) -> Any:
        """Return the answer, or raise grpc.FutureTimeoutError after so many seconds."""


def wait_for(call: Answering, noun: str, left: Callable[[], int]) -> Any:
    """Return the answer. A terminal is shown how much is `left` of what was, and Ctrl-C says so and that the broker
    goes on."""
    import grpc

    total = left() if sys.stderr.isatty() else None
    with Progress(noun, total) as progress:
        while True:
            try:
                return call.result(timeout=_LOOK_EVERY_S)
            except grpc.FutureTimeoutError:
                if total is not None:
                    progress.add(max(total - left() - progress.done, 0))
            except KeyboardInterrupt:
                so_far = f" {progress.summary()} so far;" if total is not None else ""
                raise Stopped(
                    f"nobody waits any more;{so_far} what the broker has begun it finishes"
                ) from None


def follow_replay(session: Session, queue: str, channel: str, start_offset: int) -> None:
    """Show a terminal how many messages from `start_offset` on a channel has brought back. Ctrl-C says
    so; the broker goes on."""
    if not _at_a_terminal():
        return
    now = _channel(session, queue, channel)
    if now is None or not now.replay_offset:
        return
    total = now.head_offset - start_offset
    with Progress("message", total) as progress:
        while now is not None and now.replay_offset:
            progress.add(max(min(now.replay_offset - start_offset, total) - progress.done, 0))
            try:
                sleep(_LOOK_EVERY_S)
            except KeyboardInterrupt:
                so_far = f"{progress.summary()} can be delivered again; the broker brings back the rest"
                raise Stopped(so_far) from None
            now = _channel(session, queue, channel)


def _at_a_terminal() -> bool:
    return sys.stderr.isatty()


def _channel(session: Session, queue: str, channel: str) -> ChannelInfo | None:
    from fila.v1 import admin_pb2

    answer = session.admin.ListChannels(admin_pb2.ListChannelsRequest(queue=queue), timeout=session.timeout_s)
    return next((each for each in answer.channels if each.name == channel), None)
