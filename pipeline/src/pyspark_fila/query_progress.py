"""Where a query stands: in one queue, or in each of those that its names and patterns meet.

    latestOffset(start) ──► each queue's part of `start` ──► its QueueProgress ──► joined to one offset

A queue that comes to match is read from its beginning: a batch without rows writes that beginning into the checkpoint,
and so does one for a queue that went. A limit is shared among the queues that have something, and each of them gets a
message at least, so that none waits for ever behind a fuller one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from pyspark_fila.broker import BrokerLog
from pyspark_fila.errors import DataLoss, QueueNotFound
from pyspark_fila.identity import Offset, joined, parts_of
from pyspark_fila.options import ReadOptions
from pyspark_fila.queue_progress import QueueProgress
from pyspark_fila.ranges import LogRange, log
from pyspark_fila.subscribed import check_met, subscribed

LISTED_EVERY_S = 10.0
"""A list of all queues is work for the broker, so one that comes is noticed after this time at most."""
ASKED_APART_MS = 10


class QueryProgress:
    """What the query's one driver process remembers of its queues."""

    def __init__(
        self,
        options: ReadOptions,
        broker_of: Callable[[str], BrokerLog] | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._broker_of = broker_of
        self._now_s = now_s
        self._each: dict[str, QueueProgress] = {}
        self._names: list[str] = []
        self._names_until_s = float("-inf")
        self._fixed: list[str] | None = None
        self._waits_since_s: float | None = None
        """Since when there are messages, and fewer than a micro-batch is to have."""

    def initial(self) -> Offset:
        """Where a query without a checkpoint begins."""
        names = self._listed(fresh=True)
        check_met(self._options, names)
        return joined(self._options.queue, {name: self._of(name).initial() for name in names}, 0)

    def fix_end(self) -> None:
        """What comes from now on, messages and queues, is the next run's."""
        self._fixed = self._listed(fresh=True)
        for name in self._fixed:
            self._of(name).fix_end()

    def latest(self) -> Offset:
        """The ends of the logs, as of a moment ago."""
        if self._options.queue:
            return {"queue": self._options.queue, "offset": self._of(self._options.queue).bounds().head}
        heads = {name: {"offset": self._of(name).bounds().head} for name in self._each if name in self._names}
        return {"queues": dict(sorted(heads.items()))}

    def next_end(self, start: Offset, most: int | None) -> Offset:
        """Where the next micro-batch ends, with about `most` messages; None for whatever there is. `start` when there
        is nothing to read, or not enough."""
        try:
            return self._next_end(start, most)
        except QueueNotFound:
            if self._options.queue:
                raise
            # It went since the queues were listed.
            self._listed(fresh=True)
            return self._next_end(start, most)

    def kept_ranges(self, start: Offset, end: Offset) -> list[LogRange]:
        """What a micro-batch reads, also one that is replayed after a restart."""
        before, after = parts_of(self._options.queue, start), parts_of(self._options.queue, end)
        ranges = []
        for name in sorted(before.keys() & after.keys()):
            try:
                ranges.append(self._of(name).kept_range(before[name], after[name]))
            except QueueNotFound:
                if self._options.queue:
                    raise
                self._tell_gone([name], before)
        return [each for each in ranges if each.start < each.end]

    # --- the next batch ---------------------------------------------------------------------

    def _next_end(self, start: Offset, most: int | None) -> Offset:
        parts = parts_of(self._options.queue, start)
        there = self._listed()
        went = [name for name in parts if name not in there]
        came = [name for name in (there if self._fixed is None else self._fixed) if name not in parts]
        came = [name for name in came if name in there]
        if went or came:
            return self._with_other_queues(start, parts, went, came)
        waiting = {name: self._of(name).available(part) for name, part in parts.items()}
        if most is not None and self._waits_for_more(waiting):
            return start
        room = self._room(parts, {name: count or 0 for name, count in waiting.items()}, most)
        ends = {name: self._of(name).next_end(part, room[name]) for name, part in parts.items()}
        if ends == parts:
            return start
        self._waits_since_s = None
        return joined(self._options.queue, ends, start.get("gone", 0))

    def _with_other_queues(
        self, start: Offset, parts: dict[str, Offset], went: list[str], came: list[str]
    ) -> Offset:
        """A batch without rows."""
        if went:
            self._tell_gone(went, parts)
        kept = {name: part for name, part in parts.items() if name not in went}
        for name in went:
            self._each.pop(name, None)
        for name in came:
            kept[name] = self._of(name).beginning()
        return joined("", kept, start.get("gone", 0) + len(went))

    def _tell_gone(self, went: list[str], parts: dict[str, Offset]) -> None:
        named = ", ".join(f'"{name}" (read up to offset {parts[name]["offset"] - 1})' for name in went)
        problem = (
            f"this query reads queues that are not there any more, or that its key no longer sees: {named}; what was "
            "unread of them is gone. Begin anew with another checkpointLocation, or set failOnDataLoss to false to go "
            "on with those that are there"
        )
        if self._options.fail_on_data_loss:
            raise DataLoss(problem)
        log.warning("%s", problem)

    def _waits_for_more(self, waiting: dict[str, int | None]) -> bool:
        """Whether there are fewer messages than a micro-batch is to have, and not for too long."""
        options, counts = self._options, list(waiting.values())
        if not options.least_per_trigger or self._fixed is not None or None in counts:
            return False
        count = sum(each or 0 for each in counts)
        if not 0 < count < options.least_per_trigger:
            return False
        if self._waits_since_s is None:
            self._waits_since_s = self._now_s()
        return self._now_s() - self._waits_since_s < options.trigger_delay_ms / 1000

    def _room(self, parts: dict[str, Offset], waiting: dict[str, int], most: int | None) -> dict[str, int]:
        """How many messages each queue may bring; 0 for all that it has."""
        if most is None:
            return dict.fromkeys(parts, 0)
        room = shares(waiting, most)
        if self._options.bytes_per_trigger:
            size = {
                name: self._of(name).mean_bytes(part, room[name])
                for name, part in parts.items()
                if waiting[name]
            }
            wanted = {name: min(room[name], waiting[name]) * size[name] for name in size}
            for name, share in shares(wanted, self._options.bytes_per_trigger).items():
                room[name] = min(room[name], max(1, share // size[name]))
        return room

    # --- which queues -----------------------------------------------------------------------

    def _of(self, name: str) -> QueueProgress:
        if name not in self._each:
            # Many queues are asked less often, so that asking them all is little work.
            interval_ms = max(self._options.poll_interval_ms, ASKED_APART_MS * len(self._names))
            options = replace(self._options, queue=name, poll_interval_ms=interval_ms)
            self._each[name] = QueueProgress(options, self._broker(name), self._now_s)
        return self._each[name]

    def _broker(self, queue: str) -> BrokerLog:
        return (
            self._broker_of(queue)
            if self._broker_of is not None
            else BrokerLog(self._options.connection, queue)
        )

    def _listed(self, *, fresh: bool = False) -> list[str]:
        """The queues that are there and meant, as of at most LISTED_EVERY_S ago."""
        if self._options.queue:
            return [self._options.queue]
        if fresh or self._now_s() >= self._names_until_s:
            self._names = subscribed(self._options, self._broker("").queue_names())
            self._names_until_s = self._now_s() + LISTED_EVERY_S
        return self._names


def shares(wanted: dict[str, int], most: int) -> dict[str, int]:
    """Share `most` evenly; what one does not want is the others'. Each gets at least 1."""
    given, left = dict.fromkeys(wanted, 1), most
    hungry = sorted((name for name in wanted if wanted[name]), key=lambda name: wanted[name])
    for place, name in enumerate(hungry):
        given[name] = max(1, min(wanted[name], left // (len(hungry) - place)))
        left = max(0, left - given[name])
    return given
