"""Old against new, measured in pairs: what a ratio is worth when two runs of one build can differ by half."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES = 4_000


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of the pairs' ratios, new by old, and its 90 % interval."""

    median: float
    low: float
    high: float
    pairs: int

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
