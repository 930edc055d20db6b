"""One budget for answers that are on their way out and that their clients have not read yet.

A client may ask for much and read nothing, on thousands of streams. What each is owed is small; what all
are owed together fills the memory. So every larger answer is counted from the moment the core gave it
until the transport has taken it. Beyond the budget pulls wait, reads are refused, and consumers get no
deliveries: their messages go to those who read. Small answers are not counted, so that clients who read
are served while others hoard.

Where a caller's connection is known, it may have as many bytes as are still free: one that reads nothing has half of
the budget at most, two a third each (edge/io/unread.pxd says where this is from).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from fila_server.errors import Overloaded

COUNTED_FROM_BYTES = 4096
"""Smaller answers cost less than the stream they travel on."""

PAGE_BYTES_MAX = 4 * 1024 * 1024
"""An answer of many messages stays below it, unless one message is larger: what is set aside before one is read."""

RETRY_AFTER_MS = 1000

LOOK_ELSEWHERE_S = 0.05
"""How often those who wait here look whether an edge's threads have made room."""


class Unwritten:
    """How much is owed. All methods belong to the loop's thread."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._held_of: dict[str, int] = {}
        """By connection; of those that hold something."""
        self._waiting: deque[tuple[int, str, Callable[[], None]]] = deque()
        self._is_closed = False
        self._elsewhere: Callable[[], int] = lambda: 0
        self._report: Callable[[int], None] | None = None
        self._looking: asyncio.TimerHandle | None = None

    def share(self, elsewhere: Callable[[], int], report: Callable[[int], None]) -> None:
        """Have the budget in common with threads of an edge: `elsewhere` is what they hold, `tell` says what we do."""
        self._elsewhere, self._report = elsewhere, report

    def take(self, size: int, peer: str = "") -> bool:
        """Count an answer in when there is room for it. True: `give(size, peer)` when it is written or dropped.

        `peer` is the connection whose share it counts in, empty where none is known.
        """
        if size < COUNTED_FROM_BYTES:
            return True
        if not self._fits(size, peer):
            return False
        self._count(size, peer)
        return True

    def add(self, size: int, peer: str = "") -> None:
        """Count in what cannot be refused any more."""
        if size >= COUNTED_FROM_BYTES:
            self._count(size, peer)

    def give(self, size: int, peer: str = "") -> None:
        """An answer has been written, or dropped."""
        if size >= COUNTED_FROM_BYTES:
            self._count(-size, peer)
            self._wake()

    def refusal(self) -> Overloaded:
        """Return the error of a read there is no room for."""
        return Overloaded(
            f"{self._total()} bytes of answers are not read by their clients yet, and limits.unwritten_bytes_max "
            f"is {self.bytes_max}; read them, or ask for less at a time",
            retry_after_ms=RETRY_AFTER_MS,
        )

    def set_page_aside(self, peer: str = "") -> None:
        """Count a whole page in before it is read; then `page_is`, then `give`, for the same peer. Raises
        Overloaded."""
        if not self.take(PAGE_BYTES_MAX, peer):
            raise self.refusal()

    def page_is(self, size: int, peer: str = "") -> None:
        """The page that was set aside has been read, and is so large."""
        self.add(size, peer)
        self.give(PAGE_BYTES_MAX, peer)

    def check_write(self) -> None:
        """For calls whose answers are counted but must not be refused: raise Overloaded at twice the budget."""
        if self._total() >= 2 * self.bytes_max:
            raise self.refusal()

    def at_room(self, size: int, call: Callable[[], None], peer: str = "") -> None:
        """Call once, when there is room for so much and for those who asked before, but for connections that have all
        of their share."""
        self._waiting.append((size, peer, call))
        self._wake()

    async def room(self, size: int, timeout_s: float | None = None, peer: str = "") -> None:
        """Return when there may be room for so much. Raises Overloaded after `timeout_s`."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        self.at_room(size, wake, peer)
        try:
            # Not asyncio.wait_for, which swallows a cancellation that comes as it is woken (Python 3.11).
            async with asyncio.timeout(timeout_s):
                await woken
        except TimeoutError:
            raise self.refusal() from None
        finally:
            if (size, peer, wake) in self._waiting:
                self._waiting.remove((size, peer, wake))

    def close(self) -> None:
        """The server drains: nobody waits any more."""
        self._is_closed = True
        self._wake()

    def _fits(self, size: int, peer: str = "") -> bool:
        # One that is larger than the whole budget goes when it is alone.
        held_bytes = self._total()
        return held_bytes + self._held_of.get(peer, 0) + size <= self.bytes_max or held_bytes == 0

    def _total(self) -> int:
        return self.held_bytes + self._elsewhere()

    def _count(self, size: int, peer: str) -> None:
        self.held_bytes += size
        if peer:
            held_bytes = self._held_of.pop(peer, 0) + size
            if held_bytes:
                self._held_of[peer] = held_bytes
        if self._report is not None:
            self._report(self.held_bytes)

    def _look_again(self) -> None:
        self._looking = None
        self._wake()

    def _wake(self) -> None:
        promised = 0
        passed_over: deque[tuple[int, str, Callable[[], None]]] = deque()
        while self._waiting and (self._is_closed or self._fits(promised + self._waiting[0][0])):
            size, peer, call = self._waiting.popleft()
            if not self._is_closed and not self._fits(promised + size, peer):
                passed_over.append((size, peer, call))  # others do not wait for it to read
                continue
            promised += size
            call()
        passed_over.extend(self._waiting)
        self._waiting = passed_over
        if self._waiting and self._report is not None and self._looking is None:
            # What is read elsewhere makes room here, and nobody says so.
            self._looking = asyncio.get_running_loop().call_later(LOOK_ELSEWHERE_S, self._look_again)
