"""WatchEvents: a cursor of each watcher over the one ring, so that a slow one costs the broker nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable

from fila.v1 import events_pb2 as pb
from fila_server.errors import Invalid, LimitExceeded, Overloaded
from fila_server.events import FAMILIES, KINDS, MISSED, RING, Happening, Ring, matches, unknown_kinds

EVENTS_A_FRAME = 100
KINDS_MAX = 64
WATCHERS_MAX = 100
QUOTED = {"hook.failed": ("headers", "error"), "hook.circuit_opened": ("headers", "error")}
"""What events quote of messages: their headers, and the text of a script's error, which may hold whatever it read."""

SETTINGS = ("settings", "changed")
"""Details that name a queue's settings, which only those read who may manage it (operations/changes.py)."""

OF_CHANNELS = {"queue.updated": ("comment",)}
"""Details that may speak of any channel of a queue: a change of settings says why one of them is paused."""


class Watching:
    """Answers WatchEvents."""

    def __init__(
        self, at_drain: Callable[[Callable[[], object]], Callable[[], None]], ring: Ring = RING
    ) -> None:
        self._at_drain = at_drain
        self._ring = ring
        self._watchers = 0

    async def watch(
        self,
        request: pb.WatchEventsRequest,
        sees: Callable[[str, str], bool] = lambda _queue, _channel: True,
        quotes: Callable[[str], bool] = lambda _queue: True,
        names: Callable[[str], bool] = lambda _principal: True,
        sees_all_channels: Callable[[str], bool] = lambda _queue: True,
    ) -> AsyncGenerator[bytes, None]:
        """Tell what is kept, and go on where that was asked for. Raises Invalid, LimitExceeded, Overloaded.

        `sees` gets an event's queue and channel, both may be empty, and says whether the watcher may know of it;
        `quotes` gets the queue, and says whether it may know what the event quotes of messages. `names` gets the
        principal whose act it was, and says whether it may know who that was, from where, and which settings changed.
        `sees_all_channels` gets the queue, and says whether it may know of whatever channel there is.
        """
        if len(request.kinds) > KINDS_MAX:
            raise LimitExceeded("kinds", f"must be at most {KINDS_MAX}, got {len(request.kinds)}")
        if unknown := unknown_kinds(request.kinds):
            raise Invalid("kinds", _advice(unknown[0]))
        if self._watchers >= WATCHERS_MAX:
            raise Overloaded(f"follow: {WATCHERS_MAX} watch already, and no more may; end one first")
        draining = asyncio.Event()
        stay = self._at_drain(draining.set)
        self._watchers += 1
        try:
            position = request.after_position
            while True:
                events, missed = self._ring.after(position, EVENTS_A_FRAME)
                answer = pb.WatchEventsResponse()
                if missed:
                    answer.events.append(_missed(events[0], missed))
                for event in events:
                    position = event.position
                    if matches(event, request.queue, request.kinds, request.fairness_key) and sees(
                        event.queue, event.channel
                    ):
                        answer.events.append(_for_watcher(event, quotes, names, sees_all_channels))
                answer.next_position = position
                if answer.events or not events:
                    yield answer.SerializeToString()
                if events:
                    continue
                if not request.follow or draining.is_set():
                    return
                if self._ring.after(position, 1)[0]:
                    continue  # it happened while the last frame was written
                await _first(self._ring.changed(), draining)
        finally:
            self._watchers -= 1
            stay()


def _advice(unknown: str) -> str:
    """What finishes the sentence about a kind that never happens: those of its family, or the families."""
    family = unknown.partition(".")[0]
    of_family = [kind for kind in KINDS if kind.startswith(f"{family}.")]
    there_are = (
        ", ".join(of_family) if of_family else f"{', '.join(FAMILIES)}, or one of them like {KINDS[0]}"
    )
    return f'must be kinds of events, got "{unknown[:64]}": there are {there_are}'


async def _first(*events: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _for_watcher(
    event: Happening,
    quotes: Callable[[str], bool],
    names: Callable[[str], bool],
    sees_all_channels: Callable[[str], bool],
) -> pb.Event:
    """An event without what the watcher may not know of it."""
    reported = on_the_wire(event)
    if not quotes(event.queue):
        _hide(reported, QUOTED.get(event.kind, ()))
    if not names(event.principal):
        reported.ClearField("principal")
        reported.ClearField("peer")
        _hide(reported, SETTINGS)
    if event.kind in OF_CHANNELS and not sees_all_channels(event.queue):
        _hide(reported, OF_CHANNELS[event.kind])
    return reported


def _hide(reported: pb.Event, details: Iterable[str]) -> None:
    for detail in details:
        reported.details.pop(detail, None)


def _missed(oldest: Happening, count: int) -> pb.Event:
    event = pb.Event(position=oldest.position - 1, kind=MISSED, count=count)
    event.at.FromMilliseconds(oldest.at_ms)
    return event


def on_the_wire(happening: Happening) -> pb.Event:
    """An event as watchers get it."""
    event = pb.Event(
        position=happening.position,
        kind=happening.kind,
        queue=happening.queue,
        channel=happening.channel,
        fairness_key=happening.fairness_key,
        principal=happening.principal,
        peer=happening.peer,
        count=happening.count,
        details=happening.details,
    )
    event.at.FromMilliseconds(happening.at_ms)
    return event
