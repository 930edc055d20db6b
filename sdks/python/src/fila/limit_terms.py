"""A limit's parts as people write them, and back: "60/m", "1000cost/m,5000", "5000cost/day", "1..1000".

rate      NUMBER[cost]/UNIT[,BURST]     UNIT: s, m, h or d; without a burst one second's worth, at least 1
budget    NUMBER[cost]/PERIOD           PERIOD: minute, hour, day, week, or a duration such as 12h
learn     MIN..MAX                      messages a second, between which the first rate follows its provider
"""

from __future__ import annotations

import re
from decimal import Decimal

from fila.limits import Budget, BudgetOptions, Learn, LearnOptions, Rate, RateOptions
from fila.values import duration_text, parse_duration

_SECONDS_BY_UNIT = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_MS_BY_PERIOD = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
_NUMBER = r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>cost)?"
_RATE = re.compile(rf"{_NUMBER}/(?P<per>[smhd])(?:,(?P<burst>[0-9]+(?:\.[0-9]+)?))?", re.ASCII)
_LEARN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\.\.([0-9]+(?:\.[0-9]+)?)", re.ASCII)
_BUDGET = re.compile(rf"{_NUMBER}/(?P<period>[a-z0-9]+)", re.ASCII)


def parse_rate(text: str) -> RateOptions:
    """Raises ValueError, which says what to write."""
    read = _RATE.fullmatch(text)
    if read is None:
        raise ValueError(f"{text[:64]!r} is no rate; write it like 60/m, 1000cost/m or 5/s,20")
    rate = RateOptions(per_second=float(read["number"]) / _SECONDS_BY_UNIT[read["per"]])
    if read["burst"]:
        rate["burst"] = float(read["burst"])
        if rate["burst"] < 1:
            raise ValueError(
                f"a burst is at least 1, got {read['burst']}; leave it out for one second's worth"
            )
    if read["unit"]:
        rate["unit"] = "cost"
    return rate


def parse_budget(text: str) -> BudgetOptions:
    """Raises ValueError, which says what to write."""
    read = _BUDGET.fullmatch(text)
    if read is None:
        raise ValueError(f"{text[:64]!r} is no budget; write it like 500/day, 5000cost/day or 100/12h")
    budget = BudgetOptions(amount=float(read["number"]), period_ms=_period_ms(read["period"]))
    if read["unit"]:
        budget["unit"] = "cost"
    return budget


def _period_ms(text: str) -> int:
    if text in _MS_BY_PERIOD:
        return _MS_BY_PERIOD[text]
    try:
        return parse_duration(text)
    except ValueError:
        raise ValueError(
            f"a budget's period is {', '.join(_MS_BY_PERIOD)}, or a duration from 1s to 366d; got {text[:64]!r}. "
            "Write it like 500/day or 100/12h; what may go each second is a rate"
        ) from None


def parse_learn(text: str) -> LearnOptions:
    """Raises ValueError, which says what to write."""
    read = _LEARN.fullmatch(text)
    if read is None:
        raise ValueError(f"{text[:64]!r} are no bounds; write them in messages a second, like 1..1000")
    return LearnOptions(min=float(read[1]), max=float(read[2]))


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
    period = words.get(budget.period_ms) or duration_text(budget.period_ms)
    return f"{_plain(budget.amount)}{_cost(budget)}/{period}"


def learn_text(learn: Learn) -> str:
    """`1..1000`."""
    return f"{_plain(learn.min)}..{_plain(learn.max)}"


def _cost(part: Rate | Budget) -> str:
    return "cost" if part.unit == "cost" else ""


def _plain(number: float) -> str:
    """As short as it can be said, and never with an exponent, which nothing here reads."""
    return str(int(number)) if number.is_integer() else format(Decimal(repr(number)), "f")
