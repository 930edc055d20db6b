"""What nobody does and everybody should hear of: dead letters, a disk that fills, damage, keys that are held or starve.

Seen by comparing the core's numbers of two moments some seconds apart, so the path of messages pays nothing for it.
While nothing stirs in the core it is not asked: an idle broker with many queues is idle.
Only the keys that telemetry lists (the busiest and those that wait most) are watched.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fila_server import errors
from fila_server.broker.speed import Speeds
from fila_server.events import emit
from fila_server.telemetry.snapshot import WAIT_CAUSES, Key, Snapshot, decode, text_of

LOOK_EVERY_S = 2.0
STILL_LOOK_EVERY_S = 10.0
"""How often troubles are looked for while nothing stirs: that nobody consumes, or that something is paused."""
STARVED_S = 60.0
"""A key starves when it was backlogged and got under half its due for so long."""
STARVED_RATIO = 0.5
KEYS_WATCHED_MAX = 1_000

_DISK_KINDS = ("disk.roomy", "disk.low", "disk.critical")
_THROTTLE, _HELD = WAIT_CAUSES.index("throttle"), WAIT_CAUSES.index("held")
_SERVED, _DUE = len(WAIT_CAUSES), len(WAIT_CAUSES) + 1

Place = tuple[bytes, bytes, bytes]


@dataclass(slots=True)
class _Watched:
    """What one key's numbers were, for as long as it takes to call it starved, and what was told of it."""

    samples: deque[tuple[float, tuple[float, ...]]] = field(default_factory=deque)
    reported: str = ""


class Observer:
    """Compares; `look` is told the time."""

    def __init__(self) -> None:
        self._consumers: dict[tuple[bytes, bytes], int] = {}
        self._dead: dict[bytes, int] = {}
        self._disk_level = 0
        self._lost_ranges = 0
        self._keys: dict[Place, _Watched] = {}
        self._is_first = True

    def look(self, snapshot: Snapshot, now_s: float) -> None:
        """Emit what changed since the last look."""
        self._look_at_disk(snapshot)
        self._look_at_dead_letters(snapshot)
        self._look_at_keys(snapshot, now_s)
        self._look_at_consumers(snapshot)
        self._is_first = False

    def _look_at_disk(self, snapshot: Snapshot) -> None:
        totals = snapshot.totals
        level = min(totals.disk_level, len(_DISK_KINDS) - 1)
        if level != self._disk_level:
            emit(_DISK_KINDS[level], level="warning" if level else "info", free_bytes=totals.disk_free_bytes)
        self._disk_level = level
        if totals.lost_ranges > self._lost_ranges:
            emit(
                "store.range_lost",
                level="error",
                count=totals.lost_ranges - self._lost_ranges,
                lost_messages=totals.lost_messages,
            )
        self._lost_ranges = totals.lost_ranges

    def _look_at_dead_letters(self, snapshot: Snapshot) -> None:
        dead = {queue.name: queue.counts.dead_lettered for queue in snapshot.queues}
        for queue, total in dead.items():
            # A queue that was deleted and made again counts from zero.
            if (made := total - min(self._dead.get(queue, 0), total)) and not self._is_first:
                emit("dead_letters.made", queue=text_of(queue), count=made)
        self._dead = dead

    def _look_at_consumers(self, snapshot: Snapshot) -> None:
        now = {
            (queue.name, channel.name): channel.consumers
            for queue in snapshot.queues
            for channel in queue.channels
        }
        for place, count in now.items():
            if change := count - self._consumers.get(place, 0):
                kind = "consumer.joined" if change > 0 else "consumer.left"
                emit(kind, queue=text_of(place[0]), channel=text_of(place[1]), count=abs(change))
        self._consumers = now

    def _look_at_keys(self, snapshot: Snapshot, now_s: float) -> None:
        seen: dict[Place, _Watched] = {}
        for key in snapshot.keys[:KEYS_WATCHED_MAX]:
            place = (key.queue, key.channel, key.fairness_key)
            watched = seen[place] = self._keys.get(place) or _Watched()
            watched.samples.append((now_s, key.totals))
            while now_s - watched.samples[0][0] > STARVED_S and len(watched.samples) > 2:
                watched.samples.popleft()
            self._report(key, watched, self._state(key, watched))
        self._keys = seen

    @staticmethod
    def _state(key: Key, watched: _Watched) -> str:
        """`throttled`, `starved`, or nothing worth telling."""
        if not key.pending or len(watched.samples) < 2:
            return ""
        (_, before), (_, now) = watched.samples[-2], watched.samples[-1]
        if now[_THROTTLE] > before[_THROTTLE]:
            return "throttled"
        began_s, first = watched.samples[0]
        if watched.samples[-1][0] - began_s < STARVED_S * 0.9 or now[_HELD] > first[_HELD]:
            return ""
        if now[_THROTTLE] > first[_THROTTLE]:
            return ""
        due = now[_DUE] - first[_DUE]
        return "starved" if due > 0 and now[_SERVED] - first[_SERVED] < STARVED_RATIO * due else ""

    @staticmethod
    def _report(key: Key, watched: _Watched, state: str) -> None:
        if state == watched.reported:
            return
        watched.reported = state
        emit(
            f"key.{state or 'released'}",
            queue=text_of(key.queue),
            channel=text_of(key.channel),
            fairness_key=text_of(key.fairness_key),
            level="warning" if state == "starved" else "info",
            pending=key.pending,
            waiting_ms=key.oldest_ms,
        )


async def observe(
    ask: Callable[[], Awaitable[bytes]],
    stirs: Callable[[], int],
    now_s: Callable[[], float],
    speeds: Speeds,
    look_further: Callable[[Snapshot, float, int], Awaitable[None]],
    wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Look again and again, until it is cancelled, let `speeds` see the same, and `look_further` ask for more. `stirs`
    is Broker.stirs: while it stands still the last numbers hold, and only what time brings is looked for, more
    seldom."""
    observer = Observer()
    seen, looked_s = -1, now_s()
    while True:
        if (stirred := stirs()) == seen:
            speeds.still(now_s())
        if stirred != seen or now_s() - looked_s >= STILL_LOOK_EVERY_S:
            with contextlib.suppress(errors.FilaServerError):  # an overloaded core is asked again
                if stirred != seen:
                    snapshot = decode(await ask())
                    observer.look(snapshot, now_s())
                    speeds.look(snapshot, now_s())
                looked_s = now_s()
                await look_further(snapshot, looked_s, wall_ms())
                seen = stirred
        await sleep(LOOK_EVERY_S)
