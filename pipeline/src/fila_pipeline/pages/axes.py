"""Axes of plots: where a value stands, which values are written beside it, and how one is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

TICKS_WANTED = 6
STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000,
)  # fmt: skip
"""Between two ticks of a time."""
DAY_S = 86_400
LEAST = 1e-9


@dataclass
class Axis:
    """From one value to another, as parts from 0 to 1."""

    kind: Literal["numbers", "log", "times", "names"]
    least: float = 0.0
    most: float = 1.0
    title: str = ""
    names: list[str] = field(default_factory=list)
    is_part: bool = False

    @property
    def step(self) -> float:
        """How much of the axis one name has."""
        return 1 / max(len(self.names), 1) if self.kind == "names" else 1 / 24

    def at(self, value: Any) -> float:
        """Where a value stands."""
        if self.kind == "names":
            return (self.names.index(str(value)) + 0.5) / len(self.names)
        number: float = pd.Timestamp(value).timestamp() if self.kind == "times" else float(value)
        least, most = self.least, self.most
        if self.kind == "log":
            number, least, most = (math.log10(max(each, LEAST)) for each in (number, least, most))
        return min(max((number - least) / (most - least or 1), 0.0), 1.0)

    def ticks(self) -> list[tuple[float, str]]:
        """Places and texts of what is written beside it."""
        if self.kind == "names":
            return [(self.at(name), name) for name in self.names]
        if self.kind == "log":
            decades = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
            found = [10.0**each for each in decades if self.least <= 10.0**each <= self.most]
            return [(self.at(each), f"{each:,.0f}" if each >= 1 else f"{each:g}") for each in found]
        span = self.most - self.least
        if self.kind == "times":
            step: float = next((each for each in STEPS_S if span / each <= TICKS_WANTED + 2), STEPS_S[-1])
        else:
            step = _nice(span / TICKS_WANTED)
        first = math.ceil(self.least / step - 1e-9)
        last = math.floor(self.most / step + 1e-9)
        return [
            (self._of(number * step), self._written(number * step, step)) for number in range(first, last + 1)
        ]

    def told(self, value: Any) -> str:
        """A value for people."""
        if self.kind == "names":
            return str(value)
        if self.kind == "times":
            return f"{pd.Timestamp(value):%Y-%m-%d %H:%M:%S}"
        if self.is_part:
            return f"{value:.1%}"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

    def _of(self, number: float) -> float:
        return (number - self.least) / (self.most - self.least or 1)

    def _written(self, number: float, step: float) -> str:
        if self.kind == "times":
            moment = pd.Timestamp(number, unit="s")
            return (
                f"{moment:%b %d}"
                if step >= DAY_S
                else f"{moment:%H:%M:%S}"
                if step < 60
                else f"{moment:%H:%M}"
            )
        if self.is_part:
            return f"{number:.0%}"
        digits = max(0, -math.floor(math.log10(step))) if step < 1 else 0
        return f"{number:,.{digits}f}"


def axis_of(
    values: Sequence[Any],
    title: str = "",
    *,
    is_log: bool = False,
    from_zero: bool = False,
    is_part: bool = False,
    bounds: tuple[float, float] | None = None,
) -> Axis:
    """The axis on which these stand."""
    known = [each for each in values if not (isinstance(each, float) and math.isnan(each))]
    if known and isinstance(known[0], str):
        return Axis("names", title=title, names=list(dict.fromkeys(map(str, known))))
    if known and isinstance(known[0], pd.Timestamp):
        seconds = [each.timestamp() for each in known]
        least, most = min(seconds), max(seconds)
        return Axis("times", least, most if most > least else least + 60, title)
    if bounds is not None:
        return Axis("numbers", *bounds, title, is_part=is_part)
    numbers = [float(each) for each in known] or [0.0]
    least, most = min(numbers), max(numbers)
    if is_log:
        return Axis("log", 10.0 ** math.floor(math.log10(max(least, 1e-3))), max(most, 10.0) * 1.2, title)
    least = min(least, 0.0) if from_zero else least
    return Axis("numbers", least, most * 1.04 if most > least else least + 1, title, is_part=is_part)


def _nice(rough: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is no smaller."""
    power = 10.0 ** math.floor(math.log10(max(rough, 1e-12)))
    return next(power * each for each in (1, 2, 5, 10) if power * each >= rough * (1 - 1e-9))
