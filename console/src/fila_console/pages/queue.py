"""One queue: who gets which part of it, who waits and why, and all that hangs on it."""

from __future__ import annotations

import asyncio
import math
import time
from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import Response

from fila.answers import ConsumerInfo, KeyState, Stats
from fila.observations import BrokerStatus, LateKeys
from fila.shell_words import command_line
from fila.watched import QueueState, Series
from fila_console.addresses import broker_path, key_path, queue_path
from fila_console.cells import Cell, Plot, Row, State, cell, row
from fila_console.dues import due_lately, due_then
from fila_console.feed import FeedTopic
from fila_console.late import LATE_MS
from fila_console.questions import Question
from fila_console.rights import may
from fila_console.series import STEP_S, Part, Parts, point_times
from fila_console.trouble import Trouble, unless_refused
from fila_console.upstream import Upstream
from fila_console.visit import Undo, Visit
from fila_console.watches import Watch
from fila_console.wording import (
    SERVED,
    UNKNOWN,
    age,
    brief,
    cause,
    clock,
    count,
    counted,
    moment,
    named,
    part,
    pause_said,
    rate,
    served_unit,
    size,
)
from fila_console.wrong import sentences

KEYS_SHOWN = 50
LATE_ASKED = 200
DEFAULT = "default"
READING = cell("reading …", tone="quiet")
REST_EVERY_S = 2.0
STATUS_EVERY_S = 1.8
"""Every other second."""
LINES = 20
DUE_LINES = 6
REST = "all other keys"

KEY_COLUMNS = (
    "Key",
    ">Waiting",
    ">In hand",
    ">Arriving",
    ">Delivered",
    ">>Share",
    ">Due",
    ">>Oldest",
    ">Weight",
)
CAUSE_COLUMNS = ("Why they wait", ">Keys", ">>Longest wait", "Key that waits longest")
CONSUMER_COLUMNS = (
    "Consumer",
    "Address",
    "Channel",
    ">Holds",
    ">Begun",
    ">Room",
    ">>A message takes",
    "Since",
    "State",
)
HOOK_COLUMNS = ("Hook", "State", ">Calls", ">Failed", ">>By policy instead", ">Held", "Last error")
BUCKET_COLUMNS = ("Bucket", ">Tokens", ">Refill", ">Burst", ">>Messages that wait")
CHANNEL_COLUMNS = ("Channel", ">Waiting", ">In hand", ">>Done up to", ">>Behind by", "Consumers")
NUMBERS = (
    ("waiting", "Waiting", "messages"),
    ("in_hand", "In hand", "messages"),
    ("arriving", "Arriving", "messages a second"),
    ("served", "Served", SERVED),
    ("oldest", "Oldest waits", ""),
    ("keys", "Active keys", ""),
)


_TABS = {
    "causes": len(CAUSE_COLUMNS),
    "consumers": len(CONSUMER_COLUMNS),
    "hooks": len(HOOK_COLUMNS),
    "buckets": len(BUCKET_COLUMNS),
    "channels": len(CHANNEL_COLUMNS),
}
ADMINS_ALONE = "Limits are for admins to see: their numbers are of all queues."


class Rest(NamedTuple):
    """What is asked every other second, and takes long where there are many keys."""

    stats: Stats
    late: LateKeys
    consumers: list[ConsumerInfo]
    is_admin: bool
    """The key that looks is one's, or the broker asks for none."""


class QueueTopic(FeedTopic):
    """What the broker tells of one channel of a queue: its numbers as they change, the rest every other second, its
    hour when there is a new point."""

    def __init__(self, queue: str, channel: str) -> None:
        super().__init__()
        self._queue = queue
        self._asked_channel = channel
        self._channel = channel
        self._parts = Parts()
        self._rest: Question[Rest] = Question(REST_EVERY_S)
        self._hour_at = 0
        self._series: Series | None = None
        self._status: BrokerStatus | None = None
        self._status_at_s = -math.inf

    async def close(self) -> None:
        """As every feed's; and what is asked ends."""
        self._rest.close()
        await super().close()

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""
        if not self._channel:
            names = await unless_refused(upstream.channels(self._queue), [])
            self._channel = DEFAULT if DEFAULT in names or not names else names[0]
        rest, _, status = await asyncio.gather(
            self._rest.ask(lambda: self._ask_the_rest(upstream)),
            self._ask_series(upstream),
            self._ask_status(upstream),
        )
        if self._feed is None:
            # Those that were served most stay in the table also while nothing of theirs waits.
            served_most = self._series.recorded_keys[:LINES] if self._series is not None else []
            self._feed = upstream.follow([self._queue], self._channel, KEYS_SHOWN, served_most)
        await self._feed.ready()
        place = (self._queue, self._channel)
        told = self._feed.channels.get(place)
        if told is None:
            raise Trouble(
                404, "There is no such channel", f"{self._queue} has no channel {self._channel} any more."
            )
        keys = [*self._feed.keys[place].values()]
        self._parts.read(time.monotonic(), told.served_total, keys)
        state = State()
        state.texts = _numbers(told, upstream.clock.as_of()) | sentences(upstream.broker.name, status)
        state.texts["rest"] = cell(_rest(told, keys))
        state.tables["keys"] = [
            self._key_row(upstream, each, self._parts.of(each.fairness_key)) for each in keys
        ]
        state.tables |= self._tabs(upstream, rest)
        if self._series is not None:
            state.plots["shares"] = self._plot(upstream, self._series)
        return state

    def _tabs(self, upstream: Upstream, rest: Rest | None) -> dict[str, list[Row]]:
        if rest is None:
            return {name: [row("reading", [READING, *[""] * (wide - 1)])] for name, wide in _TABS.items()}
        name = upstream.broker.name
        return {
            "causes": _cause_rows(name, self._queue, rest.late),
            "consumers": [_consumer_row(each) for each in rest.consumers],
            "hooks": _hook_rows(rest.stats),
            "buckets": _bucket_rows(name, rest.stats, leads_on=rest.is_admin),
            "channels": _channel_rows(name, self._queue, rest.stats),
        }

    async def _ask_the_rest(self, upstream: Upstream) -> Rest:
        """Buckets, hooks, channels, consumers, who is late, and who asks."""
        who, stats, late, consumers = await asyncio.gather(
            upstream.who(),
            upstream.stats(self._queue),
            unless_refused(upstream.late(self._queue, LATE_ASKED), LateKeys(keys=[], waiting_keys=0)),
            unless_refused(upstream.consumers(self._queue, self._asked_channel), []),
        )
        return Rest(stats, late, consumers, may(who, (), ""))

    async def _ask_status(self, upstream: Upstream) -> BrokerStatus:
        now_s = time.monotonic()
        if self._status is None or now_s - self._status_at_s >= STATUS_EVERY_S:
            self._status, self._status_at_s = await upstream.status(self._queue), now_s
        return self._status

    async def _ask_series(self, upstream: Upstream) -> None:
        """The hour, once it has another point."""
        step = int(time.time()) // STEP_S
        if step == self._hour_at:
            return
        names = self._series.recorded_keys[:LINES] if self._series is not None else []
        series = await upstream.series(self._queue, self._channel, names)
        if self._series is None and series.recorded_keys:
            series = await upstream.series(self._queue, self._channel, series.recorded_keys[:LINES])
        self._series, self._hour_at = series, step

    def _plot(self, upstream: Upstream, series: Series) -> Plot:
        """Each key's part of the cost that was served, what the leading ones were due, and the part of all others."""
        times, first = point_times(series)
        points = series.points[first:]
        of_keys = [each.points[first:] for each in series.keys]
        served = [sum(each[place].served for each in of_keys) for place in range(len(times))]
        # What all keys together were served is told in messages: where they cost more, it is what is known of them.
        # A tenant is told nothing of the whole.
        whole = (
            [max(told, point.delivered) for told, point in zip(served, points, strict=True)]
            if points
            else served
        )
        lines: dict[str, list[float | None]] = {}
        colors: dict[str, int] = {}
        dashed: list[str] = []
        for place, each in enumerate(series.keys):
            label = named(each.fairness_key)
            lines[label] = [
                _part_of(point.served, all_of) for point, all_of in zip(of_keys[place], whole, strict=True)
            ]
            colors[label] = upstream.color(self._queue, each.fairness_key)
            if points and place < DUE_LINES:
                due = f"{label}, due"
                lines[due] = [
                    None if (cost := due_then(point, channel)) is None else _part_of(cost, all_of)
                    for point, channel, all_of in zip(of_keys[place], points, whole, strict=True)
                ]
                colors[due] = colors[label]
                dashed.append(due)
        rest = [_part_of(all_of - told, all_of) for told, all_of in zip(served, whole, strict=True)]
        if any(each is not None and each > 0.001 for each in rest):
            lines[REST] = rest
            colors[REST] = -1
        return Plot(times, lines, colors, dashed, "share of cost")

    def _key_row(self, upstream: Upstream, each: KeyState, lately: Part) -> Row:
        href = key_path(upstream.broker.name, self._queue, each.fairness_key, self._channel)
        tone, mark = "", ""
        if each.paused:
            tone, mark = "paused", "‖ paused · "
        elif each.waiting_ms >= LATE_MS:
            tone, mark = "late", "▲ "
        bounds = (
            f" of {each.max_in_flight:,}" if each.max_in_flight else "",
            f" of {rate(each.rate_per_second)}",
        )
        cells: list[Cell | str] = [
            cell(named(each.fairness_key), href=href, color=upstream.color(self._queue, each.fairness_key)),
            count(each.ready + each.delayed),
            count(each.in_flight) + bounds[0],
            rate(each.arriving_per_second),
            rate(each.delivered_per_second) + (bounds[1] if each.rate_per_second else ""),
            cell(part(lately.served), bar=lately.served),
            due_lately(each, lately.due),
            cell(mark + (age(each.waiting_ms) if each.ready + each.delayed else UNKNOWN), tone=tone),
            count(each.weight),
        ]
        return row(each.fairness_key, cells, href=href)


def _part_of(value: float, whole: float) -> float | None:
    """None where nothing was served: nobody had a part of it."""
    return round(min(1.0, value / whole), 4) if whole > 0 else None


def _numbers(told: QueueState, as_of: str) -> dict[str, Cell]:
    late = told.oldest_age_ms >= LATE_MS
    return {
        "number-waiting": cell(count(told.ready + told.delayed)),
        "number-in_hand": cell(count(told.in_flight)),
        "number-arriving": cell(rate(told.arriving_per_second)),
        "number-served": cell(rate(told.acked_per_second)),
        "unit-served": cell(served_unit(told.failed_per_second, told.returned_per_second)),
        "number-oldest": cell(("▲ " if late else "") + age(told.oldest_age_ms), tone="late" if late else ""),
        "number-keys": cell(count(told.active_keys)),
        "stored": cell(size(told.stored_bytes)),
        "at": cell(as_of),
    }


def _rest(told: QueueState, keys: list[KeyState]) -> str:
    others = told.active_keys - sum(1 for each in keys if each.ready + each.delayed)
    if others <= 0:
        return ""
    waiting = max(0, told.ready + told.delayed - sum(each.ready + each.delayed for each in keys))
    return f"{counted(others, 'other key')} with {counted(waiting, 'message')} that wait"


def _cause_rows(broker: str, queue: str, late: LateKeys) -> list[Row]:
    by_cause: dict[tuple[str, str, str, int, bool], list[int]] = {}
    for place, each in enumerate(late.keys):
        limit = (each.blocking_bucket, each.blocking_part, each.blocking_rate)
        held = (each.cause, *limit, each.nobody_consumes)
        by_cause.setdefault(held, []).append(place)
    rows = []
    for held, places in sorted(by_cause.items(), key=lambda each: -len(each[1])):
        worst = late.keys[places[0]]
        tone = "paused" if held[0] == "paused" else "late" if worst.waiting_ms >= LATE_MS else ""
        href = key_path(broker, queue, worst.fairness_key, worst.channel)
        more = " or more" if len(late.keys) >= LATE_ASKED else ""
        cells: list[Cell | str] = [
            cause(*held),
            count(len(places)) + more,
            cell(age(worst.waiting_ms), tone=tone),
            cell(named(worst.fairness_key), href=href),
        ]
        rows.append(row("\0".join(map(str, held)), cells, href=href))
    return rows


def _consumer_row(each: ConsumerInfo) -> Row:
    state = cell("▲ away, may resume", tone="late") if each.away else cell("here", tone="quiet")
    takes = age(each.handling_time_us / 1000) if each.handling_time_us else UNKNOWN
    begun = count(each.begun) if each.tracks_begun else UNKNOWN
    cells: list[Cell | str] = [
        brief(each.name) or f"number {each.consumer_id}",
        brief(each.peer),
        brief(each.channel),
        count(each.held),
        begun,
        count(each.window),
        takes,
        moment(each.connected_at),
        state,
    ]
    return row(str(each.consumer_id), cells)


def _hook_rows(stats: Stats) -> list[Row]:
    rows = []
    for hook in stats.hooks:
        is_bad = hook.breaker_state in ("open", "half_open")
        word = {"closed": "in use", "open": "● not called, it fails", "half_open": "● tried again"}
        state = cell(word.get(hook.breaker_state, hook.breaker_state), tone="lost" if is_bad else "quiet")
        last = f"{clock(hook.last_error_at)} {brief(hook.last_error)}" if hook.last_error else UNKNOWN
        numbers = [count(each) for each in (hook.runs, hook.errors, hook.fallbacks, hook.held)]
        rows.append(row(hook.hook, [hook.hook, state, *numbers, last]))
    return rows


def _bucket_rows(broker: str, stats: Stats, *, leads_on: bool) -> list[Row]:
    """With `leads_on` each leads to its limit, which admins alone may see."""
    return [
        row(
            each.key,
            [
                cell(
                    named(each.key),
                    href=broker_path(broker, f"limits?key={quote(each.key, safe='')}") if leads_on else "",
                    title="" if leads_on else ADMINS_ALONE,
                ),
                cell(f"{each.tokens:,.1f}", bar=each.tokens / each.burst if each.burst else None),
                rate(each.rate_per_second),
                f"{each.burst:,.0f} tokens",
                cell(count(each.waiting), tone="late" if each.waiting else ""),
            ],
        )
        for each in stats.per_throttle_stats
    ]


def _channel_rows(broker: str, queue: str, stats: Stats) -> list[Row]:
    return [
        row(
            each.name,
            [
                cell(each.name, href=f"{queue_path(broker, queue)}?channel={each.name}"),
                count(each.depth),
                count(each.in_flight),
                f"offset {each.tail_offset:,}",
                counted(max(0, each.head_offset - each.tail_offset), "message"),
                cell(count(each.consumers), tone="late" if each.depth and not each.consumers else ""),
            ],
        )
        for each in stats.channels
    ]


def watch(visit: Visit) -> Watch:
    """This queue, in one channel or in all, with this key."""
    queue, channel = (
        visit.query("queue") or str(visit.request.path_params.get("queue", "")),
        visit.query("channel"),
    )
    return visit.watch(("queue", queue, channel), lambda: QueueTopic(queue, channel))


async def page(visit: Visit) -> Response:
    """The queue's page."""
    queue, channel = visit.path("queue"), visit.query("channel")
    watched = watch(visit)
    state = await watched.current()
    locked = await visit.locked("manage", queue)
    consume = command_line("fila consume", queue, options=["--channel", channel] if channel else [])
    details = await unless_refused(visit.upstream.queue(queue), None)
    paused = details is not None and details.config.paused
    return visit.page(
        "queue.html",
        here="queue",
        queue=queue,
        channel=channel,
        state=state,
        live=visit.url("live", "queue", queue=queue, channel=channel),
        locked=locked,
        paused=paused,
        paused_said=f"‖ paused{pause_said(details.pause)}" if details is not None and paused else "",
        numbers=NUMBERS,
        key_columns=KEY_COLUMNS,
        tabs=(
            ("causes", "Why they wait", CAUSE_COLUMNS, "No key waits."),
            (
                "consumers",
                "Consumers",
                CONSUMER_COLUMNS,
                f"Nobody consumes this queue: start its workers. From a shell {consume} takes and acks what waits.",
            ),
            ("hooks", "Hooks", HOOK_COLUMNS, "This queue has no script."),
            ("buckets", "Buckets", BUCKET_COLUMNS, "No message of this queue names a throttle key."),
            ("channels", "Channels", CHANNEL_COLUMNS, "The queue has no channel."),
        ),
    )


async def pause(visit: Visit) -> Response:
    """Deliver nothing of this queue, or go on."""
    queue, paused = visit.path("queue"), visit.field("paused") == "yes"
    comment = visit.field("comment").strip() if paused else ""
    await visit.upstream.update_queue(queue, paused=paused, comment=comment)
    why = ["--reason", comment] if comment else []
    text = "Paused: nothing is delivered until it is resumed." if paused else "Resumed."
    label, other = ("resume it", "no") if paused else ("pause it", "yes")
    return visit.changed(
        text,
        line=command_line(f"fila queue {'pause' if paused else 'resume'}", queue, options=why),
        undo=Undo(visit.url("queues", queue, "pause"), label, [("paused", other)]),
        tone="paused" if paused else "done",
    )
