"""Keys whose arrivals, cost or failures broke with their own past.

Each window of a key is judged against the windows before it: arrivals and mean cost by their distance from the past's
median in robust deviations, failures by a test of two proportions. What comes into a dead-letter queue was enqueued by
nobody: there it is called dead letters, not arrivals. All p-values of a history go through one
false discovery rate, since with thousands of keys some windows are odd by chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from scipy import stats
from statsmodels.robust.scale import mad
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

from fila_pipeline import schema
from fila_pipeline.events import came_in, count, summed, window_of

KEY = ("queue", "channel", "fairness_key")
PAST_WINDOWS_MIN = 8
FALSE_DISCOVERY_RATE = 0.01
TAIL_DEGREES = 4
"""Of Student's t: a short past's median and deviation are uncertain, and arrivals have heavy tails."""
CHANGE_MIN = 1.5
"""A change that is certain and small is no news."""
COLUMNS = (
    "queue string, channel string, fairness_key string, window bigint, what string, value double, usual double, "
    "p_value double"
)


def anomalies(
    decisions: DataFrame, window_s: float = 60.0, false_discovery_rate: float = FALSE_DISCOVERY_RATE
) -> DataFrame:
    """Return one row a key, window and kind of break, with its value, what was usual, and its adjusted p-value."""
    window = window_of(f.col("at"), window_s)
    firsts = decisions.groupBy("queue", "channel").agg(f.min(window).alias("window")).collect()
    begins = {(row.queue, row.channel): row.window for row in firsts}

    def judge(rows: pd.DataFrame) -> pd.DataFrame:
        place = (rows["queue"].iloc[0], rows["channel"].iloc[0])
        return judged(rows, int(window_s), begins[place])

    return (
        sums(decisions, window_s)
        .groupBy(*KEY)
        .applyInPandas(judge, COLUMNS)
        .transform(lambda found: _adjusted(found, false_discovery_rate))
    )


def sums(decisions: DataFrame, window_s: float) -> DataFrame:
    """Return what is judged: arrivals, their cost, failures and ends, one row a key and window."""
    kind = f.col("kind")

    def of(*kinds: str) -> Column:
        return f.sum(f.when(kind.isin(*kinds), count()).otherwise(0))

    return decisions.groupBy(*KEY, window_of(f.col("at"), window_s).alias("window")).agg(
        of(schema.ENQUEUED).alias("arrived"),
        f.sum(f.when(kind == schema.ENQUEUED, summed("costs")).otherwise(0.0)).alias("cost"),
        of(schema.NACKED, schema.EXPIRED).alias("failed"),
        of(schema.ACKED, schema.NACKED, schema.EXPIRED).alias("ended"),
    )


def judged(rows: pd.DataFrame, step: int, begins: int) -> pd.DataFrame:
    """Judge every window of one key that has a past; the p-values are still each for itself.

    begins: the first window of its queue. A key that comes later has been silent until then, and as much of that
    silence as a past must have is its past: so a flood out of nowhere is found, and a new key is usual soon.
    """
    place = tuple(rows[name].iloc[0] for name in KEY)
    whole = rows.set_index("window").sort_index()
    first = max(int(whole.index.min()) - PAST_WINDOWS_MIN * step, begins)
    grid = range(first, int(whole.index.max()) + 1, step)
    # A window without events is one with none arrived; the recording's last one may be cut short.
    whole = whole[["arrived", "cost", "failed", "ended"]].reindex(grid).fillna(0.0).iloc[:-1]
    came = came_in(place[0])
    found = [(*place, window, *broke) for window, broke in _breaks(whole, came)]
    return pd.DataFrame(found, columns=[part.split()[0] for part in COLUMNS.split(", ")])


def _breaks(whole: pd.DataFrame, came: str) -> Iterator[tuple[int, tuple[str, float, float, float]]]:
    arrived, failed, ended = (whole[name].to_numpy() for name in ("arrived", "failed", "ended"))
    cost = np.divide(whole["cost"].to_numpy(), arrived, out=np.zeros(len(arrived)), where=arrived > 0)
    for at in range(PAST_WINDOWS_MIN, len(whole)):
        window = int(whole.index[at])
        past = arrived[:at]
        # Counts vary by their root at least, whatever a short past shows.
        yield window, (came, *_distance(arrived[at], past, float(np.sqrt(np.median(past) + 1.0))))
        if arrived[at] > 0 and (arrived[:at] > 0).sum() >= PAST_WINDOWS_MIN:
            past = cost[:at][arrived[:at] > 0]
            yield window, ("cost", *_distance(cost[at], past, 0.05 * abs(float(np.median(past))) + 1e-9))
        if ended[at] > 0 and ended[:at].sum() > 0:
            yield (
                window,
                ("failures", *_proportion(failed[at], ended[at], failed[:at].sum(), ended[:at].sum())),
            )


def _distance(value: float, past: np.ndarray, least: float) -> tuple[float, float, float]:
    usual = float(np.median(past))
    deviation = max(float(mad(past)), least)
    p_value = 2 * float(stats.t.sf(abs(value - usual) / deviation, TAIL_DEGREES))
    changed = max(value, usual) >= CHANGE_MIN * max(min(value, usual), 1e-12)
    return float(value), usual, p_value if changed else 1.0


def _proportion(
    failed: float, ended: float, failed_before: float, ended_before: float
) -> tuple[float, float, float]:
    now, usual = failed / ended, failed_before / ended_before
    if max(now, usual) < CHANGE_MIN * max(min(now, usual), 1e-12) or failed + failed_before == 0:
        return now, usual, 1.0
    if failed + failed_before == ended + ended_before:
        return now, usual, 1.0
    _, p_value = proportions_ztest([failed, failed_before], [ended, ended_before])
    return now, usual, float(p_value)


def _adjusted(found: DataFrame, false_discovery_rate: float) -> DataFrame:
    """Keep what stands after the adjustment. What is no candidate at all only counts, so that it is not collected."""
    tests = found.count()
    candidates: pd.DataFrame = found.where(f.col("p_value") <= false_discovery_rate).toPandas()
    if candidates.empty:
        return found.where(f.lit(False))
    padded = np.concatenate([candidates["p_value"], np.ones(tests - len(candidates))])
    stands, adjusted, _, _ = multipletests(padded, alpha=false_discovery_rate, method="fdr_bh")
    candidates["p_value"] = adjusted[: len(candidates)]
    kept = candidates[stands[: len(candidates)]]
    if kept.empty:
        return found.where(f.lit(False))
    return found.sparkSession.createDataFrame(kept, COLUMNS)
