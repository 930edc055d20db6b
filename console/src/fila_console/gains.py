"""Whom a change of a limit touches: who gains or waits longer by it, of the fairness keys that wait for it now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from fila.limits import LimitOptions
from fila.observations import LateKey
from fila_console.wording import age, counted

GAIN, WAIT_LONGER, TOUCHED = "gain", "wait longer", "are touched"


def effect(before: LimitOptions, asked: LimitOptions) -> str:
    """What happens to those that wait, where a limit becomes another."""
    signs = {(now > then) - (now < then) for then, now in _allowed(before, asked)} - {0}
    return {1: GAIN, -1: WAIT_LONGER}[signs.pop()] if len(signs) == 1 else TOUCHED


def _allowed(before: LimitOptions, asked: LimitOptions) -> Iterator[tuple[float, float]]:
    """What each part lets through, before and after; a part that there is not lets all through."""
    if before.get("shadow") or asked.get("shadow"):
        yield bool(before.get("shadow")), bool(asked.get("shadow"))
        return
    for unit in ("messages", "cost"):
        yield _least(before, unit), _least(asked, unit)
    yield before.get("max_in_flight") or math.inf, asked.get("max_in_flight") or math.inf
    then, now = before.get("budget"), asked.get("budget")
    if then is None or now is None:
        yield then is None, now is None
    elif (then["period_ms"], then.get("unit")) == (now["period_ms"], now.get("unit")):
        yield then["amount"], now["amount"]
    else:  # which of them is more depends on the moment
        yield from ((0, 1), (1, 0))


def _least(limit: LimitOptions, unit: str) -> float:
    rates = limit.get("rates", ())
    return min(
        (each["per_second"] for each in rates if each.get("unit", "messages") == unit), default=math.inf
    )


def held_by(name: str, late: Sequence[LateKey]) -> list[LateKey]:
    """The keys that wait for a limit of this name, those that wait longest first."""
    begins = name.removesuffix("*")
    return [
        each
        for each in late
        if each.blocking_bucket == name or (begins != name and each.blocking_bucket.startswith(begins))
    ]


def sentence(before: LimitOptions, asked: LimitOptions, held: Sequence[LateKey], waiting: int) -> str:
    """Who gains, or waits longer; `held` are those that are known of `waiting` ones."""
    what = effect(before, asked)
    if len(held) < waiting:
        return f"{counted(waiting, 'key')} {what}, among them these."
    said = f"These keys {what}."
    then, now = _one_rate(before), _one_rate(asked)
    if then and now and len({each.blocking_bucket for each in held}) == 1:
        messages = sum(each.pending for each in held)
        need = [age(messages / rate * 1000) for rate in (then, now)]
        said += f" Their {counted(messages, 'message')} wait for it up to {need[0]} as it is, and {need[1]} as asked."
    return said


def _one_rate(limit: LimitOptions) -> float:
    """Messages a second, where that is all that holds; else 0."""
    rates = limit.get("rates", ())
    is_alone = len(rates) == 1 and not any(
        limit.get(part) for part in ("max_in_flight", "budget", "learn", "shadow")
    )
    return rates[0]["per_second"] if is_alone and rates[0].get("unit", "messages") == "messages" else 0.0
