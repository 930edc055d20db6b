"""Refusals that are told late: who is refused at once, and for nothing but a head or a count, asks again at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict

WAIT_S = 0.25
WAITING_MAX = 64


class Refusals:
    """Those that wait. The one that has waited longest is told when there are too many."""

    def __init__(self, wait_s: float = WAIT_S, waiting_max: int = WAITING_MAX) -> None:
        self._wait_s = wait_s
        self._waiting_max = waiting_max
        self._waiting: OrderedDict[asyncio.Event, None] = OrderedDict()

    async def wait(self) -> None:
        """Return when it may be told."""
        while len(self._waiting) >= self._waiting_max:
            self._waiting.popitem(last=False)[0].set()
        told = asyncio.Event()
        self._waiting[told] = None
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._wait_s):
                    await told.wait()
        finally:
            self._waiting.pop(told, None)
