"""Providers whose limit nobody knows, and a learned rate before each.

    python -m tests.simulation.providers 1 25       seeds 1 to 25 of each change, each from half and from twice

Nothing but the rate and its bucket stands between an endless backlog and the provider. It answers 429 beyond its
limit, with or without a time to wait, and counts what it let pass and what it refused. Time is told.
"""

from __future__ import annotations

import heapq
import math
import random
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from fila_server.core.structures.learned_rate import FollowingRate

NS_PER_S = 1_000_000_000
RUN_S = 1_200
APART_S = 120
"""The beginning is not judged: the rate starts at half of the limit, or at twice."""
CHANGES_EVERY_S = 120
STARTS = (0.5, 2.0)
LIMITS = (20.0, 300.0)


class Change(StrEnum):
    """What becomes of the limit every two minutes, and of that again after two more."""

    CONSTANT = "constant"
    HALVED = "halved and doubled"
    FIFTH = "a fifth and five times"
    TENTH = "a tenth and ten times"

    @property
    def part(self) -> float:
        return {Change.CONSTANT: 1.0, Change.HALVED: 0.5, Change.FIFTH: 0.2, Change.TENTH: 0.1}[self]


class Counter(Protocol):
    """How a provider counts."""

    def wait_s(self, now_s: float, limit: float) -> float | None:
        """Count a call; None lets it pass, and otherwise: how long until one more could."""


class Tokens:
    """A bucket of some seconds' worth: what most providers have."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.level = math.inf
        self.at_s = 0.0

    def wait_s(self, now_s: float, limit: float) -> float | None:
        self.level = min(limit * self.seconds, self.level + limit * (now_s - self.at_s))
        self.at_s = now_s
        if self.level < 1:
            return (1 - self.level) / limit
        self.level -= 1
        return None


class SlidingWindow:
    """Calls of the last so many seconds, without any slack."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.passed_s: deque[float] = deque()

    def wait_s(self, now_s: float, limit: float) -> float | None:
        while self.passed_s and self.passed_s[0] <= now_s - self.seconds:
            self.passed_s.popleft()
        if len(self.passed_s) >= limit * self.seconds:
            return self.passed_s[0] + self.seconds - now_s
        self.passed_s.append(now_s)
        return None


class FixedWindow:
    """Calls since the last full so many seconds of the clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.window = -1
        self.passed = 0

    def wait_s(self, now_s: float, limit: float) -> float | None:
        window = int(now_s // self.seconds)
        if window != self.window:
            self.window, self.passed = window, 0
        if self.passed >= limit * self.seconds:
            return (window + 1) * self.seconds - now_s
        self.passed += 1
        return None


TOLD: dict[str, Callable[[float], float]] = {
    "nothing": lambda _: 0.0,
    "the time": lambda wait_s: wait_s,
    "whole seconds": lambda wait_s: float(math.ceil(wait_s)),
}
"""What a 429 says of when to come again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one run, without its beginning."""

    passed: int
    refused: int
    limit: float
    """How many could have passed."""
    about: str

    @property
    def used(self) -> float:
        return self.passed / self.limit

    @property
    def refused_part(self) -> float:
        return self.refused / (self.passed + self.refused)


class World:
    """One provider by its seed, and who calls it."""

    def __init__(self, seed: int, change: Change, start: float, counter: Counter | None = None) -> None:
        self.chance = chance = random.Random(seed)
        self.change = change
        self.limit = math.exp(chance.uniform(*map(math.log, LIMITS)))
        slack_s = chance.uniform(0.5, 2)
        self.counter = counter or Tokens(slack_s)
        self.told = chance.choice(list(TOLD))
        self.latency_s = chance.uniform(0.02, 0.4)
        self.jitter = chance.uniform(0.05, 0.5)
        self.rate = FollowingRate(self.limit / 20, self.limit * 20, self.limit * start)
        self.workers = int(self.limit * self.latency_s * 6) + 20
        self.level = 1.0
        self.levelled_s = 0.0
        self.events: list[tuple[float, int, float | None]] = []
        """When, which departure, and what comes: a call that arrives (None), or an answer (how long to wait, below 0:
        it passed)."""
        self.calling = self.departed = 0
        self.passed = self.refused = 0

    def limit_at(self, now_s: float) -> float:
        return self.limit * (1 if int(now_s // CHANGES_EVERY_S) % 2 == 0 else self.change.part)

    def run(self, seconds: int = RUN_S) -> Outcome:
        now_s = 0.0
        while now_s < seconds:
            goes_s = self._goes_s(now_s)
            if self.events and self.events[0][0] <= goes_s:
                now_s, departure, what = heapq.heappop(self.events)
                if what is None:
                    self._arrives(now_s, departure)
                else:
                    self._answered(now_s, departure, what)
            else:
                now_s = goes_s
                self._goes(now_s)
        could = sum(self.limit_at(second + 0.5) for second in range(APART_S, seconds))
        about = f"{type(self.counter).__name__}, {self.limit:.0f}/s, told {self.told}, {self.latency_s:.2f} s"
        return Outcome(self.passed, self.refused, could, about)

    def _goes_s(self, now_s: float) -> float:
        if self.calling >= self.workers:
            return math.inf
        due_s = self.levelled_s + max(0.0, 1 - self.level) / self.rate.rate
        return max(now_s, due_s, self.rate.open_ns / NS_PER_S)

    def _refill(self, now_s: float) -> None:
        """Nothing is earned while it is closed."""
        since_s = max(self.levelled_s, self.rate.open_ns / NS_PER_S)
        self.level = min(1.0, self.level + self.rate.rate * max(0.0, now_s - since_s))
        self.levelled_s = now_s

    def _goes(self, now_s: float) -> None:
        self._refill(now_s)
        self.rate.grow(int(now_s * NS_PER_S))
        self.rate.take(int(now_s * NS_PER_S))
        self.level -= 1
        self.departed += 1
        self.calling += 1
        heapq.heappush(self.events, (now_s + self._way_s(), self.departed, None))

    def _way_s(self) -> float:
        return self.latency_s / 2 * (1 + self.chance.expovariate(1 / self.jitter))

    def _arrives(self, now_s: float, departure: int) -> None:
        wait_s = self.counter.wait_s(now_s, self.limit_at(now_s))
        if now_s > APART_S:
            self.passed += wait_s is None
            self.refused += wait_s is not None
        said = -1.0 if wait_s is None else TOLD[self.told](wait_s)
        heapq.heappush(self.events, (now_s + self._way_s(), departure, said))

    def _answered(self, now_s: float, departure: int, wait_s: float) -> None:
        self.calling -= 1
        self._refill(now_s)
        if wait_s < 0:
            self.rate.accepted()
            return
        now_ns = int(now_s * NS_PER_S)
        self.rate.refused(departure, self.departed, int(wait_s * NS_PER_S), now_ns)
        self.level = min(self.level, 0.0)


def outcomes(change: Change, seeds: range) -> list[Outcome]:
    """From half of the limit and from twice, each seed."""
    return [World(seed, change, start).run() for seed in seeds for start in STARTS]


USED_MIN = {Change.CONSTANT: 0.95, Change.HALVED: 0.88}
REFUSED_MAX = {Change.CONSTANT: 0.005, Change.HALVED: 0.01}


def together(runs: list[Outcome]) -> Outcome:
    """All of them as one."""
    return Outcome(
        sum(run.passed for run in runs), sum(run.refused for run in runs), sum(run.limit for run in runs), ""
    )


def main(first: int, count: int) -> int:
    """Print a line a change. Return 1 where the whole is outside what is promised."""
    bad = 0
    for change in Change:
        runs = outcomes(change, range(first, first + count))
        whole = together(runs)
        worst, most = min(runs, key=lambda run: run.used), max(runs, key=lambda run: run.refused_part)
        print(
            f"{change}: {len(runs)} runs, used {whole.used:.1%}, refused {whole.refused_part:.2%}; "
            f"least used {worst.used:.1%} ({worst.about}), most refused {most.refused_part:.2%} ({most.about})"
        )
        if change in USED_MIN:
            bad |= whole.used < USED_MIN[change] or whole.refused_part > REFUSED_MAX[change]
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
