"""A limit of the flags and of a file's table, and back, in the words of `fila.limit_terms`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from fila_cli.values import MOMENT

if TYPE_CHECKING:
    from fila.limits import BudgetOptions, LearnOptions, LimitOptions, RateOptions
    from fila.v1.limit_pb2 import Limit

RATES_MAX = 4
SLOTS_MAX = 1_000_000_000
NAMES = ("rate", "slots", "budget", "budget-from", "learn", "shadow")
"""What a file and the flags call the parts of a limit."""


class Term(click.ParamType[Any]):
    """A part of a limit: a rate, a budget, or the bounds of a rate that follows its provider."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from fila import limit_terms

        try:
            return getattr(limit_terms, f"parse_{self.name}")(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


RATE_TERM, BUDGET_TERM, LEARN_TERM = Term("rate"), Term("budget"), Term("learn")


def limit_of(
    name: str,
    *,
    rates: tuple[RateOptions, ...] = (),
    slots: int = 0,
    budget: BudgetOptions | None = None,
    budget_from: datetime | None = None,
    learn: LearnOptions | None = None,
    shadow: bool = False,
) -> Limit:
    """A whole limit. Raises UsageError where a moment has no budget."""
    from fila.limits import limit_message

    parts: LimitOptions = {"rates": rates, "max_in_flight": slots, "shadow": shadow}
    if budget is not None:
        parts["budget"] = budget
    if learn is not None:
        parts["learn"] = learn
    if budget_from is not None:
        if budget is None:
            raise click.UsageError("budget-from needs a budget: give both")
        parts["budget"] = {**budget, "anchor_ms": int(budget_from.timestamp() * 1000)}
    return limit_message(name, parts)


def terms(limit: Limit) -> dict[str, list[str] | str]:
    """The parts of a limit that are set, in the words that set them."""
    from fila import limits
    from fila.answers import answer
    from fila.limit_terms import budget_text, learn_text, rate_text

    told = answer(limits.Limit, limit)
    found: dict[str, list[str] | str] = {}
    if told.rates:
        found["rate"] = [rate_text(rate) for rate in told.rates]
    if told.max_in_flight:
        found["slots"] = str(told.max_in_flight)
    if told.budget is not None:
        found["budget"] = budget_text(told.budget)
        if told.budget.anchor_ms:
            begins = datetime.fromtimestamp(told.budget.anchor_ms / 1000, UTC)
            found["budget-from"] = begins.isoformat().replace("+00:00", "Z")
    if told.learn is not None:
        found["learn"] = learn_text(told.learn)
    if told.shadow:
        found["shadow"] = "yes"
    return found


def limit_from(place: str, name: str, table: Any) -> Limit:
    """A limit as a file's table says it. Raises BadParameter, with the place."""
    if not isinstance(table, dict):
        raise click.BadParameter(f"{place} must be a table")
    unknown = sorted(set(table) - set(NAMES))
    if unknown:
        raise click.BadParameter(f"{place}.{unknown[0]} is no part of a limit; known are {', '.join(NAMES)}")
    rates = table.get("rate", [])
    slots, shadow = table.get("slots", 0), table.get("shadow", False)
    if isinstance(slots, bool) or not isinstance(slots, int) or not 0 <= slots <= SLOTS_MAX:
        raise click.BadParameter(f"{place}.slots must be a whole number from 0 to {SLOTS_MAX}")
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
