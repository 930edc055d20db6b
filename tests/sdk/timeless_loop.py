"""An event loop on which a test of moments is exact, however busy the machine is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class TimelessLoop(asyncio.SelectorEventLoop):
    """Its time passes where all its tasks wait, and then at once, and where a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        look = selector.select

        def look_at_once(timeout_s: float | None) -> Any:
            self.now_s += timeout_s or 0.0
            return look(0)

        selector.select = look_at_once

    def time(self) -> float:
        return self.now_s

    def play(self, told: Coroutine[Any, Any, None]) -> None:
        """Run it to its end."""
        with asyncio.Runner(loop_factory=lambda: self) as runner:
            runner.run(told)
