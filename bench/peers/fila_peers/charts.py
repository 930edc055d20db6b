"""The outcomes as pictures: who does how much, and how long a quiet tenant waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from .brokers import SYNCED
from .results import Spread, Summary

_FILA, _OTHERS = "#0b6e4f", "#8a8f98"


def draw(found: Sequence[Summary], folder: Path) -> list[str]:
    """Write a PNG a subject that was measured; their file names."""
    folder.mkdir(parents=True, exist_ok=True)
    subjects = (
        (
            "peers-life.png",
            "full life",
            "settled_per_s",
            "messages a second, each synced (more is better)",
            1.0,
        ),
        (
            "peers-noisy.png",
            "noisy neighbour",
            "wait_us.p99",
            "ms a quiet tenant waits, p99 (log, less is better)",
            1e-3,
        ),
    )
    written = []
    for name, workload, number, label, scale in subjects:
        of_it = [each for each in found if each.workload == workload and each.durability == SYNCED]
        bars = [(each, value) for each in of_it if (value := each.of("numbers", number)) is not None]
        if bars:
            _bars(folder / name, bars, label, scale, log=scale < 1)
            written.append(name)
    return written


def _bars(path: Path, bars: Sequence[tuple[Summary, Spread]], label: str, scale: float, *, log: bool) -> None:
    cases = list(dict.fromkeys(summary.case for summary, _ in bars))
    figure, panels = plt.subplots(
        1, len(cases), figsize=(3.1 * len(cases) + 1, 3.6), layout="constrained", squeeze=False
    )
    for panel, case in zip(panels[0], cases, strict=True):
        rows = [(summary.peer, value) for summary, value in bars if summary.case == case][::-1]
        values = [value.median * scale for _, value in rows]
        spreads = [
            [(value.median - value.low) * scale for _, value in rows],
            [(value.high - value.median) * scale for _, value in rows],
        ]
        colours = [_FILA if peer.startswith("fila") else _OTHERS for peer, _ in rows]
        panel.barh([peer for peer, _ in rows], values, xerr=spreads, color=colours, error_kw={"lw": 1})
        panel.set_title(case, fontsize=9)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
        if log:
            panel.set_xscale("log")
        else:
            panel.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f}k" if value else "0")
    figure.supxlabel(label, fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)
