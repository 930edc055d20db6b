"""The page of the job `fairness`."""

from __future__ import annotations

import pandas as pd

from fila_pipeline.pages.page import Figure, Light, Page, Table, moments
from fila_pipeline.pages.plot import Plot

OVER, UNDER = 1.2, 0.8
COMPETED_WINDOWS_MIN = 3
KEYS_PLOTTED_MAX = 8


def fairness_page(
    shares: pd.DataFrame, windows: pd.DataFrame, keys: pd.DataFrame, starvation: pd.DataFrame
) -> Page:
    """Say who got more or less than its due."""
    keys = keys.assign(difference=keys["served"] - keys["due"])
    keys = keys.sort_values("difference", key=lambda column: -column.abs())
    competed = windows[windows["contended"]]
    figures = [] if shares.empty else [_share_figure(shares, keys), _jain_figure(windows)]
    return Page(
        "Fairness: who was served, and who should have been",
        _answer(keys, competed, starvation),
        figures,
        [
            Table(
                "Keys by the distance from their due",
                "Cost over the windows in which keys competed; due is weighted max-min over those that had work.",
                keys[["queue", "channel", "fairness_key", "weight", "windows", "served", "due", "ratio"]],
            ),
            Table(
                "Starvation",
                "Intervals in which a key had work and was due something in each window, and got nothing.",
                _with_moments(starvation.sort_values("due", ascending=False)),
            ),
        ],
        light=_light(keys, starvation),
    )


def _light(keys: pd.DataFrame, starvation: pd.DataFrame) -> Light:
    """By who got more or less than its due, and whether somebody got nothing."""
    known = keys[keys["windows"] >= COMPETED_WINDOWS_MIN]
    is_even = bool(known["ratio"].between(UNDER, OVER).all())
    return "trouble" if not starvation.empty else "well" if is_even else "look"


def _answer(keys: pd.DataFrame, competed: pd.DataFrame, starvation: pd.DataFrame) -> str:
    if competed.empty:
        return "No keys competed: whatever was ready was served within its window, so nobody was treated unfairly."
    known = keys[keys["windows"] >= COMPETED_WINDOWS_MIN]
    jain = float(competed["jain"].mean())
    over = known[known["ratio"] > OVER].sort_values("ratio", ascending=False)
    under = known[known["ratio"] < UNDER].sort_values("ratio")
    if over.empty and under.empty and starvation.empty:
        return (
            f"Fair: in {len(competed):,} windows in which keys competed, every key got its due within "
            f"{(OVER - 1):.0%} (Jain index {jain:.3f} on average, 1 is perfect)."
        )
    said = []
    if not over.empty:
        said.append(f"{over['fairness_key'].iloc[0]} got {over['ratio'].iloc[0]:.2f} times its due")
    if not under.empty:
        said.append(f"{under['fairness_key'].iloc[0]} got {under['ratio'].iloc[0]:.0%} of its due")
    if not starvation.empty:
        worst = starvation.sort_values("windows", ascending=False).iloc[0]
        said.append(f"{worst['fairness_key']} was served nothing in {int(worst['windows'])} windows in a row")
    return f"Not fair: {'; '.join(said)} (Jain index {jain:.3f} on average, 1 is perfect)."


def _share_figure(shares: pd.DataFrame, keys: pd.DataFrame) -> Figure:
    named = list(dict.fromkeys([*keys["fairness_key"], *_largest(shares)]))[:KEYS_PLOTTED_MAX]
    plot = Plot(y_title="share of what was served", is_part=True)
    for number, key in enumerate(named):
        rows = (
            shares[shares["fairness_key"] == key]
            .groupby("window", as_index=False)[["share", "due_share"]]
            .sum()
        )
        at, color = moments(rows["window"]), plot.color(number)
        plot.line(at, rows["share"], key, color=color)
        plot.line(at, rows["due_share"], f"{key}, due", color=color, dotted=True, listed=False)
    about = "Solid: what a key got. Dotted: what it was due. Where the two part, somebody paid for it."
    return Figure("Shares over time", about, plot)


def _largest(shares: pd.DataFrame) -> list[str]:
    return list(shares.groupby("fairness_key")["served"].sum().sort_values(ascending=False).index)


def _jain_figure(windows: pd.DataFrame) -> Figure:
    plot = Plot(height=260, y_title="Jain index", y_range=(0, 1.05))
    for queue, rows in windows[windows["contended"]].sort_values("window").groupby("queue"):
        plot.line(moments(rows["window"]), rows["jain"], str(queue), points=True)
    return Figure(
        "How even it was", "1: every key got the same part of its due; 1/n: one of n got all.", plot
    )


def _with_moments(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(from_s=moments(rows["from_s"]), to_s=moments(rows["to_s"])).rename(
        columns={"from_s": "from", "to_s": "to"}
    )
