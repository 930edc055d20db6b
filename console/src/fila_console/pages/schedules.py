"""Schedules: which there are, when each fires next, a form that makes one; each change with its line for a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from starlette.responses import Response

from fila.schedules import Schedule, ScheduleOptions, ScheduleSettings
from fila.shell_words import command_line, shell_word
from fila_console.trouble import Trouble
from fila_console.visit import Visit, as_decimal, headers_of
from fila_console.wording import brief, count, counted, moment, pause_said

PAYLOAD_CHARACTERS_MAX = 4_000
"""The line for a shell is asked for with all of the form in its address."""
EVERY_S_MAX = 366 * 24 * 3600.0
TTL_S_MAX = 1e9
MISSED = (
    ("one", "one message for all of them"),
    ("all", "a message for each, at most 100"),
    ("skip", "none"),
)
_DONE = {"made": "is made", "paused": "is paused", "resumed": "goes on", "deleted": "is deleted"}


class Row(NamedTuple):
    """One schedule, as the table has it."""

    queue: str
    name: str
    when: str
    next_at: list[str]
    last: str
    fired: str
    missed: str
    error: str
    is_paused: bool
    paused: str
    """Since when, by whom and why."""
    deletion: str
    """The line that deletes it from a shell."""


async def page(visit: Visit) -> Response:
    """All that the key may manage, or those of one queue."""
    queue, token = visit.query("queue"), visit.query("after")
    listed = await visit.upstream.schedules(queue, token)
    done = _DONE.get(visit.query("done"), "")
    return visit.page(
        "schedules.html",
        here="schedules",
        locked=await visit.locked("manage", queue),
        queue=queue,
        rows=[_row(each) for each in listed.schedules],
        more=listed.next_page_token,
        done=f"{brief(visit.query('name'))} {done}." if done else "",
        missed=MISSED,
        payload_max=PAYLOAD_CHARACTERS_MAX,
    )


def _row(told: Schedule) -> Row:
    return Row(
        queue=told.queue,
        name=told.schedule,
        when=_when(told.settings),
        next_at=[moment(each) for each in told.next_at],
        last=moment(told.last_at),
        fired=count(told.fired),
        missed=count(told.missed),
        error=brief(told.error),
        is_paused=told.settings.paused,
        paused=pause_said(told.pause),
        deletion=_line("delete", told.schedule, told.queue),
    )


def _when(settings: ScheduleSettings) -> str:
    if settings.cron:
        return f"{settings.cron} in {settings.time_zone or 'UTC'}"
    return f"every {_seconds(settings.every_ms)} s"


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.3f}".rstrip("0").rstrip(".")


def _line(act: str, name: str, queue: str, *more: str) -> str:
    """What does the same from a shell."""
    return command_line(f"fila schedule {act}", name, options=["--queue", queue, *more])


def _asked(field: Callable[[str], str]) -> ScheduleOptions:
    """What the form asks for. Raises Trouble."""
    cron, every = field("cron").strip(), field("every").strip()
    if bool(cron) == bool(every):
        raise Trouble(400, "When is not clear", "Give a cron line, or how often in seconds, and not both.")
    asked = ScheduleOptions(payload=field("payload").encode())
    if cron:
        asked["cron"] = cron
    else:
        asked["every_ms"] = _milliseconds("every", every, EVERY_S_MAX)
    if zone := field("zone").strip():
        asked["time_zone"] = zone
    if ttl := field("ttl").strip():
        asked["ttl_ms"] = _milliseconds("time to live", ttl, TTL_S_MAX)
    asked["headers"] = headers_of(field("headers"))
    asked["missed"] = next((rule for rule in ("one", "all", "skip") if rule == field("missed")), "one")
    return asked


def _milliseconds(name: str, text: str, most: float) -> int:
    return round(as_decimal(name, text, most) * 1000)


async def preview(visit: Visit) -> Response:
    """The line for a shell, while the form is filled in."""
    queue, name = visit.query("to").strip(), visit.query("name").strip()
    if not (queue and name and (visit.query("cron").strip() or visit.query("every").strip())):
        return visit.done(
            "The line that does the same from a shell stands here once queue, name and when are given."
        )
    asked = _asked(visit.query)
    more = ["--cron", asked["cron"]] if "cron" in asked else ["--every", f"{asked['every_ms']}ms"]
    if "time_zone" in asked:
        more += ["--tz", asked["time_zone"]]
    payload = asked["payload"].decode()
    is_mistaken = payload == "-" or payload.startswith("@")  # for a file
    if payload:
        more += ["--payload", "-" if is_mistaken else payload]
    for header, value in asked["headers"].items():
        more += ["--header", f"{header}={value}"]
    if "ttl_ms" in asked:
        more += ["--ttl", f"{asked['ttl_ms']}ms"]
    if asked["missed"] != "one":
        more += ["--missed", asked["missed"]]
    piped = f"printf %s {shell_word(payload)} | " if is_mistaken else ""
    return visit.done(piped + _line("create", name, queue, *more))


async def create(visit: Visit) -> Response:
    """Make one."""
    queue, name = visit.field("to").strip(), visit.field("name").strip()
    if not queue:
        raise Trouble(400, "Which queue is not clear", "Give the queue that its messages go to.")
    if len(visit.field("payload")) > PAYLOAD_CHARACTERS_MAX:
        most = counted(PAYLOAD_CHARACTERS_MAX, "character")
        raise Trouble(
            400, "That payload is too long", f"A page takes {most}; fila schedule create takes more."
        )
    await visit.upstream.create_schedule(queue, name, _asked(visit.field))
    return _again(visit, "made", name)


async def pause(visit: Visit) -> Response:
    """Let one rest, or go on."""
    rests = visit.field("paused") == "yes"
    comment = visit.field("comment").strip() if rests else ""
    await visit.upstream.pause_schedule(visit.query("of"), visit.query("name"), comment, paused=rests)
    return _again(visit, "paused" if rests else "resumed", visit.query("name"))


async def delete(visit: Visit) -> Response:
    """Delete one; what it has enqueued stays."""
    if visit.field("sure") != "yes":
        raise Trouble(400, "Nothing was deleted", "Tick the box beside the button.")
    await visit.upstream.delete_schedule(visit.query("of"), visit.query("name"))
    return _again(visit, "deleted", visit.query("name"))


def _again(visit: Visit, done: str, name: str) -> Response:
    """The table shows what was before: the whole page comes anew, and says what was done."""
    answer = visit.done(f"{brief(name)} {_DONE[done]}.", tone="done")
    answer.headers["HX-Redirect"] = visit.url("schedules", queue=visit.query("queue"), done=done, name=name)
    return answer
