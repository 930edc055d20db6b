"""What came of a course of events by queue and key; counted from decisions, recorded ones and a model's alike."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fila_server.history_files.runs import each

WAITS = ("no_consumer", "share", "throttle", "delay", "held")
PERCENTILES = {"p40_ms": 0.4, "p60_ms": 0.6, "p95_ms": 0.95, "p99_ms": 0.99}
"""Around the middle two: where some messages wait for nothing and others for long, one median may be either."""
_BY = ["queue", "fairness_key"]


class Served:
    """Takes decisions in pieces; 24 bytes a delivery."""

    def __init__(self) -> None:
        self._waits: list[pa.Table] = []
        self._ends: list[pa.Table] = []

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
            counted = ends.select(["kind", *_BY]).append_column(
                "messages", pc.cast(pc.list_value_length(ends.column("offsets")), pa.int64())
            )
            self._ends.append(counted.group_by(["kind", *_BY]).aggregate([("messages", "sum")]))

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a queue and key: deliveries, how they ended, and how long they had waited, in ms."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        if self._waits:
            grouped = (
                pa.concat_tables(self._waits)
                .group_by(_BY)
                .aggregate(
                    [
                        ("wait_ms", "count"),
                        ("wait_ms", "mean"),
                        ("wait_ms", "max"),
                        ("throttle_ms", "sum"),
                        ("cost", "sum"),
                        ("wait_ms", "tdigest", pc.TDigestOptions(q=list(PERCENTILES.values()))),
                    ]
                )
            )
            for row in grouped.to_pylist():
                found[row["queue"], row["fairness_key"]] = {
                    "delivered": row["wait_ms_count"],
                    "cost": row["cost_sum"],
                    "mean_ms": row["wait_ms_mean"],
                    **dict(zip(PERCENTILES, row["wait_ms_tdigest"], strict=True)),
                    "max_ms": row["wait_ms_max"],
                    "throttle_ms": row["throttle_ms_sum"],
                }
        if self._ends:
            ended = pa.concat_tables(self._ends).group_by(["kind", *_BY]).aggregate([("messages_sum", "sum")])
            for row in ended.to_pylist():
                of_key = found.setdefault((row["queue"], row["fairness_key"]), {})
                of_key[row["kind"]] = row["messages_sum_sum"]
        return [
            {"queue": queue, "fairness_key": key, **of_key} for (queue, key), of_key in sorted(found.items())
        ]


def _waits(delivered: pa.Table) -> pa.Table:
    rows = pc.list_parent_indices(delivered.column("offsets").combine_chunks())
    total: Any = None
    for cause in WAITS:
        wait = pc.cast(pc.fill_null(each(delivered, f"wait_{cause}_ms"), 0), pa.int64())
        total = wait if total is None else pc.add(total, wait)
    plain = delivered.select(_BY).take(rows)
    return (
        plain.append_column("wait_ms", total)
        .append_column(
            "throttle_ms", pc.cast(pc.fill_null(each(delivered, "wait_throttle_ms"), 0), pa.int64())
        )
        .append_column("cost", each(delivered, "costs"))
    )
