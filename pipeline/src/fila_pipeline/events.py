"""The view of one row a message, derived from runs; for the questions that need it, since it costs a row a message."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

PER_MESSAGE = (
    ("offsets", "offset"),
    ("costs", "cost"),
    ("attempts", "attempt"),
    ("held_ms", "held_ms"),
    ("wait_no_consumer_ms", "wait_no_consumer_ms"),
    ("wait_share_ms", "wait_share_ms"),
    ("wait_throttle_ms", "wait_throttle_ms"),
    ("wait_delay_ms", "wait_delay_ms"),
    ("wait_held_ms", "wait_held_ms"),
    ("places", "place"),
)
PLACE = ("queue", "channel")
ARRIVALS, DEAD_LETTERS = "arrivals", "dead letters"
_DEAD_LETTER_QUEUES = ".dlq"
"""How their names end."""


def came_in(queue: str) -> str:
    """Return what comes into a queue: nobody enqueues to a dead-letter queue."""
    return DEAD_LETTERS if queue.endswith(_DEAD_LETTER_QUEUES) else ARRIVALS


def per_message(runs: DataFrame, *columns: str) -> DataFrame:
    """Return one row a message: every column of its run, and its own element of each list.

    `columns` names the lists that are wanted (by the names of elements); all of them when none is named.
    """
    lists = [(many, one) for many, one in PER_MESSAGE if not columns or one in columns]
    plain = [name for name in runs.columns if name not in {many for many, _ in PER_MESSAGE}]
    zipped = f.arrays_zip(*(f.coalesce(each_of(many), f.array()).alias(many) for many, _ in lists))
    each = runs.select(*plain, f.explode(zipped).alias("each"))
    return each.select(*plain, *(f.col(f"each.{many}").alias(one) for many, one in lists))


def each_of(name: str) -> Column:
    """Return a run's list with one element a message: what is written once for all of them, as often as they are."""
    return f.expr(f"if(size({name}) = 1, array_repeat({name}[0], size(offsets)), {name})")


def times(name: str) -> Column:
    """Return how many messages an element of a run's list stands for."""
    return f.expr(f"if(size({name}) = 1, size(offsets), 1)")


def summed(name: str) -> Column:
    """Return the sum of a run's list over its messages: no row a message is made."""
    total = f.expr(
        f"aggregate(coalesce({name}, array()), cast(0 as double), (sum, each) -> sum + coalesce(each, 0))"
    )
    return total * times(name)


def count() -> Column:
    """Return how many messages a run has."""
    return f.expr("coalesce(messages, cast(greatest(size(offsets), 0) as bigint), 0)")


def window_of(at: Column, seconds: float) -> Column:
    """Return the beginning of the window that holds a moment, in whole seconds since 1970."""
    return (f.floor(at.cast("double") / seconds) * seconds).cast("bigint")
