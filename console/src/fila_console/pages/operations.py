"""Many dead letters at once: an operation that runs in the broker, whatever becomes of the page that started it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from starlette.responses import Response

from fila.dead_letters import DeadLetterFilter
from fila_console.differences import from_one_line
from fila_console.letters import REASONS, check_dlq, letters_of
from fila_console.progress import progress
from fila_console.trouble import Trouble
from fila_console.visit import Visit, as_decimal
from fila_console.wording import count, counted

RATE_MAX = 1_000_000.0
COUNTED_MAX = 5_000
_KINDS: dict[str, Literal["redrive", "delete"]] = {"redrive": "redrive", "delete": "delete"}


def _wanted(field: Callable[[str], str]) -> DeadLetterFilter:
    """Which letters a form means. Raises Trouble."""
    reason = field("reason")
    if reason not in ("", *REASONS):
        raise Trouble(400, "No such reason", f"Letters die of {', '.join(REASONS)}.")
    return DeadLetterFilter(
        fairness_key=from_one_line(field("key")), reason=reason, error=from_one_line(field("error"))
    )


async def preview(visit: Visit) -> Response:
    """How many letters are meant, for beside the buttons."""
    dlq, wanted = check_dlq(visit.path("queue")), _wanted(visit.query)
    looked_at = meant = 0
    async for letter in letters_of(visit.upstream, dlq, COUNTED_MAX):
        looked_at += 1
        meant += letter.is_meant(wanted)
    if looked_at < COUNTED_MAX:
        return visit.done(f"Meant: {count(meant)} of {counted(looked_at, 'letter')}.")
    return visit.done(
        f"Meant: {count(meant)} of the oldest {counted(looked_at, 'letter')}; the broker looks at all."
    )


async def start(visit: Visit) -> Response:
    """Let the broker do it."""
    dlq, wanted = check_dlq(visit.path("queue")), _wanted(visit.field)
    kind = _KINDS.get(visit.field("kind"))
    if kind is None:
        raise Trouble(400, "Nothing was started", "Press one of the buttons: move back, or drop.")
    if kind == "delete" and visit.field("sure") != "yes":
        raise Trouble(
            400, "Nothing was dropped", "Dropped letters are gone for good: tick the box beside the button."
        )
    pace = visit.field("rate").strip()
    per_second = as_decimal("most a second", pace, RATE_MAX) if pace else 0.0
    operation = await visit.upstream.start_operation(dlq, kind, wanted, per_second)
    told = progress([operation])["operation"]["t"]
    return visit.done(f"Started; it goes on in the broker when this page is closed. {told}", tone="done")


async def cancel(visit: Visit) -> Response:
    """End one; what it did is done."""
    dlq, identity = check_dlq(visit.path("queue")), visit.field("id")
    if not identity:
        raise Trouble(409, "Nothing runs", "It has ended meanwhile.")
    operation = await visit.upstream.cancel_operation(dlq, identity)
    return visit.done(progress([operation])["operation"]["t"])
