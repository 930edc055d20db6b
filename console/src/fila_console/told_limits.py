"""What a limit allows, in the words of pages."""

from __future__ import annotations

from fila.limits import Budget, Limit, LimitState, Rate
from fila_console.cells import Row, row
from fila_console.wording import amount, count, moment

OWN_COLUMNS = ("Limit", "Allows at most", "Now")


def parts(limit: Limit) -> list[str]:
    """What a limit allows."""
    said = [_rate(each) for each in limit.rates]
    if limit.learn:
        said.append(f"learns from {amount(limit.learn.min)} to {amount(limit.learn.max)} a second")
    if limit.max_in_flight:
        said.append(f"{count(limit.max_in_flight)} in flight")
    if limit.budget:
        said.append(_budget(limit.budget))
    return said


def _rate(rate: Rate) -> str:
    unit = "message" if rate.per_second == 1 and rate.unit != "cost" else unit_said(rate.unit)
    return f"{amount(rate.per_second)} {unit} a second, {amount(rate.burst)} at once"


def _budget(budget: Budget) -> str:
    return f"{amount(budget.amount)} {unit_said(budget.unit)} in each {_period(budget.period_ms)}"


def unit_said(unit: str) -> str:
    """What a part counts."""
    return "of cost" if unit == "cost" else "messages"


def left(tokens: float, rate: Rate) -> str:
    """What a rate has, in four digits, of what it may have at once."""
    some = float(f"{min(max(tokens, 0.0), rate.burst):.4g}")
    return f"{amount(some)} of {amount(rate.burst)} {unit_said(rate.unit)}"


def _period(milliseconds: int) -> str:
    for name, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)):
        if milliseconds % size == 0:
            times = milliseconds // size
            return name.removesuffix("s") if times == 1 else f"{times:,} {name}"
    return f"{amount(milliseconds / 1000)} seconds"


def own_rows(told: list[LimitState]) -> list[Row]:
    """A row for each limit that a tenant's own messages meet."""
    return [
        row(each.limit.name, [each.limit.name, "; ".join(parts(each.limit)), _now(each)]) for each in told
    ]


def _now(told: LimitState) -> str:
    said = [f"{left(tokens, rate)} left" for tokens, rate in zip(told.tokens, told.limit.rates, strict=False)]
    if told.limit.max_in_flight:
        said.append(f"{count(told.in_flight)} of {count(told.limit.max_in_flight)} in flight")
    if budget := told.limit.budget:
        used = f"{amount(told.spent)} of {amount(budget.amount)} used"
        said.append(f"{used}, the next period begins {moment(told.period_ends_at)}")
    if told.limit.shadow:
        said.append("it only counts, and holds nothing")
    return "; ".join(said)
