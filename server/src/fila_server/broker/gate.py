"""A bound on how many of the expensive calls are under way; the others wait in line, in order.

Admin calls are rare, but nothing stops a client from sending thousands at once, and what each costs
is spent on the loop's thread and the scheduler's. Behind a gate they take turns with everybody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType

from fila_server.errors import Overloaded

WAITING_MAX = 1_000
"""Calls that may stand in line; each keeps its request in memory."""
WAITING_OF_ONE_MAX = 16
"""Of those of one name."""


class Gate:
    """`async with gate:` around the expensive part. Raises Overloaded when too many wait already."""

    def __init__(
        self, what: str, *, at_once: int, rest_s: float = 0.0, waiting_max: int = WAITING_MAX
    ) -> None:
        self._what = what
        self._waiting_max = waiting_max
        self._waiting = 0
        self._rest_s = rest_s
        """Each place stays empty for so long after a call, so that the loop is not filled by such calls."""
        self._places = asyncio.Semaphore(at_once)

    async def __aenter__(self) -> None:
        if self._waiting >= self._waiting_max:
            raise Overloaded(f"{self._waiting} {self._what} are waiting already", retry_after_ms=1000)
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rest_s:
            asyncio.get_running_loop().call_later(self._rest_s, self._places.release)
        else:
            self._places.release()


class GateByName:
    """A gate whose places go round among names: of each name one call at a time stands before it, and a few wait behind
    that one. So a caller with thousands waits for itself, and nobody else waits for it."""

    def __init__(self, what: str, *, at_once: int, waiting_max: int = WAITING_OF_ONE_MAX) -> None:
        self._what = what
        self._waiting_max = waiting_max
        self._all = Gate(what, at_once=at_once)
        self._by_name: dict[str, tuple[Gate, int]] = {}
        """With how many hold it or wait; dropped with the last."""

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[None]:
        """Enter in this name's turn. Raises Overloaded."""
        own, count = self._by_name.get(name) or (
            Gate(self._what, at_once=1, waiting_max=self._waiting_max),
            0,
        )
        self._by_name[name] = (own, count + 1)
        try:
            async with own, self._all:
                yield
        finally:
            own, count = self._by_name.pop(name)
            if count > 1:
                self._by_name[name] = (own, count - 1)
