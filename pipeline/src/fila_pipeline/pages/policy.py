"""The page of `backtest --policy`: what another policy would have done, key by key, beside what happened."""

from __future__ import annotations

import pandas as pd

from fila_pipeline.pages.page import Figure, Page, Table, length
from fila_pipeline.pages.plot import Plot

KEYS_PLOTTED_MAX = 25
TELLING = 1.1
"""A change of a p99 by less than this factor is not told in the answer."""
WAITS = ["mean_ms", "p40_ms", "p60_ms", "p95_ms", "p99_ms"]
ANSWERING = [
    *("queue", "fairness_key", "recorded_p95_ms", "recorded_p99_ms", "model_p99_ms"),
    *("policy_p40_ms", "policy_p60_ms", "policy_p95_ms"),
    *("policy_p99_ms", "policy_p99_least_ms", "policy_p99_most_ms"),
]
"""Waits, in the columns that the table begins with."""
COUNTS = ["recorded_delivered", "policy_delivered", "recorded_dead_lettered", "policy_dead_lettered"]
MODEL = (
    "A model: messages arrive when they did, consumers come with the room they had, and each delivery is worked on for "
    "as long, and ends, as recorded. What a different order would have changed in producers and consumers is not in it."
)


def compare(
    recorded: pd.DataFrame, as_it_was: pd.DataFrame, with_policy: pd.DataFrame, slowed: pd.DataFrame
) -> pd.DataFrame:
    """Return one row a queue and key; of the courses, the median over the seeds, and least and most of them and of
    those with consumers that are slower and faster."""
    keys = ["queue", "fairness_key"]

    def of(rows: pd.DataFrame, name: str) -> pd.DataFrame:
        # Several starts of the broker: what is counted adds up, a wait is that of the start where it was longest.
        seeds = rows.groupby([*keys, "seed"], as_index=False).agg(
            delivered=("delivered", "sum"),
            dead_lettered=("dead_lettered", "sum"),
            mean_ms=("mean_ms", "mean"),
            **{wait: (wait, "max") for wait in WAITS[1:]},
        )
        grouped = seeds.groupby(keys)
        middle = grouped[["delivered", "dead_lettered", *WAITS]].median().add_prefix(name)
        spread = (
            grouped["p99_ms"]
            .agg(["min", "max"])
            .rename(columns={"min": f"{name}p99_least_ms", "max": f"{name}p99_most_ms"})
        )
        return middle.join(spread)

    happened = of(recorded, "recorded_").drop(columns=["recorded_p99_least_ms", "recorded_p99_most_ms"])
    joined = happened.join(of(as_it_was, "model_"), how="outer").join(of(with_policy, "policy_"), how="outer")
    moved = slowed.groupby([*keys, "slowness"])["p99_ms"].max().groupby(keys)
    for column, edge in (("policy_p99_least_ms", moved.min()), ("policy_p99_most_ms", moved.max())):
        both = pd.concat([joined[column], edge.reindex(joined.index)], axis=1)
        joined[column] = both.min(axis=1) if "least" in column else both.max(axis=1)
    joined["change_ms"] = joined["policy_p99_ms"] - joined["model_p99_ms"]
    return joined.sort_values("change_ms", key=lambda change: change.abs(), ascending=False).reset_index()


def policy_page(
    compared: pd.DataFrame, seeds: int, drawn: int, unknown: int, refused: int, script_failures: int
) -> Page:
    """Say which keys would have waited less, and which more."""
    shown = compared.head(KEYS_PLOTTED_MAX).iloc[::-1]
    names = (
        shown["fairness_key"]
        if shown["queue"].nunique() == 1
        else shown["queue"] + " / " + shown["fairness_key"]
    )
    plot = Plot(height=140 + 46 * len(shown), is_flat=True, x_title="p99 of the wait, seconds")
    plot.bar(
        names,
        shown["policy_p99_ms"] / 1000,
        "with the policy",
        least=shown["policy_p99_least_ms"] / 1000,
        most=shown["policy_p99_most_ms"] / 1000,
    )
    plot.bar(names, shown["model_p99_ms"] / 1000, "the model as it was")
    plot.bar(names, shown["recorded_p99_ms"] / 1000, "recorded")
    notes = [MODEL, _trust(compared), _range(seeds, drawn)]
    if drawn:
        notes.append(
            f"{drawn / seeds:,.0f} deliveries a course were not recorded; they were held as others of their key."
        )
    if unknown:
        notes.append(
            f"{unknown / seeds:,.0f} of these are of queues with nothing to go by; they stayed in flight."
        )
    if refused:
        notes.append(
            f"{refused / seeds:,.0f} calls a course were refused by the core, such as enqueues into a full queue."
        )
    if script_failures:
        notes.append(
            f"Scripts failed {script_failures / seeds:,.0f} times a course; the queue's settings decided."
        )
    table = Table(
        "By queue and key",
        f"Waits in ms, from being ready to being delivered. Of {seeds} courses: the median; least and most also of "
        "those with consumers a tenth slower and faster. In place of a median wait the 40th to the 60th percentile: "
        "where some wait for nothing and others for long, it may be anything between. keys.parquet has more columns.",
        compared[[*ANSWERING, *COUNTS]].assign(
            **{name: compared[name].round().astype("Int64") for name in COUNTS}
        ),
    )
    about = "The keys whose p99 changes most. The lines show how far consumers a tenth slower or faster would move it."
    return Page(
        "Backtest: another policy", policy_answer(compared), [Figure("Waits", about, plot)], [table], notes
    )


def policy_answer(compared: pd.DataFrame) -> str:
    """Return the answer in a sentence or two."""
    both = compared.dropna(subset=["policy_p99_ms", "model_p99_ms"])
    # The millisecond keeps what never waited from counting as a change without bound.
    ratio = (both["policy_p99_ms"] + 1) / (both["model_p99_ms"] + 1)
    better, worse = both[ratio < 1 / TELLING], both[ratio > TELLING]
    if better.empty and worse.empty:
        return "The policy changes the p99 wait of no key by more than a tenth."
    said = []
    for rows, change in ((better, "less"), (worse, "longer")):
        if not rows.empty:
            one = rows.loc[(rows["policy_p99_ms"] - rows["model_p99_ms"]).abs().idxmax()]
            key, others = one["fairness_key"], len(rows) - 1
            who = f"{key} and {others} more wait {change}: {key}" if others else f"{key} waits {change}:"
            p99, was = length(one["policy_p99_ms"]), length(one["model_p99_ms"])
            said.append(f"{who} a p99 of {p99} in place of {was}")
    return "With the policy " + "; ".join(said) + "."


def _trust(compared: pd.DataFrame) -> str:
    both = compared.dropna(subset=["recorded_p99_ms", "model_p99_ms"])
    off = (both["model_p99_ms"] - both["recorded_p99_ms"]).abs() / (both["recorded_p99_ms"] + 1)
    return (
        f"Under the recorded policy the model repeats what happened: its p99 is {off.median():.0%} off for the median "
        f"key, and {off.max():.0%} for the worst. That is not the error of the forecast, which grows with how "
        "far consumers would then work faster or slower; a change below it says nothing."
        if len(both)
        else "Nothing was delivered in both the recording and the model."
    )


def _range(seeds: int, drawn: int) -> str:
    """What the least and the most are of: where nothing is drawn, the seeds make no difference."""
    said = "The least and the most are those of consumers that take a tenth longer and a tenth less"
    if not drawn:
        return f"{said}: nothing had to be drawn, so all {seeds} courses are the same, and their spread says nothing."
    return f"{said}, and of the {seeds} courses, which draw what was not recorded."
