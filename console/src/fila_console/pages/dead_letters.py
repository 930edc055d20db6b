"""The desk for dead letters: groups by what they died of, the letters of one, one letter; move back, drop, save."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.responses import Response, StreamingResponse

from fila import StoredMessage
from fila_console.cells import State, cell
from fila_console.payloads import as_hex, as_json, as_text, cell_of_csv
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream
from fila_console.visit import Visit, as_number
from fila_console.watches import Asked, Watch
from fila_console.wording import UNKNOWN, age, brief, clock, count, counted, moment, named, size

PEEKED_AT_ONCE = 500
LOOKED_AT_MAX = 5_000
"""Letters a page looks through to group them."""
LOOK_S_MAX = 3.0
SHOWN_MAX = 200
MOVED_AT_ONCE = 500
CHANGED_MAX = 10_000
"""Letters one press of a button moves or drops; it says how many are left."""

_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


@dataclass(frozen=True, slots=True)
class Group:
    """Letters that died of the same."""

    reason: str
    error: str
    """The last error with its numbers left out."""
    key: str

    def takes(self, letter: Letter) -> bool:
        """Whether it is one of these; what is empty does not count."""
        return (
            (not self.reason or self.reason == letter.reason)
            and (not self.error or self.error == letter.kind)
            and (not self.key or self.key == letter.message.fairness_key)
        )


@dataclass(frozen=True, slots=True)
class Letter:
    """One of them."""

    message: StoredMessage
    reason: str
    error: str
    kind: str
    attempts: int
    died_at: datetime | None
    source: str


def _letter(message: StoredMessage) -> Letter:
    dead = message.dead_letter
    if dead is None:
        return Letter(message, "put here by hand", "", "", 0, None, "")
    kind = _NUMBERS.sub("#", dead.last_error.partition("\n")[0])[:200]
    source = dead.source_queue + (
        "" if dead.source_channel in ("", "default") else f" / {dead.source_channel}"
    )
    return Letter(message, dead.reason, dead.last_error, kind, dead.attempts, dead.at, source)


async def _letters(upstream: Upstream, dlq: str, looked_at_max: int) -> AsyncIterator[Letter]:
    """Page through the queue, oldest first."""
    after, looked_at, began_s = 0, 0, time.monotonic()
    while looked_at < looked_at_max and time.monotonic() - began_s < LOOK_S_MAX:
        messages = await upstream.peek(dlq, after, min(PEEKED_AT_ONCE, looked_at_max - looked_at))
        if not messages:
            return
        for message in messages:
            yield _letter(message)
        looked_at += len(messages)
        after = messages[-1].offset


class Depth(Asked):
    """How many there are, for the page's head."""

    def __init__(self, dlq: str) -> None:
        self._dlq = dlq

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""
        stats = await upstream.stats(self._dlq)
        state = State()
        state.texts = {
            "depth": cell(counted(stats.depth, "dead letter"), tone="lost" if stats.depth else ""),
            "in-hand": cell(
                f"{counted(stats.in_flight, 'message')} in consumers' hands" if stats.in_flight else ""
            ),
            "at": cell(f"as of {clock(datetime.now(UTC))}"),
        }
        return state


def watch(visit: Visit) -> Watch:
    """The head of this dead-letter queue's page."""
    dlq = visit.query("queue") or str(visit.request.path_params.get("queue", ""))
    return visit.watch(("dead-letters", dlq), lambda: Depth(dlq))


def _wanted(visit: Visit) -> Group:
    return Group(visit.query("reason"), visit.query("error"), visit.query("key"))


async def page(visit: Visit) -> Response:
    """The desk."""
    dlq, wanted = visit.path("queue"), _wanted(visit)
    watched = watch(visit)
    state = await watched.current()
    groups: Counter[Group] = Counter()
    shown: list[Letter] = []
    looked_at = matching = 0
    async for letter in _letters(visit.upstream, dlq, LOOKED_AT_MAX):
        looked_at += 1
        groups[Group(letter.reason, letter.kind, letter.message.fairness_key)] += 1
        if wanted.takes(letter):
            matching += 1
            if len(shown) < SHOWN_MAX:
                shown.append(letter)
    return visit.page(
        "dead_letters.html",
        here="dead-letters",
        queue=dlq,
        source=dlq.removesuffix(".dlq"),
        state=state,
        live=visit.url("live", "dead-letters", queue=dlq),
        groups=groups.most_common(100),
        wanted=wanted,
        letters=shown,
        matching=matching,
        looked_at=looked_at,
        is_all=looked_at < LOOKED_AT_MAX,
        age_of=lambda at: age(max(0.0, (datetime.now(UTC) - at).total_seconds() * 1000)) if at else UNKNOWN,
        brief=brief,
        named=named,
        count=count,
        counted=counted,
        size=size,
        chosen=visit.query("offset"),
    )


async def _one(visit: Visit) -> StoredMessage:
    offset = visit.number("offset")
    if offset == 0:
        raise Trouble(400, "No letter was named", "Choose one from the list.")
    found = await visit.upstream.peek(visit.path("queue"), offset - 1, 1)
    if not found or found[0].offset != offset:
        raise Trouble(404, "That letter is gone", "It was moved back, dropped, or is in a consumer's hands.")
    return found[0]


async def letter(visit: Visit) -> Response:
    """One letter, for the right of the desk."""
    message = await _one(visit)
    return visit.page(
        "letter.html",
        queue=visit.path("queue"),
        message=message,
        letter=_letter(message),
        json=as_json(message.payload),
        text=as_text(message.payload),
        hex=as_hex(message.payload),
        size=size(len(message.payload)),
        moment=moment,
        named=named,
    )


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
    headers = {"content-disposition": f'attachment; filename="{visit.path("queue")}.{kind}"'}
    dlq, wanted = visit.path("queue"), _wanted(visit)

    async def lines() -> AsyncIterator[str]:
        if kind == "csv":
            yield "offset,id,key,reason,attempts,died_at,error\r\n"
        async for each in _letters(visit.upstream, dlq, CHANGED_MAX):
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
    dlq = visit.path("queue")
    offsets = await _chosen(visit)
    moved = 0
    for part in _parts(offsets):
        moved += await visit.upstream.redrive(dlq, part)
    stuck = len(offsets) - moved
    text = f"{counted(moved, 'letter')} moved back to {dlq.removesuffix('.dlq')}."
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
    dlq = visit.path("queue")
    offsets = await _chosen(visit)
    dropped = 0
    for part in _parts(offsets):
        dropped += await visit.upstream.drop(dlq, part)
    return visit.done(f"{counted(dropped, 'letter')} dropped for good.", tone="done")


def _parts(offsets: Sequence[int]) -> list[Sequence[int]]:
    return [offsets[first : first + MOVED_AT_ONCE] for first in range(0, len(offsets), MOVED_AT_ONCE)]


async def _chosen(visit: Visit) -> list[int]:
    """The letters that were ticked, or all of the group that was shown."""
    if visit.field("all") == "yes":
        wanted = Group(visit.field("reason"), visit.field("error"), visit.field("key"))
        found = [
            each.message.offset
            async for each in _letters(visit.upstream, visit.path("queue"), CHANGED_MAX)
            if wanted.takes(each)
        ]
    else:
        found = [as_number("offset", each) for each in visit.form.get("offset", [])]
    if not found:
        raise Trouble(400, "No letter was chosen", "Tick some, or choose all of a group.")
    return found
