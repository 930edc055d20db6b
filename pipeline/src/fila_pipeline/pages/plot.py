"""Plots as SVG: bars, lines and points that stand in the page as they are, without a script and without a library.

A plot takes what it draws as columns and says nothing of pixels; `drawn` makes the picture. Where a pointer rests on a
bar or a point, the browser shows its numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import pandas as pd

from fila_pipeline.pages.axes import axis_of

WIDTH = 1000
PALETTE = ("#1f5fa8", "#d9822b", "#2e8b57", "#b03a48", "#7a5ba6", "#5b7083", "#c2a83e", "#3aa0a8")
POINTS_MAX = 500
"""Of a line: there are not many more pixels."""
TOLD_MAX = 200
"""Points of a line that say their numbers."""
LETTER_PX = 7.2
GRID, INK, QUIET = "#e3e8ed", "#1c2733", "#5b7083"
DASHES = {"dot": ' stroke-dasharray="2 4"'}


@dataclass
class Series:
    """What one colour stands for."""

    x: list[Any]
    y: list[Any]
    name: str
    kind: Literal["line", "points", "both", "bar"]
    color: str
    dash: str = ""
    width: float = 2.0
    is_listed: bool = True
    """Stands in the legend."""
    least: list[float] = field(default_factory=list)
    """Of a bar: where its range begins."""
    most: list[float] = field(default_factory=list)


@dataclass
class Plot:
    """Series on two axes; `flat` bars lie, and their names stand at the left."""

    height: int = 400
    bars: Literal["beside", "stacked"] = "beside"
    is_flat: bool = False
    x_title: str = ""
    y_title: str = ""
    y_range: tuple[float, float] | None = None
    is_log: bool = False
    is_part: bool = False
    """The numbers are parts, told in per cent."""
    series: list[Series] = field(default_factory=list)
    marks: list[tuple[Literal["x", "y"], float, str]] = field(default_factory=list)
    """Lines across the plot: at which value of which axis, in which colour."""

    def color(self, number: int) -> str:
        """The colour of the series of this number."""
        return PALETTE[number % len(PALETTE)]

    def line(
        self,
        x: Iterable[Any],
        y: Iterable[Any],
        name: str,
        *,
        color: str = "",
        dotted: bool = False,
        points: bool = False,
        listed: bool = True,
    ) -> None:
        """A line; with `points` each of its points is marked."""
        color = color or self.color(len(self.series))
        self.series.append(
            Series(
                list(x), list(y), name, "both" if points else "line", color,
                dash="dot" if dotted else "", width=1.3 if dotted else 2.0, is_listed=listed,
            )
        )  # fmt: skip

    def circles(self, x: Iterable[Any], y: Iterable[Any], name: str, *, color: str) -> None:
        """Points around which something is to be seen."""
        self.series.append(Series(list(x), list(y), name, "points", color, is_listed=False))

    def bar(
        self,
        names: Iterable[str],
        values: Iterable[float],
        name: str,
        *,
        color: str = "",
        least: Iterable[float] = (),
        most: Iterable[float] = (),
    ) -> None:
        """A bar for each name, which may have a range."""
        color = color or self.color(len(self.series))
        self.series.append(
            Series(list(names), list(values), name, "bar", color, least=list(least), most=list(most))
        )


def drawn(plot: Plot) -> str:
    """The picture, as an element of a page."""
    return _Drawing(plot).svg()


class _Drawing:
    """A plot on its way to SVG."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        listed = [each for each in plot.series if each.is_listed]
        self.legend = _legend(listed) if len(listed) > 1 else []
        names = [each for series in plot.series for each in series.x]
        values = self._values()
        along = axis_of(names, plot.x_title if not plot.is_flat else "")
        across = axis_of(
            values, plot.y_title, is_log=plot.is_log, from_zero=True, is_part=plot.is_part, bounds=plot.y_range
        )  # fmt: skip
        if plot.is_flat:
            across.title = plot.x_title
        self.x, self.y = (across, along) if plot.is_flat else (along, across)
        widest = max((len(text) for _, text in self.y.ticks()), default=0)
        self.left = min(320, 22 + LETTER_PX * widest + (18 if self.y.title else 0))
        self.top = 14 + 20 * len(self.legend)
        self.right, self.bottom = WIDTH - 20, plot.height - (46 if self.x.title else 30)

    def _values(self) -> list[float]:
        found: list[float] = []
        for series in self.plot.series:
            found += [each for each in [*series.y, *series.least, *series.most] if not pd.isna(each)]
        if self.plot.bars == "stacked" and self.plot.series:
            found += [sum(row) for row in zip(*(_numbers(each.y) for each in self.plot.series), strict=True)]
        return found + [value for axis, value, _ in self.plot.marks if axis == "y"]

    def across(self, at: float) -> float:
        """Pixels from the left, of a part of the x axis."""
        return self.left + at * (self.right - self.left)

    def up(self, at: float) -> float:
        """Pixels from the top, of a part of the y axis."""
        return self.bottom - at * (self.bottom - self.top)

    def svg(self) -> str:
        parts = [*self._grid(), *self._names()]
        bars = [each for each in self.plot.series if each.kind == "bar"]
        for number, series in enumerate(bars):
            parts += self._bars(series, number, bars)
        for series in self.plot.series:
            if series.kind in ("line", "both"):
                parts += self._line(series)
            if series.kind != "bar":
                parts += self._points(series)
        for axis, value, color in self.plot.marks:
            parts.append(self._mark(axis, value, color))
        said = escape("; ".join(each.name for each in self.plot.series if each.is_listed))
        return (
            f'<svg class="plot" viewBox="0 0 {WIDTH} {self.plot.height}" role="img" aria-label="{said}">'
            f"{''.join(parts)}</svg>"
        )

    def _grid(self) -> list[str]:
        parts = []
        for at, text in self.y.ticks():
            y = self.up(at)
            parts.append(f'<path d="M{self.left:.0f} {y:.1f}H{self.right}" stroke="{GRID}"/>')
            parts.append(_text(self.left - 8, y + 4, text, "end"))
        for at, text in self.x.ticks():
            x = self.across(at)
            parts.append(f'<path d="M{x:.1f} {self.top}V{self.bottom}" stroke="{GRID}"/>')
            parts.append(_text(x, self.bottom + 17, text, "middle"))
        return parts

    def _names(self) -> list[str]:
        parts = []
        if self.x.title:
            parts.append(
                _text((self.left + self.right) / 2, self.plot.height - 8, self.x.title, "middle", QUIET)
            )
        if self.y.title:
            middle = (self.top + self.bottom) / 2
            parts.append(
                f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle" '
                f'fill="{QUIET}">{escape(self.y.title)}</text>'
            )
        for row, entries in enumerate(self.legend):
            for x, series in entries:
                y = 8 + 20 * row
                parts.append(f'<rect x="{x}" y="{y}" width="12" height="4" fill="{series.color}"/>')
                parts.append(_text(x + 18, y + 6, series.name, "start"))
        return parts

    def _line(self, series: Series) -> list[str]:
        steps, is_on = [], False
        for x, y in _thinned(list(zip(series.x, series.y, strict=True))):
            if pd.isna(y):
                is_on = False
                continue
            steps.append(
                f"{'L' if is_on else 'M'}{self.across(self.x.at(x)):.1f} {self.up(self.y.at(y)):.1f}"
            )
            is_on = True
        dash = DASHES.get(series.dash, "")
        look = f'fill="none" stroke="{series.color}" stroke-width="{series.width}"{dash}'
        return [f'<path d="{"".join(steps)}" {look}><title>{escape(series.name)}</title></path>']

    def _points(self, series: Series) -> list[str]:
        points = [each for each in zip(series.x, series.y, strict=True) if not pd.isna(each[1])]
        is_circle = series.kind == "points"
        if len(points) > TOLD_MAX and not is_circle:
            return []
        parts = []
        for x, y in points:
            told = f"{series.name}, {self.x.told(x)}: {self.y.told(y)}"
            look = (
                f'fill="none" stroke="{series.color}" stroke-width="2"'
                if is_circle
                else f'fill="{series.color}"'
            )
            if series.kind == "line":
                look = f'fill="{series.color}" fill-opacity="0"'
            parts.append(
                f'<circle cx="{self.across(self.x.at(x)):.1f}" cy="{self.up(self.y.at(y)):.1f}" '
                f'r="{5 if is_circle else 3}" {look}><title>{escape(told)}</title></circle>'
            )
        return parts

    def _bars(self, series: Series, number: int, bars: Sequence[Series]) -> list[str]:
        along = self.y if self.plot.is_flat else self.x
        is_stacked = self.plot.bars == "stacked"
        places = 1 if is_stacked else len(bars)
        thick = 0.8 * along.step / places
        parts = []
        for place, (name, value) in enumerate(zip(series.x, series.y, strict=True)):
            if pd.isna(value):
                continue
            below = sum(_numbers([each.y[place] for each in bars[:number]])) if is_stacked else 0.0
            start = along.at(name) - 0.4 * along.step + (0 if is_stacked else number * thick)
            parts.append(self._bar(start, thick, below, below + value, series, f"{along.told(name)}"))
            if series.least:
                parts.append(self._range(start + thick / 2, series.least[place], series.most[place]))
        return parts

    def _bar(self, start: float, thick: float, low: float, high: float, series: Series, name: str) -> str:
        over = self.x if self.plot.is_flat else self.y
        told = escape(f"{series.name}, {name}: {over.told(high - low)}")
        if self.plot.is_flat:
            x, y = self.across(over.at(low)), self.up(start + thick)
            wide, tall = self.across(over.at(high)) - x, self.up(start) - y
        else:
            x, y = self.across(start), self.up(over.at(high))
            wide, tall = self.across(start + thick) - x, self.up(over.at(low)) - y
        return (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0):.1f}" height="{max(tall, 0):.1f}" '
            f'fill="{series.color}"><title>{told}</title></rect>'
        )

    def _range(self, middle: float, least: float, most: float) -> str:
        if pd.isna(least) or pd.isna(most):
            return ""
        if self.plot.is_flat:
            y = self.up(middle)
            path = f"M{self.across(self.x.at(least)):.1f} {y:.1f}H{self.across(self.x.at(most)):.1f}"
        else:
            x = self.across(middle)
            path = f"M{x:.1f} {self.up(self.y.at(least)):.1f}V{self.up(self.y.at(most)):.1f}"
        return f'<path d="{path}" stroke="{INK}" stroke-width="1.3"/>'

    def _mark(self, axis: str, value: float, color: str) -> str:
        if axis == "y":
            path = f"M{self.left:.0f} {self.up(self.y.at(value)):.1f}H{self.right}"
        else:
            path = f"M{self.across(self.x.at(value)):.1f} {self.top}V{self.bottom}"
        return f'<path class="mark" d="{path}" stroke="{color}" stroke-dasharray="2 4"/>'


def _legend(listed: Sequence[Series]) -> list[list[tuple[int, Series]]]:
    """Rows of entries, each with where it begins."""
    rows: list[list[tuple[int, Series]]] = [[]]
    at = 60
    for series in listed:
        wide = int(34 + LETTER_PX * len(series.name))
        if rows[-1] and at + wide > WIDTH - 20:
            rows.append([])
            at = 60
        rows[-1].append((at, series))
        at += wide
    return rows


def _thinned(points: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Of a long line what a screen can show: the least and the most of each stretch, in their order."""
    if len(points) <= POINTS_MAX:
        return points
    stretch = -(-len(points) // (POINTS_MAX // 2))
    kept: list[tuple[Any, Any]] = []
    for first in range(0, len(points), stretch):
        some = [(number, each) for number, each in enumerate(points[first : first + stretch])]
        known = [each for each in some if not pd.isna(each[1][1])] or some[:1]
        ends = {min(known, key=lambda each: each[1][1])[0], max(known, key=lambda each: each[1][1])[0]}
        kept += [each for number, each in some if number in ends]
    return kept


def _numbers(values: Iterable[Any]) -> list[float]:
    return [0.0 if pd.isna(each) else float(each) for each in values]


def _text(x: float, y: float, text: str, anchor: str, color: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(text)}</text>'
