"""How many messages a consumer holds: the data file all SDKs replay, and what must hold whatever happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fila.prefetch import (
    AGE_FACTOR,
    BUFFER_MESSAGES_MAX,
    BUFFER_US,
    AdaptivePrefetch,
    Decision,
    FixedPrefetch,
    PrefetchControl,
)

CONFORMANCE = Path(__file__).parents[2] / "sdks/conformance/prefetch.yaml"
SCENARIOS = yaml.load(CONFORMANCE.read_text(), yaml.CSafeLoader)["scenarios"]


def play(control: AdaptivePrefetch, step: dict[str, Any]) -> Any:
    at, event, loop, count = step["at"], step["event"], step.get("loop"), step.get("count")
    match event:
        case "joined":
            return control.joined(at, loop, step["size"])
        case "left" | "idle":
            return getattr(control, event)(at, loop)
        case "delivered":
            return control.delivered(at, count)
        case "settled":
            return control.settled(at, loop, count)
        case "began":
            control.began(at, loop, count)
            return None
        case "answered":
            control.answered(at, loop)
            return None
        case "dropped":
            control.dropped(count)
            return None
        case "handled":
            return control.handled(at, step["handling_us"], loop, step.get("after_us"))
        case "tick":
            return control.tick(at)
    raise AssertionError(event)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
def test_the_controller_answers_each_step_as_the_file_says(scenario):
    control = AdaptivePrefetch()

    for step in scenario["steps"]:
        told = play(control, step)

        assert told == (Decision(step["window"], step["give_back"]) if "window" in step else None), step
        if "check_at" in step:
            assert control.check_at_us == step["check_at"], step
        if "median_us" in step:
            assert control.times.median_us == step["median_us"], step


def test_a_fixed_number_is_the_window_for_ever():
    control: PrefetchControl = FixedPrefetch(100)

    decisions = [
        control.joined(0, 1, 1),
        control.delivered(0, 100),
        control.handled(9_000_000, 9_000_000, 1, 0),
        control.tick(10_000_000),
    ]

    assert decisions == [None] * 4
    assert (control.window, control.check_at_us, control.times.median_us) == (100, None, 9_000_000)


class Work:
    """Loops that take, work and settle; a broker that fills the window, half a millisecond away."""

    def __init__(self, handling_us: list[list[int]]) -> None:
        self.control = AdaptivePrefetch()
        self.now = 0
        self.left_us = [iter(times) for times in handling_us]
        self.free_at: list[int | None] = [None] * len(handling_us)
        self.began_at = [0] * len(handling_us)
        self.wire: list[tuple[int, int]] = []
        self.buffer: list[int] = []
        self.waited_us_max = 0
        self.buffered_max = 0
        for loop in range(len(handling_us)):
            self.control.joined(0, loop, 1)

    def run(self, until_us: int) -> None:
        while self.now < until_us:
            self.now += 250
            self.step()

    def step(self) -> None:
        for at, count in [frame for frame in self.wire if frame[0] <= self.now]:
            self.wire.remove((at, count))
            self.buffer += [self.now] * count
            self.obey(self.control.delivered(self.now, count))
        for loop, free_at in enumerate(self.free_at):
            if free_at is None:
                self.take(loop)
            elif free_at <= self.now:
                self.obey(self.control.settled(self.now, loop, 1))
                self.obey(self.control.handled(self.now, self.now - self.began_at[loop], loop, 0))
                self.free_at[loop] = None
                self.take(loop)
        if self.control.check_at_us is not None and self.control.check_at_us <= self.now:
            self.obey(self.control.tick(self.now))
        in_hand = sum(free_at is not None for free_at in self.free_at)
        room = self.control.window - in_hand - len(self.buffer) - sum(count for _, count in self.wire)
        if room > 0:
            self.wire.append((self.now + 500, room))
        self.buffered_max = max(self.buffered_max, len(self.buffer))
        if self.buffer:
            self.waited_us_max = max(self.waited_us_max, self.now - self.buffer[0])

    def take(self, loop: int) -> None:
        if self.buffer:
            self.buffer.pop(0)
            self.began_at[loop] = self.now
            self.free_at[loop] = self.now + next(self.left_us[loop], 10**12)
            self.control.began(self.now, loop, 1)
        else:
            self.obey(self.control.idle(self.now, loop))

    def obey(self, decision: Decision | None) -> None:
        if decision is not None and decision.give_back:
            assert decision.give_back <= len(self.buffer)
            del self.buffer[-decision.give_back :]


times_of_a_loop = st.lists(
    st.one_of(st.integers(1, 300), st.integers(300, 60_000), st.integers(60_000, 400_000)), max_size=40
)


@given(st.lists(times_of_a_loop, min_size=1, max_size=4))
def test_nothing_lies_buffered_for_a_quarter_of_a_second_behind_loops_that_are_busy(handling_us):
    work = Work(handling_us)

    work.run(1_500_000)

    # The front one may stay for the next loop that comes free, which a stuck loop does not: 50 ms more.
    assert work.waited_us_max <= (AGE_FACTOR + 1) * BUFFER_US
    assert work.buffered_max <= BUFFER_MESSAGES_MAX + len(handling_us)


@given(st.lists(st.integers(60_000, 400_000), min_size=10, max_size=10), st.integers(1, 4))
def test_slow_loops_hold_one_message_each_and_always_get_the_next(handling_us, loops):
    work = Work([handling_us] * loops)
    work.run(60_000)

    work.buffered_max = 0
    work.run(sum(handling_us) - 60_000)

    assert work.buffered_max <= loops, "at most what the loops are about to take"
    assert all(free_at is not None for free_at in work.free_at) or work.wire, "and no loop is forgotten"
