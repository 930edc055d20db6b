"""A queue's log: what is retained, where each channel stands in it, the messages; and moving a channel, with its effect
told before."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from fila import StoredMessage
from fila.answers import SeekPreview
from fila_console.payloads import as_text
from fila_console.trouble import Trouble
from fila_console.visit import Visit, as_number
from fila_console.wording import brief, count, counted, moment, named, size

SHOWN = 50
PREVIEW_CHARACTERS = 120


def _when(text: str) -> datetime | None:
    """A moment as `<input type=datetime-local>` sends it, meant as UTC; None when there is none. Raises Trouble."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text[:32]).replace(tzinfo=UTC)
    except ValueError:
        raise Trouble(400, "That is no time", "Write it like 2026-03-02T14:05, in UTC.") from None


async def page(visit: Visit) -> Response:
    """The log."""
    queue, key = visit.path("queue"), visit.query("key")
    stats = await visit.upstream.stats(queue)
    since = _when(visit.query("time"))
    asked = visit.number("from")
    retained = await visit.upstream.read_log(queue, 1)
    oldest = retained[0].offset if retained else stats.head_offset
    newest = await visit.upstream.newest_offset(queue, oldest, stats.head_offset) if retained else 0
    first = asked if asked or since is not None else max(0, newest + 1 - SHOWN)
    messages = await visit.upstream.read_log(queue, SHOWN, first, since, key)
    return visit.page(
        "log.html",
        locked=await visit.locked("manage", queue),
        here="log",
        queue=queue,
        stats=stats,
        oldest=oldest,
        newest=newest,
        oldest_at=retained[0].appended_at if retained else None,
        channels=[(each, _place(each.tail_offset, oldest, stats.head_offset)) for each in stats.channels],
        window=_window(messages, oldest, stats.head_offset),
        messages=[(each, _first_line(each)) for each in messages],
        newer=messages[-1].offset + 1 if len(messages) == SHOWN else 0,
        older=max(1, (messages[0].offset if messages else newest + 1) - SHOWN) if not key else 0,
        key=key,
        asked_from=visit.query("from"),
        asked_time=visit.query("time"),
        moment=moment,
        named=named,
        brief=brief,
        count=count,
        counted=counted,
        size=size,
    )


def _place(offset: int, oldest: int, head: int) -> float:
    """Where an offset stands between the oldest retained and the head, in parts of a hundred."""
    span = max(1, head - oldest)
    return round(min(100.0, max(0.0, (offset - oldest) / span * 100)), 2)


def _window(messages: list[StoredMessage], oldest: int, head: int) -> tuple[float, float]:
    if not messages:
        return 0.0, 0.0
    first, last = _place(messages[0].offset, oldest, head), _place(messages[-1].offset + 1, oldest, head)
    return first, max(0.4, last - first)


def _first_line(message: StoredMessage) -> str:
    text = as_text(message.payload[: 4 * PREVIEW_CHARACTERS]).partition("\n")[0]
    return text[:PREVIEW_CHARACTERS]


def _target(offset: str, time: str) -> int | datetime:
    moment_given = _when(time)
    if moment_given is not None and offset:
        raise Trouble(400, "Two targets were given", "Give an offset or a time, not both.")
    if moment_given is None and not offset:
        raise Trouble(400, "No target was given", "Give an offset or a time.")
    return moment_given if moment_given is not None else as_number("offset", offset)


async def preview(visit: Visit) -> Response:
    """What a seek would do, before anybody presses the button."""
    queue, channel = visit.path("queue"), visit.query("channel") or "default"
    if not visit.query("offset") and not visit.query("time"):
        return visit.page("said.html", text="What a seek would do is told here before you press.", tone="")
    target = _target(visit.query("offset"), visit.query("time"))
    told = await visit.upstream.preview_seek(queue, channel, target)
    return visit.page(
        "said.html", text=_effect(channel, told), tone="late" if told.skipped or told.replayed else ""
    )


def _effect(channel: str, told: SeekPreview) -> str:
    parts = [f"{channel} would be at offset {told.offset:,}."]
    if told.replayed:
        parts.append(f"{counted(told.replayed, 'message')} it is done with would be delivered again.")
    if told.skipped:
        parts.append(f"{counted(told.skipped, 'message')} it is not done with would be skipped.")
    if told.leases_revoked:
        parts.append(f"{counted(told.leases_revoked, 'message')} in consumers' hands would be taken back.")
    return " ".join(parts)


async def seek(visit: Visit) -> Response:
    """Move a channel."""
    if visit.field("sure") != "yes":
        raise Trouble(
            400,
            "Nothing was moved",
            "Tick the box beside the button: leases end, and messages come again or not.",
        )
    target = _target(visit.field("offset"), visit.field("time"))
    at = await visit.upstream.seek(visit.path("queue"), visit.field("channel"), target)
    return visit.done(
        f"Done at {visit.upstream.clock.now()}: {visit.field('channel') or 'default'} is at offset {at:,}.",
        tone="done",
    )
