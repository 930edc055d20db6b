"""Is anyone hurt, by whom, and what do I press? A sentence, six numbers with their hour, the late keys, the queues."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from starlette.responses import Response

from fila import NotFound
from fila.answers import Stats
from fila.observations import BrokerStatus, LateKey, LateKeys
from fila.watched import QueueState, Series, SeriesPoint
from fila_console.addresses import key_path, queue_path
from fila_console.cells import Cell, Row, State, cell, line_points, row
from fila_console.feed import Feed, FeedTopic
from fila_console.late import LATE_MS, OTHERS_TURNS, floods
from fila_console.questions import Question
from fila_console.series import STEP_S, Hour, point_times
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream
from fila_console.visit import Visit
from fila_console.watches import Watch
from fila_console.wording import UNKNOWN, age, brief, cause, clock, count, counted, named, part, rate, size

ASKED_A_SECOND = 5
"""Queues whose scripts and largest key are asked for in one second."""
ASKED_EVERY_S = 1.8
"""For the same queue: every other second."""
HOURS_ASKED = 10
NAMED_MAX = 20
"""Queues that one stream of numbers may name."""
DLQ = ".dlq"
QUEUES_SHOWN = 200
BY_OPERATOR = frozenset(("rate_limited", "capped"))
"""Causes that somebody set for this key: whoever is late by itself is told of first."""
LATE_SHOWN = 20
LATE_EVERY_S = 1.8
"""Every other second."""
STATUS_EVERY_S = 4.8
TURNS_EVERY_S = 0.5
READING = cell("reading …", tone="quiet")
SOON_S = 1.0
"""Until a page is made anew."""
ASKED_LATE = 50

LATE_COLUMNS = ("Key", "Queue", ">>Waits", "Why", ">>Free at", ">Waiting", ">In hand", ">Weight")
QUEUE_COLUMNS = (
    "Queue",
    "State",
    ">Waiting",
    ">In hand",
    ">Arriving",
    ">Served",
    ">>Oldest",
    ">>Consumers",
    ">>Dead letters",
)
NUMBERS = (
    ("waiting", "Waiting", "messages"),
    ("in_hand", "In hand", "messages"),
    ("arriving", "Arriving", "messages a second"),
    ("served", "Served", "deliveries a second"),
    ("oldest", "Oldest waits", "in all queues"),
    ("dead", "Dead letters", "messages"),
)


@dataclass(slots=True)
class _Queue:
    """One queue, its channels together."""

    waiting: int = 0
    in_hand: int = 0
    arriving: float = 0.0
    served: float = 0.0
    oldest_ms: int = 0
    consumers: int = 0

    def add(self, channel: QueueState) -> None:
        """Count one channel: a message is stored once, and waits in each."""
        self.waiting = max(self.waiting, channel.ready + channel.delayed)
        self.in_hand += channel.in_flight
        self.arriving = max(self.arriving, channel.arriving_per_second)
        self.served += channel.delivered_per_second
        self.oldest_ms = max(self.oldest_ms, channel.oldest_age_ms if channel.ready + channel.delayed else 0)
        self.consumers += channel.consumers


class Overview(FeedTopic):
    """What the broker tells of all queues as it changes; who is late, every other second; scripts, in turns."""

    def __init__(self) -> None:
        super().__init__()
        self._hour = Hour()
        self._stats: dict[str, Stats] = {}
        self._asked_s: dict[str, float] = {}
        self._late: Question[LateKeys] = Question(LATE_EVERY_S)
        self._turns: Question[None] = Question(TURNS_EVERY_S)
        self._status: BrokerStatus | None = None
        self._status_at_s = -math.inf

    async def close(self) -> None:
        """As every feed's; and what is asked ends."""
        self._late.close()
        self._turns.close()
        await super().close()

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""
        _, status, feed = await asyncio.gather(
            self._late.ask(lambda: _late(upstream)), self._ask_status(upstream), self._follow(upstream)
        )
        late = self._late_by_now()
        queues: dict[str, _Queue] = {}
        for (name, _channel), told in feed.channels.items():
            queues.setdefault(name, _Queue()).add(told)
        ours = {name: queue for name, queue in sorted(queues.items()) if not name.endswith(DLQ)}
        await self._turns.ask(lambda: self._ask_in_turns(upstream, ours, late))
        numbers = _sums(ours, queues)
        now_s = time.time()
        if now_s - self._hour.newest_s > 2 * STEP_S:
            await self._fill_hour(upstream, ours, queues)
        self._hour.put(now_s, numbers)
        name = upstream.broker.name
        state = State()
        state.texts = {f"number-{each}": cell(_written(each, numbers[each])) for each, _, _ in NUMBERS}
        state.lines = {each: line_points(self._hour.values(each, now_s)) for each, _, _ in NUMBERS}
        state.texts["at"] = cell(f"as of {clock(datetime.now(UTC))}")
        state.texts |= self._sentence(name, ours, late, status)
        state.texts["late-count"] = cell(_late_count(late))
        state.texts["queue-count"] = cell(counted(len(ours), "queue"))
        state.tables["late"] = [
            _late_row(name, each) for each in late.keys[:LATE_SHOWN] if each.waiting_ms >= LATE_MS
        ]
        if self._late.answer is None:
            state.tables["late"] = [row("reading", [READING, *[""] * (len(LATE_COLUMNS) - 1)])]
            state.texts["late-count"] = READING
            if not state.texts["sentence"].get("tone"):
                state.texts |= _said("Reading which keys wait longest …", "")
        state.tables["queues"] = self._queue_rows(name, ours, queues, late)
        return state

    async def _ask_status(self, upstream: Upstream) -> BrokerStatus:
        now_s = time.monotonic()
        if self._status is None or now_s - self._status_at_s >= STATUS_EVERY_S:
            self._status, self._status_at_s = await upstream.status(), now_s
        return self._status

    def _late_by_now(self) -> LateKeys:
        """Who was late when it was asked, with the time that passed since; nobody before the first answer."""
        told = self._late.answer
        if told is None:
            return LateKeys(keys=[], waiting_keys=0)
        passed_ms = round((time.monotonic() - self._late.at_s) * 1000)
        keys = [replace(each, waiting_ms=each.waiting_ms + passed_ms) for each in told.keys]
        return LateKeys(keys=keys, waiting_keys=told.waiting_keys)

    async def _follow(self, upstream: Upstream) -> Feed:
        """The stream of numbers, once it has told everything. Raises Trouble."""
        if self._feed is None:
            self._feed = upstream.follow()
        try:
            await self._feed.ready()
        except Trouble as trouble:
            names = (
                [info.name for info in await upstream.queues()][:NAMED_MAX] if trouble.status == 403 else []
            )
            if not names:
                raise
            # A key that is bound to a tenant is told its own part of queues that it names.
            self._feed = upstream.follow(names, top=1)
            await self._feed.ready()
        return self._feed

    async def _ask_in_turns(self, upstream: Upstream, ours: dict[str, _Queue], late: LateKeys) -> None:
        """Largest keys and scripts: of queues with late keys every other second, of the others in turns."""
        for gone in self._stats.keys() - ours.keys():
            del self._stats[gone]
        due_s = time.monotonic() - ASKED_EVERY_S
        due = {name: asked_s for name in ours if (asked_s := self._asked_s.get(name, 0.0)) <= due_s}
        chosen = {each.queue for each in late.keys[:ASKED_A_SECOND] if each.queue in due}
        for name in sorted(due, key=due.__getitem__):
            if len(chosen) >= ASKED_A_SECOND:
                break
            chosen.add(name)
        told = await asyncio.gather(*(_stats(upstream, each) for each in chosen))
        for name, stats in zip(chosen, told, strict=True):
            self._asked_s[name] = time.monotonic()
            if stats is not None:
                self._stats[name] = stats

    async def _fill_hour(
        self, upstream: Upstream, ours: dict[str, _Queue], queues: dict[str, _Queue]
    ) -> None:
        """What the broker recorded while nobody looked: of the busiest queues, and of the dead letters there are."""
        busy = sorted(ours, key=lambda name: -(ours[name].waiting + ours[name].served))[:HOURS_ASKED]
        dead = [name for name in queues if name.endswith(DLQ) and queues[name].waiting][:HOURS_ASKED]
        told = await asyncio.gather(*(_series(upstream, name) for name in [*busy, *dead]))
        steps: dict[int, dict[str, float]] = {}
        for name, series in zip([*busy, *dead], told, strict=True):
            if series is None or not series.points:  # a tenant is told nothing of the whole
                continue
            times, first = point_times(series)
            for at, point in zip(times, series.points[first:], strict=True):
                if point.recorded:
                    _add_point(steps.setdefault(at, {}), point, series.step_ms / 1000, is_dead=name in dead)
        for at in sorted(steps):
            self._hour.fill(at, steps[at])

    # The sentence.

    def _sentence(
        self, broker: str, ours: dict[str, _Queue], late: LateKeys, status: BrokerStatus
    ) -> dict[str, Cell]:
        if status.draining:
            return _said("The broker is stopping: nothing new is taken.", tone="lost")
        if status.disk_level in ("floor", "full"):
            free = size(status.disk_free_bytes)
            return _said(
                f"The broker's disk is too full, {free} left: enqueues are refused. Free space there.",
                tone="lost",
            )
        hurt = [each for each in late.keys if each.waiting_ms >= LATE_MS and each.cause != "paused"]
        if not hurt:
            return _said(self._calm(ours), tone="")
        consumers = {name: queue.consumers for name, queue in ours.items()}
        for each in hurt:
            key, share = self._largest(each.queue)
            if (
                each.cause not in OTHERS_TURNS
                or not consumers.get(each.queue)
                or key == each.fairness_key
                or not share
            ):
                continue
            name = named(key)
            text = (
                f"{named(each.fairness_key)} waits {age(each.waiting_ms)} in {each.queue}, while {name} has "
                f"{part(share)} of what waits there."
            )
            return _said(text, "late", f"Slow {name}", _rate_of(broker, each.queue, key, each.channel))
        worst = max(hurt, key=lambda each: (each.cause not in BY_OPERATOR, each.pending))
        if not consumers.get(worst.queue):
            text = (
                f"Nobody consumes {worst.queue}: {named(worst.fairness_key)} waits {age(worst.waiting_ms)}."
            )
            href = queue_path(broker, worst.queue) + "#consumers"
            return _said(text, "late", f"Look at {worst.queue}", href)
        return self._alone(broker, worst)

    def _alone(self, broker: str, worst: LateKey) -> dict[str, Cell]:
        """Of a key that is late, and nobody else's backlog is why."""
        name = named(worst.fairness_key)
        href = key_path(broker, worst.queue, worst.fairness_key, worst.channel)
        who = f"{name} waits {age(worst.waiting_ms)} in {worst.queue}"
        key, share = self._largest(worst.queue)
        if key == worst.fairness_key and floods(share, worst.cause):
            text = f"{who}: it floods the queue, with {part(share)} of what waits; keys that send less are served."
            return _said(text, "late", f"Slow {name}", _rate_of(broker, worst.queue, key, worst.channel))
        return _said(f"{who}: {cause(worst.cause, worst.blocking_bucket)}.", "late", f"Look at {name}", href)

    def _largest(self, queue: str) -> tuple[str, float]:
        """The key with the most messages that wait, and its part of them; 0 where that is not known."""
        stats = self._stats.get(queue)
        if stats is None or not stats.per_key_stats or not stats.depth:
            return "", 0.0
        first = stats.per_key_stats[0]
        return first.key, min(1.0, first.pending_count / stats.depth)

    def _calm(self, ours: dict[str, _Queue]) -> str:
        waiting = sum(queue.waiting for queue in ours.values())
        busy = sum(1 for queue in ours.values() if queue.waiting)
        if not ours:
            return "There is no queue yet. Make one: fila queue create orders --fairness-header tenant"
        if not waiting:
            return f"Nobody is late: nothing waits in {counted(len(ours), 'queue')}."
        verb = "waits" if waiting == 1 else "wait"
        where = f"{counted(waiting, 'message')} {verb} in {counted(busy, 'queue')}"
        return f"Nobody is late: {where}, each key in its turn."

    # The queues.

    def _queue_rows(
        self, broker: str, ours: dict[str, _Queue], queues: dict[str, _Queue], late: LateKeys
    ) -> list[Row]:
        late_in: dict[str, list[LateKey]] = {}
        for each in late.keys:
            if each.waiting_ms >= LATE_MS:
                late_in.setdefault(each.queue, []).append(each)
        ranked: list[tuple[tuple[float, ...], str, Row]] = []
        for name, queue in ours.items():
            dead = queues[name + DLQ].waiting if name + DLQ in queues else 0
            score, state = _trouble_in(queue, self._stats.get(name), late_in.get(name, []), dead)
            cells: list[Cell | str] = [
                cell(name, href=queue_path(broker, name)),
                state,
                count(queue.waiting),
                count(queue.in_hand),
                rate(queue.arriving),
                rate(queue.served),
                age(queue.oldest_ms) if queue.waiting else UNKNOWN,
                cell(count(queue.consumers), tone="late" if queue.waiting and not queue.consumers else ""),
                cell(count(dead), href=queue_path(broker, name + DLQ, "dead-letters") if dead else ""),
            ]
            ranked.append(((-score, -queue.waiting), name, row(name, cells, href=queue_path(broker, name))))
        ranked.sort(key=lambda each: each[:2])
        return [made for _, _, made in ranked[:QUEUES_SHOWN]]


def _sums(ours: dict[str, _Queue], queues: dict[str, _Queue]) -> dict[str, float | None]:
    return {
        "waiting": sum(queue.waiting for queue in ours.values()),
        "in_hand": sum(queue.in_hand for queue in ours.values()),
        "arriving": sum(queue.arriving for queue in ours.values()),
        "served": sum(queue.served for queue in ours.values()),
        "oldest": max((queue.oldest_ms for queue in ours.values()), default=0),
        "dead": sum(queue.waiting for name, queue in queues.items() if name.endswith(DLQ)),
    }


def _add_point(sums: dict[str, float], point: SeriesPoint, seconds: float, *, is_dead: bool) -> None:
    if is_dead:
        sums["dead"] = sums.get("dead", 0.0) + point.depth
        return
    told = {"waiting": point.depth, "in_hand": point.in_flight}
    for name, value in (
        told | {"arriving": point.arrived / seconds, "served": point.delivered / seconds}
    ).items():
        sums[name] = sums.get(name, 0.0) + value
    sums["oldest"] = max(sums.get("oldest", 0.0), point.oldest_age_ms)


async def _series(upstream: Upstream, queue: str) -> Series | None:
    try:
        return await upstream.series(queue)
    except Trouble as trouble:
        if trouble.status not in (403, 404):
            raise
        return None


def _rate_of(broker: str, queue: str, key: str, channel: str) -> str:
    """Where a key is slowed: the field of its page."""
    return key_path(broker, queue, key, channel) + "#rate"


async def _late(upstream: Upstream) -> LateKeys:
    try:
        told = await upstream.late(max_keys=ASKED_LATE)
    except Trouble as trouble:
        # A key that may only produce is told of its queues, and not of who waits in them.
        if trouble.status != 403:
            raise
        return LateKeys(keys=[], waiting_keys=0)
    # Dead letters wait for people, and are told of by their number.
    keys = [each for each in told.keys if not each.queue.endswith(".dlq")]
    return LateKeys(keys=keys, waiting_keys=told.waiting_keys - (len(told.keys) - len(keys)))


async def _stats(upstream: Upstream, queue: str) -> Stats | None:
    try:
        return await upstream.stats(queue, max_keys=1)
    except Trouble as trouble:
        # Deleted meanwhile, or not to be told: its row has fewer numbers.
        if isinstance(trouble.__cause__, NotFound) or trouble.status == 403:
            return None
        raise


def _trouble_in(queue: _Queue, stats: Stats | None, late: list[LateKey], dead: int) -> tuple[float, Cell]:
    """How much a queue needs somebody, and why, the worst first."""
    hooks = [hook for hook in (stats.hooks if stats else []) if hook.breaker_state in ("open", "half_open")]
    if hooks:
        return 5, cell(f"● {hooks[0].hook} fails", tone="lost", title=brief(hooks[0].last_error))
    if queue.waiting and not queue.consumers and late:
        return 4, cell("▲ nobody consumes", tone="late")
    waiting = [each for each in late if each.cause != "paused"]
    if waiting:
        worst = max(each.waiting_ms for each in waiting)
        return 3 + min(0.9, worst / 1e8), cell(f"▲ {counted(len(waiting), 'late key')}", tone="late")
    if late:
        return 2, cell("‖ paused", tone="paused")
    return (1, cell("has dead letters", tone="quiet")) if dead else (0, cell("in turn", tone="quiet"))


def _late_row(broker: str, each: LateKey) -> Row:
    href = key_path(broker, each.queue, each.fairness_key, each.channel)
    tone = "paused" if each.cause == "paused" else "late"
    where = each.queue if each.channel in ("", "default") else f"{each.queue} / {each.channel}"
    cells: list[Cell | str] = [
        cell(named(each.fairness_key), href=href),
        cell(where, href=queue_path(broker, each.queue)),
        cell(("‖ " if tone == "paused" else "▲ ") + age(each.waiting_ms), tone=tone),
        cause(each.cause, each.blocking_bucket),
        _free_at(each),
        count(each.pending),
        count(each.in_flight),
        count(each.weight),
    ]
    return row(f"{each.queue}\0{each.channel}\0{each.fairness_key}", cells, href=href)


def _free_at(each: LateKey) -> str:
    """When nothing of its own holds it back any more; its turn may come later."""
    if each.cause == "not_its_turn":
        return "now"
    if each.until is None:
        return UNKNOWN
    left_s = each.until.timestamp() - time.time()
    if left_s <= 0:
        return "now"
    return "within 1 s" if left_s <= SOON_S else clock(each.until)


def _said(text: str, tone: str, action: str = "", href: str = "") -> dict[str, Cell]:
    return {"sentence": cell(text, tone=tone), "action": cell(action, href=href)}


def _late_count(late: LateKeys) -> str:
    shown = sum(1 for each in late.keys if each.waiting_ms >= LATE_MS)
    more = " or more" if shown == ASKED_LATE else ""
    waits = "has waited" if shown == 1 and not more else "have waited"
    return f"{count(shown)}{more} of {counted(late.waiting_keys, 'key')} that wait {waits} 10 s or longer"


def _written(name: str, value: float | None) -> str:
    if name in ("arriving", "served"):
        return rate(value)
    return age(value or 0) if name == "oldest" else count(value or 0)


def watch(visit: Visit) -> Watch:
    """The overview of this broker, with this key."""
    return visit.watch(("overview",), Overview)


async def page(visit: Visit) -> Response:
    """The overview."""
    watched = watch(visit)
    state = await watched.current()
    return visit.page(
        "overview.html",
        here="overview",
        state=state,
        live=visit.url("live", "overview"),
        numbers=NUMBERS,
        late_columns=LATE_COLUMNS,
        queue_columns=QUEUE_COLUMNS,
    )
