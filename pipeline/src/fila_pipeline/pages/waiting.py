"""The pages of the jobs about waiting: `delays`, `throttles` and `capacity`."""

from __future__ import annotations

import pandas as pd

from fila_pipeline import schema
from fila_pipeline.pages.page import Figure, Light, Page, Table, amount, called, length, moments
from fila_pipeline.pages.plot import Plot

CAUSE_WORDS = {
    "no_consumer": "no consumer had room",
    "share": "others had their turn",
    "throttle": "a bucket was empty",
    "delay": "a delay or backoff ran",
    "held": "its key was paused or capped",
}
CAUSE_COLUMNS = {
    "no_consumer": "no room, h",
    "share": "others' turn, h",
    "throttle": "bucket, h",
    "delay": "backoff, h",
    "held": "paused, h",
}
"""The same for the heads of a table, which has to fit a page."""
HOURS_DIGITS = 4
KEYS_PLOTTED_MAX = 20
LOOK_MS, TROUBLE_MS = 10_000, 60_000
"""Mean waits from which a light is amber, and red."""
MODEL = "A model: arrivals by second, shared by weighted max-min."


def delays_page(by_hour: pd.DataFrame, by_key: pd.DataFrame, about: str) -> Page:
    """Say what messages waited for; `about` says which key and time were asked for, if any were."""
    by_key = by_key.sort_values("wait_ms", ascending=False)
    columns = {f"wait_{cause}_ms": cause for cause in schema.CAUSES}
    causes = by_key[list(columns)].sum().rename(columns).sort_values(ascending=False)
    plot = Plot(height=420, bars="stacked", is_flat=True, x_title="hours waited, all messages together")
    shown = by_key.head(KEYS_PLOTTED_MAX).iloc[::-1]
    for column, cause in columns.items():
        plot.bar(called(shown), shown[column] / 3.6e6, CAUSE_WORDS[cause])
    hours = by_hour.groupby("hour", as_index=False)[list(columns)].sum()
    when = Plot(height=300, bars="stacked", y_title="hours waited")
    for column, cause in columns.items():
        when.bar(moments(hours["hour"]).dt.strftime("%b %d %H:%M"), hours[column] / 3.6e6, CAUSE_WORDS[cause])
    hours_of = {column: CAUSE_COLUMNS[cause] for column, cause in columns.items()}
    by_key, by_hour = (
        rows.assign(**{name: (rows[name] / 3.6e6).round(HOURS_DIGITS) for name in columns})
        for rows in (by_key, by_hour)
    )
    told = by_key.assign(mean_ms=by_key["wait_ms"] / by_key["messages"])
    names = [
        "queue",
        "channel",
        "fairness_key",
        "messages",
        "mean_ms",
        "p50_ms",
        "p99_ms",
        "max_ms",
    ]
    shown_hours = ["hour", "fairness_key", "messages", "p50_ms", "p99_ms", *columns]
    hourly = by_hour.assign(hour=moments(by_hour["hour"])).sort_values("wait_ms", ascending=False)
    return Page(
        f"Delays: why messages{about} waited",
        _delays_answer(by_key, causes, about),
        [
            Figure("By key and cause", "The keys that waited longest, all their messages together.", plot),
            Figure("By hour", "When it was waited, by the hour of delivery.", when),
        ],
        [
            Table(
                "Keys",
                "Milliseconds from becoming due to delivery; by cause in hours, all messages together.",
                told[[*names, *columns]].rename(columns=hours_of),
            ),
            Table(
                "Hours",
                "The same by hour.",
                hourly[shown_hours].rename(columns=hours_of),
            ),
        ],
        light=_light(float(told["wait_ms"].sum()) / max(int(told["messages"].sum()), 1)),
    )


def _light(mean_ms: float) -> Light:
    """By how long a message waited on average."""
    return "well" if mean_ms < LOOK_MS else "look" if mean_ms < TROUBLE_MS else "trouble"


def _delays_answer(by_key: pd.DataFrame, causes: pd.Series, about: str) -> str:
    messages, whole = int(by_key["messages"].sum()), float(by_key["wait_ms"].sum())
    if whole <= 0:
        return f"{messages:,} deliveries{about}, and none of them waited."
    first = causes.index[0]
    worst = by_key.iloc[0]
    mean = length(whole / messages)
    said = f"{messages:,} deliveries{about} waited {mean} on average, {causes.iloc[0] / whole:.0%} of it because "
    said += CAUSE_WORDS[first]
    if len(by_key) == 1:
        second = causes.index[1]
        rest = f", {causes.iloc[1] / whole:.0%} because {CAUSE_WORDS[second]}" if causes.iloc[1] > 0 else ""
        return f"{said}{rest}; the slowest in a hundred took over {length(worst['p99_ms'])}."
    return f"{said}; {worst['fairness_key']} waited most, {length(worst['wait_ms'] / worst['messages'])} a message."


def throttles_page(
    buckets: pd.DataFrame, larger: pd.DataFrame, minutes: pd.DataFrame, limits: pd.DataFrame
) -> Page:
    """Say which bucket held most, and what more would have freed."""
    buckets = buckets.sort_values("held_ms", ascending=False)
    plot = Plot(y_title="tokens taken a second")
    for number, row in enumerate(buckets.head(6).itertuples()):
        rows = minutes[minutes["bucket"] == row.bucket].sort_values("minute")
        color = plot.color(number)
        plot.line(moments(rows["minute"]), rows["taken"] / rows["seconds"], row.bucket, color=color)
        held = limits[limits["bucket"] == row.bucket].sort_values("begins_s")
        plot.line(
            # Both ends of each limit: it is drawn for as long as it held, and where there was none nothing is.
            moments(held[["begins_s", "ends_s"]].to_numpy().ravel()),
            held["rate"].repeat(2),
            f"{row.bucket}, limit",
            color=color,
            dotted=True,
            listed=False,
        )
    freed = Plot(height=320, x_title="limit, times what was in force", y_title="hours held")
    for bucket, rows in larger.sort_values("multiple").groupby("bucket"):
        freed.line(rows["multiple"], rows["held_ms"] / 3.6e6, str(bucket), points=True)
    return Page(
        "Throttles: what the limits held back",
        _throttles_answer(buckets, larger),
        [
            Figure("Use of the limits", "Solid: tokens taken. Dotted: the limit that was in force.", plot),
            Figure(
                "What a larger limit would have freed",
                "A model: the same messages against the limits in force at each moment, times a factor.",
                freed,
            ),
        ],
        [
            Table(
                "Buckets",
                "Time held is summed over messages; use is tokens taken by tokens that came, while there was a limit. "
                "Rate and burst are those at the end.",
                buckets,
            ),
            Table("Larger limits", "The model's time held, by multiple of the limits.", larger),
        ],
        light="look" if float(buckets["held_ms"].sum()) > 0 else "well",
    )


def _throttles_answer(buckets: pd.DataFrame, larger: pd.DataFrame) -> str:
    worst = buckets.iloc[0]
    if worst["held_ms"] <= 0:
        return f"No limit held anything back; bucket {worst['bucket']} gave {int(worst['taken']):,} tokens."
    mean = length(worst["held_ms"] / max(1, worst["held"]))
    said = f"Bucket {worst['bucket']} held {int(worst['held']):,} messages for {length(worst['held_ms'])}, {mean} each"
    model = larger[larger["bucket"] == worst["bucket"]].set_index("multiple")["held_ms"]
    if 1.5 in model.index and model.get(1.0, 0) > 0:
        said += f"; half as much again would have freed {max(0.0, 1 - model[1.5] / model[1.0]):.0%} of that"
    return said + "."


def capacity_page(queues: pd.DataFrame, curve: pd.DataFrame, p99_ms: float) -> Page:
    """Say what rate of consumers is enough."""
    queues = queues.sort_values("rate", ascending=False)
    worst = queues.iloc[0]
    plot = Plot(x_title="rate of consumers, cost a second", y_title="p99 wait, ms", is_log=True)
    rows = curve[(curve["queue"] == worst["queue"]) & (curve["channel"] == worst["channel"])]
    for key, points in rows.sort_values("rate").groupby("fairness_key"):
        if len(plot.series) < KEYS_PLOTTED_MAX:
            plot.line(points["rate"], points["p99_ms"].clip(lower=1), str(key), points=True)
    plot.marks += [("y", p99_ms, "#b03a48"), ("x", worst["rate"], "#5b7083")]
    return Page(
        f"Capacity: the rate that holds a p99 wait of {length(p99_ms)}",
        f"Queue {worst['queue']} needs consumers for {amount(worst['rate'])} of cost a second to keep every key's p99 "
        f"wait within {length(p99_ms)}: {worst['rate'] / max(worst['demand'], 1e-9):.2f} times its mean demand of "
        f"{amount(worst['demand'])}, where its busiest minute asked for {amount(worst['peak_60s'])}.",
        [
            Figure(
                f"Waits by rate, queue {worst['queue']}",
                MODEL,
                plot,
            )
        ],
        [
            Table("Queues", "Cost a second; served_max is the busiest minute of deliveries.", queues),
            Table(
                "Waits by rate",
                "Milliseconds, as modelled.",
                curve.sort_values(["queue", "rate", "fairness_key"]),
            ),
        ],
        [
            "The model knows neither buckets nor retries: where they matter, more consumers may be needed, or not help."
        ],
        light="well" if worst["rate"] <= worst["served_max"] else "look",
    )
