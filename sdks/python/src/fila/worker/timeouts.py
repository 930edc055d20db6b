"""Time limits of handlers on one event loop, fair to those that had no turn.

A handler that blocks the loop takes time from all its neighbours. Were their limits not moved, they would all be over
the moment the loop turns again, and a dozen innocent messages would count a failed attempt.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

LOOK_EVERY_S = 0.05
LAG_S_MIN = 0.1
"""Lags below this are everyday."""


class _Limit:
    """When one handler's time is over."""

    def __init__(self, timeout: asyncio.Timeout, at_s: float) -> None:
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._at_s = at_s
        self._timer = self._loop.call_at(at_s, self._is_due)

    def move(self, seconds: float) -> None:
        """The loop stood still for so long."""
        self._timer.cancel()
        self._at_s += seconds
        self._timer = self._loop.call_at(self._at_s, self._is_due)

    def _is_due(self) -> None:
        lag_s = self._loop.time() - self._at_s
        if lag_s > LAG_S_MIN:
            self.move(lag_s + LOOK_EVERY_S)  # it may have had that long left when the loop stood still
        else:
            self._timeout.reschedule(self._loop.time())

    def cancel(self) -> None:
        self._timer.cancel()


class Timeouts:
    """The limits that run now."""

    def __init__(self) -> None:
        self._running: set[_Limit] = set()
        self._watch: asyncio.TimerHandle | None = None
        self._due_s = 0.0

    @contextlib.asynccontextmanager
    async def start(self, seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
        """Limit what runs inside; None does not."""
        async with asyncio.timeout(None) as timeout:
            if seconds is None:
                yield timeout
                return
            limit = _Limit(timeout, asyncio.get_running_loop().time() + seconds)
            self._running.add(limit)
            self._look_later()
            try:
                yield timeout
            finally:
                limit.cancel()
                self._running.discard(limit)

    def _look_later(self) -> None:
        if self._watch is None:
            loop = asyncio.get_running_loop()
            self._due_s = loop.time() + LOOK_EVERY_S
            self._watch = loop.call_at(self._due_s, self._look)

    def _look(self) -> None:
        lag_s = asyncio.get_running_loop().time() - self._due_s
        self._watch = None
        if lag_s > LAG_S_MIN:
            for limit in self._running:
                limit.move(lag_s)
        if self._running:
            self._look_later()
