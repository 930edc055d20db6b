"""The colours of series stay apart for everybody, and from what they are drawn on."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[2] / "console/src/fila_console/static/console.css"
APART = 15.0
"""Of CIE 1976's distance, in which 2.3 is just seen side by side; series are thin lines, apart from each other."""
CONTRAST = 2.0
"""Of a line's luminance to the panel's. Each plot has its legend and its numbers as a table, so no colour is needed to
read it."""

Matrix = tuple[tuple[float, float, float], ...]
# How linear RGB looks to eyes without one kind of cones: Machado, Oliveira and Fernandes (2009), severity 1.
SEEN_BY: dict[str, Matrix] = {
    "most people": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopes": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopes": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopes": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
XYZ: Matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.95047, 1.0, 1.08883)

Triple = tuple[float, ...]


def times(matrix: Matrix, colour: Triple) -> Triple:
    return tuple(sum(a * b for a, b in zip(row, colour, strict=True)) for row in matrix)


def linear(colour: str) -> Triple:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def lab(seen: Triple) -> Triple:
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (value / white for value, white in zip(times(XYZ, seen), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: str, other: str, eyes: Matrix) -> float:
    seen = [
        lab(tuple(min(1.0, max(0.0, part)) for part in times(eyes, linear(each)))) for each in (one, other)
    ]
    return math.dist(*seen)


def themes() -> dict[str, dict[str, str]]:
    """The colours by name: of the light theme, and of the dark one, which changes some."""
    light, dark, *_ = re.findall(r"\{([^{}]*--page:[^{}]*)\}", CSS.read_text())
    named = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in (light, dark)]
    return {"light": named[0], "dark": named[0] | named[1]}


def series(theme: str) -> list[str]:
    found = [colour for name, colour in sorted(themes()[theme].items()) if name.startswith("series-")]
    assert len(found) == 7
    return found


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_series_look_alike(theme, eyes):
    alike = {
        pair: round(distance(*pair, SEEN_BY[eyes]), 1)
        for pair in itertools.combinations(series(theme), 2)
        if distance(*pair, SEEN_BY[eyes]) < APART
    }
    assert not alike


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_series_is_lost_on_its_panel(theme):
    def luminance(colour: str) -> float:
        return times(XYZ, linear(colour))[1] + 0.05

    panel = luminance(themes()[theme]["panel"])
    ratios = {each: max(luminance(each), panel) / min(luminance(each), panel) for each in series(theme)}

    assert min(ratios.values()) >= CONTRAST, ratios
