"""What happened and happens: one dense list, newest first, live until somebody scrolls in it.

What happens by itself again and again is one row, so that a queue that makes a dead letter each second leaves room for
what somebody did.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.responses import Response

from fila.observations import Event
from fila_console.addresses import key_path, queue_path
from fila_console.cells import Cell, Row, State, cell, row
from fila_console.upstream import Upstream
from fila_console.visit import Visit
from fila_console.watches import Asked, Watch
from fila_console.wording import brief, clock, count, moment, named

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
    "cluster",
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


FOLDED_WITHIN = timedelta(hours=1)
"""From the first to the last of the events that are one row."""


@dataclass(slots=True)
class Fold:
    """Events that differ in nothing but their time and count."""

    newest: Event
    position: int
    """The first one's."""
    first_at: datetime | None
    times: int = 1
    count: int = 0


class Folds:
    """The newest of them, oldest first."""

    def __init__(self) -> None:
        self.folds: OrderedDict[tuple[object, ...], Fold] = OrderedDict()

    def add(self, event: Event) -> None:
        """Count an event that is newer than all before. What a person did stands alone."""
        same = (event.kind, event.queue, event.channel, event.fairness_key, *sorted(event.details.items()))
        name: tuple[object, ...] = (
            (event.position,) if event.principal or event.peer or event.kind == "events.missed" else same
        )
        fold = self.folds.get(name)
        if fold is not None and _is_within(fold.first_at, event.at):
            fold.newest, fold.times, fold.count = event, fold.times + 1, fold.count + event.count
            self.folds.move_to_end(name)
            return
        if fold is not None:
            # It stays where it is in time, under a name that no other takes.
            self.folds = OrderedDict(
                ((each.position, "over") if each is fold else key, each) for key, each in self.folds.items()
            )
        self.folds[name] = Fold(event, event.position, event.at, 1, event.count)
        while len(self.folds) > KEPT:
            self.folds.popitem(last=False)


def _is_within(first: datetime | None, at: datetime | None) -> bool:
    return first is not None and at is not None and at - first <= FOLDED_WITHIN


class EventsTopic(Asked):
    """The newest events under one filter, asked for once a second for all who look."""

    def __init__(self, queue: str, kind: str, key: str) -> None:
        self._queue = queue
        self._kinds = [kind] if kind else []
        self._key = key
        self._after = 0
        self._folds = Folds()

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""
        read = 0
        async for event in upstream.events(self._queue, self._kinds, self._key, self._after, follow=False):
            self._after = max(self._after, event.position)
            self._folds.add(event)
            read += 1
            if read >= READ_AT_ONCE:
                break  # the rest comes with the next question
        state = State()
        name = upstream.broker.name
        state.tables["events"] = [_row(name, fold) for fold in reversed(self._folds.folds.values())]
        return state


def _row(broker: str, fold: Fold) -> Row:
    event = fold.newest
    more = [f"{count(fold.times)} times since {clock(fold.first_at)}"] if fold.times > 1 else []
    said = event.details.get("text", "").removesuffix(".")
    more += [said] if said else []
    more += [f"{name}={value}" for name, value in sorted(event.details.items()) if name != "text"]
    return row(
        f"{fold.position}{event.kind}",
        [
            moment(event.at, milliseconds=True),
            cell(brief(event.kind, 60), tone=_tone(event)),
            cell(brief(event.queue), href=queue_path(broker, event.queue)) if event.queue else "",
            _key(broker, event),
            count(fold.count) if fold.count else "",
            brief(" ".join(each for each in (event.principal, event.peer) if each)),
            brief(", ".join(more)),
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
