"""The jobs once more, slowly and plainly: what Spark's answers are judged by."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from scipy import stats

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
    kinds = ("delivered", "acked", "nacked", "expired", "returned", "dead_lettered")
    keys = {}
    for key, cell in counts.items():
        if any(cell[kind] for kind in kinds if kind != "returned"):
            in_flight = max(0, cell["delivered"] - sum(cell[kind] for kind in kinds[1:5]))
            keys[key] = (*(cell[kind] for kind in kinds), in_flight, cell["lost"], cell["backoff"])
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


# --- the smallest rate -------------------------------------------------------------------------


def arrivals(rows: Rows) -> dict[tuple[str, str], tuple[list[dict[str, float]], list[float], dict[str, int]]]:
    """By queue and channel: what arrived of each key and what was served, second by second; and the weights."""
    places: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        if row["kind"] in (schema.ENQUEUED, schema.DELIVERED):
            places[row["queue"], row["channel"]].append(row)
    found = {}
    for where, of_queue in places.items():
        first = min(int(seconds(row)) for row in of_queue)
        length = max(int(seconds(row)) for row in of_queue) - first + 1
        keys = {row["fairness_key"] for row in of_queue}
        came = [dict.fromkeys(keys, 0.0) for _ in range(length)]
        served = [0.0] * length
        weights: dict[str, int] = {}
        for row in of_queue:
            at, key = int(seconds(row)) - first, row["fairness_key"]
            weights[key] = max(weights.get(key, 1), row["weight"])
            if row["kind"] == schema.ENQUEUED:
                came[at][key] += sum(row["costs"])
            else:
                served[at] += sum(row["costs"])
        found[where] = (came, served, weights)
    return found


def p99_ms(came: list[dict[str, float]], weights: dict[str, int], rate: float) -> dict[str, float]:
    """The wait that 99 in 100 of 512 equal parts of a key's work stay within, poured out second by second."""
    backlog = dict.fromkeys(weights, 0.0)
    begun = dict.fromkeys(weights, 0.0)
    done = dict.fromkeys(weights, 0.0)
    sums: dict[str, list[tuple[float, float]]] = {key: [] for key in weights}
    for second in came:
        for key in weights:
            backlog[key] += second[key]
            begun[key] += second[key]
        got = max_min({key: (backlog[key], weights[key]) for key in weights}, rate)
        for key in weights:
            backlog[key] -= got[key]
            done[key] += got[key]
            sums[key].append((begun[key], done[key]))
    found = {}
    for key, told in sums.items():
        total = told[-1][0]
        if total == 0:
            found[key] = 0.0
            continue
        waits = []
        for part in range(1, 513):
            level = total * part / 512 - 1e-9
            arrived = next(at for at, (a, _) in enumerate(told) if a >= level)
            served = next((at for at, (_, s) in enumerate(told) if s >= level), len(told))
            waits.append(max(served - arrived, 0) * 1000.0)
        found[key] = _quantile(waits, 0.99) + min(1000.0, 1000.0 * total / len(told) / rate)
    return found


def _quantile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


# --- what broke with its past ------------------------------------------------------------------

Break = tuple[float, float, float]


def anomalies(rows: Rows, step: int, rate: float) -> dict[tuple[Any, ...], Break]:
    """Value, what was usual and adjusted p-value, by (queue, channel, key, window, what)."""
    cells: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0] * 4))
    for row in rows:
        cell = cells[place(row)][int(seconds(row) // step * step)]
        count = len(row["offsets"])
        if row["kind"] == schema.ENQUEUED:
            cell[0] += count
            cell[1] += sum(row["costs"])
        if row["kind"] in (schema.NACKED, schema.EXPIRED):
            cell[2] += count
        if row["kind"] in (schema.ACKED, schema.NACKED, schema.EXPIRED):
            cell[3] += count
    begins: dict[Any, int] = {}
    for key, windows in cells.items():
        begins[key[:2]] = min(begins.get(key[:2], min(windows)), *windows)
    tests: dict[tuple[Any, ...], Break] = {}
    for key, windows in cells.items():
        past: list[list[float]] = []
        first = max(begins[key[:2]], min(windows) - 8 * step)
        for window in range(first, max(windows), step):  # without the last one
            now = windows.get(window, [0.0] * 4)
            if len(past) >= 8:
                tests |= {(*key, window, what): broke for what, broke in _breaks(now, past)}
            past.append(now)
    return _adjusted(tests, rate)


def _breaks(now: list[float], past: list[list[float]]) -> list[tuple[str, Break]]:
    arrived, cost, failed, ended = now
    before = [cell[0] for cell in past]
    found = [("arrivals", _distance(arrived, before, math.sqrt(median(before) + 1)))]
    costs = [cell[1] / cell[0] for cell in past if cell[0]]
    if arrived and len(costs) >= 8:
        found.append(("cost", _distance(cost / arrived, costs, 0.05 * abs(median(costs)) + 1e-9)))
    failed_before, ended_before = sum(cell[2] for cell in past), sum(cell[3] for cell in past)
    if ended and ended_before:
        found.append(("failures", _two_rates(failed, ended, failed_before, ended_before)))
    return found


def _is_small(one: float, other: float) -> bool:
    return max(one, other) < 1.5 * max(min(one, other), 1e-12)


def _distance(value: float, past: list[float], least: float) -> Break:
    usual = median(past)
    deviation = max(median(abs(each - usual) for each in past) / stats.norm.ppf(0.75), least)
    p_value = 1.0 if _is_small(value, usual) else 2 * stats.t.sf(abs(value - usual) / deviation, 4)
    return value, usual, p_value


def _two_rates(failed: float, ended: float, failed_before: float, ended_before: float) -> Break:
    now, usual = failed / ended, failed_before / ended_before
    pooled = (failed + failed_before) / (ended + ended_before)
    if _is_small(now, usual) or pooled in (0, 1):
        return now, usual, 1.0
    deviation = math.sqrt(pooled * (1 - pooled) * (1 / ended + 1 / ended_before))
    return now, usual, 2 * stats.norm.sf(abs(now - usual) / deviation)


def _adjusted(tests: dict[tuple[Any, ...], Break], rate: float) -> dict[tuple[Any, ...], Break]:
    """Benjamini and Hochberg: from the largest p-value down, each times the number of tests by its rank."""
    kept = {}
    least = 1.0
    ordered = sorted(tests.items(), key=lambda each: each[1][2])
    for rank in range(len(ordered), 0, -1):
        name, (value, usual, p_value) = ordered[rank - 1]
        least = min(least, p_value * len(ordered) / rank)
        if least <= rate:
            kept[name] = (value, usual, least)
    return kept
