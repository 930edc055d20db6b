"""The pages of the jobs about trouble: `retries` and `anomalies`."""

from __future__ import annotations

import pandas as pd

from fila_pipeline.events import ARRIVALS, DEAD_LETTERS
from fila_pipeline.pages.page import Figure, Light, Page, Table, called, length, moments
from fila_pipeline.pages.plot import Plot

KEYS_PLOTTED_MAX = 20
LOOK_PART, TROUBLE_PART = 0.01, 0.2


def retries_page(keys: pd.DataFrame, poison: pd.DataFrame, causes: pd.DataFrame) -> Page:
    """Say what failed and what it cost."""
    keys = keys.assign(lost_ms=keys["handling_lost_ms"] + keys["backoff_ms"]).sort_values(
        "lost_ms", ascending=False
    )
    shown = keys.head(KEYS_PLOTTED_MAX).iloc[::-1]
    plot = Plot(bars="stacked", is_flat=True, x_title="minutes lost")
    plot.bar(called(shown), shown["handling_lost_ms"] / 6e4, "failed attempts")
    plot.bar(called(shown), shown["backoff_ms"] / 6e4, "backoff after them")
    names = ["queue", "channel", "fairness_key", "delivered"]
    names += ["acked", "nacked", "expired", "returned", "in_flight", "dead_lettered"]
    poison = poison.sort_values("failures", ascending=False)
    return Page(
        "Retries: what failures cost",
        _retries_answer(keys, causes),
        [
            Figure(
                "Time lost to failures, by key",
                "Handling that ended in a failure, and the waiting after it.",
                plot,
            )
        ],
        [
            Table(
                "Keys",
                "Each delivery was acked, nacked, expired, came back untouched (returned) or was in flight when the "
                "history ended. Milliseconds are summed over messages.",
                keys[[*names, "failure_rate", "lost_ms"]],
            ),
            Table(
                "Poison",
                "Messages that failed three times or were given up.",
                poison,
            ),
            Table(
                "Dead letters", "Why messages were given up.", causes.sort_values("messages", ascending=False)
            ),
        ],
        light=_light(keys),
    )


def _light(keys: pd.DataFrame) -> Light:
    """By the part of deliveries that failed; a fifth is what the broker calls failing."""
    part = float(keys["nacked"].sum() + keys["expired"].sum()) / max(float(keys["ended"].sum()), 1)
    return "well" if part < LOOK_PART else "look" if part < TROUBLE_PART else "trouble"


def _retries_answer(keys: pd.DataFrame, causes: pd.DataFrame) -> str:
    failed, ended = int(keys["nacked"].sum() + keys["expired"].sum()), int(keys["ended"].sum())
    rest = "".join(f"; {said}" for said in _without_end(keys))
    if failed == 0:
        return f"Nothing failed: {ended:,} deliveries ended, and all of them well{rest}."
    worst = keys.iloc[0]
    given_up = int(causes["messages"].sum()) if len(causes) else 0
    return (
        f"{failed:,} of {ended:,} deliveries failed ({failed / ended:.1%}{rest}) and {given_up:,} messages were given "
        f"up; {worst['fairness_key']} lost most, {length(worst['lost_ms'])}: "
        f"{worst['failure_rate']:.1%} of its deliveries failed."
    )


def _without_end(keys: pd.DataFrame) -> list[str]:
    """Say what became of the other deliveries: together they are as many as `delays` and `backtest` count."""
    counts = {"came back untouched": keys["returned"].sum(), "in flight at the end": keys["in_flight"].sum()}
    return [f"{int(count):,} more {what}" for what, count in counts.items() if count]


def anomalies_page(found: pd.DataFrame, arrivals: pd.DataFrame) -> Page:
    """Say which keys of which queues broke with their past."""
    found = found.sort_values(["p_value", "window"])
    plot = Plot(y_title="messages that came in a window")
    # What is drawn is what came in, so only breaks of that are circled.
    came = found[found["what"].isin((ARRIVALS, DEAD_LETTERS))]
    odd = list(dict.fromkeys(zip(came["queue"], came["fairness_key"], strict=True)))[:6]
    for number, (queue, key) in enumerate(odd):
        color = plot.color(number)
        rows = arrivals[(arrivals["queue"] == queue) & (arrivals["fairness_key"] == key)]
        rows = rows.groupby("window", as_index=False)["arrived"].sum()
        plot.line(moments(rows["window"]), rows["arrived"], f"{key} in {queue}", color=color)
        circled = came[(came["queue"] == queue) & (came["fairness_key"] == key)]["window"]
        marked = rows[rows["window"].isin(circled)]
        plot.circles(moments(marked["window"]), marked["arrived"], f"{key} in {queue}, odd", color=color)
    table = found.assign(window=moments(found["window"]))
    return Page(
        "Anomalies: keys that broke with their own past",
        _anomalies_answer(found),
        [
            Figure(
                "What came in of the odd keys",
                "Circles: windows in which it broke with the past.",
                plot,
            )
        ]
        if odd
        else [],
        [
            Table(
                "Breaks",
                "The least likely first; p-values are adjusted for how many windows were looked at.",
                table,
            )
        ],
        light="well" if found.empty else "look",
    )


def _anomalies_answer(found: pd.DataFrame) -> str:
    if found.empty:
        return "No key broke with its own past in arrivals, cost or failures."
    runs = (
        found.groupby(["queue", "fairness_key", "what"])
        .agg(windows=("window", "count"), first=("window", "min"))
        .reset_index()
    )
    runs = runs.sort_values("windows", ascending=False)
    said = [
        f"{row.fairness_key}'s {row.what} in {row.queue} from {pd.to_datetime(row.first, unit='s'):%H:%M} on "
        f"({row.windows} {'window' if row.windows == 1 else 'windows'})"
        for row in runs.head(3).itertuples()
    ]
    more = len(runs) - len(said)
    return f"Out of the ordinary: {'; '.join(said)}{f'; and {more} more' if more else ''}."
