"""What happened and happens: one dense list, newest first, live until somebody scrolls in it."""

from __future__ import annotations

from collections import deque

from starlette.responses import Response

from fila.observations import Event
from fila_console.addresses import key_path, queue_path
from fila_console.cells import Cell, Row, State, cell, row
from fila_console.upstream import Upstream
from fila_console.visit import Visit
from fila_console.watches import Asked, Watch
from fila_console.wording import brief, count, moment, named

KEPT = 300
READ_AT_ONCE = 2_000
KINDS = (
    "queue",
    "channel",
    "key",
    "config",
    "consumer",
    "dead_letters",
    "operation",
    "hook",
    "access",
    "sink",
    "disk",
    "store",
    "checkpoint",
    "server",
)
COLUMNS = ("When", "What", "Queue", "Key", ">Count", "Who, from where", "More")
_LOST = (
    "dead_letters.made",
    "queue.dead_letters_dropped",
    "sink.messages_lost",
    "store.damage_found",
    "store.range_lost",
    "disk.low",
    "disk.critical",
    "hook.circuit_opened",
    "hook.failed",
    "events.missed",
)


class EventsTopic(Asked):
    """The newest events under one filter, asked for once a second for all who look."""

    def __init__(self, queue: str, kind: str, key: str) -> None:
        self._queue = queue
        self._kinds = [kind] if kind else []
        self._key = key
        self._after = 0
        self._events: deque[Event] = deque(maxlen=KEPT)

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""
        read = 0
        async for event in upstream.events(self._queue, self._kinds, self._key, self._after, follow=False):
            self._after = max(self._after, event.position)
            self._events.append(event)
            read += 1
            if read >= READ_AT_ONCE:
                break  # the rest comes with the next question
        state = State()
        name = upstream.broker.name
        state.tables["events"] = [_row(name, event) for event in reversed(self._events)]
        return state


def _row(broker: str, event: Event) -> Row:
    return row(
        str(event.position) + event.kind,
        [
            moment(event.at, milliseconds=True),
            cell(brief(event.kind, 60), tone=_tone(event)),
            cell(brief(event.queue), href=queue_path(broker, event.queue)) if event.queue else "",
            _key(broker, event),
            count(event.count) if event.count else "",
            brief(" ".join(each for each in (event.principal, event.peer) if each)),
            brief(", ".join(f"{name}={value}" for name, value in sorted(event.details.items()))),
        ],
    )


def _key(broker: str, event: Event) -> Cell | str:
    if not event.fairness_key:
        return ""
    if not event.queue:
        return brief(event.fairness_key)
    return cell(
        named(event.fairness_key), href=key_path(broker, event.queue, event.fairness_key, event.channel)
    )


def _tone(event: Event) -> str:
    if event.kind.startswith(_LOST):
        return "lost"
    return "paused" if event.details.get("paused", "").lower() == "true" else ""


def watch(visit: Visit) -> Watch:
    """The events under this filter."""
    queue, kind, key = visit.query("queue"), visit.query("kind"), visit.query("key")
    return visit.watch(("events", queue, kind, key), lambda: EventsTopic(queue, kind, key))


async def page(visit: Visit) -> Response:
    """The list."""
    watched = watch(visit)
    state = await watched.current()
    queue, kind, key = visit.query("queue"), visit.query("kind"), visit.query("key")
    return visit.page(
        "events.html",
        here="events",
        state=state,
        live=visit.url("live", "events", queue=queue, kind=kind, key=key),
        columns=COLUMNS,
        kinds=KINDS,
        asked_queue=queue,
        asked_kind=kind,
        asked_key=key,
    )
