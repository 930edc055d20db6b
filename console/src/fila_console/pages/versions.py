"""The versions of a queue's settings: who changed what, when and why; what one differs in; and the way back to it."""

from __future__ import annotations

from starlette.responses import Response

from fila_console.differences import differences, settings_back
from fila_console.stale import refuse_stale
from fila_console.trouble import Trouble
from fila_console.visit import Visit, as_number
from fila_console.wording import UNKNOWN, brief, moment


async def listed(visit: Visit) -> Response:
    """The list, below the editor."""
    queue = visit.path("queue")
    versions = await visit.upstream.versions(queue)
    rows = [
        (
            each.number,
            moment(each.at),
            brief(each.principal or each.peer) or UNKNOWN,
            brief(", ".join(each.changed)) or ("made" if each.number == 1 else UNKNOWN),
            brief(each.comment),
        )
        for each in versions
    ]
    return visit.page("versions.html", queue=queue, rows=rows)


async def one(visit: Visit) -> Response:
    """What would change if the queue went back to this version."""
    queue, number = visit.path("queue"), visit.number("number")
    details, old = await visit.upstream.queue(queue), await visit.upstream.version(queue, number)
    return visit.page(
        "version.html",
        queue=queue,
        number=number,
        now=details.version,
        differences=differences(details.config, old.config),
    )


async def back(visit: Visit) -> Response:
    """Put the settings back to those of a version, as a new one. Channels stay as they are."""
    queue = visit.path("queue")
    number, seen = as_number("number", visit.field("number")), as_number("version", visit.field("version"))
    details, old = await visit.upstream.queue(queue), await visit.upstream.version(queue, number)
    await refuse_stale(visit, details, seen)
    settings = settings_back(old.config, details.config)
    if not settings:
        raise Trouble(
            409, "Nothing was changed", f"The queue has the settings of version {number:,} already."
        )
    comment = visit.field("comment").strip() or f"back to version {number}"
    await visit.upstream.update_queue(queue, expected_version=seen, comment=comment, **settings)
    answer = visit.done(f"Done: version {seen + 1:,} has the settings of version {number:,}.", tone="done")
    # The editor shows the settings of before: the whole page comes anew.
    answer.headers["HX-Redirect"] = visit.url("queues", queue, "policy", set=seen + 1)
    return answer
