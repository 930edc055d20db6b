"""What `/` finds: queues by a part of their name, late keys by a part of theirs."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from fila.answers import FoundKeys
from fila_console.trouble import unless_refused
from fila_console.visit import Visit

FOUND_MAX = 12
ASKED_CHARACTERS_MAX = 1_024
GONE_TOO = (403, 404)
"""Statuses that leave a part of the answer out: the key may not be told, or the queue is gone."""


async def page(visit: Visit) -> Response:
    """The list below the field."""
    asked = visit.query("q").strip()[:ASKED_CHARACTERS_MAX]
    word = asked.lower()
    queue = visit.query("queue")
    queues, late, found = await asyncio.gather(
        visit.upstream.queues(),
        unless_refused(visit.upstream.late(max_keys=1_000), None, GONE_TOO),
        _keys(visit, queue, asked),
    )
    names = [info.name for info in queues if word in info.name.lower()][:FOUND_MAX]
    late_keys = late.keys if late is not None else []
    keys = [each for each in late_keys if word in each.fairness_key.lower()][: FOUND_MAX if word else 0]
    first = [each.name for each in queues if not each.name.endswith(".dlq")][:FOUND_MAX]
    return visit.page(
        "found.html",
        asked=asked,
        names=names,
        keys=keys,
        in_queue=queue,
        found=found,
        elsewhere=first if word else [],
    )


async def _keys(visit: Visit, queue: str, prefix: str) -> FoundKeys | None:
    """The keys of the queue whose page this is that begin so."""
    return (
        await unless_refused(visit.upstream.find_keys(queue, prefix, FOUND_MAX), None, GONE_TOO)
        if queue and prefix
        else None
    )
