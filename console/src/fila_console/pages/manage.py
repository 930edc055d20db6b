"""A queue made, filled by hand, emptied and deleted; its channels. Each lever says what it will do, and its line for a
shell."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Literal

from starlette.responses import Response

from fila.answers import ChannelInfo
from fila.shell_words import command_line
from fila_console.moments import moment_of, text_of
from fila_console.trouble import Trouble, unless_refused
from fila_console.visit import Undo, Visit, as_decimal, as_number, headers_of
from fila_console.wording import brief, count, counted, named

PAYLOAD_CHARACTERS_MAX = 100_000
DELAY_S_MAX = 366 * 24 * 3600.0
STARTS = (("head", "new messages only"), ("oldest", "the oldest retained message"))


async def page(visit: Visit) -> Response:
    """The levers of one queue."""
    queue = visit.path("queue")
    stats, channels, locked, no_sending = await asyncio.gather(
        visit.upstream.stats(queue),
        unless_refused(visit.upstream.channel_infos(queue), []),
        visit.locked("manage", queue),
        visit.locked("produce", queue),
    )
    return visit.page(
        "manage.html",
        here="manage",
        queue=queue,
        stats=stats,
        channels=[(each, _channel_lines(queue, each)) for each in channels],
        starts=STARTS,
        locked=locked,
        no_sending=no_sending,
        purge_line=command_line("fila queue purge", queue),
        delete_line=command_line("fila queue delete", queue),
        payload_max=PAYLOAD_CHARACTERS_MAX,
    )


def _channel_lines(queue: str, channel: ChannelInfo) -> tuple[str, str, str]:
    """What deletes it, what purges it, and what pauses or resumes it, from a shell."""
    return (
        command_line("fila channel delete", queue, channel.name),
        command_line("fila queue purge", queue, options=["--channel", channel.name]),
        command_line(f"fila channel {'resume' if channel.pause else 'pause'}", queue, channel.name),
    )


def _sure(visit: Visit, what: str) -> None:
    if visit.field("sure") != "yes":
        raise Trouble(400, f"Nothing was {what}", "Tick the box beside the button.")


async def create(visit: Visit) -> Response:
    """Make a queue; its settings are on its page of policy then."""
    name, header = visit.field("name").strip(), visit.field("fairness_header").strip()
    if not name:
        raise Trouble(400, "The queue has no name", "Give it one.")
    await visit.upstream.create_queue(name, fairness_key_header=header)
    answer = visit.done(f"{brief(name)} is made.", tone="done")
    answer.headers["HX-Redirect"] = visit.url("queues", name, "policy")
    return answer


def _due_of(visit: Visit) -> datetime | None:
    text = visit.field("at").strip()
    if not text:
        return None
    if visit.field("delay").strip():
        raise Trouble(400, "It is due at two moments", "Say how long it waits, or when it is due.")
    return moment_of(text)


async def publish(visit: Visit) -> Response:
    """Put one message into the queue by hand, or in the place of an earlier one with its dedup key."""
    queue, payload = visit.path("queue"), visit.field("payload")
    if len(payload) > PAYLOAD_CHARACTERS_MAX:
        most = counted(PAYLOAD_CHARACTERS_MAX, "character")
        raise Trouble(400, "That payload is too long", f"A page takes {most}; fila enqueue takes more.")
    headers = headers_of(visit.field("headers"))
    delay = visit.field("delay").strip()
    delay_ms = round(as_decimal("delay", delay, DELAY_S_MAX) * 1000) if delay else None
    at = _due_of(visit)
    dedup_key = visit.field("dedup").strip() or None
    replaces = visit.field("replace") == "yes"
    if replaces and dedup_key is None:
        raise Trouble(
            400, "Nobody knows what it replaces", "Give the dedup key of the message that gives way."
        )
    sent = await visit.upstream.enqueue(
        *(queue, payload.encode(), headers), delay_ms=delay_ms, at=at, dedup_key=dedup_key, replaces=replaces
    )
    options = [word for header, value in headers.items() for word in ("--header", f"{header}={value}")]
    options += ["--delay", f"{delay_ms}ms"] if delay_ms is not None else []
    options += ["--at", text_of(at)] if at is not None else []
    options += ["--dedup-key", dedup_key] if dedup_key is not None else []
    options += ["--replace"] if replaces else []
    # The command takes such a payload for a file, or for what it reads.
    is_read = payload == "-" or payload.startswith("@")
    return visit.page(
        "published.html",
        queue=queue,
        message_id=str(sent),
        line="" if is_read else command_line("fila enqueue", queue, payload, options=options),
    )


async def purge(visit: Visit) -> Response:
    """Drop what waits: all, of one key, or of one channel."""
    _sure(visit, "purged")
    queue, channel, key = visit.path("queue"), visit.field("channel"), visit.field("key")
    purged = await visit.upstream.purge(queue, channel, key)
    options = ["--channel", channel] if channel else []
    options += ["--key", key] if key else []
    line = command_line("fila queue purge", queue, options=options)
    of = f" of {named(key)}" if key else ""
    where = f"{queue} / {channel}" if channel else queue
    return visit.changed(f"{counted(purged, 'message')}{of} dropped from {where}.", line=line)


async def delete(visit: Visit) -> Response:
    """Delete the queue with all that is in it; its name is typed, so that it is this one."""
    queue = visit.path("queue")
    if visit.field("name").strip() != queue:
        raise Trouble(400, "Nothing was deleted", f"Type the queue's name, {queue}, beside the button.")
    await visit.upstream.delete_queue(queue)
    answer = visit.done(f"{queue} is deleted.", tone="done")
    answer.headers["HX-Redirect"] = visit.url("")
    return answer


async def create_channel(visit: Visit) -> Response:
    """Add a channel."""
    queue, channel = visit.path("queue"), visit.field("channel").strip()
    if not channel:
        raise Trouble(400, "The channel has no name", "Give it one.")
    start: Literal["head", "oldest"] = "oldest" if visit.field("start") == "oldest" else "head"
    idle = as_number("seconds", visit.field("idle") or "0")
    first = await visit.upstream.create_channel(queue, channel, start, idle * 1000)
    options = ["--from", "oldest"] if start == "oldest" else []
    options += ["--expires-after-idle", f"{idle}s"] if idle else []
    return visit.changed(
        f"{brief(channel)} is made; the first message that it sees is at offset {count(first)}.",
        line=command_line("fila channel create", queue, channel, options=options),
    )


async def delete_channel(visit: Visit) -> Response:
    """Delete a channel, its leases and what it had pending."""
    _sure(visit, "deleted")
    queue, channel = visit.path("queue"), visit.field("channel")
    await visit.upstream.delete_channel(queue, channel)
    return visit.changed(
        f"{brief(channel)} is deleted.", line=command_line("fila channel delete", queue, channel)
    )


async def pause_channel(visit: Visit) -> Response:
    """Deliver nothing in a channel, or go on."""
    queue, channel, is_paused = visit.path("queue"), visit.field("channel"), visit.field("paused") == "yes"
    comment = visit.field("comment").strip() if is_paused else ""
    await visit.upstream.pause_channel(queue, channel, comment, paused=is_paused)
    why = ["--reason", comment] if comment else []
    name = brief(channel)
    text = (
        f"{name} is paused: nothing of it is delivered until it is resumed."
        if is_paused
        else f"{name} goes on."
    )
    label, other = ("resume it", "no") if is_paused else ("pause it", "yes")
    return visit.changed(
        text,
        line=command_line(f"fila channel {'pause' if is_paused else 'resume'}", queue, channel, options=why),
        undo=Undo(
            visit.url("queues", queue, "channels", "pause"), label, [("channel", channel), ("paused", other)]
        ),
        tone="paused" if is_paused else "done",
    )
