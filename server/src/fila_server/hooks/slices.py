"""When a queue's script may run: one slice of a turn of the loop for the whole stage, round robin over queues.

A slow script is legal, and any number of frames may wait for it. If each frame had a slice of its
own, a turn of the loop would grow with their number, and every RPC takes several turns. So all
crossings of one turn together end after SLICE_NS. A frame that finds the slice used up, or others
waiting, stands in its queue's line; queues take turns, a crossing each, however many frames they have.
"""

from __future__ import annotations

import asyncio
from collections import deque

SLICE_NS = 2_500_000
"""After this long the stage lets the other work of the loop run. One crossing more may start just before, and
that ends after `HookLimits.pause_after_ns`: together they stay below 5 ms, unless a single call takes longer,
which its own limit allows."""


class Slices:
    """Give each crossing its time: `await may_begin(queue)`, do the crossing, `ended(its time)`."""

    def __init__(self) -> None:
        self._left_ns = SLICE_NS
        self._lines: dict[bytes, deque[asyncio.Future[None]]] = {}
        """Frames that wait, by queue; the queue whose turn it is stands first."""
        self._is_running = False
        """Somebody was told to begin, and has not ended."""
        self._is_scheduled = False

    @property
    def waiting_count(self) -> int:
        """Frames that wait for their turn."""
        return sum(map(len, self._lines.values()))

    async def may_begin(self, queue: bytes) -> None:
        """Return when the crossing may begin: at once while this turn has time left and nobody waits."""
        if self._left_ns > 0 and not self._lines and not self._is_running:
            self._is_running = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(queue, deque()).append(turn)
        self._schedule()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(queue, turn)
            else:
                self.ended(0)  # it was told to begin, and will not
            raise

    def ended(self, took_ns: int) -> None:
        """The crossing is over; the next one begins, in this turn of the loop or the next."""
        self._is_running = False
        self._left_ns -= took_ns
        if self._left_ns > 0:
            self._let_next_begin()
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_scheduled = False
        self._left_ns = SLICE_NS
        self._let_next_begin()

    def _let_next_begin(self) -> None:
        while self._lines and not self._is_running:
            queue, line = next(iter(self._lines.items()))
            turn = line.popleft()
            # Its next frame stands behind the other queues.
            del self._lines[queue]
            if line:
                self._lines[queue] = line
            if not turn.done():  # else its caller went away, and has not run since
                self._is_running = True
                turn.set_result(None)

    def _leave(self, queue: bytes, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(queue)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[queue]
