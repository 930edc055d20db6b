"""Which of a query's filters the broker can apply, so that the rest of the log is never sent.

A filter that is taken over exactly vanishes from Spark's plan; one that only narrows what is read is left to Spark
as well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from pyspark_fila.columns import QUEUE, SCHEMA
from pyspark_fila.ranges import LogRange

OFFSET_END = 2**63 - 1
"""Above every offset: the end of a range that nothing bounds."""
_MILLISECOND = timedelta(milliseconds=1)


def are_offered() -> bool:
    """Return whether this planner process is the one that Spark starts when filters can be pushed down.

    Where `spark.sql.python.filterPushdown.enabled` is false, Spark refuses a reader that could take filters. The
    setting itself is not shown to sources, but with it Spark plans in a module of its own.
    """
    name = "pyspark.sql.worker.data_source_pushdown_filters"
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return name in sys.modules or getattr(main, "name", None) == name


def take_over(filters: Iterable[Filter], wanted: LogRange) -> tuple[LogRange, list[Filter]]:
    """Return the range narrowed by what the broker can filter, and the filters that stay with Spark."""
    left = []
    for given in filters:
        narrowed = _narrowed(given, wanted)
        if narrowed is None:
            left.append(given)
            continue
        wanted, exact = narrowed
        if not exact:
            left.append(given)
    return wanted, left


def _narrowed(given: Filter, wanted: LogRange) -> tuple[LogRange, bool] | None:
    """The range under one filter and whether it holds exactly; None for a filter that says nothing here."""
    if isinstance(given, IsNotNull):
        return (wanted, True) if given.attribute[0] in (*SCHEMA.names, QUEUE.name) else None
    value = getattr(given, "value", None)
    attribute = getattr(given, "attribute", None)
    if value is None or attribute is None or len(attribute) != 1:
        return None
    if attribute == ("fairness_key",) and isinstance(given, EqualTo | EqualNullSafe):
        if not value or wanted.fairness_key not in ("", value):
            return None
        return replace(wanted, fairness_key=value), True
    if attribute == ("queue",) and isinstance(given, EqualTo | EqualNullSafe):
        return (replace(wanted, queue=value), True) if wanted.queue in ("", value) else None
    if attribute == ("offset",) and isinstance(value, int):
        return _offsets(given, value, wanted)
    if attribute == ("appended_at",) and isinstance(value, datetime):
        moment = value if value.tzinfo else value.astimezone()
        return _times(given, moment.astimezone(UTC), wanted)
    return None


def _offsets(given: Any, value: int, wanted: LogRange) -> tuple[LogRange, bool] | None:
    start, end = wanted.start, wanted.end
    match given:
        case EqualTo() | EqualNullSafe():
            start, end = max(start, value), min(end, value + 1)
        case GreaterThan():
            start = max(start, value + 1)
        case GreaterThanOrEqual():
            start = max(start, value)
        case LessThan():
            end = min(end, value)
        case LessThanOrEqual():
            end = min(end, value + 1)
        case _:
            return None
    return replace(wanted, start=start, end=end), True


def _times(given: Any, moment: datetime, wanted: LogRange) -> tuple[LogRange, bool] | None:
    """Append times are whole milliseconds; the range is cut a little wide, and Spark filters the rest."""
    floor = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    from_time, to_time = wanted.from_time, wanted.to_time
    if isinstance(given, GreaterThan | GreaterThanOrEqual | EqualTo | EqualNullSafe):
        from_time = max(from_time, floor) if from_time else floor
    if isinstance(given, LessThan | LessThanOrEqual | EqualTo | EqualNullSafe):
        after = floor + _MILLISECOND
        to_time = min(to_time, after) if to_time else after
    if (from_time, to_time) == (wanted.from_time, wanted.to_time):
        return None
    return replace(wanted, from_time=from_time, to_time=to_time), False
