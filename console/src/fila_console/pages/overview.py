"""Is anyone hurt, by whom, and what do I press? A sentence, six numbers with their hour, the late keys, the queues."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, replace

from starlette.responses import Response

from fila.observations import BrokerStatus, BrokerTrouble, LateKey, LateKeys
from fila.watched import QueueState, QueueSums, Series, SeriesPoint
from fila_console.addresses import key_path, queue_path
from fila_console.cells import Cell, Row, State, cell, line_points, row
from fila_console.feed import Feed, FeedTopic
from fila_console.late import LATE_MS
from fila_console.questions import Question
from fila_console.series import STEP_S, Hour, point_times
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream
from fila_console.visit import Visit
from fila_console.watches import Watch
from fila_console.wording import (
    SERVED,
    UNKNOWN,
    age,
    cause,
    clock,
    count,
    counted,
    named,
    rate,
    served_unit,
    shown,
)
from fila_console.wrong import sentences

HOURS_ASKED = 10
NAMED_MAX = 20
"""Queues that one stream of numbers may name."""
DLQ = ".dlq"
QUEUES_TOLD = 200
"""Those in which most waits are told one by one; the numbers are of all."""
LATE_SHOWN = 20
LATE_EVERY_S = 1.8
"""Every other second."""
LATE_REST = 150
"""Who is late in all queues is asked so many times less often than the answer takes: of a broker with 20,000 queues an
open overview takes a hundredth of a core for that, and says how old the answer is."""
LATE_OLD_S = 5.0
"""An older answer is told with its age."""
STATUS_EVERY_S = 1.8
TROUBLES_ASKED = 100
"""Four are told in sentences, and the others in the states of their queues."""
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
    ("served", "Served", SERVED),
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
    failed: float = 0.0
    returned: float = 0.0
    oldest_ms: int = 0
    consumers: int = 0

    def add(self, channel: QueueState) -> None:
        """Count one channel: a message is stored once, and waits in each."""
        self.waiting = max(self.waiting, channel.ready + channel.delayed)
        self.in_hand += channel.in_flight
        self.arriving = max(self.arriving, channel.arriving_per_second)
        self.served += channel.acked_per_second
        self.failed += channel.failed_per_second
        self.returned += channel.returned_per_second
        self.oldest_ms = max(self.oldest_ms, channel.oldest_age_ms)
        self.consumers += channel.consumers


class Overview(FeedTopic):
    """What the broker tells of all queues as it changes; who is late, every other second; scripts, in turns."""

    def __init__(self) -> None:
        super().__init__()
        self._hour = Hour()
        self._late: Question[LateKeys] = Question(LATE_EVERY_S, LATE_REST)
        self._status: BrokerStatus | None = None
        self._status_at_s = -math.inf

    async def close(self) -> None:
        """As every feed's; and what is asked ends."""
        self._late.close()
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
        sums = feed.sums if feed.sums is not None else _summed_up(ours, queues)
        numbers = _numbers(sums)
        now_s = upstream.clock.now_s()
        if now_s - self._hour.newest_s > 2 * STEP_S:
            await self._fill_hour(upstream, ours, queues)
        self._hour.put(now_s, numbers)
        name = upstream.broker.name
        state = State()
        state.texts = {f"number-{each}": cell(_written(each, numbers[each])) for each, _, _ in NUMBERS}
        state.texts["unit-served"] = cell(served_unit(sums.failed_per_second, sums.returned_per_second))
        state.lines = {each: line_points(self._hour.values(each, now_s)) for each, _, _ in NUMBERS}
        state.texts["at"] = cell(upstream.clock.as_of())
        state.texts |= sentences(name, status)
        state.texts["late-count"] = cell(_late_count(late) + self._late_as_of())
        state.texts["queue-count"] = cell(_queue_count(len(ours), sums))
        state.tables["late"] = [
            _late_row(name, each, now_s) for each in late.keys[:LATE_SHOWN] if each.waiting_ms >= LATE_MS
        ]
        if self._late.answer is None:
            state.tables["late"] = [row("reading", [READING, *[""] * (len(LATE_COLUMNS) - 1)])]
            state.texts["late-count"] = READING
        state.tables["queues"] = _queue_rows(name, ours, queues, late, status)
        return state

    async def _ask_status(self, upstream: Upstream) -> BrokerStatus:
        now_s = time.monotonic()
        if self._status is None or now_s - self._status_at_s >= STATUS_EVERY_S:
            self._status = await upstream.status(max_troubles=TROUBLES_ASKED)
            self._status_at_s = now_s
        return self._status

    def _late_by_now(self) -> LateKeys:
        """Who was late when it was asked, with the time that passed since; nobody before the first answer."""
        told = self._late.answer
        if told is None:
            return LateKeys(keys=[], waiting_keys=0)
        passed_ms = round((time.monotonic() - self._late.at_s) * 1000)
        keys = [replace(each, waiting_ms=each.waiting_ms + passed_ms) for each in told.keys]
        return LateKeys(keys=keys, waiting_keys=told.waiting_keys)

    def _late_as_of(self) -> str:
        """When it was asked, where a broker with much to look through is asked seldom."""
        old_s = time.monotonic() - self._late.at_s
        return f", asked {age(round(old_s * 1000))} ago" if LATE_OLD_S < old_s < math.inf else ""

    async def _follow(self, upstream: Upstream) -> Feed:
        """The stream of numbers, once it has told everything. Raises Trouble."""
        if self._feed is None:
            self._feed = upstream.follow(top=QUEUES_TOLD)
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


def _queue_rows(
    broker: str,
    ours: dict[str, _Queue],
    queues: dict[str, _Queue],
    late: LateKeys,
    status: BrokerStatus,
) -> list[Row]:
    """Those with the worst troubles first, and of equal ones those with most that waits."""
    worst: dict[str, BrokerTrouble] = {}
    for trouble in status.troubles:
        worst.setdefault(trouble.queue, trouble)
    late_in: dict[str, list[LateKey]] = {}
    for each in late.keys:
        if each.waiting_ms >= LATE_MS:
            late_in.setdefault(each.queue, []).append(each)
    ranked: list[tuple[tuple[float, ...], str, Row]] = []
    for name, queue in ours.items():
        dead = queues[name + DLQ].waiting if name + DLQ in queues else 0
        score, state = _state(worst.get(name), late_in.get(name, []), dead)
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
    for name, trouble in worst.items():
        # Of one in which less waits than in those that are told: its trouble is known, and its numbers are not.
        if name and name not in ours and not name.endswith(DLQ):
            score, state = _state(trouble, [], 0)
            known = count(trouble.waiting) if trouble.waiting else UNKNOWN
            cells = [cell(name, href=queue_path(broker, name)), state, known, *[UNKNOWN] * 6]
            ranked.append(((-score, -trouble.waiting), name, row(name, cells, href=queue_path(broker, name))))
    ranked.sort(key=lambda each: each[:2])
    return [made for _, _, made in ranked]


def _summed_up(ours: dict[str, _Queue], queues: dict[str, _Queue]) -> QueueSums:
    """Where queues are named to the broker it adds nothing up, and these are all."""
    return QueueSums(
        queues=len(ours),
        waiting=sum(queue.waiting for queue in ours.values()),
        in_flight=sum(queue.in_hand for queue in ours.values()),
        arriving_per_second=sum(queue.arriving for queue in ours.values()),
        acked_per_second=sum(queue.served for queue in ours.values()),
        failed_per_second=sum(queue.failed for queue in ours.values()),
        returned_per_second=sum(queue.returned for queue in ours.values()),
        oldest_age_ms=max((queue.oldest_ms for queue in ours.values()), default=0),
        dead_letters=sum(queue.waiting for name, queue in queues.items() if name.endswith(DLQ)),
    )


def _numbers(sums: QueueSums) -> dict[str, float | None]:
    return {
        "waiting": sums.waiting,
        "in_hand": sums.in_flight,
        "arriving": sums.arriving_per_second,
        "served": sums.acked_per_second,
        "oldest": sums.oldest_age_ms,
        "dead": sums.dead_letters,
    }


def _queue_count(told: int, sums: QueueSums) -> str:
    """How many queues there are, and how many of them the table has."""
    which = " of the busiest that you may see" if sums.partial else ""
    if told >= sums.queues:
        return counted(sums.queues, "queue") + which
    return f"{count(told)} of {counted(sums.queues, 'queue')}{which}: those with trouble, and in which most waits"


def _add_point(sums: dict[str, float], point: SeriesPoint, seconds: float, *, is_dead: bool) -> None:
    if is_dead:
        sums["dead"] = sums.get("dead", 0.0) + point.depth
        return
    told = {"waiting": point.depth, "in_hand": point.in_flight}
    for name, value in (
        told | {"arriving": point.arrived / seconds, "served": point.acked / seconds}
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


_STATES = {
    "circuit_open": ("● script fails", "lost"),
    "nobody_consumes": ("▲ nobody consumes", "late"),
    "failing": ("▲ failing", "late"),
    "paused": ("‖ paused", "paused"),
    "limit_behind": ("▲ limit falls behind", "late"),
    "budget_spent": ("‖ budget spent", "paused"),
    "flood": ("▲ flooded", "late"),
}


def _state(trouble: BrokerTrouble | None, late: list[LateKey], dead: int) -> tuple[float, Cell]:
    """How much a queue needs somebody, and why, the worst first."""
    if trouble is not None:
        text, tone = _STATES.get(trouble.kind, (trouble.kind, "late"))
        kinds = [*_STATES]
        place = kinds.index(trouble.kind) if trouble.kind in kinds else len(kinds)
        return 3 + len(kinds) - place, cell(text, tone=tone, title=shown(trouble.text))
    if late:
        worst = max(each.waiting_ms for each in late)
        return 2 + min(0.9, worst / 1e8), cell(f"▲ {counted(len(late), 'late key')}", tone="late")
    return (1, cell("has dead letters", tone="quiet")) if dead else (0, cell("in turn", tone="quiet"))


def _late_row(broker: str, each: LateKey, now_s: float) -> Row:
    href = key_path(broker, each.queue, each.fairness_key, each.channel)
    tone = "paused" if each.cause == "paused" else "late"
    where = each.queue if each.channel in ("", "default") else f"{each.queue} / {each.channel}"
    cells: list[Cell | str] = [
        cell(named(each.fairness_key), href=href),
        cell(where, href=queue_path(broker, each.queue)),
        cell(("‖ " if tone == "paused" else "▲ ") + age(each.waiting_ms), tone=tone),
        cause(each.cause, each.blocking_bucket, each.blocking_part, each.blocking_rate, each.nobody_consumes),
        _free_at(each, now_s),
        count(each.pending),
        count(each.in_flight),
        count(each.weight),
    ]
    return row(f"{each.queue}\0{each.channel}\0{each.fairness_key}", cells, href=href)


def _free_at(each: LateKey, now_s: float) -> str:
    """When nothing of its own holds it back any more; its turn may come later."""
    if each.cause == "not_its_turn":
        return "now"
    if each.until is None:
        return UNKNOWN
    left_s = each.until.timestamp() - now_s
    if left_s <= 0:
        return "now"
    return "within 1 s" if left_s <= SOON_S else clock(each.until)


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
        locked=await visit.locked("manage"),
        state=state,
        live=visit.url("live", "overview"),
        numbers=NUMBERS,
        late_columns=LATE_COLUMNS,
        queue_columns=QUEUE_COLUMNS,
    )
