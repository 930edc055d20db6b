"""The replay as one picture: every request a dot, its wait against its arrival, both orders side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

from fila_bench.replay import NOISY, REAL, Served, Summary

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

_COLOUR = {REAL: "#0b6e4f", NOISY: "#c8553d"}
_LABEL = {REAL: "code, real trace", NOISY: "noisy, asks for more"}
_SHORTEST_SHOWN_S = 0.05


def draw(path: Path, halves: Sequence[tuple[str, Sequence[Served], Sequence[Summary]]], note: str) -> None:
    """Write the PNG; `halves` are (title, what was served, its summary), left to right."""
    figure, panels = plt.subplots(1, len(halves), figsize=(11.5, 4.8), sharey=True, layout="constrained")
    for panel, (title, served, summaries) in zip(panels, halves, strict=True):
        _panel(panel, title, served, summaries)
    # Room for the two lines of text above the highest dot; the axis is shared, so once is enough.
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high * (high / low) ** 0.15)
    panels[0].set_ylabel("waiting time, s (log)")
    figure.supxlabel(note, fontsize=8, color="#666666")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _say_who_waits(panel: Axes, last: Served, summary: Summary) -> None:
    panel.annotate(
        f"{summary.waiting:,} later ones still wait",
        (last.arrived_s / 60, last.waited_s),
        xytext=(8, -3),
        textcoords="offset points",
        fontsize=8,
        color=_COLOUR[summary.tenant],
    )


def _panel(panel: Axes, title: str, served: Sequence[Served], summaries: Sequence[Summary]) -> None:
    # The noisy tenant first, so that its ten times as many dots do not hide the other's.
    for tenant in (NOISY, REAL):
        dots = [each for each in served if each.tenant == tenant]
        panel.scatter(
            [each.arrived_s / 60 for each in dots],
            [max(each.waited_s, _SHORTEST_SHOWN_S) for each in dots],
            s=3 if tenant == NOISY else 6,
            alpha=0.25 if tenant == NOISY else 0.6,
            color=_COLOUR[tenant],
            linewidths=0,
            rasterized=True,
        )
    for line, summary in enumerate(summaries):
        text = panel.text(
            0.03,
            0.965 - 0.065 * line,
            f"{_LABEL[summary.tenant]}: p50 {summary.p50_s:,.0f} s, p95 {summary.p95_s:,.0f} s, "
            f"{summary.share:.0%} of tokens",
            transform=panel.transAxes,
            va="top",
            fontsize=8.5,
            color=_COLOUR[summary.tenant],
            fontweight="bold",
        )
        text.set_in_layout(False)
        if summary.waiting:
            _say_who_waits(panel, [each for each in served if each.tenant == summary.tenant][-1], summary)
    panel.set_title(title, fontsize=11)
    panel.set_yscale("log")
    panel.set_xlabel("arrival, minutes of the trace")
    panel.grid(visible=True, axis="y", alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
