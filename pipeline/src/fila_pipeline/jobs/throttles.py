"""What the buckets held back: how long, how fully each limit was used, and what a larger one would have freed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.events import count, summed, times, window_of

LARGER = (1.0, 1.25, 1.5, 2.0, 4.0)
"""The limits that are tried, as multiples of those in force."""
NONE = float("inf")
"""The rate and the burst of a bucket without a limit."""

Limits = float | np.ndarray


@dataclass(frozen=True)
class Throttles:
    """What the job answers."""

    buckets: DataFrame
    """One row a bucket: messages held, time held, tokens taken, the limit at the end, use of those in force."""
    larger: DataFrame
    """One row a bucket and multiple of its limits: the time that a model says would have been held."""
    minutes: DataFrame
    """One row a bucket and minute: tokens taken, messages that began to wait, seconds of it that were recorded."""
    limits: DataFrame
    """One row a bucket and limit, in order: from when to when it held, in seconds since 1970, rate and burst."""


@dataclass(frozen=True)
class Limit:
    """A bucket's limit for as long as it held; a rate and burst without bound where there was none."""

    begins_s: float
    ends_s: float
    rate: float
    burst: float


def throttles(decisions: DataFrame, changes: DataFrame) -> Throttles:
    """Sum what each bucket held and gave; `larger` is a model: arrivals a second through a bucket of these rates."""
    seconds = _seconds(decisions).cache()
    edges = seconds.agg(f.min("second").alias("first"), f.max("second").alias("last")).first()
    first_s, end_s = 0.0, 0.0
    if edges is not None and edges["first"] is not None:
        first_s, end_s = float(edges["first"]), float(edges["last"] + 1)
    limits = in_force(changes, first_s, end_s)

    def judge(rows: pd.DataFrame) -> pd.DataFrame:
        return _used(rows, limits.get(rows["bucket"].iloc[0], []))

    def model(rows: pd.DataFrame) -> pd.DataFrame:
        return _model(rows, limits.get(rows["bucket"].iloc[0], []))

    sums = seconds.groupBy("bucket").agg(
        f.sum("held").alias("held"),
        f.sum("held_ms").alias("held_ms"),
        f.sum("taken").alias("taken"),
        (f.max("second") - f.min("second") + 1).alias("seconds"),
    )
    used = seconds.groupBy("bucket").applyInPandas(
        judge, "bucket string, rate double, burst double, use double"
    )
    minute = (f.floor(f.col("second") / 60) * 60).cast("bigint")
    minutes = (
        seconds.withColumn("minute", minute)
        .groupBy("bucket", "minute")
        .agg(f.sum("taken").alias("taken"), f.sum("held").alias("held"))
        # The first and the last are recorded in part.
        .withColumn(
            "seconds",
            f.least(f.col("minute") + 60, f.lit(end_s)) - f.greatest(f.col("minute"), f.lit(first_s)),
        )
    )
    return Throttles(
        sums.join(used, "bucket", "left"),
        seconds.groupBy("bucket").applyInPandas(model, "bucket string, multiple double, held_ms double"),
        minutes,
        _drawn(decisions.sparkSession, limits),
    )


def in_force(changes: DataFrame, first_s: float, end_s: float) -> dict[str, list[Limit]]:
    """Return each bucket's limits between two moments, in order and without a gap; those of no bucket that never had
    one. A history begins with each limit that there is."""
    rows = (
        changes.where(f.col("kind") == "limit")
        .select(f.col("name"), f.col("at").cast("double").alias("at"), "rate", "burst", "pass")
        .collect()
    )
    found: dict[str, list[Limit]] = {}
    for row in sorted(rows, key=lambda row: (row["name"], row["at"], row["pass"])):
        before = found.setdefault(row["name"], [Limit(float("-inf"), end_s, NONE, NONE)])
        before[-1] = replace(before[-1], ends_s=row["at"])
        limited = row["rate"] is not None and row["rate"] > 0
        rate, burst = (row["rate"], row["burst"] or row["rate"]) if limited else (NONE, NONE)
        before.append(Limit(row["at"], end_s, rate, burst))
    return {
        bucket: [
            replace(each, begins_s=max(each.begins_s, first_s), ends_s=min(each.ends_s, end_s))
            for each in limits
            if each.begins_s < end_s and each.ends_s > first_s
        ]
        for bucket, limits in found.items()
    }


def _drawn(spark: SparkSession, limits: dict[str, list[Limit]]) -> DataFrame:
    rows = [
        (
            bucket,
            each.begins_s,
            each.ends_s,
            *(None if part == NONE else part for part in (each.rate, each.burst)),
        )
        for bucket, listed in limits.items()
        for each in listed
    ]
    columns = "bucket string, begins_s double, ends_s double, rate double, burst double"
    return spark.createDataFrame(rows, columns)


def _seconds(decisions: DataFrame) -> DataFrame:
    """Per bucket and second: who asked for a token, who took one, who began to wait."""
    kind = f.col("kind")
    none = f.lit(0).cast("bigint")
    second = window_of(f.col("at"), 1).alias("second")
    lines = decisions.where(kind.isin(schema.THROTTLED, schema.RELEASED)).select(
        "bucket",
        second,
        f.when(kind == schema.THROTTLED, count()).otherwise(0).cast("bigint").alias("held"),
        f.when(kind == schema.RELEASED, summed("held_ms")).otherwise(0.0).alias("held_ms"),
        none.alias("taken"),
        none.alias("passed"),
    )
    waited = f.expr("size(filter(coalesce(wait_throttle_ms, array()), each -> each > 0))") * times(
        "wait_throttle_ms"
    )
    deliveries = decisions.where((kind == schema.DELIVERED) & (f.size("throttle_keys") > 0)).select(
        f.explode("throttle_keys").alias("bucket"),
        second,
        none.alias("held"),
        f.lit(0.0).alias("held_ms"),
        count().cast("bigint").alias("taken"),
        (count() - waited).cast("bigint").alias("passed"),
    )
    return (
        lines.unionByName(deliveries)
        .groupBy("bucket", "second")
        .agg(*(f.sum(name).alias(name) for name in ("held", "held_ms", "taken", "passed")))
    )


def _used(rows: pd.DataFrame, limits: list[Limit]) -> pd.DataFrame:
    """How fully the limits were used: tokens taken while one was in force, by tokens that came in that time."""
    columns = ["bucket", "rate", "burst", "use"]
    bucket, limited = rows["bucket"].iloc[0], [each for each in limits if each.rate != NONE]
    if not limited:
        return pd.DataFrame([(bucket, None, None, None)], columns=columns)
    begins_s, ends_s = rows["second"].min(), rows["second"].max() + 1
    came = sum(
        each.rate * max(0.0, min(each.ends_s, ends_s) - max(each.begins_s, begins_s)) for each in limited
    )
    rates, _ = _each_second(rows["second"], limits)
    taken = float(rows["taken"][rates != NONE].sum())
    last = limits[-1]
    told = (None, None) if last.rate == NONE else (last.rate, last.burst)
    return pd.DataFrame([(bucket, *told, taken / came if came else None)], columns=columns)


def _model(rows: pd.DataFrame, limits: list[Limit]) -> pd.DataFrame:
    columns = ["bucket", "multiple", "held_ms"]
    if all(each.rate == NONE for each in limits):
        return pd.DataFrame([], columns=columns)
    asked = (rows["held"] + rows["passed"]).groupby(rows["second"]).sum()
    # A second without arrivals where a limit changes, so that one holds from each second to the next.
    edges = [int(np.floor(each.begins_s)) for each in limits]
    seconds = sorted({*asked.index, *(edge for edge in edges if edge >= asked.index.min())})
    asked = asked.reindex(seconds, fill_value=0)
    rates, bursts = _each_second(pd.Series(seconds), limits)
    found = [
        (rows["bucket"].iloc[0], multiple, held_ms(asked.index, asked, rates * multiple, bursts))
        for multiple in LARGER
    ]
    return pd.DataFrame(found, columns=columns)


def _each_second(seconds: pd.Series, limits: list[Limit]) -> tuple[np.ndarray, np.ndarray]:
    """Rate and burst in the middle of each second."""
    at = np.searchsorted([each.begins_s for each in limits], seconds.to_numpy() + 0.5, side="right") - 1
    rates, bursts = (np.array([getattr(each, name) for each in limits]) for name in ("rate", "burst"))
    return np.where(at < 0, NONE, rates[at]), np.where(at < 0, NONE, bursts[at])


def held_ms(seconds: Sequence[int], asked: Sequence[float], rate: Limits, burst: Limits) -> float:
    """Milliseconds that all messages together wait for a token, when so many ask in each of these seconds.

    rate, burst: of the whole time, or one a second that is given; without bound where there is no limit.
    """
    rates, bursts = np.broadcast_to(rate, len(seconds)), np.broadcast_to(burst, len(seconds))
    held = waiting = 0.0
    before, rate_before, burst_before = None, NONE, NONE
    tokens = float(bursts[0]) if len(bursts) else 0.0
    for second, count_asked, rate_now, burst_now in zip(seconds, asked, rates, bursts, strict=True):
        if before is not None and second > before + 1:
            quiet = second - before - 1
            drained = min(waiting, rate_before * quiet)
            held += (
                waiting * drained / rate_before - drained * drained / rate_before / 2
                if drained == waiting
                else (waiting * quiet - rate_before * quiet * quiet / 2)
            )
            waiting -= drained
            tokens = min(burst_before, tokens + rate_before * quiet - drained)
        # However small its burst, a bucket lets its rate through in a second: tokens are taken as they come.
        tokens = min(max(burst_now, rate_now), tokens + rate_now)
        waiting += count_asked
        served = min(waiting, tokens)
        waiting -= served
        tokens = min(burst_now, tokens - served)
        held += waiting
        before, rate_before, burst_before = second, float(rate_now), float(burst_now)
    if waiting:
        held += waiting * waiting / rate_before / 2
    return held * 1000.0
