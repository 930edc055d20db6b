"""The page of `compare`: how long each tenant waited in fair turns, first in, first out, and under other "
"policies."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fila_pipeline.pages.page import Figure, Page, Table
from fila_pipeline.pages.plot import Plot

TENANTS_PLOTTED_MAX = 12
NEAR = 1.1
"""Waits that differ by less than this factor are told as alike."""
COLOURS = ("#8b98a5", "#1f5fa8", "#d9822b", "#2e8b57", "#7a5ba6", "#b03a48")
"""First in, first out is grey; then fair turns; then the policies."""
MODEL = (
    "A model: messages come when they did, consumers come with the room they had, and each delivery is "
    "worked on for as long, and ends, as recorded. What another order would have changed in producers and "
    "consumers is not in it."
)
WITHOUT_TENANTS = (
    "First in, first out knows no tenants, so no weights, pauses, caps and rates of theirs. Limits of "
    "buckets hold: a message that its bucket holds lets those behind it pass. Whose a message is, is known "
    "by its place in the queue's log."
)


def comparison_page(
    rows: pd.DataFrame,
    fifo: str,
    fair: str,
    recorded: str,
    *,
    drawn: int,
    waited_before: int,
    assumed: Sequence[str] = (),
) -> Page:
    """Say who waits less for fair turns, and who more.

    rows: as `comparison.by_tenant` makes them. assumed: of a log that was imported, which no broker recorded.
    """
    policies = [name for name in rows["course"].unique() if name not in (fifo, fair, recorded)]
    shown = rows if not assumed else rows[rows["course"] != recorded]
    said = [*(assumed or (MODEL, _repeats(rows, recorded, fair))), WITHOUT_TENANTS]
    if drawn:
        said.append(
            f"Up to {drawn:,} deliveries of a course were not recorded; they were held as others of their key."
        )
    if waited_before:
        said.append(
            f"{waited_before:,} messages waited when the recording began. First in, first out, they keep their "
            "tenant's turn, since their keys are in the broker's store."
        )
    table = Table(
        "By tenant",
        "Waits from being ready to being delivered; in brackets, with consumers a tenth faster and a tenth "
        "slower. p50: the 40th to the 60th percentile where they differ by more than a tenth, since a "
        "median may then be anything between. Share: of what was served in the seconds at whose beginning "
        "messages of two tenants or more waited. tenants.parquet has every number.",
        _table(shown),
    )
    about = "p95 of the wait. The lines reach from consumers a tenth faster to consumers a tenth slower."
    if rows.groupby(["queue", "tenant"]).ngroups > TENANTS_PLOTTED_MAX:
        about += f" Of the {TENANTS_PLOTTED_MAX} tenants with most to do."
    plot = _plot(rows, [fifo, fair, *policies])
    return Page(
        "What fairness bought",
        comparison_answer(rows, fifo, fair),
        [Figure("How long each tenant waits", about, plot)],
        [table],
        assumed=said,
    )


def comparison_answer(rows: pd.DataFrame, fifo: str, fair: str) -> str:
    """Return one sentence: whom fair turns spare most, and who waits for it."""
    p95 = rows.pivot_table(index=["queue", "tenant"], columns="course", values="p95_ms", aggfunc="max")
    both = p95.dropna(subset=[name for name in (fifo, fair) if name in p95])
    if fifo not in both or fair not in both or both.empty:
        return "There is too little data: nothing was delivered."
    # The millisecond keeps what never waited from counting as a change without bound.
    ratio = (both[fair] + 1) / (both[fifo] + 1)
    better, worse = both[ratio < 1 / NEAR], both[ratio > NEAR]
    if better.empty and worse.empty:
        return "Fair turns and first in, first out are alike here: nobody's p95 wait differs by more than a tenth."
    said = []
    for found, how, at in ((better, "falls", ratio.idxmin()), (worse, "rises", ratio.idxmax())):
        if not found.empty:
            one, others = found.loc[at], len(found) - 1
            more = f" (and {others} more {how.removesuffix('s')})" if others else ""
            said.append(f"that of {at[1]} {how} from {_seconds(one[fifo])} to {_seconds(one[fair])}{more}")
    answer = f"In fair turns, against first in, first out, {', and '.join(said)}."
    return answer.replace("that of", "the p95 wait of", 1)


def _seconds(milliseconds: float) -> str:
    """One unit for all, since they are compared."""
    seconds = milliseconds / 1000
    return (
        f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.3f} s"
    )


def _plot(rows: pd.DataFrame, courses: Sequence[str]) -> Plot:
    order = list(dict.fromkeys(zip(rows["queue"], rows["tenant"], strict=True)))[:TENANTS_PLOTTED_MAX]
    one_queue = rows["queue"].nunique() == 1
    plot = Plot(y_title="p95 of the wait, seconds")
    for number, course in enumerate(courses):
        of_course = rows[rows["course"] == course].set_index(["queue", "tenant"]).reindex(order)
        plot.bar(
            [tenant if one_queue else f"{queue} / {tenant}" for queue, tenant in order],
            of_course["p95_ms"] / 1000,
            {"FIFO": "first in, first out", "fair": "fair turns"}.get(course, course),
            color=COLOURS[number % len(COLOURS)],
            least=of_course["p95_ms_least"] / 1000,
            most=of_course["p95_ms_most"] / 1000,
        )
    return plot


def _table(rows: pd.DataFrame) -> pd.DataFrame:
    said = {
        "tenant": rows["tenant"],
        "course": rows["course"],
        "messages": rows["delivered"].round().astype("Int64"),
        "mean": [_ranged(row, "mean_ms") for row in rows.to_dict("records")],
        "p50": [_middle(row) for row in rows.to_dict("records")],
        "p95": [_ranged(row, "p95_ms") for row in rows.to_dict("records")],
        "p99": [_ranged(row, "p99_ms") for row in rows.to_dict("records")],
        "share": [_share(row) for row in rows.to_dict("records")],
    }
    table = pd.DataFrame(said)
    if rows["queue"].nunique() > 1:
        table.insert(0, "queue", rows["queue"])
    return table


def _ranged(row: dict[str, float], name: str) -> str:
    middle, least, most = (_seconds(row[each]) for each in (name, f"{name}_least", f"{name}_most"))
    return middle if least == most else f"{middle} ({least} to {most})"


def _middle(row: dict[str, float]) -> str:
    if row["p60_ms"] + 1 > NEAR * (row["p40_ms"] + 1):
        return f"{_seconds(row['p40_ms'])} to {_seconds(row['p60_ms'])}"
    return _seconds(row["p50_ms"])


def _share(row: dict[str, float]) -> str:
    if pd.isna(row["share"]):
        return "-"
    middle, least, most = (f"{row[name]:.0%}" for name in ("share", "share_least", "share_most"))
    return middle if least == most else f"{middle} ({least} to {most})"


def _repeats(rows: pd.DataFrame, recorded: str, fair: str) -> str:
    p95 = rows.pivot_table(index=["queue", "tenant"], columns="course", values="p95_ms", aggfunc="max")
    if recorded not in p95 or fair not in p95:
        return "Nothing was delivered in both the recording and the model."
    off = ((p95[fair] - p95[recorded]).abs() / (p95[recorded] + 1)).dropna()
    return (
        f"Fair turns are the recorded policy, modelled: its p95 is {off.median():.0%} off what happened for "
        f"the median tenant, and {off.max():.0%} for the worst. That says how well the model repeats, not "
        "how well it forecasts."
    )
