"""Troubles that are rates: what fails, what falls behind its limit, what floods. Judged from the counts of looks that
are some seconds apart; time is told.

Kept are the counts of queues that failed of late, of buckets that something waits for, and of the keys that telemetry
lists, no longer than their windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from fila.v1.limit_pb2 import LIMIT_PART_BUDGET, LIMIT_PART_SLOTS
from fila_server.operations import trouble_kinds as kinds
from fila_server.operations.trouble_facts import Facts, Failing, Limit
from fila_server.telemetry.snapshot import WAIT_CAUSES, Channel, Key

SAMPLE_EVERY_S = 5.0
LEVEL_S = 10.0
"""What waits for a bucket is the most of the looks of so long."""
_TURN = (WAIT_CAUSES.index("no_consumer"), WAIT_CAUSES.index("share"))
_HELD = (WAIT_CAUSES.index("throttle"), WAIT_CAUSES.index("delay"), WAIT_CAUSES.index("held"))
_WAITS_AT = 2
"""Where a key's waiting stands in its counts, behind what came and what was delivered."""

Counts = tuple[float, ...]
Name = TypeVar("Name", bound=Hashable)


class FailingNow(NamedTuple):
    ended: int
    """Deliveries that ended within the last minute."""
    part: float
    """Of them, those that failed."""
    dead_a_minute: float
    dead: int
    """Within a quarter of an hour."""


class LimitNow(NamedTuple):
    rate: float
    """A second: its rate where it is nothing else, otherwise what it let through of late."""
    burst: float
    needed: float
    """A second; what came to the bucket of late."""
    places: tuple[tuple[str, str, int], ...]
    is_compound: bool = False
    slots: int = 0
    """All of them taken; 0: something else holds what waits."""


class FloodNow(NamedTuple):
    part: float
    """Of what waits in the channel."""
    arriving: float
    served: float
    """Both a second."""
    others: int
    """Keys that wait for it."""


class Window:
    """Counts that only grow, of late."""

    __slots__ = ("_kept_s", "_rows")

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._rows: deque[tuple[float, Counts]] = deque()

    def put(self, at_s: float, counts: Counts) -> None:
        """Counts that are smaller than before are of a new thing under the same name."""
        if self._rows and any(new < old for new, old in zip(counts, self._rows[-1][1], strict=True)):
            self._rows.clear()
        if not self._rows or at_s - self._rows[-1][0] >= SAMPLE_EVERY_S:
            self._rows.append((at_s, counts))
        while len(self._rows) > 1 and self._rows[1][0] <= at_s - self._kept_s:
            self._rows.popleft()

    def since(self, at_s: float) -> tuple[float, Counts]:
        """The counts of about then, and when that was; the oldest there are where none is so old."""
        found = self._rows[0]
        for row in self._rows:
            if row[0] > at_s:
                break
            found = row
        return found


class Windows(Generic[Name]):
    """A window each of what is there at a look; of what is gone none is kept."""

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._windows: dict[Name, Window] = {}

    def put(self, at_s: float, counted: Iterable[tuple[Name, Counts]]) -> None:
        before, self._windows = self._windows, {}
        for name, counts in counted:
            window = self._windows[name] = before.get(name) or Window(self._kept_s)
            window.put(at_s, counts)

    def __bool__(self) -> bool:
        return bool(self._windows)

    def of(self, name: Name) -> Window:
        return self._windows[name]


class _Bucket:
    """A bucket's looks of late. A sub-queue that was just served stands in no line until its next message is looked at,
    so one look may miss many messages: the most of some looks counts."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: deque[tuple[float, Limit]] = deque()

    @property
    def newest_s(self) -> float:
        return self._rows[-1][0]

    def put(self, at_s: float, row: Limit) -> None:
        if self._rows and row.passed < self._rows[-1][1].passed:
            self._rows.clear()  # another one under the same name
        self._rows.append((at_s, row))
        while self._rows[0][0] <= at_s - kinds.LIMIT_GROWS_S - LEVEL_S:
            self._rows.popleft()

    def of_late(self, now_s: float) -> tuple[Limit, LimitNow, bool] | None:
        """The row with most messages of late, what comes to the bucket and goes, and whether what waits grows. None: a
        budget holds it, or it is looked at for too short a time."""
        newest = self._rows[-1][1]
        most = self._most(now_s)
        then_s = now_s - kinds.LIMIT_GROWS_S
        before = [(at_s, row) for at_s, row in self._rows if at_s <= then_s]
        if newest.part == LIMIT_PART_BUDGET or not before:
            return None
        at_s, first = before[-1]
        waited = max(row.messages for _, row in before)
        passed = newest.passed - first.passed
        rate = passed / (now_s - at_s) if newest.is_compound else most.rate
        needed = max((passed + most.messages - waited) / (now_s - at_s), 0.0)
        slots = newest.slots if newest.part == LIMIT_PART_SLOTS else 0
        now = LimitNow(rate, most.burst, needed, most.places, newest.is_compound, slots)
        # Who has the slots may work for long, so that none goes for a while is no sign.
        return most, now, most.messages > waited or (rate <= 0 and not slots)

    def _most(self, now_s: float) -> Limit:
        late = [row for at_s, row in self._rows if at_s > now_s - LEVEL_S]
        return max(late or [self._rows[-1][1]], key=lambda row: row.messages)


class Rates:
    """`is_reported` says of a kind and what it is about whether it is told already: some end later than they begin."""

    def __init__(self) -> None:
        self._failing: dict[str, Window] = {}
        self._limits: dict[str, _Bucket] = {}
        self._keys: Windows[tuple[bytes, bytes, bytes]] = Windows(kinds.FLOOD_S)

    @property
    def are_watched(self) -> bool:
        """Whether there is anything that time alone may make a trouble, or end."""
        return bool(self._failing or self._limits or self._keys)

    def failing(
        self, rows: Iterable[Failing], now_s: float, is_reported: Callable[[str], bool]
    ) -> Iterator[tuple[Failing, FailingNow]]:
        """The queues of which a large part fails."""
        before, self._failing = self._failing, {}
        for row in rows:
            window = before.get(row.queue)
            if window is None:
                window = Window(kinds.DEAD_S)
                window.put(now_s - row.began_ago_s, (row.acked_before, row.failed_before, row.dead_before))
            self._failing[row.queue] = window
            window.put(now_s, (row.acked, row.failed, row.dead))
            now = _failing_now(row, window, now_s)
            least = kinds.FAILING_PART_ENDS if is_reported(row.queue) else kinds.FAILING_PART
            fails = now.part >= least and (
                is_reported(row.queue) or now.ended * now.part >= kinds.FAILING_MIN
            )
            if fails or _died(row, window, now_s):
                yield row, now

    def limits(
        self, rows: Iterable[Limit], now_s: float, is_reported: Callable[[str], bool]
    ) -> Iterator[tuple[Limit, LimitNow]]:
        """The buckets that what waits for them does not get through in time."""
        for row in rows:
            self._limits.setdefault(row.throttle_key, _Bucket()).put(now_s, row)
        for name in [name for name, bucket in self._limits.items() if bucket.newest_s <= now_s - LEVEL_S]:
            del self._limits[name]
        for name, bucket in self._limits.items():
            late = bucket.of_late(now_s)
            if late is None:
                continue
            row, now, grows = late
            is_known = is_reported(name)
            wait_s = kinds.LIMIT_WAIT_ENDS_S if is_known else kinds.LIMIT_WAIT_S
            if row.messages > wait_s * now.rate and (is_known or grows):
                yield row, now

    def floods(self, facts: Facts, now_s: float) -> Iterator[tuple[Key, FloodNow]]:
        """The keys that fill a channel while others wait for it."""
        by_place: dict[tuple[bytes, bytes], list[Key]] = {}
        for key in facts.keys:
            by_place.setdefault((key.queue, key.channel), []).append(key)
        # Counts are kept of the channels that one key fills alone: in most brokers of none.
        filled = [
            (largest, keys, part)
            for place, keys in by_place.items()
            if (
                part := _filled_by(
                    largest := max(keys, key=lambda key: key.pending), facts.channels.get(place)
                )
            )
        ]
        self._keys.put(now_s, ((_name(key), _key_counts(key)) for _, keys, _ in filled for key in keys))
        for largest, keys, part in filled:
            others = sum(
                1
                for key in keys
                if key is not largest and key.oldest_ms >= kinds.LATE_MS and self._waits_its_turn(key, now_s)
            )
            at_s, before = self._keys.of(_name(largest)).since(now_s - kinds.FLOOD_S)
            arrived, delivered = largest.arrived - before[0], largest.delivered - before[1]
            if others and now_s > at_s and arrived > delivered and self._waits_its_turn(largest, now_s):
                seconds = now_s - at_s
                yield largest, FloodNow(part, arrived / seconds, delivered / seconds, others)

    def _waits_its_turn(self, key: Key, now_s: float) -> bool:
        """Whether it waited longer for its turn or for room than for a throttle, a delay, a pause, a cap or a rate."""
        _, before = self._keys.of(_name(key)).since(now_s - kinds.FLOOD_S)
        grown = [now - then for now, then in zip(key.totals, before[_WAITS_AT:], strict=True)]
        return sum(grown[i] for i in _TURN) > sum(grown[i] for i in _HELD)


def _failing_now(row: Failing, window: Window, now_s: float) -> FailingNow:
    at_s, (acked, failed, dead) = window.since(now_s - kinds.FAILING_S)
    ended = row.acked - acked + row.failed - failed
    _, (_, _, dead_before) = window.since(now_s - kinds.DEAD_S)
    return FailingNow(
        ended=int(ended),
        part=(row.failed - failed) / ended if ended else 0.0,
        dead_a_minute=(row.dead - dead) * 60 / max(now_s - at_s, 60.0),
        dead=int(row.dead - dead_before),
    )


def _died(row: Failing, window: Window, now_s: float) -> bool:
    _, (acked, _, dead) = window.since(now_s - kinds.DEAD_S)
    died = row.dead - dead
    return died >= kinds.FAILING_MIN and died >= kinds.FAILING_PART * (died + row.acked - acked)


def _filled_by(largest: Key, channel: Channel | None) -> float:
    """Its part of what waits in a channel, where that is a flood's; otherwise 0."""
    if channel is None or not (channel.consumers or channel.waiting_pulls):
        return 0.0
    waiting = channel.ready + channel.delayed
    if largest.pending < kinds.FLOOD_MIN or largest.pending <= kinds.FLOOD_PART * waiting:
        return 0.0
    return min(1.0, largest.pending / max(waiting, 1))


def _name(key: Key) -> tuple[bytes, bytes, bytes]:
    return (key.queue, key.channel, key.fairness_key)


def _key_counts(key: Key) -> Counts:
    return (key.arrived, key.delivered, *key.totals)
