"""Other people's logs: a CSV and a file that says what its columns mean, as arrivals for the broker's core.

    time = "TIMESTAMP"
    took_ms = { ContextTokens = 0.1, GeneratedTokens = 20 }
    cost = { ContextTokens = 0.001, GeneratedTokens = 0.2 }

    [tenant]
    column = "ContextTokens"
    classes = [{ name = "short", below = 1000 }, { name = "medium", up_to = 4000 }, { name = "long" }]

A tenant is a column, or classes of a column's numbers. A number is a column, a number for all rows, or a sum of
columns, each times a factor; a cost that is not named is 1. Rows stand in the order of time.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

ROWS_MAX = 2_000_000
TENANTS_MAX = 10_000
TOOK_MS_MAX = 11 * 3600 * 1000
COST_MIN, COST_MAX = 0.001, 1_000_000.0
NAME_BYTES_MAX = 256
WORKERS_MAX = 10_000
BUSY = 0.85
"""Workers that are estimated are busy for this part of the time at most."""

Row = Mapping[str, str]


class ImportRefused(Exception):
    """The log or its mapping cannot be taken; the text says which line or field, and why."""


@dataclass(frozen=True)
class Imported:
    """A log as arrivals."""

    arrivals: pa.Table
    """`at_ms` (since 1970, never falling), `tenant`, `cost`, `took_ms`."""
    workers: int
    assumed: Sequence[str]
    """What was assumed of it, in sentences."""


@dataclass(frozen=True)
class _Mapping:
    time: str
    tenant: Callable[[Row], str]
    cost: Callable[[Row], float]
    took_ms: Callable[[Row], float]
    columns: frozenset[str]
    assumed: tuple[str, ...]


def read_log(path: str, mapping: str, workers: str) -> Imported:
    """Read a log. workers: how many there were, or `estimate`. Raises ImportRefused."""
    meaning = _mapping(mapping)
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            arrivals = _arrivals(file, path, meaning)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ImportRefused(f"--import {path} cannot be read: {error}") from None
    if not len(arrivals):
        raise ImportRefused(f"--import {path} has no rows below its heading")
    at_ms = arrivals.column("at_ms")
    took_ms = sum(arrivals.column("took_ms").to_pylist())
    count, said = _workers(workers, took_ms, at_ms[-1].as_py() - at_ms[0].as_py())
    return Imported(arrivals, count, (*meaning.assumed, said))


def _arrivals(file: Any, path: str, meaning: _Mapping) -> pa.Table:
    found: dict[str, list[Any]] = {name: [] for name in ("at_ms", "tenant", "cost", "took_ms")}
    known: dict[str, str] = {}
    before_ms = 0
    for line, row in _rows(file, path, meaning):
        try:
            at_ms = _moment_ms(row[meaning.time], meaning.time)
            if at_ms < before_ms:
                raise ImportRefused(
                    f"{meaning.time} goes back, from {_said(before_ms)} to {_said(at_ms)}: sort the rows by it"
                )
            before_ms = at_ms
            tenant = meaning.tenant(row)
            found["at_ms"].append(at_ms)
            found["tenant"].append(known.setdefault(tenant, tenant))
            found["cost"].append(_between("cost", meaning.cost(row), COST_MIN, COST_MAX))
            found["took_ms"].append(round(_between("took_ms", meaning.took_ms(row), 0, TOOK_MS_MAX)))
            if len(known) > TENANTS_MAX:
                raise ImportRefused(
                    f"tenant has more than {TENANTS_MAX:,} values: it is whom work is shared among; name "
                    "another column, or put its numbers into classes"
                )
            if len(found["at_ms"]) > ROWS_MAX:
                raise ImportRefused(f"there are more than {ROWS_MAX:,} rows; take a part of the log")
        except ImportRefused as refused:
            raise ImportRefused(f"--import {path}, line {line}: {refused}") from None
    return pa.table(found)


def _rows(file: Any, path: str, meaning: _Mapping) -> Iterator[tuple[int, Row]]:
    """Each row with its line; every cell that is asked for has something in it."""
    reader = csv.DictReader(file, strict=True)
    missing = sorted(meaning.columns - set(reader.fieldnames or ()))
    if missing:
        there = ", ".join(reader.fieldnames or ()) or "none"
        raise ImportRefused(f"--mapping names the column {missing[0]}, and {path} has: {there}")
    for row in reader:
        holes = [name for name in meaning.columns if not (row[name] or "").strip()]
        if holes:
            yield reader.line_num, _Hole(holes[0])
        yield reader.line_num, row


class _Hole(dict[str, str]):
    """A row with an empty cell: a read of it raises ImportRefused."""

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    def __missing__(self, _: str) -> str:
        raise ImportRefused(f"{self.column} is empty: leave such rows out, or fill them")


def _workers(wanted: str, took_ms: int, span_ms: int) -> tuple[int, str]:
    """How many workers there are, and the sentence that says so."""
    load = took_ms / max(span_ms, 1)
    if wanted != "estimate":
        if not wanted.isdigit() or not 1 <= int(wanted) <= WORKERS_MAX:
            raise ImportRefused(
                f"--workers must be a number from 1 to {WORKERS_MAX:,}, or estimate, got {wanted!r}"
            )
        count = int(wanted)
        each = "each with one message at a time, as told"
        return count, f"{count:,} workers, {each}; the log keeps {load:.2f} of them busy."
    count = max(1, math.ceil(load / BUSY))
    if count > WORKERS_MAX:
        raise ImportRefused(
            f"the log keeps {load:,.0f} workers busy, and there may be {WORKERS_MAX:,}; is took_ms in ms?"
        )
    return count, (
        f"{count:,} workers, each with one message at a time. That is an estimate, since the log does not "
        f"say it: the log keeps {load:.2f} of them busy on average, and these are the fewest that are busy "
        f"{BUSY:.0%} of the time at most. With --workers you say how many there are."
    )


# --- the mapping -------------------------------------------------------------------------------


def _mapping(path: str) -> _Mapping:
    try:
        given = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ImportRefused(f"--mapping {path} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ImportRefused(f"--mapping {path} is no TOML: {error}") from None
    unknown = sorted(set(given) - {"time", "tenant", "cost", "took_ms"})
    if unknown:
        raise ImportRefused(
            f"--mapping {path}: {unknown[0]} is not known; there are time, tenant, cost, took_ms"
        )
    for name in ("time", "tenant", "took_ms"):
        if name not in given:
            raise ImportRefused(f"--mapping {path}: {name} must be given")
    columns: set[str] = set()
    try:
        time = _text("time", given["time"])
        tenant, tenant_said = _tenant(given["tenant"], columns)
        took_ms, took_said = _number("took_ms", given["took_ms"], columns)
        cost, cost_said = _number("cost", given.get("cost", 1), columns)
    except ImportRefused as refused:
        raise ImportRefused(f"--mapping {path}: {refused}") from None
    assumed = (
        f"A message comes at {time}, as UTC where that names no zone; its tenant is {tenant_said}.",
        f"It takes {took_said} ms of one worker, whatever else that does, and costs {cost_said}.",
        "Every message is delivered once and done: the log's failures, retries and limits are not in it.",
        "What the log's own system did with the order is not known, and stands in no column.",
    )
    return _Mapping(time, tenant, cost, took_ms, frozenset(columns | {time}), assumed)


def _tenant(given: Any, columns: set[str]) -> tuple[Callable[[Row], str], str]:
    if isinstance(given, str):
        columns.add(given)
        return lambda row: _name(row[given]), f"the column {given}"
    if not isinstance(given, dict) or set(given) != {"column", "classes"}:
        raise ImportRefused("tenant must be a column, or a table of column and classes")
    column = _text("tenant.column", given["column"])
    columns.add(column)
    bounds = [_class(number, each) for number, each in enumerate(_listed("tenant.classes", given["classes"]))]

    def of(row: Row) -> str:
        value = _numeric(row[column], column)
        for name, bound, within in bounds:
            if value < bound or (within and value == bound):
                return name
        raise ImportRefused(f"{column} is {value:g}, above every class; the last one needs no bound")

    said = ", ".join(
        name if math.isinf(bound) else f"{name} {'up to' if within else 'below'} {bound:,g}"
        for name, bound, within in bounds
    )
    return of, f"the class of {column} ({said})"


def _class(number: int, given: Any) -> tuple[str, float, bool]:
    field = f"tenant.classes[{number}]"
    if (
        not isinstance(given, dict)
        or "name" not in given
        or set(given) - {"name", "below", "up_to"}
        or len(given) > 2
    ):
        raise ImportRefused(f"{field} must be a name with below, up_to or, for the last one, no bound")
    bound = given.get("below", given.get("up_to", math.inf))
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        raise ImportRefused(f"{field} has the bound {bound!r}, which is no number")
    return _name(_text(f"{field}.name", given["name"])), float(bound), "up_to" in given


def _number(field: str, given: Any, columns: set[str]) -> tuple[Callable[[Row], float], str]:
    if isinstance(given, bool) or not isinstance(given, str | int | float | dict):
        raise ImportRefused(f"{field} must be a column, a number, or a table of columns and factors")
    if isinstance(given, int | float):
        constant = float(given)
        return lambda _: constant, f"{constant:g}"
    factors = {given: 1.0} if isinstance(given, str) else given
    for column, factor in factors.items():
        if isinstance(factor, bool) or not isinstance(factor, int | float):
            raise ImportRefused(f"{field}.{column} must be a number, got {factor!r}")
    if not factors:
        raise ImportRefused(f"{field} names no column")
    columns.update(factors)
    said = " + ".join(
        column if factor == 1 else f"{factor:g} x {column}" for column, factor in factors.items()
    )
    return lambda row: sum(factor * _numeric(row[column], column) for column, factor in factors.items()), said


def _text(field: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ImportRefused(f"{field} must be a text, got {given!r}")
    return given


def _listed(field: str, given: Any) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise ImportRefused(f"{field} must be a list of classes")
    return given


# --- cells -------------------------------------------------------------------------------------


def _name(text: str) -> str:
    name = text.strip()
    if len(name.encode()) > NAME_BYTES_MAX:
        raise ImportRefused(f"a tenant's name has {len(name.encode())} bytes, and may have {NAME_BYTES_MAX}")
    return name


def _numeric(text: str, column: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ImportRefused(f"{column} is {text!r}, which is no number")
    return number


def _between(field: str, number: float, least: float, most: float) -> float:
    if not least <= number <= most:
        raise ImportRefused(f"{field} is {number:g}, and must be from {least:g} to {most:g}")
    return number


def _moment_ms(text: str, column: str) -> int:
    """ISO 8601, UTC where it names no zone, or seconds since 1970."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            raise ImportRefused(f"{column} is {text!r}, neither ISO 8601 nor seconds since 1970") from None
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not 0 <= seconds < 4e9:
        raise ImportRefused(
            f"{column} is {text!r}: as seconds since 1970 that is no moment from then to 2096"
        )
    return int(seconds * 1000)


def _said(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
