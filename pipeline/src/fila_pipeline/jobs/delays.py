"""Why messages waited: by cause, key and hour; and the answer for one key between two moments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.events import per_message, window_of

CAUSE_COLUMNS = tuple(f"wait_{cause}_ms" for cause in schema.CAUSES)


@dataclass(frozen=True)
class Delays:
    """Waits in milliseconds, of deliveries."""

    by_hour: DataFrame
    """One row a queue, channel, key and hour."""
    by_key: DataFrame
    """One row a queue, channel and key."""


def delays(
    decisions: DataFrame,
    key: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Delays:
    """Sum the waits of what was delivered, split by cause, with percentiles (approximate, 1 in 1,000) of the whole.

    `key`, `since` (included) and `until` (not) narrow what is looked at.
    """
    runs = decisions.where(f.col("kind") == schema.DELIVERED)
    if key is not None:
        runs = runs.where(f.col("fairness_key") == key)
    if since is not None:
        runs = runs.where(f.col("at") >= f.lit(since))
    if until is not None:
        runs = runs.where(f.col("at") < f.lit(until))
    each = per_message(runs, *CAUSE_COLUMNS)
    whole = sum((f.coalesce(name, f.lit(0)) for name in CAUSE_COLUMNS), f.lit(0)).cast("bigint")
    waits = each.select(
        "queue",
        "channel",
        "fairness_key",
        window_of(f.col("at"), 3600).alias("hour"),
        whole.alias("wait_ms"),
        *CAUSE_COLUMNS,
    )
    return Delays(
        _summary(waits, "queue", "channel", "fairness_key", "hour"),
        _summary(waits, "queue", "channel", "fairness_key"),
    )


def _summary(waits: DataFrame, *by: str) -> DataFrame:
    tails = f.percentile_approx("wait_ms", f.array(*(f.lit(p) for p in (0.5, 0.95, 0.99))), 1000)
    return (
        waits.groupBy(*by)
        .agg(
            f.count("*").alias("messages"),
            f.sum("wait_ms").alias("wait_ms"),
            f.max("wait_ms").alias("max_ms"),
            tails.alias("tails"),
            *(f.sum(f.coalesce(name, f.lit(0))).alias(name) for name in CAUSE_COLUMNS),
        )
        .withColumn("p50_ms", f.col("tails")[0])
        .withColumn("p95_ms", f.col("tails")[1])
        .withColumn("p99_ms", f.col("tails")[2])
        .drop("tails")
    )
