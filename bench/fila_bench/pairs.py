"""Old against new, measured in pairs: what a ratio is worth when two runs of one build can differ by half."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

RESAMPLES = 4_000

Run = TypeVar("Run")


def in_turn(sides: Mapping[str, Callable[[], Run]], rounds: int) -> dict[str, list[Run]]:
    """Run every side once a round. The order goes back and forth, so that what warms up or wears out favours nobody."""
    found: dict[str, list[Run]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in list(sides)[:: -1 if number % 2 else 1]:
            found[side].append(sides[side]())
    return found


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of the pairs' ratios, new by old, and its 90 % interval."""

    median: float
    low: float
    high: float
    pairs: int

    @property
    def interval(self) -> str:
        """As a page shows it."""
        return f"{self.low:.2f} to {self.high:.2f}"

    def reaches(self, figure: float) -> bool:
        """Whether the interval reaches `figure`: a loss is said only where noise can't explain it."""
        return self.high >= figure


def ratio_of(old: Sequence[float], new: Sequence[float], seed: int = 1) -> Ratio:
    """Of runs that alternated, so that each pair shared its minute. The interval is the percentile bootstrap's
    (Efron 1979) of the median.

    Raises ValueError where there is no pair, one side is longer, or a rate is not above 0.
    """
    if not old or len(old) != len(new):
        raise ValueError(f"as many old as new runs are needed, and at least one: {len(old)} and {len(new)}")
    if min(*old, *new) <= 0:
        raise ValueError("a rate is above 0")
    ratios = [after / before for before, after in zip(old, new, strict=True)]
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES))
    return Ratio(
        median=statistics.median(ratios),
        low=medians[round(0.05 * (RESAMPLES - 1))],
        high=medians[round(0.95 * (RESAMPLES - 1))],
        pairs=len(ratios),
    )
