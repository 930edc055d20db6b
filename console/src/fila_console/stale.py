"""A change of settings that somebody else was quicker with: said in words, instead of written over."""

from __future__ import annotations

from fila.answers import QueueDetails, QueueVersion
from fila_console.trouble import Trouble, unless_refused
from fila_console.visit import Visit
from fila_console.wording import moment


async def refuse_stale(visit: Visit, details: QueueDetails, seen: int) -> None:
    """Say whose change came in between, where a page was made from an older version than there is. Raises Trouble."""
    if details.version == seen:
        return
    newest = await unless_refused(visit.upstream.versions(details.queue, 1), [])
    now = _told(newest[0]) if newest else f"It has version {details.version:,} now."
    raise Trouble(
        409,
        "Somebody else changed it meanwhile",
        f"{now} This page is of version {seen:,}.",
        "Your text is still here: open the page anew in another tab and compare.",
    )


def _told(version: QueueVersion) -> str:
    who = version.principal or version.peer
    what = f", changing {', '.join(version.changed)}" if version.changed else ""
    why = f" (“{version.comment}”)" if version.comment else ""
    by = f" by {who}" if who else ""
    return f"Version {version.number:,} was set{by} at {moment(version.at)}{what}{why}."
