"""Who of the Redis clients may work now: one slice of a turn of the loop for all of them, round robin.

A client may pipeline cheap commands faster than they are carried out, and the loop's thread serves
gRPC and every other client as well. So what all Redis clients together do in one turn of the loop
ends after SLICE_NS; who has more to do stands in line, is not read from meanwhile, and goes on in
the next turn behind those who came before it.

A turn of the loop is only counted while somebody stands in line. Without a line the slice grows back
by the time in which no client worked: within one turn, where they come one right after the other, that
is next to nothing, and between turns it costs no call of the loop.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

SLICE_NS = 2_000_000
"""Of all clients together. A command that began in time may end later: the longest takes about 1 ms."""

SHARE_NS = 500_000
"""Of one client, while others stand in line."""


class Worker(Protocol):
    """Somebody with commands to carry out."""

    def work(self, until_ns: int) -> bool:
        """Work until there is nothing to do, or `until_ns` has passed; True when there is more to do."""
        ...


class Turns:
    """All methods belong to the loop's thread."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._call_soon = call_soon
        self._now_ns = now_ns
        self._line: deque[Worker] = deque()
        self._in_line: set[Worker] = set()
        self._left_ns = SLICE_NS
        self._ended_ns = 0
        """When somebody last worked."""

    @property
    def now_ns(self) -> Callable[[], int]:
        """The clock that `until_ns` is a time of."""
        return self._now_ns

    def is_in_line(self, worker: Worker) -> bool:
        """Whether it has more to do than this turn had time for."""
        return worker in self._in_line

    def enter(self, worker: Worker) -> None:
        """Let it work now when the slice is not used up and nobody waits, else when its time comes."""
        if self._line:
            if worker not in self._in_line:
                self._stand_in_line(worker)
            return
        began_ns = self._now_ns()
        left_ns = self._left_ns + began_ns - self._ended_ns
        self._left_ns = min(SLICE_NS, left_ns)
        if self._left_ns > 0:
            self._run(worker, began_ns, self._left_ns)
        else:
            self._stand_in_line(worker)
        if self._line:
            self._call_soon(self._next_turn)

    def leave(self, worker: Worker) -> None:
        """It has gone; its place in the line goes with it."""
        if worker in self._in_line:
            self._in_line.discard(worker)
            self._line.remove(worker)

    def _next_turn(self) -> None:
        self._left_ns = SLICE_NS
        while self._line and self._left_ns > 0:
            worker = self._line.popleft()
            self._in_line.discard(worker)
            self._run(worker, self._now_ns(), SHARE_NS if self._line else self._left_ns)
        if self._line:
            self._call_soon(self._next_turn)

    def _run(self, worker: Worker, began_ns: int, share_ns: int) -> None:
        has_more = worker.work(began_ns + share_ns)
        self._ended_ns = self._now_ns()
        self._left_ns -= self._ended_ns - began_ns
        if has_more:
            self._stand_in_line(worker)

    def _stand_in_line(self, worker: Worker) -> None:
        self._line.append(worker)
        self._in_line.add(worker)
