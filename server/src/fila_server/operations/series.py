"""The last hour of each channel and of the busiest keys, a point every ten seconds, in memory.

    METRICS each STEP_S ──► a point of each channel, and of the keys that it lists (the busiest of the broker)
    nothing stirs       ──► the last point once more, when somebody asks or something happens again
    WATCH_ROWS          ──► a point of each key that somebody asked for within the hour and that is not listed
    GetSeries          ──► the points as they stand; what was not recorded is a gap, never zero

All series together stay below BYTES_MAX. Where there is no room the series that has had no point for longest goes, a
key's before a channel's; where all are new, what comes is not recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from fila.v1 import watch_pb2 as pb
from fila_server import errors
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.hour_of_one import POINTS, STEP_S, SavedSeries, Series
from fila_server.telemetry.snapshot import WAIT_CAUSES, Channel, Queue, Snapshot, decode, text_of

BYTES_MAX = 64 * 1024 * 1024
KEYS_A_CHANNEL_MAX = 256
ASKED_FOR_MAX = 2_000
"""Keys of all channels that were asked for and are looked at by name."""

COUNTS = ("arrived", "leased", "delivered", "acked")
CHANNEL_COLUMNS = (*COUNTS, "depth", "in_flight", "oldest_age_ms", *WAIT_CAUSES)
KEY_COLUMNS = ("arrived", "served", "due", "pending")
_OLDEST = CHANNEL_COLUMNS.index("oldest_age_ms")

Place = tuple[str, str]
"""Queue and channel."""
Call = Callable[[int, bytes], Awaitable[bytes]]


@dataclass(slots=True)
class _Asked:
    """Keys of a channel that were asked for, and until when they are looked at."""

    until_s: dict[str, float] = field(default_factory=dict)


class RecentSeries:
    """Records and tells. Belongs to the loop's thread; is told the time."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._channels: dict[Place, Series] = {}
        """Those that have had no point for longest stand first."""
        self._full: set[Place] = set()
        """Channels whose keys of this step have no room."""
        self._keys: dict[Place, dict[str, Series]] = {}
        self._keys_by_age: dict[tuple[Place, str], Series] = {}
        """The same, in the order that channels have."""
        self._channel_totals: dict[Place, tuple[float, ...]] = {}
        self._key_totals: dict[tuple[Place, str], tuple[float, ...]] = {}
        self._asked: dict[Place, _Asked] = {}
        self._size = 0
        self._step = -1
        self._at_ms = 0
        self._still = 0
        """Steps since the last snapshot, in which nothing happened."""
        self._reckoned: set[Place] = set()
        """Channels whose waits were reckoned for such steps, and may be a little more than the core will tell."""

    @property
    def size(self) -> int:
        """Bytes of all series, about."""
        return self._size

    # --- recording ------------------------------------------------------------------------------

    def take(
        self, snapshot: Snapshot, named: dict[Place, list[pb.KeyState]], now_s: float, wall_ms: int
    ) -> None:
        """Record a point of all that the snapshot tells, and of keys that were looked at by name."""
        step = int(now_s // STEP_S)
        if step == self._step:
            return
        self._catch_up()
        # A step that was missed (an overloaded broker) leaves numbers that are of more than one step: no point then.
        follows = step == self._step + 1
        is_whole = not snapshot.left_out
        self._step, self._at_ms = step, wall_ms
        self._full.clear()
        channels, self._channel_totals = self._channel_totals, {}
        keys, self._key_totals = self._key_totals, {}
        for queue in snapshot.queues:
            for channel in queue.channels:
                place = (text_of(queue.name), text_of(channel.name))
                totals = _channel_totals(queue, channel)
                # A queue that was not there a step ago has counted from zero since; there is no such telling where
                # a snapshot leaves some out.
                before = channels.get(place, (0.0,) * len(totals) if is_whole and channels else None)
                self._channel_totals[place] = totals
                if before is not None and place in self._reckoned:
                    before = (*before[:3], *map(min, before[3:], totals[3:]))
                if before is not None and follows:
                    now = (channel.ready + channel.delayed, channel.in_flight, channel.oldest_ms)
                    self._put_channel(step, place, _since(before, totals), now)
        self._reckoned.clear()
        for key in snapshot.keys:
            place = (text_of(key.queue), text_of(key.channel))
            totals = (key.arrived, key.totals[5] / 1000, key.totals[6] / 1000)
            self._take_key(step, place, text_of(key.fairness_key), keys, totals, key.pending, follows=follows)
        for place, rows in named.items():
            for row in rows:
                totals = (row.arrived_total, row.served_total, row.due_total)
                pending = row.ready + row.delayed
                self._take_key(step, place, row.fairness_key, keys, totals, pending, follows=follows)
        self._forget_old()

    def still(self, now_s: float, wall_ms: int) -> None:
        """Nothing happens since before the last snapshot, so its step's points are those of this step, too."""
        step = int(now_s // STEP_S)
        self._still += step - self._step
        self._step, self._at_ms = step, wall_ms

    def _catch_up(self) -> None:
        """Write the points of the steps in which nothing happened."""
        count, self._still = self._still, 0
        if not count:
            return
        newest = self._step - count
        for place, series in self._channels.items():
            if series.last == newest and (before := self._channel_totals.get(place)) is not None:
                row = series.row(newest)
                if row is not None:
                    # Messages waited meanwhile: what the next snapshot tells of that is in these points.
                    waits = [total + count * wait for total, wait in zip(before[3:], row[6:], strict=True)]
                    self._channel_totals[place] = (*before[:3], *waits)
                    self._reckoned.add(place)
                    series.repeat(count, _OLDEST)
        for of_channel in self._keys.values():
            for series in of_channel.values():
                if series.last == newest:
                    series.repeat(count, None)

    def _take_key(
        self,
        step: int,
        place: Place,
        name: str,
        known: dict[tuple[Place, str], tuple[float, ...]],
        totals: tuple[float, ...],
        pending: int,
        *,
        follows: bool,
    ) -> None:
        if (place, name) in self._key_totals:
            return
        self._key_totals[place, name] = totals
        before = known.get((place, name))
        if before is None or not follows:
            return
        of_channel = self._keys.setdefault(place, {})
        series = of_channel.get(name)
        if series is None:
            if len(of_channel) >= KEYS_A_CHANNEL_MAX and not self._has_room(place, of_channel, step):
                return
            series = self._new(len(KEY_COLUMNS), "f")
            if series is None:
                return
            of_channel[name] = series
        self._keys_by_age.pop((place, name), None)
        self._keys_by_age[place, name] = series
        series.put(step, (*_since(before, totals), pending))

    def _put_channel(
        self, step: int, place: Place, since: tuple[float, ...], now: tuple[float, float, float]
    ) -> None:
        series = self._channels.pop(place, None) or self._new(len(CHANNEL_COLUMNS), "d")
        if series is None:
            return
        self._channels[place] = series
        series.put(step, (*since[: len(COUNTS)], *now, *since[len(COUNTS) :]))

    def _new(self, columns: int, kind: str) -> Series | None:
        """A series, if there is room or may be made."""
        series = Series(columns, kind)
        while self._size + series.size > self._bytes_max:
            if not self._give_up_oldest():
                return None
        self._size += series.size
        return series

    def _has_room(self, place: Place, of_channel: dict[str, Series], step: int) -> bool:
        """Whether a series could be given up. Where all had points lately they have until the next step: one look."""
        name = min(of_channel, key=lambda name: of_channel[name].last)
        if place not in self._full and of_channel[name].last < step - 1:
            self._give_up_key(place, name)
            return True
        self._full.add(place)
        return False

    def _give_up_key(self, place: Place, name: str) -> None:
        self._size -= self._keys[place].pop(name).size
        del self._keys_by_age[place, name]

    def _give_up_oldest(self) -> bool:
        """A series that has no point of this step or the one before, if there is one: a key's before a channel's."""
        for (place, name), series in self._keys_by_age.items():
            if series.last < self._step - 1:
                self._give_up_key(place, name)
                return True
            break
        for place, series in self._channels.items():
            if series.last < self._step - 1:
                self._size -= self._channels.pop(place).size
                return True
            break
        return False

    def _forget_old(self) -> None:
        """Series without a point within the hour."""
        if self._step % 30:
            return
        for place in [each for each, series in self._channels.items() if series.last <= self._step - POINTS]:
            self._size -= self._channels.pop(place).size
        for place, of_channel in list(self._keys.items()):
            for name in [each for each, series in of_channel.items() if series.last <= self._step - POINTS]:
                self._give_up_key(place, name)
            if not of_channel:
                del self._keys[place]

    # --- over a restart -------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """Which ten seconds the newest points are of; -1 before the first."""
        return self._step

    @property
    def at_ms(self) -> int:
        """When the newest points end, by the wall clock."""
        return self._at_ms

    async def saved(self, bytes_max: int) -> list[SavedSeries]:
        """All series with a point within the hour, as far as there is room, those of channels first."""
        self._catch_up()
        step = self._step
        own = [SavedSeries(*place, None, 0, 0.0, b"") for place in self._channels]
        of_keys = [
            SavedSeries(*place, name, 0, 0.0, b"")
            for place, of_channel in self._keys.items()
            for name in sorted(of_channel, key=lambda name: -of_channel[name].served)
        ]
        found, size = [], 0
        for number, each in enumerate((*own, *of_keys)):
            if number % 256 == 255:
                await asyncio.sleep(0)  # others want the loop, too
            series = self._series_of(each)
            if series is None or series.last <= step - POINTS or size + series.size > bytes_max:
                continue
            size += series.size
            each.behind, each.served, each.numbers = step - series.last, series.served, series.numbers(step)
            found.append(each)
        return found

    def _series_of(self, named: SavedSeries) -> Series | None:
        place = (named.queue, named.channel)
        if named.fairness_key is None:
            return self._channels.get(place)
        return self._keys.get(place, {}).get(named.fairness_key)

    def restore(
        self, saved: Sequence[SavedSeries], at_ms: int, still_ms: int, now_s: float, wall_ms: int
    ) -> None:
        """Begin with what a broker before recorded, whose newest points ended at `at_ms`, and in which nothing happened
        from then to `still_ms`. The time since is a gap. A clock that went back leaves nothing to go by."""
        behind = math.ceil((wall_ms - still_ms) / (STEP_S * 1000))
        if self._step >= 0 or not 0 <= behind < POINTS:
            return
        still = max(0, round((still_ms - at_ms) / (STEP_S * 1000)))
        self._step, self._at_ms = int(now_s // STEP_S) - behind, still_ms
        newest = self._step - still
        for each in sorted(saved, key=lambda each: -each.behind):  # as they are given up
            columns, kind = (CHANNEL_COLUMNS, "d") if each.fairness_key is None else (KEY_COLUMNS, "f")
            series = self._new(len(columns), kind)
            if series is None or not series.begin(newest - each.behind, newest, each.numbers):
                continue
            series.served = each.served
            if not each.behind:
                series.repeat(still, _OLDEST if each.fairness_key is None else None)
            place = (each.queue, each.channel)
            if each.fairness_key is None:
                self._channels[place] = series
            else:
                self._keys.setdefault(place, {})[each.fairness_key] = series
                self._keys_by_age[place, each.fairness_key] = series

    # --- keys that somebody asks for ------------------------------------------------------------

    def ask_for(self, place: Place, names: Sequence[str], now_s: float) -> None:
        """Record these keys for an hour from now, as far as there is room."""
        asked = self._asked.setdefault(place, _Asked())
        for name in names:
            count = sum(len(each.until_s) for each in self._asked.values())
            if name not in asked.until_s and (
                len(asked.until_s) >= KEYS_A_CHANNEL_MAX or count >= ASKED_FOR_MAX
            ):
                asked_last = min(asked.until_s, key=asked.until_s.__getitem__, default=None)
                if asked_last is None:
                    return
                del asked.until_s[asked_last]
            asked.until_s[name] = now_s + STEP_S * POINTS

    def to_look_at(self, now_s: float) -> dict[Place, list[str]]:
        """Keys that were asked for within the hour."""
        for place, asked in list(self._asked.items()):
            asked.until_s = {name: until_s for name, until_s in asked.until_s.items() if until_s > now_s}
            if not asked.until_s:
                del self._asked[place]
        return {place: sorted(asked.until_s) for place, asked in self._asked.items()}

    # --- telling --------------------------------------------------------------------------------

    async def report(self, place: Place, names: Sequence[str], *, whole: bool = True) -> pb.GetSeriesResponse:
        """The hour of a channel and of some of its keys; not `whole`: of the keys alone, and nothing of others."""
        self._catch_up()
        reported = pb.GetSeriesResponse(step_ms=int(STEP_S * 1000))
        steps = range(self._step - POINTS + 1, self._step + 1)
        reported.first_at.FromMilliseconds(max(0, self._at_ms - (POINTS - 1) * reported.step_ms))
        of_channel = self._keys.get(place, {})
        if whole:
            series = self._channels.get(place)
            for step in steps:
                _put_point(reported.points.add(), series.row(step) if series is not None else None)
            reported.recorded_keys.extend(
                sorted(of_channel, key=lambda name: (-of_channel[name].served, name))[:KEYS_A_CHANNEL_MAX]
            )
        for name in names:
            series = of_channel.get(name)
            if series is None:
                continue
            key = reported.keys.add(fairness_key=name)
            for step in steps:
                point, row = key.points.add(), series.row(step)
                if row is not None:
                    point.recorded = True
                    point.arrived, point.served, point.due = row[0], row[1], row[2] if whole else 0
                    point.pending = int(row[3])
            await asyncio.sleep(0)  # fifty keys are 18,000 points, and others want the loop, too
        return reported


def _channel_totals(queue: Queue, channel: Channel) -> tuple[float, ...]:
    return (queue.counts.enqueued, channel.leased, channel.delivered, channel.acked, *channel.waited_ms)


def _since(before: tuple[float, ...], now: tuple[float, ...]) -> tuple[float, ...]:
    """What was counted meanwhile; all of it where the counting began anew."""
    if any(new < old for old, new in zip(before, now, strict=True)):
        return now
    return tuple(new - old for old, new in zip(before, now, strict=True))


def _put_point(point: pb.SeriesPoint, row: Sequence[float] | None) -> None:
    if row is None:
        return
    point.recorded = True
    for name, number in zip(CHANNEL_COLUMNS, row, strict=True):
        if name in WAIT_CAUSES:
            setattr(point.waits, f"{name}_ms", int(number))
        else:
            setattr(point, name, int(number))


async def record(
    recent: RecentSeries,
    call: Call,
    stirs: Callable[[], int],
    now_s: Callable[[], float] = time.monotonic,
    wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    keep: Callable[[float, bool], Awaitable[None]] | None = None,
) -> None:
    """Record on and on, until it is cancelled. `stirs` is Broker.stirs: while it stands still the core is not asked.
    `keep` is called after each step with the time, and whether something happened."""
    seen = before = -1
    while True:
        await sleep(STEP_S - now_s() % STEP_S)
        stirred = stirs()
        # Two snapshots within a stillness: the step between them, and so each that follows, is one of stillness.
        if stirred == seen == before:
            recent.still(now_s(), wall_ms())
            if keep is not None:
                await keep(now_s(), False)
            continue
        seen, before = -1, seen
        with contextlib.suppress(errors.FilaServerError):  # an overloaded core leaves a gap
            named = await _look_at_named(recent, call, now_s())
            snapshot = decode(await call(commands.METRICS, b""))
            recent.take(snapshot, named, now_s(), wall_ms())
            seen = stirred
        if keep is not None:
            await keep(now_s(), True)


async def _look_at_named(recent: RecentSeries, call: Call, now_s: float) -> dict[Place, list[pb.KeyState]]:
    found: dict[Place, list[pb.KeyState]] = {}
    for place, names in recent.to_look_at(now_s).items():
        page = seam_frames.WatchPage(
            queue=place[0].encode(), channel=place[1].encode(), keys=[name.encode() for name in names]
        )
        with contextlib.suppress(errors.NotFound):
            got = seam_frames.WatchedRows.FromString(
                await call(commands.WATCH_ROWS, page.SerializeToString())
            )
            found[place] = [pb.KeyState.FromString(row) for row in got.keys]
    return found
