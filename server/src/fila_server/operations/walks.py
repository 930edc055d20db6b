"""What a walk over all keys of a queue found, told again while it holds.

A walk over 1,000,000 keys keeps the scheduler busy for some tenths of a second, in pieces or at once. Pages and scripts
ask every second, many of them at a time: so a large queue is walked for all of them together, and seldom. While its
counters stand still, what was found stays as it was but for the time that passed; while they move it is told for some
seconds, the more the larger the queue is.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from fila.v1 import admin_pb2 as pb

KEYS_MIN = 50_000
"""A queue with fewer is walked each time: that takes as long as a few calls do."""
AGE_S_PER_MILLION_KEYS = 20.0
AGE_S_MAX = 20.0
STILL = 3
"""So many times as long while nothing comes or goes: what is paused or weighed meanwhile is told that late."""
FOUND_MAX = 64

T = TypeVar("T")


class Counters(NamedTuple):
    """What moves when anything comes into a queue or leaves it."""

    enqueued: int
    leased: int
    delivered: int
    acked: int
    dead_lettered: int
    returned: int
    depth: int
    in_flight: int
    consumers: int


def counters_of(stats: pb.GetStatsResponse) -> Counters:
    """A queue's, from its statistics."""
    return Counters(
        stats.enqueued_total,
        stats.leased_total,
        stats.delivered_total,
        stats.acked_total,
        stats.dead_lettered_total,
        stats.returned_total,
        stats.depth,
        stats.in_flight,
        stats.active_consumers,
    )


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """One walk's: what it found, over how many keys, when, and how the counters stood."""

    what: T
    keys: int
    counters: Counters
    at_s: float


class Walks(Generic[T]):
    """The newest of each large queue, by name; those asked for longest ago are forgotten."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._found: OrderedDict[Hashable, Found[T]] = OrderedDict()

    def __contains__(self, name: Hashable) -> bool:
        """Whether it was large when it was walked last: then its counters are worth a question."""
        return name in self._found

    def last(self, name: Hashable) -> T | None:
        """What its last walk found, however long ago; None where none is kept."""
        found = self._found.get(name)
        return None if found is None else found.what

    def known(self, name: Hashable, counters: Counters) -> tuple[T, int] | None:
        """What was found, and how many milliseconds ago; None where it must be walked anew."""
        found = self._found.get(name)
        if found is None:
            return None
        self._found.move_to_end(name)
        age_s = self._now_s() - found.at_s
        most_s = min(AGE_S_MAX, AGE_S_PER_MILLION_KEYS * found.keys / 1e6)
        # One that was deleted and made again counts from zero; one that was emptied is walked sooner than it was.
        held, had = counters.depth + counters.in_flight, found.counters.depth + found.counters.in_flight
        is_another = counters.enqueued < found.counters.enqueued or 2 * held < had or not held
        if is_another or age_s > (STILL * most_s if counters == found.counters else most_s):
            return None
        return found.what, round(1000 * age_s)

    def keep(self, name: Hashable, what: T, keys: int, counters: Counters) -> None:
        """Remember a walk that ended just now, over so many keys."""
        self._found.pop(name, None)
        if keys < KEYS_MIN:
            return
        self._found[name] = Found(what, keys, counters, self._now_s())
        if len(self._found) > FOUND_MAX:
            self._found.popitem(last=False)
