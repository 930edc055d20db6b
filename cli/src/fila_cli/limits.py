"""A limit as people write it, and back: `60/m`, `1000cost/m,5000`, `5000cost/day`.

rate      NUMBER[cost]/UNIT[,BURST]     UNIT: s, m, h or d; without a burst one second's worth, at least 1
budget    NUMBER[cost]/PERIOD           PERIOD: minute, hour, day, week, or a duration such as 12h
learn     MIN..MAX                      messages a second, between which the first rate follows its provider
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from fila_cli.values import DURATION, MOMENT, duration_text

if TYPE_CHECKING:
    from fila.v1.limit_pb2 import Budget, Learn, Limit, Rate

RATES_MAX = 4
NAMES = ("rate", "slots", "budget", "budget-from", "learn", "shadow")
"""What a file and the flags call the parts of a limit."""

_SECONDS_BY_UNIT = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_MS_BY_PERIOD = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>cost)?"
_RATE = re.compile(rf"{_NUMBER}/(?P<per>[smhd])(?:,(?P<burst>[0-9]+(?:\.[0-9]+)?))?", re.ASCII)
_LEARN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\.\.([0-9]+(?:\.[0-9]+)?)", re.ASCII)
_BUDGET = re.compile(rf"{_NUMBER}/(?P<period>[a-z0-9]+)", re.ASCII)


class RateTerm(click.ParamType[Any]):
    """A rate, as the wire has it."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Rate:
        from fila.v1 import limit_pb2

        read = _RATE.fullmatch(str(value))
        if read is None:
            self.fail(f"{value!r} is no rate; give it like 60/m, 1000cost/m or 5/s,20", param, ctx)
        return limit_pb2.Rate(
            per_second=float(read["number"]) / _SECONDS_BY_UNIT[read["per"]],
            burst=float(read["burst"] or 0),
            unit=_unit(read["unit"]),
        )


class BudgetTerm(click.ParamType[Any]):
    """A budget, as the wire has it."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Budget:
        from fila.v1 import limit_pb2

        read = _BUDGET.fullmatch(str(value))
        if read is None:
            self.fail(f"{value!r} is no budget; give it like 500/day, 5000cost/day or 100/12h", param, ctx)
        period = read["period"]
        period_ms = _MS_BY_PERIOD[period] if period in _MS_BY_PERIOD else DURATION.convert(period, param, ctx)
        return limit_pb2.Budget(amount=float(read["number"]), period_ms=period_ms, unit=_unit(read["unit"]))


class LearnTerm(click.ParamType[Any]):
    """Bounds of a rate that follows its provider, as the wire has them."""

    name = "learn"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Learn:
        from fila.v1 import limit_pb2

        read = _LEARN.fullmatch(str(value))
        if read is None:
            self.fail(f"{value!r} are no bounds; give them in messages a second, like 1..1000", param, ctx)
        return limit_pb2.Learn(min=float(read[1]), max=float(read[2]))


RATE_TERM, BUDGET_TERM, LEARN_TERM = RateTerm(), BudgetTerm(), LearnTerm()


def _unit(text: str | None) -> Any:
    from fila.v1 import limit_pb2

    return limit_pb2.Limit.UNIT_COST if text else limit_pb2.Limit.UNIT_MESSAGES


def limit_of(
    name: str,
    *,
    rates: tuple[Rate, ...] = (),
    slots: int = 0,
    budget: Budget | None = None,
    budget_from: datetime | None = None,
    learn: Learn | None = None,
    shadow: bool = False,
) -> Limit:
    """A whole limit. Raises UsageError where a moment has no budget."""
    from fila.v1 import limit_pb2

    limit = limit_pb2.Limit(name=name, rates=rates, max_in_flight=slots, shadow=shadow)
    if budget is not None:
        limit.budget.CopyFrom(budget)
    if learn is not None:
        limit.learn.CopyFrom(learn)
    if budget_from is not None:
        if budget is None:
            raise click.UsageError("budget-from needs a budget: give both")
        limit.budget.anchor_ms = int(budget_from.timestamp() * 1000)
    return limit


def terms(limit: Limit) -> dict[str, list[str] | str]:
    """The parts of a limit that are set, in the words that set them."""
    found: dict[str, list[str] | str] = {}
    if limit.rates:
        found["rate"] = [rate_text(rate) for rate in limit.rates]
    if limit.max_in_flight:
        found["slots"] = str(limit.max_in_flight)
    if limit.HasField("budget"):
        found["budget"] = budget_text(limit.budget)
        if limit.budget.anchor_ms:
            begins = datetime.fromtimestamp(limit.budget.anchor_ms / 1000, UTC)
            found["budget-from"] = begins.isoformat().replace("+00:00", "Z")
    if limit.HasField("learn"):
        found["learn"] = f"{_plain(limit.learn.min)}..{_plain(limit.learn.max)}"
    if limit.shadow:
        found["shadow"] = "yes"
    return found


def rate_text(rate: Rate) -> str:
    """`1000cost/m`; with its burst where that is not one second's worth."""
    unit, number = "s", rate.per_second
    for each, seconds in _SECONDS_BY_UNIT.items():
        many = rate.per_second * seconds
        if round(many) and abs(many - round(many)) <= 1e-9 * many:
            unit, number = each, float(round(many))
            break
    usual = max(1.0, rate.per_second) if rate.per_second else 0.0
    burst = f",{_plain(rate.burst)}" if rate.burst and abs(rate.burst - usual) > 1e-9 * usual else ""
    return f"{_plain(number)}{_cost(rate)}/{unit}{burst}"


def budget_text(budget: Budget) -> str:
    """`5000cost/day`."""
    words = {ms: word for word, ms in _MS_BY_PERIOD.items()}
    return f"{_plain(budget.amount)}{_cost(budget)}/{words.get(budget.period_ms) or duration_text(budget.period_ms)}"


def _cost(part: Rate | Budget) -> str:
    from fila.v1 import limit_pb2

    return "cost" if part.unit == limit_pb2.Limit.UNIT_COST else ""


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def limit_from(place: str, name: str, table: Any) -> Limit:
    """A limit as a file's table says it. Raises BadParameter, with the place."""
    if not isinstance(table, dict):
        raise click.BadParameter(f"{place} must be a table")
    unknown = sorted(set(table) - set(NAMES))
    if unknown:
        raise click.BadParameter(f"{place}.{unknown[0]} is no part of a limit; known are {', '.join(NAMES)}")
    rates = table.get("rate", [])
    slots, shadow = table.get("slots", 0), table.get("shadow", False)
    if isinstance(slots, bool) or not isinstance(slots, int) or slots < 0:
        raise click.BadParameter(f"{place}.slots must be a whole number from 0 on")
    if not isinstance(shadow, bool):
        raise click.BadParameter(f"{place}.shadow must be true or false")
    try:
        begins = table.get("budget-from")
        return limit_of(
            name,
            rates=tuple(RATE_TERM.convert(each, None, None) for each in _listed(rates)),
            slots=slots,
            budget=BUDGET_TERM.convert(table["budget"], None, None) if "budget" in table else None,
            budget_from=None if begins is None else MOMENT.convert(str(begins), None, None),
            learn=LEARN_TERM.convert(table["learn"], None, None) if "learn" in table else None,
            shadow=shadow,
        )
    except (click.BadParameter, click.UsageError) as error:
        raise click.BadParameter(f"{place}: {error.message}") from error


def _listed(rates: Any) -> list[Any]:
    return rates if isinstance(rates, list) else [rates]
