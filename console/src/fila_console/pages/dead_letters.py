"""Dead letters: groups by what they died of, the letters of one, one letter; move, drop, edit, save."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.responses import RedirectResponse, Response, StreamingResponse

from fila import StoredMessage
from fila_console.cells import State, cell
from fila_console.differences import in_one_line
from fila_console.letters import (
    DLQ_SUFFIX,
    LOOK_S_MAX,
    REASONS,
    Group,
    Letter,
    check_dlq,
    letter_of,
    letters_of,
    trend,
)
from fila_console.payloads import as_hex, as_json, as_text, as_typed, cell_of_csv
from fila_console.progress import progress
from fila_console.trouble import Trouble, unless_refused
from fila_console.upstream import Upstream
from fila_console.visit import Visit, as_number
from fila_console.watches import Asked, Watch
from fila_console.wording import UNKNOWN, age, brief, count, counted, moment, named, size

LOOKED_AT_MAX = 5_000
"""Letters a page looks through to group them."""
GROUPS_SHOWN = 100
SHOWN_MAX = 200
MOVED_AT_ONCE = 500
EXPORTED_MAX = 10_000
OWN_HEADERS = "fila-"
"""What the broker's own headers begin with; they stay as they are."""


class Head(Asked):
    """How many there are, and what the broker does with them, for the page's head."""

    def __init__(self, dlq: str) -> None:
        self._dlq = dlq

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""
        stats, operations = await asyncio.gather(
            upstream.stats(self._dlq), unless_refused(upstream.operations(self._dlq), [])
        )
        state = State()
        state.texts = progress(operations) | {
            "depth": cell(counted(stats.depth, "dead letter"), tone="lost" if stats.depth else ""),
            "in-hand": cell(
                f"{counted(stats.in_flight, 'message')} in consumers' hands" if stats.in_flight else ""
            ),
            "at": cell(upstream.clock.as_of()),
        }
        return state


def watch(visit: Visit) -> Watch:
    """The head of this dead-letter queue's page."""
    dlq = check_dlq(visit.query("queue") or str(visit.request.path_params.get("queue", "")))
    return visit.watch(("dead-letters", dlq), lambda: Head(dlq))


def _wanted(visit: Visit) -> Group:
    return Group(visit.query("reason"), visit.query("error"), visit.query("key"))


async def page(visit: Visit) -> Response:
    """The page: groups, the letters of one, and one letter: the first, where none is chosen."""
    dlq, wanted = visit.path("queue"), _wanted(visit)
    if not dlq.endswith(DLQ_SUFFIX):
        return RedirectResponse(visit.url("queues", dlq + DLQ_SUFFIX, "dead-letters"), 303)
    watched = watch(visit)
    state = await watched.current()
    now_s = visit.upstream.clock.now_s()
    groups: dict[Group, list[Letter]] = {}
    shown: list[Letter] = []
    began_s = time.monotonic()
    looked_at = matching = 0
    async for letter in letters_of(visit.upstream, dlq, LOOKED_AT_MAX):
        looked_at += 1
        groups.setdefault(Group(letter.reason, letter.kind, letter.message.fairness_key), []).append(letter)
        if wanted.takes(letter):
            matching += 1
            if len(shown) < SHOWN_MAX:
                shown.append(letter)
    is_all = looked_at < LOOKED_AT_MAX and time.monotonic() - began_s < LOOK_S_MAX
    most = sorted(groups.items(), key=lambda each: -len(each[1]))[:GROUPS_SHOWN]
    chosen = visit.query("offset")
    first = None if chosen or not shown else shown[0]
    return visit.page(
        "dead_letters.html",
        here="dead-letters",
        queue=dlq,
        source=dlq.removesuffix(DLQ_SUFFIX),
        state=state,
        live=visit.url("live", "dead-letters", queue=dlq),
        locked=await visit.locked("manage", dlq),
        groups=[(group, len(those), _trend(those, now_s) if is_all else "") for group, those in most],
        wanted=wanted,
        letters=shown,
        matching=matching,
        looked_at=looked_at,
        is_all=is_all,
        age_of=lambda at: age(max(0.0, (now_s - at.timestamp()) * 1000)) if at else UNKNOWN,
        brief=brief,
        named=named,
        count=count,
        counted=counted,
        chosen=chosen,
        is_one_shown=first is not None,
        **(_told(first.message) if first is not None else {}),
        meant=wanted.as_filter(),
        reasons=REASONS,
        in_one_line=in_one_line,
    )


def _trend(letters: Sequence[Letter], now_s: float) -> str:
    return trend([each.died_at.timestamp() for each in letters if each.died_at is not None], now_s)


async def _one(visit: Visit) -> StoredMessage:
    offset = visit.number("offset")
    if offset == 0:
        raise Trouble(400, "No letter was named", "Choose one from the list.")
    found = await visit.upstream.peek(check_dlq(visit.path("queue")), offset - 1, 1)
    if not found or found[0].offset != offset:
        raise Trouble(404, "That letter is gone", "It was moved back, dropped, or is in a consumer's hands.")
    return found[0]


async def letter(visit: Visit) -> Response:
    """One letter, for the right of the page."""
    message = await _one(visit)
    return visit.page(
        "letter.html",
        locked=await visit.locked("manage", visit.path("queue")),
        queue=visit.path("queue"),
        named=named,
        **_told(message),
    )


def _told(message: StoredMessage) -> dict[str, Any]:
    """What is shown of one letter."""
    return {
        "message": message,
        "letter": letter_of(message),
        "json": as_json(message.payload),
        "text": as_text(message.payload),
        "hex": as_hex(message.payload),
        "size": size(len(message.payload)),
        "typed": as_typed(message.payload),
        "headers": _headers_text(message),
        "moment": moment,
    }


async def payload(visit: Visit) -> Response:
    """One letter's bytes, to be saved; never shown by the browser as what they claim to be."""
    message = await _one(visit)
    headers = {"content-disposition": f'attachment; filename="message-{message.offset}.bin"'}
    return Response(message.payload, media_type="application/octet-stream", headers=headers)


async def export(visit: Visit) -> Response:
    """The chosen letters without their payloads, as a table or as lines of JSON."""
    kind = visit.query("as")
    if kind not in ("csv", "jsonl"):
        raise Trouble(400, "No such kind", "Ask for csv or jsonl.")
    dlq, wanted = check_dlq(visit.path("queue")), _wanted(visit)
    headers = {"content-disposition": f'attachment; filename="{dlq}.{kind}"'}
    # What is wrong is said instead of a file; what goes wrong later ends the file in its middle, as browsers tell.
    await visit.upstream.peek(dlq, 0, 1)

    async def lines() -> AsyncIterator[str]:
        if kind == "csv":
            yield "offset,id,key,reason,attempts,died_at,error\r\n"
        async for each in letters_of(visit.upstream, dlq, EXPORTED_MAX):
            if wanted.takes(each):
                yield _line(each, kind)

    return StreamingResponse(lines(), media_type="text/plain; charset=utf-8", headers=headers)


def _line(each: Letter, kind: str) -> str:
    at = each.died_at.isoformat() if each.died_at else ""
    if kind == "csv":
        fields = [str(each.message.offset), each.message.id, each.message.fairness_key, each.reason]
        return ",".join(cell_of_csv(text) for text in [*fields, str(each.attempts), at, each.error]) + "\r\n"
    told = {
        "offset": each.message.offset,
        "id": each.message.id,
        "fairness_key": each.message.fairness_key,
        "reason": each.reason,
        "attempts": each.attempts,
        "died_at": at,
        "last_error": each.error,
        "headers": each.message.headers,
    }
    return json.dumps(told) + "\n"


async def redrive(visit: Visit) -> Response:
    """Move letters back to where they came from."""
    dlq, offsets = check_dlq(visit.path("queue")), _chosen(visit)
    moved = 0
    for part in _parts(offsets):
        moved += await visit.upstream.redrive(dlq, part)
    stuck = len(offsets) - moved
    text = f"{counted(moved, 'letter')} moved back to {dlq.removesuffix(DLQ_SUFFIX)}."
    if stuck:
        text += (
            f" {counted(stuck, 'letter')} stayed: put here by hand, or their queue is gone or refuses them."
        )
    return visit.done(text, tone="late" if stuck else "done")


async def drop(visit: Visit) -> Response:
    """Drop letters for good."""
    if visit.field("sure") != "yes":
        raise Trouble(
            400, "Nothing was dropped", "Dropped letters are gone for good: tick the box beside the button."
        )
    dlq, offsets = check_dlq(visit.path("queue")), _chosen(visit)
    dropped = 0
    for part in _parts(offsets):
        dropped += await visit.upstream.drop(dlq, part)
    return visit.done(f"{counted(dropped, 'letter')} dropped for good.", tone="done")


def _parts(offsets: Sequence[int]) -> list[Sequence[int]]:
    return [offsets[first : first + MOVED_AT_ONCE] for first in range(0, len(offsets), MOVED_AT_ONCE)]


def _chosen(visit: Visit) -> list[int]:
    """The letters that were ticked. Raises Trouble."""
    found = [as_number("offset", each) for each in visit.form.get("offset", [])]
    if not found:
        raise Trouble(400, "No letter was chosen", "Tick some.")
    return found


async def edit(visit: Visit) -> Response:
    """Send a letter back with other headers and another payload; it ends."""
    dlq, offset = check_dlq(visit.path("queue")), as_number("offset", visit.field("offset"))
    identity = await visit.upstream.edit_letter(
        dlq, offset, visit.field("payload").encode(), _headers(visit.field("headers"))
    )
    source = dlq.removesuffix(DLQ_SUFFIX)
    return visit.done(
        f"Sent back to {source} as {identity}; the letter at offset {offset:,} is no more.", tone="done"
    )


def _headers_text(message: StoredMessage) -> str:
    """The headers that may be edited, as JSON: so that a text field holds every character."""
    own = {name: value for name, value in message.headers.items() if not name.startswith(OWN_HEADERS)}
    return json.dumps(own, indent=2, sort_keys=True, ensure_ascii=False)


def _headers(text: str) -> dict[str, str]:
    """What was made of them. Raises Trouble."""
    try:
        headers = json.loads(text or "{}")
    except (ValueError, RecursionError):
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise Trouble(
            400, "The headers cannot be read", 'Write them like {"tenant": "acme"}, each value a text.'
        )
    return headers
