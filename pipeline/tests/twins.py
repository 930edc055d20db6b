"""The jobs once more, slowly and plainly: what Spark's answers are judged by."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from fila_pipeline import schema

Rows = list[dict[str, Any]]
ENTERING = {schema.ENQUEUED, schema.REDRIVEN, schema.RELEASED, schema.NACKED, schema.EXPIRED}
ENTERING |= {schema.RETURNED, schema.REWOUND}
LEAVING = {schema.DELIVERED, schema.THROTTLED, schema.DELAYED, schema.DEAD_LETTERED, schema.DROPPED}


def seconds(row: dict[str, Any]) -> float:
    return row["at"].timestamp()


def place(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["queue"], row["channel"], row["fairness_key"]


def fairness(rows: Rows, window: int) -> dict[tuple[Any, ...], tuple[float, float, float]]:
    """Demand, served and due by (queue, channel, window, key)."""
    change: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0, 0.0]))
    weights: dict[Any, int] = {}
    for row in rows:
        key, at = place(row), int(seconds(row) // window * window)
        weights[key] = row["weight"]
        if row["kind"] in ENTERING | LEAVING:
            cell = change[key][at]
            cell[0 if row["kind"] in ENTERING else 1] += sum(row["costs"])
            if row["kind"] == schema.DELIVERED:
                cell[2] += sum(row["costs"])
        if row["kind"] == schema.DELAYED:
            for held, cost in zip(row["held_ms"], row["costs"], strict=True):
                back = int((seconds(row) + held / 1000) // window * window)
                change[key][back][0] += cost
    ends: dict[Any, int] = {}
    for key, cells in change.items():
        ends[key[:2]] = max(ends.get(key[:2], 0), *cells)
    groups: dict[Any, dict[str, list[float]]] = defaultdict(dict)
    for key, cells in change.items():
        ready, entered_less_left = 0.0, 0.0
        for at in range(min(cells), ends[key[:2]] + 1, window):
            entered, left, served = cells.get(at, [0.0, 0.0, 0.0])
            demand = max(ready + entered - (left - served), served)
            entered_less_left += entered - left
            ready = max(0.0, entered_less_left)
            if demand > 1e-9:
                groups[*key[:2], at][key[2]] = [demand, served, weights[key]]
    found = {}
    for group, keys in groups.items():
        total = sum(served for _, served, _ in keys.values())
        due = max_min({key: (demand, weight) for key, (demand, _, weight) in keys.items()}, total)
        for key, (demand, served, _) in keys.items():
            found[*group, key] = (demand, served, due[key])
    return found


def max_min(demands: dict[str, tuple[float, float]], total: float) -> dict[str, float]:
    """Pour: give by weight, take out who has enough, pour the rest again."""
    due = dict.fromkeys(demands, 0.0)
    open_keys = set(demands)
    left = min(total, sum(demand for demand, _ in demands.values()))
    while open_keys and left > 1e-12:
        weight = sum(demands[key][1] for key in open_keys)
        full = {
            key for key in open_keys if demands[key][0] - due[key] <= left * demands[key][1] / weight + 1e-12
        }
        if not full:
            for key in open_keys:
                due[key] += left * demands[key][1] / weight
            return due
        for key in full:
            left -= demands[key][0] - due[key]
            due[key] = demands[key][0]
        open_keys -= full
    return due


def delays(rows: Rows) -> dict[tuple[Any, ...], tuple[int, int, list[int]]]:
    """Messages, the longest wait and the sums by cause, by (queue, channel, key, hour)."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        if row["kind"] != schema.DELIVERED:
            continue
        cell = found.setdefault(
            (*place(row), int(seconds(row) // 3600 * 3600)), [0, 0, [0] * len(schema.CAUSES)]
        )
        for waits in zip(*(row[f"wait_{cause}_ms"] for cause in schema.CAUSES), strict=True):
            cell[0] += 1
            cell[1] = max(cell[1], sum(waits))
            cell[2] = [old + new for old, new in zip(cell[2], waits, strict=True)]
    return {key: tuple(cell) for key, cell in found.items()}


def retries(rows: Rows) -> tuple[dict[Any, tuple[float, ...]], set[tuple[Any, ...]]]:
    """Counts and time lost by key; and who failed three times or was given up."""
    counts: dict[Any, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    failures: dict[Any, int] = defaultdict(int)
    given_up = set()
    for row in rows:
        cell = counts[place(row)]
        cell[row["kind"]] += len(row["offsets"])
        if row["kind"] in (schema.NACKED, schema.EXPIRED):
            cell["lost"] += sum(row["held_ms"])
            for offset in row["offsets"]:
                failures[*place(row), offset] += 1
        if row["kind"] == schema.DELAYED:
            cell["backoff"] += sum(row["held_ms"])
        if row["kind"] == schema.DEAD_LETTERED:
            given_up |= {(*place(row), offset) for offset in row["offsets"]}
    kinds = ("delivered", "acked", "nacked", "expired", "dead_lettered")
    keys = {
        key: (*(cell[kind] for kind in kinds), cell["lost"], cell["backoff"])
        for key, cell in counts.items()
        if any(cell[kind] for kind in kinds[1:])
    }
    return keys, given_up | {message for message, count in failures.items() if count >= 3}


def throttles(rows: Rows) -> dict[str, tuple[int, float, int]]:
    """Messages held, time held and tokens taken, by bucket."""
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0])
    for row in rows:
        if row["kind"] == schema.THROTTLED:
            found[row["bucket"]][0] += len(row["offsets"])
        if row["kind"] == schema.RELEASED:
            found[row["bucket"]][1] += sum(row["held_ms"])
        if row["kind"] == schema.DELIVERED:
            for bucket in row["throttle_keys"]:
                found[bucket][2] += len(row["offsets"])
    return {bucket: tuple(cell) for bucket, cell in found.items()}
