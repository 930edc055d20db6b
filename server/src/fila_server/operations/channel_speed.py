"""How fast a channel is served, from looks every two seconds, and how wrong that will be about the next seconds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fila_server.broker.speed import Look

FULL_WAIT_MS = 100.0
"""Between two looks at which messages waited so long for a turn, on average, and at least one all the time, the
consumers did all they could."""
FULL_STRETCHES_MIN = 3
"""Fewer looks between which nobody had room say too little about the speed."""
SPEED_OF_S = 10.0
"""At least so much of the last looks makes the speed; for what takes longer, as much as that takes."""
SPEED_ERROR_MIN = 0.04
SPEED_ERROR_UNSURE = 0.7
"""Where the consumers were never full: they may be able to do more than they were asked to."""
FAR_S = 30 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Speed:
    """Cost a second, how much comes meanwhile, and how wrong that may be."""

    per_s: float
    arrivals_per_s: float
    growth_per_s: float
    """Messages that came and did not go; below 0 where more went."""
    stretches: tuple[tuple[float, float], ...]
    """(seconds, cost) between two looks, oldest first, scaled to today's consumers."""
    unscaled: tuple[tuple[float, float], ...]
    """The same as it was: consumers that came and left before will do so again."""
    is_sure: bool
    burstiness: float = 1.0
    """The variance of what came between two looks, in its mean: 1 where messages come one by one, at random."""

    def slowed(self, by: float) -> Speed:
        """The same, were only such a part of it left."""
        return replace(
            self,
            per_s=self.per_s * by,
            arrivals_per_s=self.arrivals_per_s * by,
            stretches=tuple((seconds, cost * by) for seconds, cost in self.stretches),
            unscaled=tuple((seconds, cost * by) for seconds, cost in self.unscaled),
        )


def was_served_lately(looks: Sequence[Look]) -> bool:
    recent = [look for look in looks if looks[-1].at_s - look.at_s <= 3 * SPEED_OF_S]
    return len(recent) > 1 and recent[-1].served > recent[0].served


def speed_seen(looks: Sequence[Look], consumers: int, usual_cost: float) -> Speed | None:
    """As today's consumers would serve it; None where too few looks say anything."""
    pairs = [(before, now) for before, now in pairwise(looks) if now.at_s > before.at_s]
    if consumers:
        pairs = [pair for pair in pairs if pair[0].consumers and pair[1].consumers]
    full = [pair for pair in pairs if _is_full(*pair)]
    is_sure = len(full) >= FULL_STRETCHES_MIN
    used = full if is_sure else [pair for pair in pairs if pair[1].served > pair[0].served]
    if len(used) < FULL_STRETCHES_MIN:
        return None
    unscaled = tuple((now.at_s - before.at_s, float(now.served - before.served)) for before, now in used)
    scales = (_scale(consumers, before, now) for before, now in used)
    stretches = tuple(
        (seconds, cost * scale) for (seconds, cost), scale in zip(unscaled, scales, strict=True)
    )
    seconds = looks[-1].at_s - looks[0].at_s
    arrivals = (looks[-1].enqueued - looks[0].enqueued) * usual_cost / seconds
    growth = (looks[-1].enqueued - looks[0].enqueued - looks[-1].leased + looks[0].leased) / seconds
    per_s = rate_of_last(stretches, SPEED_OF_S)
    return Speed(per_s, arrivals, growth, stretches, unscaled, is_sure, _burstiness(looks))


def _burstiness(looks: Sequence[Look]) -> float:
    came = [now.enqueued - before.enqueued for before, now in pairwise(looks)]
    mean = statistics.fmean(came)
    return statistics.pvariance(came, mean) / mean if mean > 0 else 1.0


def _is_full(before: Look, now: Look) -> bool:
    waited_ms = now.waited_ms - before.waited_ms
    at_least_one_ms = (now.at_s - before.at_s) * 1000
    return waited_ms >= max(at_least_one_ms, FULL_WAIT_MS * (now.leased - before.leased))


def _scale(consumers: int, before: Look, now: Look) -> float:
    """As if today's consumers had been there."""
    then = (before.consumers + now.consumers) / 2
    return consumers / then if consumers and then else 1.0


def rate_of_last(stretches: Sequence[tuple[float, float]], of_s: float) -> float:
    """Over the last `of_s` seconds of them, and at least the last one."""
    seconds = cost = 0.0
    for stretch_s, stretch_cost in reversed(stretches):
        if seconds >= of_s:
            break
        seconds += stretch_s
        cost += stretch_cost
    return cost / seconds if seconds else 0.0


def speed_error(speed: Speed, ahead_s: float) -> float:
    """How wrong, on the logarithm, the speed will be about the next `ahead_s` seconds: half of it as if consumers had
    been the same all the time, half as they came and left."""
    error = (_hindsight(speed.stretches, ahead_s) + _hindsight(speed.unscaled, ahead_s)) / 2
    error = math.hypot(error, SPEED_ERROR_MIN)
    return error if speed.is_sure else math.hypot(error, SPEED_ERROR_UNSURE)


def _hindsight(stretches: Sequence[tuple[float, float]], ahead_s: float) -> float:
    """How wrong the speed of a while was about the seconds after it, wherever that can be looked up."""
    step_s = sum(seconds for seconds, _ in stretches) / len(stretches)
    most = max(len(stretches) // 3, 1)
    steps = min(max(round(ahead_s / step_s), 1), most)
    behind = min(max(steps, round(SPEED_OF_S / step_s), 1), max(len(stretches) - steps, 1))
    squares: list[float] = []
    for at in range(behind, len(stretches) - steps + 1):
        before = rate_of_last(stretches[at - behind : at], FAR_S)
        after = rate_of_last(stretches[at : at + steps], FAR_S)
        if before > 0 and after > 0:
            squares.append(math.log(after / before) ** 2)
    error = math.sqrt(sum(squares) / len(squares)) if squares else 0.3
    # What is longer than can be looked up may drift on.
    return min(error * math.sqrt(max(ahead_s / (steps * step_s), 1.0)), 2.0)
