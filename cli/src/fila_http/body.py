"""A request's body, read within its bounds; and the one budget for all bytes that the gateway holds.

a body        at most `body_bytes_max`, whole within `body_s_max`
all together  bodies that are read, and answers that their callers have not taken yet: `held_bytes_max`
one caller    as much as it leaves to others: so one alone has at most half, and the next caller finds room

Room for a body is taken before it is read, by the length that its head tells, and waited for: so a caller that has all
of its share costs no more than connections that rest. Large bodies are read a few pieces a turn of the loop, however
many arrive, so that small requests come in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Self

from starlette.datastructures import Headers
from starlette.types import Receive

from fila_http.options import Bounds
from fila_http.problems import Problem, busy, invalid, too_large

SMALL_BYTES = 16 << 10
"""A body or an answer that counts in what the gateway holds, and in no caller's share."""

WAITING_MAX = 100
"""Bodies that wait for room at a time: what came with their heads is held meanwhile, some 300 KiB each at most."""

PIECE_BYTES = 64 << 10
"""A piece of a body as large as this is one of many."""

PIECES_A_TURN = 2


class Gone(Exception):
    """The caller went away; nobody is there to be answered."""


class Budget:
    """How many bytes the gateway may hold, and who holds them. A holder is a key, or a connection that shows none."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held = 0
        self.waiting = 0
        """Bodies that wait for room."""

        self.pace = Pace()
        self._held_by: dict[str, int] = {}
        self._freed = asyncio.Event()

    def held_by(self, holder: str) -> int:
        """How many of them are this one's."""
        return self._held_by.get(holder, 0)

    def take(self, holder: str, count: int, *, is_part: bool = False) -> bool:
        """Whether there was room for so many more of its; a part is of something whose size nobody knows yet."""
        own, after = self.held_by(holder) + count, self.held + count
        room = self.bytes_max - after
        # What is larger than all passes alone: who set the bounds so wants it to pass. What is small takes nothing off
        # its share: the connections bound it, and who sends large bodies may send small ones meanwhile.
        is_small = count <= SMALL_BYTES and not is_part
        if (room < 0 if is_small else room < own) and self.held:
            return False
        self._held_by[holder] = own
        self.held = after
        return True

    async def take_in_turn(self, holder: str, count: int) -> None:
        """Wait until there is room for so many more."""
        while not self.take(holder, count):
            self._freed.clear()
            await self._freed.wait()

    def give_back(self, holder: str, count: int) -> None:
        """So many are not held any more."""
        self.held -= count
        self._held_by[holder] -= count
        if not self._held_by[holder]:
            del self._held_by[holder]
        self._freed.set()


class Pace:
    """Lets a few wait for nothing but their turn, each time that the loop goes round."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Return in turn."""
        loop = asyncio.get_running_loop()
        mine = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._go_round, loop)
        self._waiting.append(mine)
        await mine

    def _go_round(self, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(min(PIECES_A_TURN, len(self._waiting))):
            mine = self._waiting.popleft()
            if not mine.done():
                mine.set_result(None)
        if self._waiting:
            loop.call_soon(self._go_round, loop)


class Hold:
    """What one request holds of the budget: given back when the block ends."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.holder = ""
        """Set before anything is taken."""

        self.count = 0

    def take(self, count: int, *, is_part: bool = False) -> None:
        """Raises Problem where the gateway, or this caller, holds too much."""
        if not self._budget.take(self.holder, count, is_part=is_part):
            raise self._refusal()
        self.count += count

    async def take_in_time(self, count: int, seconds: float) -> None:
        """Wait for room. Raises Problem when there is none in time, or too many wait."""
        budget = self._budget
        if not budget.take(self.holder, count):
            if budget.waiting >= WAITING_MAX:
                raise self._refusal()
            budget.waiting += 1
            try:
                async with asyncio.timeout(seconds):
                    await budget.take_in_turn(self.holder, count)
            except TimeoutError:
                raise self._refusal() from None
            finally:
                budget.waiting -= 1
        self.count += count

    async def turn(self) -> None:
        """Return when the next piece of a large body may be read."""
        await self._budget.pace.turn()

    def _refusal(self) -> Problem:
        return busy(
            f"the gateway holds {self._budget.held:,} bytes of requests and answers, of {self._budget.bytes_max:,} "
            f"at most, and {self._budget.held_by(self.holder):,} of them are this caller's, who may have as much "
            "as it leaves to others: try again in a second, with smaller batches or fewer at a time"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.count:
            self._budget.give_back(self.holder, self.count)


async def read_body(headers: Headers, receive: Receive, bounds: Bounds, hold: Hold) -> bytes:
    """The whole body. Raises Problem; Gone when the caller left."""
    told = headers.get("content-length", "0")
    if not told.isdecimal() or len(told) > 18:
        raise invalid(f"Content-Length must be a number, got {told[:40]!r}")
    _check_size(int(told), bounds)
    await hold.take_in_time(int(told), bounds.body_s_max)
    try:
        async with asyncio.timeout(bounds.body_s_max):
            return await _read(receive, bounds, hold, is_told=told != "0")
    except TimeoutError:
        raise invalid(
            f"the body did not arrive within {bounds.body_s_max:g} s; send it faster, or in smaller batches",
            status=408,
            reason="BODY_TOO_SLOW",
        ) from None


async def _read(receive: Receive, bounds: Bounds, hold: Hold, *, is_told: bool) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Gone
        piece = event.get("body", b"")
        if piece:
            size += len(piece)
            _check_size(size, bounds)
            if not is_told:
                hold.take(len(piece), is_part=True)
            pieces.append(piece)
        if not event.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if len(piece) >= PIECE_BYTES:
            await hold.turn()


def _check_size(size: int, bounds: Bounds) -> None:
    if size > bounds.body_bytes_max:
        raise too_large(
            f"the body may have {bounds.body_bytes_max:,} bytes, and has {size:,} or more; send smaller batches, or "
            "start the gateway with a larger --body-bytes-max"
        )
