"""What came of a course of events by queue and key; counted from decisions, recorded ones and a model's alike."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fila_server.history_files.runs import Messages

WAITS = ("no_consumer", "share", "throttle", "delay", "held")
PERCENTILES = {"p40_ms": 0.4, "p50_ms": 0.5, "p60_ms": 0.6, "p95_ms": 0.95, "p99_ms": 0.99}
"""With two around the middle: where some messages wait for nothing and others for long, one median may be either."""
NOT_RECORDED = "(not recorded)"
"""The tenant of a message that a course without tenants delivered, and whose arrival was not recorded."""
OF_ALL = "default"
"""The key of every message that has no tenant."""
_BY = ["queue", "fairness_key"]


class Tenants:
    """Whose message stands at an offset, as it was recorded: for a course that has no tenants."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []

    def take(self, decisions: pa.Table) -> None:
        """Take in recorded decisions, in their order."""
        arrived = pa.array(["enqueued", "redriven", "delivered"])
        named = decisions.filter(pc.is_in(decisions.column("kind"), arrived))
        if len(named):
            self._parts.append(Messages(named).with_offsets(_BY).group_by([*_BY, "offset"]).aggregate([]))

    def named(self, rows: pa.Table) -> pa.Table:
        """Return rows with `queue` and `offset`, and in `fairness_key` whose they were."""
        without = rows.drop_columns(["fairness_key"])
        if not self._parts:
            known = rows.slice(0, 0).select([*_BY, "offset"])
        else:
            known = (
                pa.concat_tables(self._parts)
                .group_by(["queue", "offset"], use_threads=False)
                .aggregate([("fairness_key", "first")])
                .rename_columns(["queue", "offset", "fairness_key"])
            )
        joined = without.join(known, keys=["queue", "offset"], join_type="left outer")
        place = joined.column_names.index("fairness_key")
        return joined.set_column(
            place, "fairness_key", pc.fill_null(joined.column("fairness_key"), NOT_RECORDED)
        )


class Served:
    """Takes decisions in pieces; about 50 bytes a delivery."""

    def __init__(self, tenants: Tenants | None = None) -> None:
        """tenants: by whom to count what was delivered; without them, by the key that it was delivered under."""
        self._tenants = tenants
        self._waits: list[pa.Table] = []
        self._ends: list[pa.Table] = []
        self.of_others = 0
        """With `tenants`: deliveries under a key all the same."""

    def take(self, decisions: pa.Table) -> None:
        """Count a piece."""
        kinds = decisions.column("kind")
        delivered = decisions.filter(pc.equal(kinds, "delivered"))
        if len(delivered):
            self._waits.append(_waits(delivered))
        ends = decisions.filter(
            pc.is_in(kinds, pa.array(["acked", "nacked", "expired", "dead_lettered", "dropped"]))
        )
        if len(ends):
            of_one = ends.select(["kind", *_BY, "offsets"])
            self._ends.append(Messages(of_one).with_offsets(["kind", *_BY]))
            if self._tenants is None:
                self._ends[-1] = self._ends[-1].group_by(["kind", *_BY]).aggregate([("offset", "count")])

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a queue and key: deliveries, how they ended, and how long they had waited, in ms.

        `contended_cost` is what was served of a key in seconds at whose beginning messages of two keys or more waited.
        """
        found: dict[tuple[str, str], dict[str, Any]] = {}
        if self._waits:
            waits = pa.concat_tables(self._waits)
            if self._tenants is not None:
                self.of_others = pc.sum(pc.not_equal(waits.column("fairness_key"), OF_ALL)).as_py()
                waits = self._tenants.named(waits)
            grouped = waits.group_by(_BY).aggregate(
                [
                    ("wait_ms", "count"),
                    ("wait_ms", "mean"),
                    ("wait_ms", "max"),
                    ("throttle_ms", "sum"),
                    ("cost", "sum"),
                    ("wait_ms", "tdigest", pc.TDigestOptions(q=list(PERCENTILES.values()))),
                ]
            )
            contended = _contended(waits)
            for row in grouped.to_pylist():
                found[row["queue"], row["fairness_key"]] = {
                    "delivered": row["wait_ms_count"],
                    "cost": row["cost_sum"],
                    "contended_cost": contended[row["queue"], row["fairness_key"]],
                    "mean_ms": row["wait_ms_mean"],
                    **dict(zip(PERCENTILES, row["wait_ms_tdigest"], strict=True)),
                    "max_ms": row["wait_ms_max"],
                    "throttle_ms": row["throttle_ms_sum"],
                }
        if self._ends:
            ends = pa.concat_tables(self._ends)
            if self._tenants is not None:
                ends = self._tenants.named(ends).group_by(["kind", *_BY]).aggregate([("offset", "count")])
            ended = ends.group_by(["kind", *_BY]).aggregate([("offset_count", "sum")])
            for row in ended.to_pylist():
                of_key = found.setdefault((row["queue"], row["fairness_key"]), {})
                of_key[row["kind"]] = row["offset_count_sum"]
        return [
            {"queue": queue, "fairness_key": key, **of_key} for (queue, key), of_key in sorted(found.items())
        ]


def _waits(delivered: pa.Table) -> pa.Table:
    messages = Messages(delivered)
    waits = {
        cause: pc.cast(pc.fill_null(messages.each(f"wait_{cause}_ms"), 0), pa.int64()) for cause in WAITS
    }
    total = reduce(pc.add, waits.values())
    plain = messages.with_offsets([*_BY, "at"])
    at_ms = pc.divide(pc.cast(plain.column("at"), pa.int64()), 1000)
    return (
        plain.drop_columns(["at"])
        .append_column("wait_ms", total)
        .append_column("throttle_ms", waits["throttle"])
        .append_column("cost", messages.each("costs"))
        .append_column("second", pc.divide(at_ms, 1000))
        .append_column("since", pc.divide(pc.subtract(at_ms, total), 1000))
    )


def _contended(waits: pa.Table) -> dict[tuple[str, str], float]:
    """What each key was served in seconds at whose beginning messages of two keys of its queue or more waited."""
    changes: dict[str, dict[str, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    for column, by in (("since", 1), ("second", -1)):
        counted = waits.group_by([*_BY, column]).aggregate([("cost", "count")])
        for queue, key, second, count in _rows(counted, [*_BY, column, "cost_count"]):
            changes[queue][key][second + 1] += by * count
    contended = {queue: _in_more_than_one(of_keys) for queue, of_keys in changes.items()}
    found: dict[tuple[str, str], float] = defaultdict(float)
    served = waits.group_by([*_BY, "second"]).aggregate([("cost", "sum")])
    for queue, key, second, cost in _rows(served, [*_BY, "second", "cost_sum"]):
        if bisect_right(contended[queue], second) % 2:
            found[queue, key] += cost
    return found


def _in_more_than_one(of_keys: dict[str, Counter[int]]) -> list[int]:
    """Return the seconds at which it begins and ends, by turns, that messages of more than one key wait."""
    waiting: Counter[int] = Counter()
    for changes in of_keys.values():
        count = 0
        for second in sorted(changes):
            before, count = count, count + changes[second]
            waiting[second] += (count > 0) - (before > 0)
    edges: list[int] = []
    keys = 0
    for second in sorted(waiting):
        before, keys = keys, keys + waiting[second]
        if (keys > 1) != (before > 1):
            edges.append(second)
    return edges


def _rows(table: pa.Table, names: list[str]) -> Any:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)
