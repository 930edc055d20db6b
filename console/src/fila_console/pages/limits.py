"""Limits: which there are, what is used of each, what a shadow would hold; that of one throttle key; and the forms that
set one, try it as a shadow, delete it, and say what was spent of a budget. Each change has its way back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from starlette.responses import Response

from fila.limits import LimitOptions, LimitState
from fila.observations import LateKey
from fila.shell_words import command_line
from fila_console.addresses import key_path
from fila_console.gains import held_by, sentence
from fila_console.limit_words import PARTS, fields_of, line_of, parts_of
from fila_console.told_limits import left, parts
from fila_console.trouble import Trouble
from fila_console.visit import Undo, Visit, as_decimal
from fila_console.wording import amount, brief, count, counted, moment

SPENT_MAX = 1e12
LATE_ASKED = 200
LATE_S_MAX = 0.5
"""A broker with very many keys takes longer to say who waits: the rest of a preview does not wait for that."""
TOUCHED_SHOWN = 10
NOTHING_SAID = "What would change stands here once a name and a part are given."


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


class Touched(NamedTuple):
    """Whom a change touches."""

    text: str
    keys: list[tuple[LateKey, str]]
    """Some of those that wait now, with the addresses of their pages."""


class Detail(NamedTuple):
    """What messages meet that name one throttle key: words and values."""

    throttle_key: str
    facts: list[tuple[str, str]]


async def page(visit: Visit) -> Response:
    """All limits; only an admin's key sees them."""
    key, prefix = visit.query("key").strip(), visit.query("prefix").strip()
    found = await visit.upstream.limit_of(key) if key else None
    listed = await visit.upstream.limits(prefix, visit.query("after"))
    # Who looks at a throttle key that is held is about to change what holds it.
    name = visit.query("edit") or (found.limit.name if found is not None else "")
    edited = await _limit_named(visit, name) if name else None
    return visit.page(
        "limits.html",
        here="limits",
        queue="",
        rows=[_row(each) for each in listed.limits],
        more=listed.limits[-1].limit.name if listed.more else "",
        prefix=prefix,
        key=key,
        detail=None if found is None else Detail(found.throttle_key, _facts(found)),
        spent=f"{found.spent:.10g}" if found is not None and found.limit.budget is not None else "",
        name=name,
        is_there=edited is not None,
        fields=fields_of(edited.limit) if edited is not None else dict.fromkeys(PARTS, ""),
        hint=NOTHING_SAID,
        locked=await visit.locked("admin"),
    )


async def _limit_named(visit: Visit, name: str) -> LimitState | None:
    """The limit that was set with just this name."""
    listed = await visit.upstream.limits(name)
    return next((each for each in listed.limits if each.limit.name == name), None)


def _asked(field: Callable[[str], str]) -> tuple[str, LimitOptions, dict[str, str]]:
    """What the form asks for: the limit's name, its parts, and these in words. Raises Trouble."""
    name = field("name").strip()
    fields = {part: field(part).replace("\r", "") for part in PARTS}
    if not name:
        raise Trouble(
            400, "Whose limit is not clear", "Give a throttle key, or how several begin and a star: tenant:*."
        )
    try:
        return name, parts_of(fields), fields
    except ValueError as wrong:
        raise Trouble(400, "That is no limit", str(wrong)) from None


async def preview(visit: Visit) -> Response:
    """What would change, and the line that does it from a shell."""
    if not visit.query("name").strip() or not any(visit.query(part).strip() for part in PARTS):
        return visit.done(NOTHING_SAID)
    name, asked, fields = _asked(visit.query)
    before = await _limit_named(visit, name)
    touched = None
    now = fields_of(before.limit) if before is not None else dict.fromkeys(PARTS, "")
    rows = [
        (_LABELS[part], now[part] or "none", fields[part].strip() or "none")
        for part in PARTS
        if " ".join(now[part].split()) != " ".join(fields[part].split())
    ]
    if before is not None and before.waiting:
        touched = await _touched(visit, before, asked if rows else None)
    return visit.page(
        "limit_preview.html",
        rows=rows,
        sentence=_effect(name, before, is_shadow=fields["shadow"] == "yes"),
        touched=touched,
        line=line_of(name, fields),
    )


_LABELS = {
    "rates": "Rates",
    "slots": "Slots",
    "budget": "Budget",
    "budget_from": "Budget from",
    "learn": "Learns",
    "shadow": "Shadow",
}


def _effect(name: str, before: LimitState | None, *, is_shadow: bool) -> str:
    """Whom it would touch, of what the broker knows now."""
    who = "each throttle key that begins so" if name.endswith("*") else "this throttle key"
    if is_shadow and (before is None or before.limit.shadow):
        return f"A shadow holds nothing: it counts what it would have held of {who}."
    if is_shadow:
        return f"{counted(before.waiting if before else 0, 'key')} that wait for it now would go: a shadow holds none."
    if before is None:
        return f"It is new, and holds messages of {who}. As a shadow it would hold none, and count them."
    waiting = counted(before.waiting, "key waits", "keys wait")
    if before.limit.shadow:
        return f"The shadow would have held {counted(before.would_hold_total, 'message')}; from now on it holds them."
    return f"{waiting} for it now, and {count(before.in_flight)} of its messages are in flight."


async def _touched(visit: Visit, before: LimitState, asked: LimitOptions | None) -> Touched:
    """Who waits for it now, and what the change is to them; None where nothing would change."""
    try:
        async with asyncio.timeout(LATE_S_MAX):
            late = await visit.upstream.late(max_keys=LATE_ASKED)
    except TimeoutError:
        return Touched(
            f"{counted(before.waiting, 'key')} wait for it; the broker takes long to say which.", []
        )
    held = held_by(before.limit.name, late.keys)
    if not held:
        return Touched("", [])
    shown = [
        (each, key_path(visit.broker.name, each.queue, each.fairness_key, each.channel))
        for each in held[:TOUCHED_SHOWN]
    ]
    if asked is None:
        return Touched("These keys wait for it now.", shown)
    return Touched(sentence(parts_of(fields_of(before.limit)), asked, held, before.waiting), shown)


async def change(visit: Visit) -> Response:
    """Set one as a whole."""
    name, asked, fields = _asked(visit.field)
    before = await _limit_named(visit, name)
    await visit.upstream.set_limit(name, asked)
    kind = "is a shadow now: it holds nothing, and counts" if asked.get("shadow") else "holds from now on"
    return visit.changed(
        f"{brief(name)} {kind}.", line=line_of(name, fields), undo=_way_back(visit, name, before)
    )


def _way_back(visit: Visit, name: str, before: LimitState | None) -> Undo:
    if before is None:
        return Undo(visit.url("limits", "delete"), "delete it", [("name", name), ("sure", "yes")])
    fields = [("name", name), *fields_of(before.limit).items()]
    return Undo(visit.url("limits", "set"), "as it was", fields)


async def delete(visit: Visit) -> Response:
    """Take one away; what waits for it goes."""
    name = visit.field("name")
    if visit.field("sure") != "yes":
        raise Trouble(400, "Nothing was deleted", "Tick the box beside the button.")
    before = await _limit_named(visit, name)
    await visit.upstream.delete_limit(name)
    line = command_line("fila limit delete", name)
    undo = _way_back(visit, name, before) if before is not None else None
    return visit.changed(f"{brief(name)} is deleted; what waited for it goes.", line=line, undo=undo)


async def reset(visit: Visit) -> Response:
    """Say how much of its budget a throttle key has spent in this period."""
    key, spent = visit.field("key"), as_decimal("spent", visit.field("spent") or "0", SPENT_MAX)
    before = await visit.upstream.limit_of(key)
    now = await visit.upstream.reset_limit(key, spent)
    line = command_line("fila limit reset", key, options=["--spent", f"{spent:.15g}"])
    undo = None
    if before is not None:
        fields = [("key", key), ("spent", f"{before.spent:.6f}")]
        undo = Undo(visit.url("limits", "reset"), f"{before.spent:,.10g} spent", fields)
    return visit.changed(f"{brief(key)} has spent {now.spent:,.10g} in this period.", line=line, undo=undo)


def _row(told: LimitState) -> Row:
    limit = told.limit
    return Row(
        name=limit.name,
        parts=parts(limit),
        is_shadow=limit.shadow,
        keys=count(told.throttle_keys),
        in_flight=count(told.in_flight),
        waiting=count(told.waiting),
        passed=count(told.passed_total),
        held=count(told.would_hold_total if limit.shadow else told.held_total),
    )


def _facts(told: LimitState) -> list[tuple[str, str]]:
    limit = told.limit
    facts = [("its limit", limit.name), *(("at most", part) for part in parts(limit))]
    facts += [
        (
            "left now",
            left(tokens, rate),
        )
        for tokens, rate in zip(told.tokens, limit.rates, strict=False)
    ]
    facts.append(("in flight", count(told.in_flight)))
    if limit.budget:
        facts.append(("used of the budget", f"{amount(told.spent)} of {amount(limit.budget.amount)}"))
        facts.append(("the next period begins", moment(told.period_ends_at)))
    if limit.learn:
        facts.append(("learned", f"{amount(float(f'{told.learned_per_second:.4g}'))} a second"))
    if told.closed_until:
        facts.append(("closed until", moment(told.closed_until)))
    if told.refused_at:
        facts.append(("last refused", moment(told.refused_at)))
    if limit.shadow:
        facts.append(("a shadow", "it holds nothing"))
    return facts
