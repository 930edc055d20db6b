"""The smallest rate of consumers at which every key's p99 wait stays within a bound: a model of arrivals by second.

Spark sums arrivals by key and second; the model then runs once a queue on those sums, which are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.events import summed, window_of

KEYS_MODELLED_MAX = 200
"""The keys with the largest demand, each by itself; the others together are one more key."""
RATES_SHOWN = (0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
OTHERS = "(others)"
PRECISION = 0.01


@dataclass(frozen=True)
class Capacity:
    """Rates are cost a second."""

    queues: DataFrame
    """One row a queue: mean and peak demand, what was served, the smallest rate that holds the bound."""
    curve: DataFrame
    """One row a queue, key and rate: the p99 wait that the model gives."""


def capacity(decisions: DataFrame, p99_ms: float = 1000.0) -> Capacity:
    """Find each queue's smallest rate. Retries and buckets are left out: a message is served once, in its turn."""
    arrivals = (
        decisions.where(f.col("kind").isin(schema.ENQUEUED, schema.DELIVERED))
        .groupBy("queue", "channel", "fairness_key", window_of(f.col("at"), 1).alias("second"))
        .agg(
            f.max("weight").alias("weight"),
            f.sum(f.when(f.col("kind") == schema.ENQUEUED, summed("costs")).otherwise(0.0)).alias("arrived"),
            f.sum(f.when(f.col("kind") == schema.DELIVERED, summed("costs")).otherwise(0.0)).alias("served"),
        )
        .cache()
    )

    def queues(rows: pd.DataFrame) -> pd.DataFrame:
        return _queue(rows, p99_ms)

    def curve(rows: pd.DataFrame) -> pd.DataFrame:
        return _curve(rows, p99_ms)

    by_queue = arrivals.groupBy("queue", "channel")
    return Capacity(
        by_queue.applyInPandas(
            queues,
            "queue string, channel string, seconds bigint, demand double, peak_60s double, served_max double, "
            "rate double",
        ),
        by_queue.applyInPandas(
            curve, "queue string, channel string, fairness_key string, rate double, p99_ms double"
        ),
    )


@dataclass(frozen=True)
class _Load:
    """Arrivals by second (rows) and key (columns)."""

    keys: list[str]
    weights: np.ndarray
    arrived: np.ndarray
    served: np.ndarray
    """By second, of all keys."""

    @property
    def mean(self) -> float:
        return float(self.arrived.sum() / max(1, len(self.arrived)))


def _load(rows: pd.DataFrame) -> _Load:
    totals = rows.groupby("fairness_key")["arrived"].sum().sort_values(ascending=False)
    kept = set(totals.index[:KEYS_MODELLED_MAX])
    key = rows["fairness_key"].where(rows["fairness_key"].isin(kept), OTHERS)
    table = rows.assign(key=key).pivot_table(index="second", columns="key", values="arrived", aggfunc="sum")
    seconds = range(int(rows["second"].min()), int(rows["second"].max()) + 1)
    table = table.reindex(seconds).fillna(0.0)
    served = rows.groupby("second")["served"].sum().reindex(seconds).fillna(0.0)
    weights = (
        rows.assign(key=key).groupby("key")["weight"].max().reindex(table.columns).fillna(1).clip(lower=1)
    )
    return _Load(
        list(table.columns),
        weights.to_numpy(dtype=float),
        table.to_numpy(dtype=float),
        served.to_numpy(dtype=float),
    )


def waits_p99_ms(arrived: np.ndarray, weights: np.ndarray, rate: float) -> np.ndarray:
    """Return each key's p99 wait when `rate` is shared by weighted max-min, second by second."""
    seconds, keys = arrived.shape
    backlog = np.zeros(keys)
    served = np.zeros((seconds, keys))
    for second in range(seconds):
        backlog += arrived[second]
        served[second] = max_min(backlog, weights, rate)
        backlog -= served[second]
    p99 = np.zeros(keys)
    for key in range(keys):
        p99[key] = _p99_ms(np.cumsum(arrived[:, key]), np.cumsum(served[:, key]), rate)
    return p99


def max_min(demand: np.ndarray, weights: np.ndarray, rate: float) -> np.ndarray:
    """Share `rate` so that no key gets more than its demand, and the others get what is left by weight."""
    share = np.zeros_like(demand)
    order = np.argsort(demand / weights)
    left, weight_left = rate, float(weights.sum())
    for key in order:
        share[key] = min(demand[key], left * weights[key] / weight_left)
        left -= share[key]
        weight_left = max(weight_left - weights[key], 1e-12)
    return share


def _p99_ms(arrived: np.ndarray, served: np.ndarray, rate: float) -> float:
    """The wait of the unit that 99 % of the units wait no longer than; what is never served waits until the end."""
    total = arrived[-1]
    if total <= 0:
        return 0.0
    levels = np.linspace(0, total, 513)[1:]
    came = np.searchsorted(arrived, levels - 1e-9)
    went = np.minimum(np.searchsorted(served, levels - 1e-9), len(served))
    waits = np.maximum(went - came, 0) * 1000.0
    # Within a second nothing is known; what is served in the second it came in waits for those in front of it.
    within = np.minimum(1000.0, 1000.0 * np.diff(arrived, prepend=0.0).mean() / rate)
    return float(np.quantile(waits, 0.99) + within)


def smallest_rate(load: _Load, p99_ms: float) -> float:
    """Return the smallest rate that holds the bound for every key, to one part in a hundred.

    A millionth of the demand stands for any rate where what is recorded is too short for a wait beyond the bound.
    """
    if load.mean == 0:
        return 0.0
    low, high, least = 0.0, load.mean, load.mean / 1e6
    while waits_p99_ms(load.arrived, load.weights, high).max() > p99_ms:
        low, high = high, high * 2
        if high > 1e12:
            return float("inf")
    while high - low > PRECISION * high and high > least:
        middle = (low + high) / 2
        if waits_p99_ms(load.arrived, load.weights, middle).max() <= p99_ms:
            high = middle
        else:
            low = middle
    return high


def _best_minute(by_second: np.ndarray) -> float:
    """Return the largest mean of 60 seconds in a row; of all, where there are fewer."""
    width = min(60, len(by_second))
    return float(np.convolve(by_second, np.ones(width) / width, "valid").max())


def _queue(rows: pd.DataFrame, p99_ms: float) -> pd.DataFrame:
    load = _load(rows)
    whole = load.arrived.sum(axis=1)
    return pd.DataFrame(
        {
            "queue": [rows["queue"].iloc[0]],
            "channel": [rows["channel"].iloc[0]],
            "seconds": [len(whole)],
            "demand": [load.mean],
            "peak_60s": [_best_minute(whole)],
            "served_max": [_best_minute(load.served)],
            "rate": [smallest_rate(load, p99_ms)],
        }
    )


def _curve(rows: pd.DataFrame, p99_ms: float) -> pd.DataFrame:
    load = _load(rows)
    needed = smallest_rate(load, p99_ms)
    queue, channel = rows["queue"].iloc[0], rows["channel"].iloc[0]

    def points() -> Iterator[tuple[str, str, str, float, float]]:
        for multiple in RATES_SHOWN:
            rate = needed * multiple
            for key, wait in zip(load.keys, waits_p99_ms(load.arrived, load.weights, rate), strict=True):
                yield queue, channel, key, rate, wait

    return pd.DataFrame(list(points()), columns=["queue", "channel", "fairness_key", "rate", "p99_ms"])
