"""What a page shows, as data: texts by name, tables of rows, plots of points.

The server renders a page from it once, and sends the changes of it later, so it is the same for both: a cell is what a
template writes and what the browser puts into `textContent`. Two states are compared here, and what differs between
them is all that travels.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Cell = dict[str, Any]
"""`t`: the text; `tone`: late, lost, paused or quiet; `bar`: 0 to 1, drawn beside it; `title`; `href`; `color`."""
Row = dict[str, Any]
"""`id`; `cells`; `href`; `tone`."""


def cell(
    text: str,
    *,
    tone: str = "",
    title: str = "",
    href: str = "",
    bar: float | None = None,
    color: int | None = None,
) -> Cell:
    """One cell; what is not given is left out of it."""
    made: Cell = {"t": text}
    if tone:
        made["tone"] = tone
    if title:
        made["title"] = title
    if href:
        made["href"] = href
    if bar is not None:
        made["bar"] = round(min(1.0, max(0.0, bar)), 3)
    if color is not None:
        made["color"] = color
    return made


def row(identity: str, cells: Sequence[Cell | str], *, href: str = "", tone: str = "") -> Row:
    """One row; `identity` is what makes it the same row in the next state."""
    # A digest, since a name may hold what no attribute of a page can carry.
    short = hashlib.blake2b(identity.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    made: Row = {"id": short, "cells": [each if isinstance(each, dict) else {"t": each} for each in cells]}
    if href:
        made["href"] = href
    if tone:
        made["tone"] = tone
    return made


@dataclass(slots=True)
class Plot:
    """Series over one axis of time, oldest first; None where nothing was recorded."""

    times: list[int]
    """Seconds since 1970, one a step."""
    series: dict[str, list[float | None]]
    """By label."""
    colors: dict[str, int] = field(default_factory=dict)
    """Place in the palette, by label; -1 for grey."""
    dashed: Sequence[str] = ()
    unit: str = ""
    step_s: int = 10
    is_revised: bool = False
    """Earlier points may come to be known later, so that the newest is never all that is new."""

    def whole(self) -> dict[str, Any]:
        """All of it."""
        return {
            "times": self.times,
            "series": self.series,
            "colors": self.colors,
            "dashed": [*self.dashed],
            "unit": self.unit,
            "step": self.step_s,
        }

    def changes_since(self, before: Plot | None) -> dict[str, Any] | None:
        """The last point where that is all that is new, else all of it; None where nothing is."""
        if before is not None and (before.times, before.series) == (self.times, self.series):
            return None
        goes_on = (
            before is not None
            and not self.is_revised
            and before.times[-1:] in (self.times[-1:], self.times[-2:-1])
            and [*before.series] == [*self.series]
        )
        if not goes_on or not self.times:
            return self.whole()
        return {
            "at": self.times[-1],
            "values": {label: values[-1] for label, values in self.series.items()},
            "colors": self.colors,
            "dashed": [*self.dashed],
        }


@dataclass(slots=True)
class State:
    """All that one page shows at one moment."""

    texts: dict[str, Cell] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    plots: dict[str, Plot] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    """Small lines of an hour, as the points of an SVG polyline."""
    made_at: float = field(default_factory=time.time)

    def whole(self) -> dict[str, Any]:
        """All of it, for a browser that missed something."""
        return {
            "texts": self.texts,
            "tables": self.tables,
            "plots": {name: plot.whole() for name, plot in self.plots.items()},
            "lines": self.lines,
        }

    def changes_since(self, before: State) -> dict[str, Any]:
        """What a browser that shows `before` needs to show this: changed texts and rows, the order where it moved."""
        tables = {
            name: changes
            for name, rows in self.tables.items()
            if (changes := _row_changes(before.tables.get(name, []), rows))
        }
        plots = {
            name: points
            for name, plot in self.plots.items()
            if (points := plot.changes_since(before.plots.get(name))) is not None
        }
        return {
            "texts": _changed(before.texts, self.texts),
            "tables": tables,
            "plots": plots,
            "lines": _changed(before.lines, self.lines),
        }


def _changed(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in now.items() if before.get(name) != value}


def _row_changes(before: list[Row], now: list[Row]) -> dict[str, Any]:
    known = {each["id"]: each for each in before}
    changes: dict[str, Any] = {}
    changed = [each for each in now if known.get(each["id"]) != each]
    order = [each["id"] for each in now]
    if changed:
        changes["rows"] = changed
    if order != [each["id"] for each in before]:
        changes["order"] = order
    return changes


def line_points(values: Iterable[float | None], width: int = 120, height: int = 28) -> str:
    """The hour of one number as points of an SVG path: lines, and gaps where nothing was recorded."""
    points = [*values]
    known = [value for value in points if value is not None]
    if not known:
        return ""
    low, high = min(0.0, *known), max(known)
    span = (high - low) or 1.0
    step = width / max(1, len(points) - 1)
    parts: list[str] = []
    pen_down = False
    for place, value in enumerate(points):
        if value is None:
            pen_down = False
            continue
        y = height - 2 - (value - low) / span * (height - 4)
        parts.append(f"{'L' if pen_down else 'M'}{place * step:.1f} {y:.1f}")
        pen_down = True
    if len(known) == 1:
        parts.append("h2")
    return "".join(parts)
