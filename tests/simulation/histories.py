"""Random histories, each by its seed: one engine has them one after the other, and each is judged as it goes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol

from tests.core.driven_engine import DrivenEngine


class Wrong(AssertionError):
    """The core did not do what the twin does, or broke a promise."""


class Judge(Protocol):
    """Holds intervals of a history against a promise, and counts them."""

    judged: int


class History(Protocol):
    """What happens to an engine."""

    @property
    def promise(self) -> Judge:
        """What it is held against."""
        ...

    def run(self) -> None:
        """Let it happen. Raises Wrong."""
        ...

    def clear(self) -> None:
        """Leave nothing of it in the engine."""
        ...


class Bench:
    """An engine and its histories."""

    def __init__(self, engine: DrivenEngine, history: Callable[[int], History]) -> None:
        self.engine, self._history = engine, history
        self.judged = 0

    def run(self, first: int, count: int) -> int:
        """The histories of these seeds; how many intervals were judged. Raises Wrong, which names the seed."""
        before = self.judged
        for seed in range(first, first + count):
            history = self._history(seed)
            try:
                history.run()
            except Wrong as wrong:
                raise Wrong(f"history {seed}: {wrong}") from None
            finally:
                self.judged += history.promise.judged
                history.clear()
        return self.judged - before


def main(bench: Bench) -> None:
    """Histories by their seeds, which the command line says: the first one, and how many."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    print(f"{count} histories from {first}: {bench.run(first, count)} intervals judged, none outside")
    bench.engine.remove()
