"""Limits: which there are, what is used of each, what a shadow would hold; and that of one throttle key."""

from __future__ import annotations

from typing import NamedTuple

from starlette.responses import Response

from fila.limits import Budget, Limit, LimitState, Rate
from fila_console.visit import Visit
from fila_console.wording import count, moment


class Row(NamedTuple):
    """One limit, as the table has it."""

    name: str
    parts: list[str]
    is_shadow: bool
    keys: str
    in_flight: str
    waiting: str
    passed: str
    held: str
    """Of a shadow: what it would have held."""


class Detail(NamedTuple):
    """What messages meet that name one throttle key: words and values."""

    throttle_key: str
    facts: list[tuple[str, str]]


async def page(visit: Visit) -> Response:
    """All limits; only an admin's key sees them."""
    key, prefix = visit.query("key").strip(), visit.query("prefix").strip()
    found = await visit.upstream.limit_of(key) if key else None
    listed = await visit.upstream.limits(prefix, visit.query("after"))
    return visit.page(
        "limits.html",
        here="limits",
        queue="",
        rows=[_row(each) for each in listed.limits],
        more=listed.limits[-1].limit.name if listed.more else "",
        prefix=prefix,
        key=key,
        detail=None if found is None else Detail(found.throttle_key, _facts(found)),
    )


def _row(told: LimitState) -> Row:
    limit = told.limit
    return Row(
        name=limit.name,
        parts=_parts(limit),
        is_shadow=limit.shadow,
        keys=count(told.throttle_keys),
        in_flight=count(told.in_flight),
        waiting=count(told.waiting),
        passed=count(told.passed_total),
        held=count(told.would_hold_total if limit.shadow else told.held_total),
    )


def _parts(limit: Limit) -> list[str]:
    parts = [_rate(each) for each in limit.rates]
    if limit.learn:
        parts.append(f"learns from {limit.learn.min:,g} to {limit.learn.max:,g} a second")
    if limit.max_in_flight:
        parts.append(f"{count(limit.max_in_flight)} in flight")
    if limit.budget:
        parts.append(_budget(limit.budget))
    return parts


def _rate(rate: Rate) -> str:
    return f"{rate.per_second:,g} {_unit(rate.unit)} a second, {rate.burst:,g} at once"


def _budget(budget: Budget) -> str:
    return f"{budget.amount:,g} {_unit(budget.unit)} in each {_period(budget.period_ms)}"


def _unit(unit: str) -> str:
    return "of cost" if unit == "cost" else "messages"


def _period(milliseconds: int) -> str:
    for name, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)):
        if milliseconds % size == 0:
            times = milliseconds // size
            return name.removesuffix("s") if times == 1 else f"{times:,} {name}"
    return f"{milliseconds / 1000:,g} seconds"


def _facts(told: LimitState) -> list[tuple[str, str]]:
    limit = told.limit
    facts = [("its limit", limit.name), *(("at most", part) for part in _parts(limit))]
    facts += [
        ("left now", f"{tokens:,.4g} of {rate.burst:,g} {_unit(rate.unit)}")
        for tokens, rate in zip(told.tokens, limit.rates, strict=False)
    ]
    facts.append(("in flight", count(told.in_flight)))
    if limit.budget:
        facts.append(("used of the budget", f"{told.spent:,.10g} of {limit.budget.amount:,g}"))
        facts.append(("the next period begins", moment(told.period_ends_at)))
    if limit.learn:
        facts.append(("learned", f"{told.learned_per_second:,.4g} a second"))
    if told.closed_until:
        facts.append(("closed until", moment(told.closed_until)))
    if told.refused_at:
        facts.append(("last refused", moment(told.refused_at)))
    if limit.shadow:
        facts.append(("a shadow", "it holds nothing"))
    return facts
