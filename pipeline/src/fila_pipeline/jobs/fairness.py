"""Who was served, and who should have been: weighted max-min over the keys that had something to serve.

All events are summed by key and window before anything is shuffled; what follows works on those sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from fila_pipeline import schema
from fila_pipeline.events import each_of, summed, window_of

KEY = ("queue", "channel", "fairness_key")
GROUP = ("queue", "channel", "window")

ENTERING = (
    *(schema.ENQUEUED, schema.REDRIVEN, schema.RELEASED, schema.NACKED, schema.EXPIRED),
    *(schema.RETURNED, schema.REWOUND),
)
"""What makes a message ready; one that is delayed leaves again at once, and comes back when its delay is over."""
LEAVING = (schema.DELIVERED, schema.THROTTLED, schema.DELAYED, schema.DEAD_LETTERED, schema.DROPPED)


@dataclass(frozen=True)
class Fairness:
    """What the job answers; costs are in the messages' own unit."""

    shares: DataFrame
    """One row a window and key: served, demand, due, ratio."""
    windows: DataFrame
    """One row a window: Jain's index over the keys that were due something."""
    keys: DataFrame
    """One row a key: served, due, ratio over the windows in which keys competed."""
    starvation: DataFrame
    """One row an interval in which a key had work all the time and was served nothing."""


def fairness(decisions: DataFrame, window_s: float = 60.0, starved_windows: int = 2) -> Fairness:
    """Compute actual and due shares.

    A key's demand in a window is the cost that was ready at its beginning or became ready in it, without what stopped
    being ready unserved (held, delayed, given up). Its due is what
    weighted max-min gives it of all that was served in the window. Messages that a bucket holds, that are delayed or
    that are in flight are no demand: they could not have been served.
    """
    # Small beside the events, and needed more than once: the events are read once.
    shares = _due(_demand(_sums(decisions, window_s).cache(), window_s))
    return Fairness(shares, _windows(shares), _keys(shares), _starvation(shares, window_s, starved_windows))


def _sums(decisions: DataFrame, window_s: float) -> DataFrame:
    """Per key and window: cost that became ready, cost that stopped being so, cost served."""
    cost = summed("costs")
    kind = f.col("kind")
    runs = decisions.where(kind.isin(*ENTERING, *LEAVING)).select(
        *KEY,
        window_of(f.col("at"), window_s).alias("window"),
        "weight",
        f.when(kind.isin(*ENTERING), cost).otherwise(0.0).alias("entered"),
        f.when(kind.isin(*LEAVING), cost).otherwise(0.0).alias("left"),
        f.when(kind == schema.DELIVERED, cost).otherwise(0.0).alias("served"),
    )
    return (
        runs.unionByName(_back_from_delay(decisions, window_s))
        .groupBy(*KEY, "window")
        .agg(
            f.max("weight").alias("weight"),
            f.sum("entered").alias("entered"),
            f.sum("left").alias("left"),
            f.sum("served").alias("served"),
        )
    )


def _back_from_delay(decisions: DataFrame, window_s: float) -> DataFrame:
    zipped = f.arrays_zip(*(each_of(name).alias(name) for name in ("held_ms", "costs")))
    each = decisions.where(f.col("kind") == schema.DELAYED).select(
        *KEY, "at", "weight", f.explode(zipped).alias("each")
    )
    back = f.timestamp_millis((f.unix_micros("at") / 1000).cast("bigint") + f.col("each.held_ms"))
    nothing = f.lit(0.0)
    return each.select(
        *KEY,
        window_of(back, window_s).alias("window"),
        "weight",
        f.col("each.costs").alias("entered"),
        nothing.alias("left"),
        nothing.alias("served"),
    )


def _demand(sums: DataFrame, window_s: float) -> DataFrame:
    """Carry what was left ready from window to window, also through those in which nothing happened to a key."""
    by_key = Window.partitionBy(*KEY).orderBy("window")
    step = int(window_s)
    after = f.sum(f.col("entered") - f.col("left")).over(by_key.rowsBetween(Window.unboundedPreceding, 0))
    # A key's first event can be a delivery of what was enqueued before the recording: demand is never below served.
    carried = sums.withColumn("after", f.greatest(after, f.lit(0.0)))
    carried = carried.withColumn("before", f.coalesce(f.lag("after").over(by_key), f.lit(0.0)))
    carried = carried.withColumn("weight", f.greatest(f.coalesce(f.col("weight"), f.lit(1)), f.lit(1)))
    carried = carried.withColumn("until", f.lead("window").over(by_key))
    # A join, not a window function: that would bring a queue's keys together in one task.
    ends = sums.groupBy("queue", "channel").agg(f.max("window").alias("end"))
    # What a bucket took, or a delay, could not be served here; counted twice it would be when it comes back.
    unserved = f.col("left") - f.col("served")
    busy = carried.select(
        *KEY,
        "window",
        "weight",
        "served",
        f.greatest(f.col("before") + f.col("entered") - unserved, f.col("served")).alias("demand"),
    )
    filled = carried.join(f.broadcast(ends), ["queue", "channel"])
    filled = filled.withColumn("until", f.coalesce(f.col("until"), f.col("end") + step))
    silent = filled.where((f.col("after") > 1e-9) & (f.col("until") > f.col("window") + step)).select(
        *KEY,
        f.explode(f.sequence(f.col("window") + step, f.col("until") - step, f.lit(step))).alias("window"),
        "weight",
        f.lit(0.0).alias("served"),
        f.col("after").alias("demand"),
    )
    return busy.unionByName(silent).where("demand > 1e-9")


def _due(demand: DataFrame) -> DataFrame:
    """Weighted max-min: in the order of demand by weight, the first key that cannot have all sets the level."""
    group = Window.partitionBy(*GROUP)
    order = group.orderBy((f.col("demand") / f.col("weight")).asc(), "fairness_key")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    rest = order.rowsBetween(0, Window.unboundedFollowing)
    level = (f.col("total") - f.coalesce(f.sum("demand").over(before), f.lit(0.0))) / f.sum("weight").over(
        rest
    )
    cut = f.when(f.col("demand") > f.col("weight") * f.col("level"), f.col("level"))
    with_level = demand.withColumn("total", f.sum("served").over(group)).withColumn("level", level)
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    water = with_level.withColumn("water", f.first(cut, ignorenulls=True).over(whole))
    due = f.when(f.col("water").isNull(), f.col("demand")).otherwise(
        f.least(f.col("demand"), f.greatest(f.col("water"), f.lit(0.0)) * f.col("weight"))
    )
    contended = f.sum("demand").over(group) > f.col("total") * 1.001
    return water.withColumn("due", due).select(
        *GROUP,
        "fairness_key",
        "weight",
        "demand",
        "served",
        "due",
        f.try_divide("served", "total").alias("share"),
        f.try_divide("due", "total").alias("due_share"),
        f.try_divide("served", "due").alias("ratio"),
        contended.alias("contended"),
    )


def _windows(shares: DataFrame) -> DataFrame:
    ratio = f.col("served") / f.col("due")
    return (
        shares.where("due > 0")
        .groupBy(*GROUP)
        .agg(
            f.count("*").alias("keys"),
            f.sum("served").alias("served"),
            f.try_divide(f.pow(f.sum(ratio), 2), f.count("*") * f.sum(ratio * ratio)).alias("jain"),
            f.max("contended").alias("contended"),
        )
    )


def _keys(shares: DataFrame) -> DataFrame:
    return (
        shares.where("contended and due > 0")
        .groupBy(*KEY)
        .agg(
            f.count("*").alias("windows"),
            f.max("weight").alias("weight"),
            f.sum("served").alias("served"),
            f.sum("due").alias("due"),
            f.try_divide(f.sum("served"), f.sum("due")).alias("ratio"),
        )
    )


def _starvation(shares: DataFrame, window_s: float, least: int) -> DataFrame:
    """Runs of windows in which a key was due something and got nothing, while others were served."""
    by_key = Window.partitionBy(*KEY).orderBy("window")
    starved = shares.where("served = 0 and due > 1e-9")
    island = f.col("window") / int(window_s) - f.row_number().over(by_key)
    return (
        starved.withColumn("island", island)
        .groupBy(*KEY, "island")
        .agg(
            f.min("window").alias("from_s"),
            (f.max("window") + int(window_s)).alias("to_s"),
            f.count("*").alias("windows"),
            f.sum("due").alias("due"),
        )
        .where(f.col("windows") >= least)
        .drop("island")
    )
