"""A call that the broker carries out in pieces: how far it has come, while somebody waits for its answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from fila_cli.progress import Progress
from fila_cli.session import Stopped

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
