"""A limit of the page's form, and back, in the words of `fila.limit_terms`; and the line for a shell that sets it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from fila.limit_terms import budget_text, learn_text, parse_budget, parse_learn, parse_rate, rate_text
from fila.limits import Limit, LimitOptions
from fila.shell_words import command_line

RATES_MAX = 4
PARTS = ("rates", "slots", "budget", "budget_from", "learn", "shadow")
"""The fields of the form."""

_SLOTS_MAX = 1_000_000_000


def parts_of(fields: Mapping[str, str]) -> LimitOptions:
    """What a form asks for, by PARTS; what is empty the limit has not. Raises ValueError, which says what to write."""
    given = {name: fields.get(name, "").strip() for name in PARTS}
    asked = LimitOptions(shadow=given["shadow"] == "yes")
    if rates := given["rates"].split():
        if len(rates) > RATES_MAX:
            raise ValueError(f"A limit has up to {RATES_MAX} rates, and these are {len(rates)}.")
        asked["rates"] = [parse_rate(each) for each in rates]
    if slots := given["slots"].replace(",", ""):
        if not (slots.isascii() and slots.isdecimal()) or int(slots) > _SLOTS_MAX:
            raise ValueError("Slots are a whole number: how many messages may be in flight at once.")
        asked["max_in_flight"] = int(slots)
    if given["budget"]:
        asked["budget"] = parse_budget(given["budget"])
        if given["budget_from"]:
            asked["budget"]["anchor_ms"] = _moment_ms(given["budget_from"])
    elif given["budget_from"]:
        raise ValueError("A moment at which the period begins needs a budget: give both.")
    if given["learn"]:
        asked["learn"] = parse_learn(given["learn"])
    if not (asked.get("rates") or asked.get("max_in_flight") or asked.get("budget")):
        raise ValueError("A limit needs a rate, slots or a budget; to take it away, delete it.")
    return asked


def fields_of(limit: Limit) -> dict[str, str]:
    """What a form has to say for this limit, by PARTS."""
    begins = limit.budget.anchor_ms if limit.budget is not None else 0
    return {
        "rates": "\n".join(rate_text(each) for each in limit.rates),
        "slots": str(limit.max_in_flight or ""),
        "budget": budget_text(limit.budget) if limit.budget is not None else "",
        "budget_from": datetime.fromtimestamp(begins / 1000, UTC).isoformat() if begins else "",
        "learn": learn_text(limit.learn) if limit.learn is not None else "",
        "shadow": "yes" if limit.shadow else "",
    }


def line_of(name: str, fields: Mapping[str, str]) -> str:
    """What sets it from a shell."""
    options: list[str] = []
    for rate in fields.get("rates", "").split():
        options += ["--rate", rate]
    for part in ("slots", "budget", "budget_from", "learn"):
        if value := fields.get(part, "").strip():
            options += [f"--{part.replace('_', '-')}", value]
    if fields.get("shadow") == "yes":
        options.append("--shadow")
    return command_line("fila limit set", name, options=options)


def _moment_ms(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:64]} is no moment; write it like 2026-03-01T00:00Z.") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
