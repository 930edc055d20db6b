"""Wakes the loops that wait for messages: one at first, the others as far as it leaves any.

A quick loop takes all that a delivery brought before another loop has its turn. If each delivery woke every loop that
waits, a consumer with a hundred of them would spend its time on finding out that there is nothing left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sized


class Arrivals:
    """Like an Event that is set while something may be `ready`, but wakes no more loops than find something."""

    def __init__(self, ready: Sized) -> None:
        self._ready = ready
        self._event_loop = asyncio.get_running_loop()
        self.came_at_s = float("-inf")
        """When messages arrived last, by the event loop's clock."""
        self._is_set = False
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._spreading = False

    def came(self) -> None:
        """Messages arrived."""
        self.came_at_s = self._event_loop.time()
        self._is_set = True
        self._wake(1)
        if self._waiters and not self._spreading:
            self._spreading = True
            self._event_loop.call_soon(self._spread)

    def _spread(self) -> None:
        # The one that was woken has had its turn by now.
        self._spreading = False
        self._wake(len(self._ready))

    def wake_all(self) -> None:
        """Every loop should look again: what it may do has changed."""
        self._is_set = True
        self._wake(len(self._waiters))

    def none_left(self) -> None:
        """A loop looked, and there was nothing for it."""
        self._is_set = False

    async def wait(self) -> None:
        """Return when it is worth looking again; at once when nobody found nothing since messages came."""
        if self._is_set:
            return
        waiter = self._event_loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self._wake(1)  # it was woken, and another must look in its place
            elif waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    def _wake(self, count: int) -> None:
        while count and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():  # else its loop was cancelled a moment ago
                waiter.set_result(None)
                count -= 1
