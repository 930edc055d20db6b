"""What `/` finds: queues by a part of their name, limits and keys by how they begin. Keys are those of this queue,
or of the queues that have most."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from starlette.responses import Response

from fila.answers import FoundKeys, KeyState
from fila.limits import LimitPage
from fila_console.trouble import Trouble, unless_refused
from fila_console.upstream import NamedQueues
from fila_console.visit import Visit

FOUND_MAX = 12
ASKED_CHARACTERS_MAX = 1_024
QUEUES_ASKED = 16
"""Queues that are asked for their keys: those in which most waits, where no queue's page is open."""
KEYS_S_MAX = 0.4
"""How long is waited for keys; what came until then is shown, and of how many queues it is."""
GONE_TOO = (400, 403, 404)
"""Statuses that leave a part of the answer out: nothing can begin so, the key may not be told, the queue is gone."""
NO_LIMITS = LimitPage(limits=[])


class Keys(NamedTuple):
    """Keys that begin so, and where they were looked for."""

    found: list[tuple[str, KeyState]]
    """Queue and key."""
    matched: int
    answered: int
    """Queues that told theirs."""
    queues: int
    """Queues that there are; where these are few, those that have keys."""


async def page(visit: Visit) -> Response:
    """The list below the field."""
    asked = visit.query("q").strip()[:ASKED_CHARACTERS_MAX]
    queue = visit.query("queue")
    begin, inside, keys, limits = await asyncio.gather(
        _queues(visit, prefix=asked),
        _queues(visit, containing=asked),
        _keys(visit, queue, asked),
        _limits(visit, asked),
    )
    return visit.page(
        "found.html",
        asked=asked,
        names=[*dict.fromkeys([*begin.names, *inside.names])][:FOUND_MAX],
        matched=inside.matched,
        keys=keys,
        limits=[each.limit.name for each in limits.limits][:FOUND_MAX],
        more_limits=limits.more or len(limits.limits) > FOUND_MAX,
        in_queue=queue,
    )


async def _queues(visit: Visit, *, prefix: str = "", containing: str = "") -> NamedQueues:
    """None where no name can be so."""
    named = visit.upstream.named_queues(prefix=prefix, containing=containing, most=FOUND_MAX)
    return await unless_refused(named, NamedQueues([], 0), GONE_TOO)


async def _limits(visit: Visit, prefix: str) -> LimitPage:
    """Admins' alone."""
    return await unless_refused(visit.upstream.limits(prefix), NO_LIMITS, GONE_TOO) if prefix else NO_LIMITS


async def _keys(visit: Visit, queue: str, prefix: str) -> Keys | None:
    """The keys that begin so, most pending first: of one queue all, of many those that came in time."""
    if not prefix:
        return None
    if queue:
        told = await unless_refused(visit.upstream.find_keys(queue, prefix, FOUND_MAX), None, GONE_TOO)
        return None if told is None else Keys([(queue, each) for each in told.keys], told.matched, 1, 1)
    # One that is bound to a tenant is told of no queue that it does not name.
    crowded, queues = await unless_refused(visit.upstream.crowded_queues(QUEUES_ASKED), ([], 0), GONE_TOO)
    tasks = {asyncio.create_task(visit.upstream.find_keys(name, prefix, FOUND_MAX)): name for name in crowded}
    if not tasks:
        return None
    done, late = await asyncio.wait(tasks, timeout=KEYS_S_MAX)
    for task in late:
        task.cancel()
    answered: dict[str, FoundKeys] = {}
    for task in done:
        failure = task.exception()
        if failure is None:
            answered[tasks[task]] = task.result()
        elif not isinstance(failure, Trouble) or failure.status not in GONE_TOO:
            raise failure
    found = [(name, each) for name, told in answered.items() for each in told.keys]
    found.sort(key=lambda each: (-(each[1].ready + each[1].delayed), each[0], each[1].fairness_key))
    matched = sum(told.matched for told in answered.values())
    # Where there are no more than were told of, those that have no keys are none that was left out.
    return Keys(found[:FOUND_MAX], matched, len(answered), queues if queues > QUEUES_ASKED else len(crowded))
