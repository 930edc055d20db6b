"""WatchStats: queues and their keys in numbers, told anew each second, for as many as look.

    watchers ──► one Look a watched channel and second ──► WATCH_ROWS ──► the newest rows, as bytes
             ──► one a second of all queues, where somebody watches all ──► METRICS without keys
    each watcher compares the newest with what it was told, and is told the difference

Nothing is asked of the core while nobody watches. A watcher that does not read holds nothing up and piles nothing up:
when it reads again it is told the difference to the newest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fila.v1 import watch_pb2 as pb
from fila_server import errors
from fila_server.access.admission import Caller
from fila_server.broker.calls import Broker
from fila_server.broker.mirror import DEFAULT_CHANNEL
from fila_server.core.protocol import commands, seam_frames
from fila_server.operations.queue_numbers import (
    NOTHING,
    QUEUES_REPORTED_MAX,
    Place,
    Totals,
    leading,
    state_of,
    sums_of_all,
    sums_of_some,
    tell_rates,
    tell_rates_of_sums,
    totals_of,
)
from fila_server.telemetry.snapshot import Snapshot, decode, text_of

LOOK_EVERY_S = 1.0
ROWS_A_SECOND = 500
"""Of a look at all queues: with 2,000 that have something to tell it is taken every four seconds."""
COME_ROUND_LOOKS = 20
"""A slice of the keys' table is so many times smaller than the table, so that each key is seen within as many looks."""
CELLS_MAX = 8_192
CELLS_MIN = 1_024
SLICES_MAX = 16
"""Of a look, each in a command of its own: then a table of 2,000,000 cells is come by in time."""
TOP_DEFAULT = 20
WATCHERS_MAX = 100
NAMED_MAX = 1_000
"""Different keys that all watchers of one channel name, together."""
MET_MAX = 64
"""Keys without a clock that a slice came by and that lead: looked at again each second while they do."""

_BY_ORDER: dict[int, Callable[[pb.KeyState], float]] = {
    pb.WatchStatsRequest.ORDER_BACKLOG: lambda key: key.ready + key.delayed,
    pb.WatchStatsRequest.ORDER_LATE: lambda key: key.waiting_ms if key.ready else 0,
    pb.WatchStatsRequest.ORDER_ARRIVING: lambda key: key.arriving_per_second,
    pb.WatchStatsRequest.ORDER_SERVED: lambda key: key.served_per_second,
    pb.WatchStatsRequest.ORDER_OFF_SHARE: lambda key: abs(key.due_per_second - key.served_per_second),
}

Sees = Callable[[str, str], bool]
SeesKeys = Callable[[str], bool]


@dataclass(slots=True, eq=False)
class Watcher:
    """Who watches, and what it was told last."""

    places: tuple[Place, ...]
    """Empty: all queues, without keys."""
    order: int
    top: int
    """Of keys; where all queues are watched, of queues."""
    keys: tuple[str, ...]
    tenant: str = ""
    sequence: int = 0
    states: dict[Place, bytes] = field(default_factory=dict)
    rows: dict[tuple[Place, str], bytes] = field(default_factory=dict)
    rankings: dict[Place, list[str]] = field(default_factory=dict)
    totals: Totals = NOTHING
    """Of all queues that it may see, when they were summed up last."""
    summed_s: float = -1.0
    sums: pb.QueueSums | None = None
    ranked: int = 0
    """Among how many queues those are found that it is told of."""


def watcher_of(request: pb.WatchStatsRequest, caller: Caller) -> Watcher:
    """A tenant's watches its own key and is told of no other, and of no queue in all. Raises PermissionDenied."""
    channel = request.channel or DEFAULT_CHANNEL
    places = tuple(dict.fromkeys((queue, channel) for queue in request.queues))
    order = request.order or pb.WatchStatsRequest.ORDER_BACKLOG
    top = request.top if request.HasField("top") else TOP_DEFAULT if places else QUEUES_REPORTED_MAX
    keys = tuple(dict.fromkeys(request.keys))
    if caller.tenant:
        if not places:
            raise errors.PermissionDenied(
                f'queues: this key is bound to tenant "{caller.tenant}": name the queues to watch'
            )
        top, keys = 0, (caller.tenant,)
    return Watcher(places, order, top, keys, tenant=caller.tenant)


@dataclass(slots=True, eq=False)
class Look:
    """The newest of one channel; `gone` when it was deleted."""

    watchers: set[Watcher] = field(default_factory=set)
    rows: dict[str, bytes] = field(default_factory=dict)
    keys: dict[str, pb.KeyState] = field(default_factory=dict)
    state: bytes = b""
    looked_s: float = 0.0
    totals: Totals = NOTHING
    """What had happened when it was looked at."""
    cursor: int = 0
    capacity: int = 0
    counters: tuple[int, ...] = ()
    still: int = 0
    """Looks since anything came or went; after a round of slices without that another one would find the same."""
    met: set[str] = field(default_factory=set)
    rankings: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    """Who leads in `keys`, by order and number: many watchers ask for the same."""
    error: errors.FilaServerError | None = None


class StatsWatch:
    """Everybody who watches. Belongs to the loop's thread."""

    def __init__(self, broker: Broker, now_s: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._now_s = now_s
        self._looks: dict[Place, Look] = {}
        self._all: Look = Look()
        self._all_states: dict[str, dict[Place, bytes]] = {}
        """By queue, with its dead-letter queue, those first in which most waits; as many as somebody wants to be told
        of."""
        self._all_totals: dict[Place, Totals] = {}
        self._snapshot: Snapshot | None = None
        self._all_due_s = 0.0
        self._ranked = 0
        """How many queues stand in `_all_states`, at most."""
        self._ticking: asyncio.Task[None] | None = None
        self._next: asyncio.Event = asyncio.Event()
        """Commands to the core, for tests."""

    @property
    def watchers(self) -> int:
        """How many watch now."""
        return len(set().union(self._all.watchers, *(look.watchers for look in self._looks.values())))

    async def watch(
        self,
        watcher: Watcher,
        sees: Sees,
        sees_keys: SeesKeys = lambda _queue: True,
        sees_all: Callable[[], bool] = lambda: True,
    ) -> AsyncGenerator[bytes, None]:
        """Tell everything, then what changes. Raises QueueNotFound, ChannelNotFound, Overloaded.

        `sees` gets a queue and a channel, and says whether the watcher may know of it; `sees_keys` gets the queue, and
        says whether it may know its fairness keys. A tenant knows its own. Who `sees_all` is told the broker's sums.
        """
        if self.watchers >= WATCHERS_MAX:
            raise errors.Overloaded(f"watchers: {WATCHERS_MAX} watch already, and no more may; end one first")
        # Who may see some queues is told of those among all.
        watcher.ranked = watcher.top if sees_all() else QUEUES_REPORTED_MAX
        self._join(watcher)
        draining = asyncio.Event()

        def end() -> None:
            draining.set()
            self._next.set()

        stay = self._broker.at_drain(end)
        try:
            await self._look_now(watcher)
            while not draining.is_set():
                seen = self._next
                if (reported := self._reported(watcher, sees, sees_keys, sees_all)) is not None:
                    yield reported
                if seen is self._next:
                    await seen.wait()
        finally:
            stay()
            self._leave(watcher)

    # --- who watches what -----------------------------------------------------------------------

    def _join(self, watcher: Watcher) -> None:
        if not watcher.places:
            self._all.watchers.add(watcher)
        for place in watcher.places:
            look = self._looks.setdefault(place, Look())
            named = {key for each in look.watchers for key in each.keys} | set(watcher.keys)
            if len(named) > NAMED_MAX:
                self._leave(watcher)
                raise errors.LimitExceeded(
                    "keys", f"that all watchers of {place[0]} name must be at most {NAMED_MAX}; name fewer"
                )
            look.watchers.add(watcher)
            look.still = 0
        if self._ticking is None:
            self._ticking = asyncio.get_running_loop().create_task(self._tick())

    def _leave(self, watcher: Watcher) -> None:
        self._all.watchers.discard(watcher)
        for place in watcher.places:
            look = self._looks.get(place)
            if look is not None:
                look.watchers.discard(watcher)
                if not look.watchers:
                    del self._looks[place]
        if not self._looks and not self._all.watchers and self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
            self._all_states, self._all_totals, self._snapshot = {}, {}, None

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self._look_at(list(self._looks))
            if self._all.watchers and self._now_s() >= self._all_due_s:
                await self._look_at_all()
            self._next.set()
            self._next = asyncio.Event()

    async def _look_now(self, watcher: Watcher) -> None:
        """What a new watcher asks for and nobody has looked at yet. Raises what is wrong with it."""
        await self._look_at(
            [
                place
                for place in watcher.places
                if not self._looks[place].state or not set(watcher.keys) <= set(self._looks[place].keys)
            ]
        )
        for place in watcher.places:
            if (error := self._looks[place].error) is not None:
                raise error
        if not watcher.places and (self._snapshot is None or self._ranked < watcher.ranked):
            await self._look_at_all()

    # --- looking --------------------------------------------------------------------------------

    async def _look_at(self, places: Iterable[Place]) -> None:
        for place in places:
            look = self._looks.get(place)
            if look is None:
                continue
            try:
                for _ in range(_slices_beside(look)):
                    reply = await self._broker.call(
                        commands.WATCH_ROWS, self._page(place, look, slice_only=True)
                    )
                    self._meet(look, seam_frames.WatchedRows.FromString(reply))
                reply = await self._broker.call(commands.WATCH_ROWS, self._page(place, look))
            except errors.NotFound as error:
                look.error = error
                look.rows, look.keys, look.rankings, look.state = {}, {}, {}, b""
            except errors.FilaServerError:
                continue  # an overloaded core is asked again
            else:
                self._take(look, seam_frames.WatchedRows.FromString(reply))

    @staticmethod
    def _page(place: Place, look: Look, *, slice_only: bool = False) -> bytes:
        orders = {each.order for each in look.watchers if each.top}
        named = {key for each in look.watchers for key in each.keys} | look.met
        page = seam_frames.WatchPage(
            queue=place[0].encode(),
            channel=place[1].encode(),
            cursor=look.cursor,
            capacity=look.capacity,
            cells=0 if _is_still(look) else _cells(look),
            most=max((each.top for each in look.watchers), default=0),
            orders=sum(1 << (order - 1) for order in orders),
            keys=() if slice_only else [key.encode() for key in sorted(named)],
            slice_only=slice_only,
        )
        return bytes(page.SerializeToString())

    @staticmethod
    def _meet(look: Look, got: Any) -> None:
        """Keys of a slice, to be looked at with the others."""
        look.cursor, look.capacity = got.cursor, got.capacity
        look.met |= {pb.KeyState.FromString(row).fairness_key for row in got.keys}

    def _take(self, look: Look, got: Any) -> None:
        look.error = None
        look.cursor, look.capacity = got.cursor, got.capacity
        look.rows, look.keys, look.rankings = {}, {}, {}
        for row in got.keys:
            key = pb.KeyState.FromString(row)
            look.rows[key.fairness_key] = row
            look.keys[key.fairness_key] = key
        state = pb.QueueState.FromString(got.channel)
        counters = _counters(state)
        look.still = look.still + 1 if counters == look.counters else 0
        look.counters = counters
        now_s = self._now_s()
        if look.looked_s and now_s > look.looked_s:
            tell_rates(state, look.totals, now_s - look.looked_s)
        look.looked_s, look.totals = now_s, totals_of(state)
        look.state = state.SerializeToString()
        # Keys that are in the table of clocks come again by themselves; those a slice came by, if they are named.
        waiting = [
            key for key in look.keys.values() if not key.HasField("waits") and (key.ready or key.delayed)
        ]
        longest = sorted(waiting, key=lambda key: key.waiting_ms, reverse=True)[:MET_MAX]
        largest = sorted(waiting, key=lambda key: key.ready + key.delayed, reverse=True)[:MET_MAX]
        look.met = {key.fairness_key for key in (*longest, *largest)}

    async def _look_at_all(self) -> None:
        asked = seam_frames.MetricsAsked(without_keys=True)
        try:
            snapshot = decode(await self._broker.call(commands.METRICS, asked.SerializeToString()))
        except errors.FilaServerError:
            return
        now_s = self._now_s()
        passed_s = now_s - self._all.looked_s if self._all.looked_s else 0.0
        self._all.looked_s = now_s
        self._snapshot = snapshot
        # Half a second early, so that a tick that comes a little early does not wait for the next one.
        self._all_due_s = now_s + LOOK_EVERY_S * (len(snapshot.queues) / ROWS_A_SECOND - 0.5)
        states: dict[str, dict[Place, bytes]] = {}
        totals: dict[Place, Totals] = {}
        self._ranked = max((each.ranked for each in self._all.watchers), default=0)
        for led in leading(snapshot.queues, self._ranked):
            of_queue = states[text_of(led[0].name)] = {}
            for queue, channel in ((each, channel) for each in led for channel in each.channels):
                place = (text_of(queue.name), text_of(channel.name))
                state = state_of(place, queue, channel)
                before = self._all_totals.get(place)
                totals[place] = totals_of(state)
                if passed_s > 0 and before is not None:
                    tell_rates(state, before, passed_s)
                of_queue[place] = state.SerializeToString()
        self._all_states, self._all_totals = states, totals

    def _sum_up(self, watcher: Watcher, snapshot: Snapshot, sees: Sees, *, sees_all: bool) -> bool:
        """Add up all queues that it may see, once a look; whether that is news to it."""
        passed_s = self._all.looked_s - watcher.summed_s
        if passed_s <= 0:
            return False
        sums, totals = sums_of_all(snapshot) if sees_all else sums_of_some(snapshot, sees)
        if watcher.summed_s >= 0:
            tell_rates_of_sums(sums, watcher.totals, totals, passed_s)
        watcher.totals, watcher.summed_s = totals, self._all.looked_s
        before, watcher.sums = watcher.sums, sums
        return before != sums

    # --- telling --------------------------------------------------------------------------------

    def _reported(
        self, watcher: Watcher, sees: Sees, sees_keys: SeesKeys, sees_all: Callable[[], bool]
    ) -> bytes | None:
        """The difference to what it was told; None where there is none."""
        reported = pb.WatchStatsResponse(sequence=watcher.sequence + 1, full=watcher.sequence == 0)
        now: dict[Place, bytes] = {}
        rows: dict[tuple[Place, str], bytes] = {}
        if watcher.places:
            for place in watcher.places:
                look = self._looks[place]
                if look.state and sees(*place):
                    shows_keys = bool(watcher.tenant) or sees_keys(place[0])
                    self._report_channel(watcher, place, look, reported, now, rows, shows_keys=shows_keys)
        elif self._snapshot is not None:
            now = self._leading_states(watcher, sees)
            for place, state in now.items():
                if watcher.states.get(place) != state:
                    reported.channels.add().state.MergeFromString(state)
            if self._sum_up(watcher, self._snapshot, sees, sees_all=sees_all()):
                reported.sums.MergeFrom(watcher.sums or pb.QueueSums())
        for place in watcher.states.keys() - now.keys():
            reported.gone.add(queue=place[0], channel=place[1])
        watcher.states, watcher.rows = now, rows
        if not (reported.full or reported.channels or reported.gone or reported.HasField("sums")):
            return None
        watcher.sequence += 1
        reported.at.FromMilliseconds(time.time_ns() // 1_000_000)
        return reported.SerializeToString()

    def _leading_states(self, watcher: Watcher, sees: Sees) -> dict[Place, bytes]:
        """Of as many queues as it wants to be told of, of those that it may see."""
        now: dict[Place, bytes] = {}
        count = 0
        for of_queue in self._all_states.values():
            if count == watcher.top:
                break
            seen = {place: state for place, state in of_queue.items() if sees(*place)}
            count += bool(seen)
            now |= seen
        return now

    @staticmethod
    def _report_channel(
        watcher: Watcher,
        place: Place,
        look: Look,
        reported: pb.WatchStatsResponse,
        now: dict[Place, bytes],
        rows: dict[tuple[Place, str], bytes],
        *,
        shows_keys: bool,
    ) -> None:
        state = b"" if watcher.tenant else look.state
        ranking = _leading(watcher, look) if shows_keys else []
        changed = []
        for key in (*ranking, *watcher.keys) if shows_keys else ():
            row = look.rows.get(key)
            if row is not None and (place, key) not in rows:
                row = _own_row(row) if watcher.tenant else row
                rows[place, key] = row
                if watcher.rows.get((place, key)) != row:
                    changed.append(row)
        now[place] = state
        is_new = place not in watcher.states
        if not (
            is_new or changed or watcher.states[place] != state or watcher.rankings.get(place) != ranking
        ):
            return
        channel = reported.channels.add()
        if state:
            channel.state.MergeFromString(state)
        else:
            channel.state.queue, channel.state.channel = place
        for row in changed:
            channel.keys.add().MergeFromString(row)
        channel.leading.extend(ranking)
        watcher.rankings[place] = ranking


def _counters(state: pb.QueueState) -> tuple[int, ...]:
    return (
        state.ready,
        state.delayed,
        state.in_flight,
        state.enqueued_total,
        state.leased_total,
        state.delivered_total,
        state.acked_total,
        state.dead_lettered_total,
    )


def _is_still(look: Look) -> bool:
    return look.still > COME_ROUND_LOOKS


def _slices_beside(look: Look) -> int:
    """How many slices a look takes before the one that comes with its rows."""
    return 0 if _is_still(look) else min(SLICES_MAX, look.capacity // (CELLS_MAX * COME_ROUND_LOOKS))


def _cells(look: Look) -> int:
    """Of each slice: together they come round in time, and no faster."""
    slices = COME_ROUND_LOOKS * (1 + _slices_beside(look))
    return min(CELLS_MAX, max(CELLS_MIN, look.capacity // slices + 1))


def _leading(watcher: Watcher, look: Look) -> list[str]:
    """The keys that lead in the watcher's order, those with nothing left out."""
    if not watcher.top:
        return []
    asked = (watcher.order, watcher.top)
    if asked not in look.rankings:
        rank = _BY_ORDER[watcher.order]
        ranked = sorted(
            ((rank(key), key.fairness_key) for key in look.keys.values() if rank(key) > 0),
            key=lambda each: (-each[0], each[1]),
        )
        look.rankings[asked] = [name for _, name in ranked[: watcher.top]]
    return look.rankings[asked]


def _own_row(row: bytes) -> bytes:
    """A row as its tenant is told it: nothing that others make up."""
    key = pb.KeyState.FromString(row)
    for name in ("blocking_bucket", "nobody_consumes", "due_per_second", "due_total"):
        key.ClearField(name)
    return key.SerializeToString()
