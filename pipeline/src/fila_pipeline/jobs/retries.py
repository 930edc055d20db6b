"""What failures cost: attempts, the keys and messages that fail again and again, time lost, dead letters."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.events import count, per_message, summed

KEY = ("queue", "channel", "fairness_key")
POISON_FAILURES = 3


@dataclass(frozen=True)
class Retries:
    """What the job answers."""

    keys: DataFrame
    """One row a key: deliveries and how they ended, failure rate, time lost. Every delivery is acked, nacked, expired,
    returned, or in flight when the history ends."""
    poison: DataFrame
    """One row a message that failed POISON_FAILURES times or was given up."""
    causes: DataFrame
    """Dead letters by queue and reason."""


def retries(decisions: DataFrame) -> Retries:
    """Count ends by key; the time of failed attempts and the backoff after them is what failures cost."""
    kind = f.col("kind")
    failed = kind.isin(schema.NACKED, schema.EXPIRED)

    def of(*kinds: str) -> Column:
        return f.sum(f.when(kind.isin(*kinds), count()).otherwise(0))

    keys = (
        decisions.groupBy(*KEY)
        .agg(
            of(schema.DELIVERED).alias("delivered"),
            of(schema.ACKED).alias("acked"),
            of(schema.NACKED).alias("nacked"),
            of(schema.EXPIRED).alias("expired"),
            of(schema.RETURNED).alias("returned"),
            of(schema.DEAD_LETTERED).alias("dead_lettered"),
            f.sum(f.when(failed, summed("held_ms")).otherwise(0.0)).alias("handling_lost_ms"),
            f.sum(f.when(kind == schema.DELAYED, summed("held_ms")).otherwise(0.0)).alias("backoff_ms"),
        )
        .withColumn("ended", f.col("acked") + f.col("nacked") + f.col("expired"))
        # More ends than deliveries: a history that begins later than they do.
        .withColumn("in_flight", f.expr("greatest(delivered - ended - returned, 0)"))
        .withColumn("failure_rate", f.try_divide(f.col("nacked") + f.col("expired"), f.col("ended")))
        .where("delivered > 0 or ended > 0 or dead_lettered > 0")
    )
    bad = per_message(decisions.where(failed | (kind == schema.DEAD_LETTERED)), "offset")
    poison = (
        bad.groupBy(*KEY, "offset")
        .agg(
            f.sum(f.when(failed, 1).otherwise(0)).alias("failures"),
            f.max(f.when(kind == schema.DEAD_LETTERED, f.col("reason"))).alias("given_up"),
            f.max("at").alias("last_at"),
        )
        .where((f.col("failures") >= POISON_FAILURES) | f.col("given_up").isNotNull())
    )
    causes = (
        decisions.where(kind == schema.DEAD_LETTERED)
        .groupBy("queue", "reason")
        .agg(f.sum(count()).alias("messages"))
    )
    return Retries(keys, poison, causes)
