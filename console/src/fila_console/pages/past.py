"""What Prometheus kept: numbers over hours and days of one key, one queue, or all queues that the reader may see."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from starlette.responses import Response

from fila.principals import Identity
from fila_console.cells import Plot, State, cell
from fila_console.differences import from_one_line, in_one_line
from fila_console.prometheus import Line, Prometheus, Span
from fila_console.questions import Question
from fila_console.ranges import (
    DEFAULT,
    RANGES,
    Queries,
    any_of,
    end_of,
    quoted,
    seconds_of,
    span_of,
    until_of,
)
from fila_console.rights import may
from fila_console.series import STEP_S
from fila_console.trouble import Trouble, unless_refused
from fila_console.upstream import DLQ, Upstream
from fila_console.visit import Visit
from fila_console.watches import Asked, Watch
from fila_console.wording import clock, named

EVERY_S_MIN = 15.0
QUEUES_NAMED_MAX = 100
"""Of a reader who may see a part of the queues: so many are summed up by their names."""
QUEUE, CHANNEL, KEY = "messaging_destination_name", "messaging_consumer_group_name", "fila_fairness_key"
OTHERS = "~other"
"""What the broker's metrics call the keys that they do not have by name."""
NOTHING = "Prometheus recorded nothing of this in that time."
NOTHING_OF_A_KEY = f"{NOTHING} The broker's metrics have the 1,000 busiest keys by name."
SOURCES = "sources"
"""A query whose line is no plot's."""
ADDED_UP = (
    "● These numbers are those of {:,} brokers added up, or of one that is recorded so often. Prometheus has more "
    "than one series of them: name the labels of this broker where the console starts, as --prometheus "
    "'http://prometheus:9090?instance=HOST:PORT'."
)
UNITS = {"waiting": "messages", "rates": "a second", "oldest": "seconds", "keys": "a second"}


class Wanted(NamedTuple):
    """What a reader looks at."""

    queue: str
    key: str
    channel: str
    range: str
    until: str


class Told(NamedTuple):
    """The last that Prometheus answered, and what went wrong since."""

    span: Span
    lines: Mapping[str, list[tuple[str, Line]]]
    """By plot, each with its label."""
    trouble: Trouble | None
    sources: int = 1
    """So many brokers' numbers are added up, or so often one broker's, at some moment of the span."""


class PastTopic(Asked):
    """What the broker lets a reader see of it is asked every ten seconds, and Prometheus once a step."""

    def __init__(self, prometheus: Prometheus, labels: Sequence[tuple[str, str]], wanted: Wanted) -> None:
        self._prometheus = prometheus
        self._labels = labels
        self._wanted = wanted
        self._seconds = seconds_of(wanted.range)
        end_of(wanted.until, time.time())
        self._every_s = max(EVERY_S_MIN, span_of(self._seconds, 0).step)
        self._question: Question[Told] = Question(self._every_s)
        self._matchers: list[str] = []
        self._with_keys = False
        self._judged_at = 0

    async def close(self) -> None:
        """Nobody looks any more."""
        self._question.close()

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker who may see what, and Prometheus for it. Raises Trouble."""
        # Each time: a key that ended closes its pages within two seconds.
        who = await upstream.who()
        step = int(time.time()) // STEP_S
        if step != self._judged_at:
            matchers = await self._judged(upstream, who)
            if matchers != self._matchers:
                self._question.close()
                self._question = Question(self._every_s)
            self._matchers, self._judged_at = matchers, step
        told = await self._question.ask(self._ask)
        state = State()
        state.texts = _texts(told, self._wanted)
        state.plots = {name: self._plot(upstream, told, name) for name in UNITS}
        return state

    async def _judged(self, upstream: Upstream, who: Identity) -> list[str]:
        """What keeps a query to what this reader may see: the broker says it. Raises Trouble."""
        if who.tenant:
            raise Trouble(
                403,
                "Your key may not do that",
                "It is bound to a tenant, and these are the numbers of whole queues.",
                "The key's page has its own last hour.",
            )
        queue, key, channel = self._wanted.queue, self._wanted.key, self._wanted.channel
        if queue:
            matchers = [f"{QUEUE}={quoted(queue)}"]
            if not key:
                asked = upstream.find_keys(queue, "", 1)
                self._with_keys = await unless_refused(asked, None) is not None
                return matchers
            # The second judges the channel.
            await upstream.find_keys(queue, key, 1)
            await upstream.series(queue, channel)
            return [*matchers, f"{CHANNEL}={quoted(channel or 'default')}", f"{KEY}={quoted(key)}"]
        if key:
            raise Trouble(400, "Whose key that is, is not clear", "Name its queue, too.")
        if may(who, (), ""):
            return [f'{QUEUE}!~".*[.]dlq"']
        names = [each.name for each in await upstream.queues() if not each.name.endswith(DLQ)]
        if not 0 < len(names) <= QUEUES_NAMED_MAX:
            raise Trouble(
                400,
                "Name a queue",
                f"Your key may see {len(names):,} queues; up to {QUEUES_NAMED_MAX} are shown together.",
            )
        return [f"{QUEUE}=~{any_of(names)}"]

    async def _ask(self) -> Told:
        """All lines; with what went wrong the lines of before stay."""
        span = span_of(self._seconds, end_of(self._wanted.until, time.time()))
        asked = self._queries(Queries(self._matchers, self._labels, span))
        try:
            answers = await asyncio.gather(*(self._prometheus.lines(query, span) for *_, query in asked))
        except Trouble as trouble:
            before = self._question.answer
            return Told(span, {}, trouble) if before is None else before._replace(trouble=trouble)
        lines: dict[str, list[tuple[str, Line]]] = {name: [] for name in (*UNITS, SOURCES)}
        for (plot, label, _), answer in zip(asked, answers, strict=True):
            lines[plot] += [(label or _key_name(line), line) for line in answer]
        counted = [each or 0 for _, line in lines.pop(SOURCES) for each in line.values]
        return Told(span, lines, None, int(max(counted, default=1)))

    def _queries(self, queries: Queries) -> list[tuple[str, str, str]]:
        """Plot, label, query; a line of the keys' plot has its label from its key."""
        if self._wanted.key:
            return [
                ("waiting", "pending", queries.sum("fila_key_pending")),
                ("waiting", "in hand", queries.sum("fila_key_in_flight")),
                ("rates", "delivered", queries.rates("fila_key_delivered_total", beside="fila_key_pending")),
                ("oldest", "oldest", queries.most("fila_key_oldest_age_seconds")),
                (SOURCES, SOURCES, queries.sources("fila_key_pending", QUEUE, CHANNEL, KEY)),
            ]
        depth = "fila_queue_depth"
        failed = ("fila_messages_nacked_total", "fila_messages_expired_total")
        asked = [
            ("waiting", "pending", queries.sum(depth)),
            ("waiting", "in hand", queries.sum("fila_queue_in_flight")),
            ("rates", "arriving", queries.rates("fila_messages_enqueued_total", beside=depth)),
            ("rates", "served", queries.rates("fila_messages_acked_total", beside=depth)),
            ("rates", "failed", queries.rates(*failed, beside=depth)),
            ("oldest", "oldest", queries.most("fila_queue_oldest_age_seconds")),
            (SOURCES, SOURCES, queries.sources(depth, QUEUE)),
        ]
        if self._wanted.queue and self._with_keys:
            asked.append(("keys", "", queries.leading("fila_key_served_cost_total", KEY)))
        return asked

    def _plot(self, upstream: Upstream, told: Told | None, name: str) -> Plot:
        if told is None or not told.lines.get(name):
            return Plot([], {}, unit=UNITS[name], is_revised=True)
        lines = told.lines[name]
        colors = {label: _COLORS.get(label, -1) for label, _ in lines}
        if name == "keys":
            keys = {label: line.labels.get(KEY, "") for label, line in lines}
            colors = {
                label: -1 if key == OTHERS else upstream.color(self._wanted.queue, key)
                for label, key in keys.items()
            }
        elif self._wanted.key and name != "waiting":
            colors = {label: upstream.color(self._wanted.queue, self._wanted.key) for label, _ in lines}
        series = {
            label: [None if each is None else round(each, 3) for each in line.values] for label, line in lines
        }
        return Plot(told.span.times, series, colors, (), UNITS[name], told.span.step, is_revised=True)


_COLORS = {"pending": -1, "in hand": 0, "arriving": -1, "served": 0, "failed": 1, "oldest": 0, "delivered": 0}


def _key_name(line: Line) -> str:
    key = line.labels.get(KEY, "")
    return "all other keys" if key == OTHERS else named(key)


def _texts(told: Told | None, wanted: Wanted) -> dict[str, dict[str, object]]:
    if told is None:
        return {"said": cell("reading …", tone="quiet"), "span": cell("")}
    said = cell("")
    if told.trouble is not None:
        words = f"● {told.trouble.title}. {told.trouble.text} {told.trouble.advice}"
        said = cell(words + (" The lines are of before." if told.lines else ""), tone="lost")
    elif not any(told.lines.values()):
        said = cell(NOTHING_OF_A_KEY if wanted.key else NOTHING, tone="quiet")
    elif told.sources > 1:
        said = cell(ADDED_UP.format(told.sources), tone="late")
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (told.span.begin, told.span.end))
    step = f"{told.span.step} s" if told.span.step < 60 else f"{told.span.step // 60} min"
    between = f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d} {clock(end, seconds=False)}"
    return {"said": said, "span": cell(f"{between}, a point each {step}")}


def _wanted(visit: Visit) -> Wanted:
    asked = visit.query
    # A field of one line cannot hold each key.
    key = asked("key") or from_one_line(asked("line"))
    return Wanted(asked("queue"), key, asked("channel"), asked("range") or DEFAULT, asked("until").strip())


def watch(visit: Visit) -> Watch:
    """What is looked at, with this key. Raises Trouble."""
    prometheus, source = visit.console.prometheus.get(visit.broker.name), visit.broker.prometheus
    if prometheus is None or source is None:
        raise Trouble(
            404,
            "Nothing is kept for longer than the last hour",
            "This console was not told of a Prometheus that has the broker's metrics.",
            "Start it with --prometheus http://prometheus:9090.",
        )
    wanted = _wanted(visit)
    topic = PastTopic(prometheus, source.labels, wanted)
    return visit.watch(("past", *wanted), lambda: topic)


async def page(visit: Visit) -> Response:
    """The page."""
    watched = watch(visit)
    state = await watched.current()
    wanted = _wanted(visit)
    shown = {name: value for name, value in wanted._asdict().items() if name != "range"}
    return visit.page(
        "past.html",
        here="past",
        state=state,
        live=visit.url("live", "past", **wanted._asdict()),
        queue=wanted.queue,
        key=wanted.key,
        channel=wanted.channel,
        wanted=wanted,
        line=in_one_line(wanted.key),
        ranges=[(name, visit.url("past", **shown, range=name)) for name in RANGES],
        now=until_of(int(time.time())),
        with_keys=bool(wanted.queue and not wanted.key),
    )
