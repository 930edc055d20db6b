"""What the buckets held back: how long, how fully each limit was used, and what a larger one would have freed."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.events import count, summed, times, window_of

LARGER = (1.0, 1.25, 1.5, 2.0, 4.0)
"""The limits that are tried, as multiples of the one in force."""


@dataclass(frozen=True)
class Throttles:
    """What the job answers."""

    buckets: DataFrame
    """One row a bucket: messages held, time held, tokens taken, the limit, its use."""
    larger: DataFrame
    """One row a bucket and multiple of its limit: the time that a model says would have been held."""
    minutes: DataFrame
    """One row a bucket and minute: tokens taken, messages that began to wait."""


def throttles(decisions: DataFrame, changes: DataFrame) -> Throttles:
    """Sum what each bucket held and gave; `larger` is a model: arrivals a second through a bucket of that rate."""
    seconds = _seconds(decisions).cache()
    limits = _limits(changes)
    buckets = (
        seconds.groupBy("bucket")
        .agg(
            f.sum("held").alias("held"),
            f.sum("held_ms").alias("held_ms"),
            f.sum("taken").alias("taken"),
            (f.max("second") - f.min("second") + 1).alias("seconds"),
        )
        .join(f.broadcast(limits), "bucket", "left")
        .withColumn("use", f.try_divide(f.col("taken"), f.col("rate") * f.col("seconds")))
    )
    minutes = (
        seconds.withColumn("minute", (f.floor(f.col("second") / 60) * 60).cast("bigint"))
        .groupBy("bucket", "minute")
        .agg(f.sum("taken").alias("taken"), f.sum("held").alias("held"))
    )
    columns = "bucket string, multiple double, rate double, held_ms double"
    asked = seconds.join(f.broadcast(limits), "bucket").where("rate > 0")
    return Throttles(buckets, asked.groupBy("bucket").applyInPandas(_model, columns), minutes)


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


def _limits(changes: DataFrame) -> DataFrame:
    """The limit that each bucket had last."""
    return (
        changes.where(f.col("kind") == "limit")
        .groupBy(f.col("name").alias("bucket"))
        .agg(f.max_by("rate", "at").alias("rate"), f.max_by("burst", "at").alias("burst"))
    )


def _model(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows.sort_values("second")
    asked = rows["held"] + rows["passed"]
    rate, burst = float(rows["rate"].iloc[0]), float(rows["burst"].iloc[0])
    found = [
        (
            rows["bucket"].iloc[0],
            multiple,
            rate * multiple,
            held_ms(rows["second"], asked, rate * multiple, burst),
        )
        for multiple in LARGER
    ]
    return pd.DataFrame(found, columns=["bucket", "multiple", "rate", "held_ms"])


def held_ms(seconds: pd.Series, asked: pd.Series, rate: float, burst: float) -> float:
    """Milliseconds that all messages together wait for a token, when so many ask in each of these seconds."""
    tokens, waiting, held, before = burst, 0.0, 0.0, None
    for second, count_asked in zip(seconds, asked, strict=True):
        if before is not None and second > before + 1:
            quiet = second - before - 1
            drained = min(waiting, rate * quiet)
            held += (
                waiting * drained / rate - drained * drained / rate / 2
                if drained == waiting
                else (waiting * quiet - rate * quiet * quiet / 2)
            )
            waiting -= drained
            tokens = min(burst, tokens + rate * quiet - drained)
        # However small its burst, a bucket lets its rate through in a second: tokens are taken as they come.
        tokens = min(max(burst, rate), tokens + rate)
        waiting += count_asked
        served = min(waiting, tokens)
        waiting -= served
        tokens = min(burst, tokens - served)
        held += waiting
        before = second
    if waiting:
        held += waiting * waiting / rate / 2
    return held * 1000.0
