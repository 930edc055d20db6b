"""Who may do what: names with their rights and keys. For admins, who here make, exchange and revoke keys, and give and
take rights."""

from __future__ import annotations

from typing import Any, NamedTuple

from starlette.responses import Response

from fila.principals import KeyInfo, Permission, Principal
from fila.shell_words import command_line
from fila_console.trouble import Trouble
from fila_console.visit import Undo, Visit, as_number
from fila_console.wording import brief, counted, moment

SHOWN_MAX = 200
RIGHTS = (
    ("produce", "enqueue"),
    ("consume", "receive and settle; of one channel as orders:billing"),
    ("manage", "create, change, purge and delete queues"),
    ("view", "see numbers, and no message"),
    ("cancel", "take messages back"),
    ("admin", "everything"),
)
DAYS_MAX = 36_500


class Row(NamedTuple):
    """One name, as the table has it."""

    name: str
    about: str
    """What it is bound to."""
    rights: list[tuple[str, str]]
    """Each as right and pattern."""
    keys: list[tuple[str, str]]
    """Each with its id, and what is known of it."""


async def page(visit: Visit) -> Response:
    """All names that begin so."""
    prefix = visit.query("prefix").strip()
    listed = await visit.upstream.principals(prefix)
    return visit.page(
        "access.html",
        here="access",
        rows=[_row(each) for each in listed[:SHOWN_MAX]],
        there_are=len(listed),
        prefix=prefix,
        rights=RIGHTS,
        locked=await visit.locked("admin"),
    )


def _row(told: Principal) -> Row:
    return Row(
        name=told.name,
        about=f"tenant {brief(told.tenant)}" if told.tenant else "",
        rights=[(each.right, _pattern(each)) for each in told.permissions],
        keys=[(each.key_id, _about_key(each)) for each in told.keys],
    )


def _pattern(permission: Permission) -> str:
    return f"{permission.queue}:{permission.channel}" if permission.channel else permission.queue


def _about_key(key: KeyInfo) -> str:
    since = f"since {moment(key.created_at)}" if key.created_at else ""
    until = f"until {moment(key.expires_at)}" if key.expires_at else "for ever"
    first = "the first one, made at the start" if key.bootstrap else ""
    return ", ".join(each for each in (first, since, until) if each)


def _name(visit: Visit) -> str:
    if name := visit.field("name").strip():
        return name
    raise Trouble(400, "Whose it is is not clear", "Give the name of a program or a person.")


async def create(visit: Visit) -> Response:
    """Make a key, which is shown once."""
    name, days = _name(visit), as_number("days", visit.field("days") or "0", DAYS_MAX)
    tenant = visit.field("tenant")
    key = await visit.upstream.create_key(name, days * 86_400_000, tenant)
    options = ["--expires", f"{days}d"] if days else []
    options += ["--as-tenant", tenant] if tenant else []
    line = command_line("fila auth key create", name, options=options)
    return _shown_once(visit, f"The key of {brief(name)}", key, line)


async def rotate(visit: Visit) -> Response:
    """Make another key for the same name; the old one ends after some hours."""
    key_id, hours = visit.field("key_id"), as_number("hours", visit.field("hours") or "0", 24 * DAYS_MAX)
    key = await visit.upstream.rotate_key(key_id, hours * 3_600_000)
    line = command_line("fila auth key rotate", key_id, options=["--overlap", f"{hours}h"])
    ends = f"the old one ends in {counted(hours, 'hour')}" if hours else "the old one has ended"
    return _shown_once(visit, f"The key in place of {key_id}: {ends}", key, line)


def _shown_once(visit: Visit, text: str, key: str, line: str) -> Response:
    answer = visit.page("new_key.html", text=text, key=key, line=line)
    answer.headers["Cache-Control"] = "no-store"
    return answer


async def revoke(visit: Visit) -> Response:
    """Take a key away."""
    if visit.field("sure") != "yes":
        raise Trouble(400, "Nothing was revoked", "Tick the box beside the button.")
    key_id = visit.field("key_id")
    await visit.upstream.revoke_key(key_id)
    text = f"{key_id} is revoked: what it holds open ends within a second."
    return visit.changed(text, line=command_line("fila auth key revoke", key_id))


async def grant(visit: Visit) -> Response:
    """Give a right, or take one back; the other is the way back."""
    name, right, pattern = _name(visit), visit.field("right"), visit.field("pattern").strip()
    if right not in dict(RIGHTS):
        raise Trouble(400, "Which right is not clear", "Choose one of the list.")
    if right != "admin" and not pattern:
        raise Trouble(400, "Of which queues is not clear", "Give a name or a pattern, such as orders.*")
    takes = visit.field("act") == "take"
    given: dict[str, Any] = {"admin": True} if right == "admin" else {right: [pattern]}
    await (visit.upstream.revoke_grant if takes else visit.upstream.grant)(name, given)
    options = [f"--{right}", *([pattern] if right != "admin" else [])]
    what = "everything" if right == "admin" else f"{right} {brief(pattern)}"
    fields = [("name", name), ("right", right), ("pattern", pattern), ("act", "give" if takes else "take")]
    return visit.changed(
        f"{brief(name)} may {'no more ' if takes else ''}{what}.",
        line=command_line(f"fila auth {'revoke-grant' if takes else 'grant'}", name, options=options),
        undo=Undo(visit.url("access", "grant"), "give it back" if takes else "take it back", fields),
    )
