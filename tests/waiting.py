"""Waiting for what other threads and processes do, and how long it took, on machines that are slow or stand still.

When to give up is no bound of anything that is promised: only a fault takes as long. A bound that is promised is asked
of several attempts where one misses it: what is too slow is so each time, and a machine that stood still is not.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")

GIVE_UP_S = 30.0
ATTEMPTS = 4
TICK_S = 0.01


class RunningClock:
    """Seconds in which this machine let this process run: of a pause, of the machine or of all that runs on it, it
    counts three ticks. For bounds on what a server does beside a test that cannot be done again."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick)
        self._thread.start()

    def _tick(self) -> None:
        last_s = time.monotonic()
        while not self._over.wait(TICK_S):
            now_s = time.monotonic()
            self.now_s += min(now_s - last_s, 3 * TICK_S)
            last_s = now_s

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


def until(holds: Callable[[], Found]) -> Found:
    """What `holds` returns once it is true."""
    give_up_at_s = time.monotonic() + GIVE_UP_S
    while not (found := holds()):
        assert time.monotonic() < give_up_at_s, "it did not come true"
        time.sleep(0.02)
    return found


async def eventually(look: Callable[[], Awaitable[Found]], *, give_up_s: float = GIVE_UP_S) -> Found:
    """What `look` returns once it is true."""
    give_up_at_s = time.monotonic() + give_up_s
    while not (found := await look()):
        assert time.monotonic() < give_up_at_s, "it did not come true"
        await asyncio.sleep(0.02)
    return found


def within(most: float, attempt: Callable[[int], float]) -> None:
    """`attempt`, told its number from 0, does something, asserts all that holds at any pace, and returns what it took,
    in seconds or in what else depends on the pace. It is done again where that was more than `most`."""
    took: list[float] = []
    while not took or took[-1] > most:
        assert len(took) < ATTEMPTS, f"took {took}, and may take {most}"
        took.append(attempt(len(took)))


async def within_awaited(most: float, attempt: Callable[[int], Awaitable[float]]) -> None:
    """The same for an attempt that is awaited."""
    took: list[float] = []
    while not took or took[-1] > most:
        assert len(took) < ATTEMPTS, f"took {took}, and may take {most}"
        took.append(await attempt(len(took)))
