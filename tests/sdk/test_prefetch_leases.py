"""How many leases a message costs: loops of every speed against a broker that fills the window, step by step."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate, count, cycle, repeat
from typing import Any

import pytest

from fila.prefetch import SAMPLE_EVERY_US, AdaptivePrefetch, Decision

MESSAGES = 200
WIRE_US = 200
"""From the client to the broker, and back."""


class Loop:
    """One worker."""

    def __init__(self, number: int, work_us: list[int]) -> None:
        self.number = number
        self.work_us = cycle(work_us)
        self.sample_us: int | None = None
        self.answered_us: int | None = None
        self.took = 0


class Course:
    """A queue of so many messages, worked off. The broker fills the room of an ack as soon as it sees it, and answers
    later. `arrive_us`: when they come, if they are not there from the start."""

    def __init__(
        self,
        work_us: list[list[int]],
        *,
        sync_us: int = 0,
        acks_first: bool = False,
        arrive_us: Sequence[int] = (),
        messages: int = MESSAGES,
    ) -> None:
        self.leases = self.acked = self.windows = self.now = 0
        self._messages = messages
        self._control = AdaptivePrefetch()
        self._answer_us = 2 * WIRE_US + sync_us
        self._acks_first = acks_first
        self._loops = [Loop(number, times) for number, times in enumerate(work_us)]
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = count()
        self._waiting = 0 if arrive_us else messages
        for at_us in arrive_us:
            self._later(at_us, self._arrive)
        self._held = self._window = 0  # as the broker knows them
        self._buffer = 0
        self._idle: deque[Loop] = deque()
        self._next_sample_us = 0

    def run(self) -> float:
        """Return the leases made for each message acked."""
        for loop in self._loops:
            self._obey(self._control.joined(0, loop.number, 1))
        for loop in self._loops:
            self._take(loop)
        while self._events and self.acked < self._messages:
            self.now, _, event, arguments = heapq.heappop(self._events)
            event(*arguments)
        assert self.acked == self._messages
        return self.leases / self.acked

    def _later(self, wait_us: int, event: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self._events, (self.now + wait_us, next(self._order), event, arguments))

    # The client.

    def _obey(self, decision: Decision | None) -> None:
        if decision is not None:
            self.windows += 1
            self._buffer -= decision.give_back
            self._later(WIRE_US, self._set_window, *decision)
        check_at_us = self._control.check_at_us
        if self._buffer and check_at_us is not None:
            self._later(max(0, check_at_us - self.now), self._tick, check_at_us)

    def _tick(self, due_us: int) -> None:
        if self._control.check_at_us == due_us <= self.now:
            self._obey(self._control.tick(self.now))

    def _delivered(self, messages: int) -> None:
        self._buffer += messages
        self._obey(self._control.delivered(self.now, messages))
        while self._buffer and self._idle:
            self._take(self._idle.popleft())

    def _take(self, loop: Loop) -> None:
        if not self._buffer:
            self._idle.append(loop)
            self._obey(self._control.idle(self.now, loop.number))
            return
        self._buffer -= 1
        loop.took += 1
        self._control.began(self.now, loop.number, 1)
        if self.now >= self._next_sample_us:
            self._next_sample_us = self.now + SAMPLE_EVERY_US
            loop.sample_us = self.now
        if self._acks_first:
            self._ack(loop)
        else:
            self._later(next(loop.work_us), self._ack, loop)

    def _ack(self, loop: Loop) -> None:
        self.acked += 1
        loop.answered_us = None
        self._obey(self._control.settled(self.now, loop.number, 1))
        self._later(WIRE_US, self._see_ack)
        self._later(self._answer_us, self._answered, loop)

    def _answered(self, loop: Loop) -> None:
        loop.answered_us = self.now
        self._control.answered(self.now, loop.number)
        self._obey(None)
        self._later(next(loop.work_us) if self._acks_first else 0, self._ask, loop)

    def _ask(self, loop: Loop) -> None:
        if loop.sample_us is not None and loop.answered_us is not None:
            handling_us, after_us = self.now - loop.sample_us, self.now - loop.answered_us
            loop.sample_us = None
            self._obey(self._control.handled(self.now, handling_us, loop.number, after_us))
        self._take(loop)

    # The broker.

    def _arrive(self) -> None:
        self._waiting += 1
        self._fill()

    def _set_window(self, window: int, give_back: int) -> None:
        self._window = window
        self._held -= give_back
        self._waiting += give_back
        self._fill()

    def _see_ack(self) -> None:
        self._held -= 1
        self._fill()

    def _fill(self) -> None:
        room = min(self._window - self._held, self._waiting)
        if room > 0:
            self._waiting -= room
            self._held += room
            self.leases += room
            self._later(WIRE_US, self._delivered, room)


@pytest.mark.parametrize("sync_us", [0, 80_000])
@pytest.mark.parametrize("acks_first", [False, True], ids=["works-first", "acks-first"])
@pytest.mark.parametrize("workers", [1, 32])
@pytest.mark.parametrize("ms", [1, 10, 30, 40, 45, 49, 60, 100, 300, 2_000, 10_000])
def test_a_message_costs_one_lease_however_slow_the_handler_is(ms, workers, acks_first, sync_us):
    course = Course([[ms * 1_000]] * workers, sync_us=sync_us, acks_first=acks_first)

    assert course.run() <= 1.05


@pytest.mark.parametrize("workers", [1, 32])
@pytest.mark.parametrize("seed", range(5))
def test_a_twentieth_of_long_messages_among_short_ones_costs_a_quarter_more_leases(workers, seed):
    dice = random.Random(seed)
    times = [
        [dice.choices([1_000, 200_000], [95, 5])[0] for _ in range(MESSAGES)] for _ in repeat(0, workers)
    ]

    assert Course(times).run() <= 1.3


@pytest.mark.parametrize("seed", range(3))
def test_quick_work_whose_length_changes_costs_a_window_each_fifty_messages_at_most(seed):
    lengths = random.Random(seed)
    course = Course([[lengths.randint(10, 400) for _ in range(997)]], messages=4000)

    assert course.run() == 1.0
    assert course.windows <= 4000 / 50


@pytest.mark.parametrize("acks_first", [False, True], ids=["works-first", "acks-first"])
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("ms", [1, 10, 30, 60, 300])
@pytest.mark.parametrize("seed", range(3))
def test_a_queue_that_is_idle_nine_tenths_of_the_time_returns_fewer_than_one_delivery_in_fifty(
    seed, ms, workers, acks_first
):
    dice = random.Random(seed)
    each_us = 10 * ms * 1_000 // workers
    arrive_us = [*accumulate(int(dice.expovariate(1 / each_us)) for _ in range(MESSAGES))]
    course = Course([[ms * 1_000]] * workers, acks_first=acks_first, arrive_us=arrive_us)

    course.run()
    assert course.leases - course.acked < course.leases / 50
