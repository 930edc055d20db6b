"""The wait of a pull, which whoever called may end before its time."""

from __future__ import annotations

from collections.abc import Callable


class PullWait:
    """Handed to `Broker.lease`. A pull whose wait is over is answered once, with the messages it was given or none.

    Cancelling the call instead throws an answer away that is on its way already.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._tell: Callable[[], None] = lambda: None

    def begins(self, tell: Callable[[], None]) -> None:
        """The pull is with the core, and `tell` ends its wait there."""
        self._tell = tell
        if self.is_over:
            tell()

    def end(self) -> None:
        """Wait no longer. Does nothing the second time."""
        if not self.is_over:
            self.is_over = True
            self._tell()
