"""What a tenant sees by its link: its own part of one queue, and nothing that tells of anybody else.

The link's key stands in the address behind `#`, which browsers send nowhere. The page's script takes it from there and
sends it as a bearer with one POST, whose answer is the page's stream; no cookie goes with it or comes back, so no
login is used or replaced. The broker judges the key, each second anew; here only links' keys are let through, so that
nobody puts another key into an address and finds that it works.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from fila.explanation import Forecast, KeyExplanation
from fila.limits import LimitPage
from fila.principals import Identity
from fila_console.cells import Cell, Plot, State, cell
from fila_console.feed import FeedTopic
from fila_console.late import LATE_MS
from fila_console.series import STEP_S, point_times
from fila_console.settings import Broker
from fila_console.streams import STREAMS_FOR_TENANTS_MAX, stream
from fila_console.told_limits import OWN_COLUMNS, own_rows
from fila_console.trouble import Trouble, unless_refused
from fila_console.upstream import Upstream
from fila_console.visit import Console
from fila_console.waits import wait_rows
from fila_console.wording import age, clock, count, counted, named, rate

SILENT = 503
"""The status of a broker that does not answer, or not now."""
VIEWERS_MAX = 16
"""Browsers that one link keeps current at a time."""
BAR_S = 600.0
"""What the forecast's bar stands for."""
LINK_PREFIX = "link/"
"""How the broker names links, and nobody else."""
WAIT_COLUMNS = ("Cause", ">>Waited in all", ">>Part")
TEXTS = ("headline", "head", "tail", "forecast", "waiting", "in-hand", "oldest", "arrived", "served", "at")

_KEY = re.compile(r"[Bb]earer (fila_[a-z0-9]{1,32}_[A-Za-z0-9]{40,128})")
_WATCHED = "tenant"
"""What a link's holder watches is named so, and nothing else is."""
_CAUSES = {
    "no_consumer": "waits for a consumer with room",
    "not_its_turn": "waits for its turn",
    "throttled": "waits for a rate limit",
    "delayed": "is delayed",
    "succeeds": "goes when the lease of the message that it replaces ends",
    "paused": "is paused by the operator",
    "capped": "has as many in hand as it may",
    "rate_limited": "waits for its rate",
    "in_order": "waits for an earlier message of its own",
    "beyond_committed": "is beyond its committed rate",
}
_WAITS = (
    ("no_consumer_ms", "nobody with room consumed"),
    ("share_ms", "others had their turn"),
    ("throttle_ms", "a rate limit was used up"),
    ("delay_ms", "a delay or a backoff was running"),
    ("held_ms", "paused, at a cap, out of its rate, or behind an earlier message"),
)
_UNKNOWN = {
    "nothing_pending": "nothing waits",
    "paused": "not before it is resumed",
    "delayed": "when its delay is over",
    "no_consumer": "not before somebody consumes",
    "no_tokens": "not known: its rate limit gains nothing",
    "not_watched": "known in a few seconds",
}

Endpoint = Callable[[Request], Awaitable[Response]]


class TenantTopic(FeedTopic):
    """The numbers of one fairness key, as its own link is told them."""

    def __init__(self, queue: str, key: str) -> None:
        super().__init__()
        self._queue = queue
        self._key = key
        self._hour_at = 0
        self._plot = Plot([], {})

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble, in words for strangers."""
        try:
            return await self._look(upstream)
        except Trouble as trouble:
            if trouble.status == SILENT:
                raise _silent() from trouble
            raise

    async def _look(self, upstream: Upstream) -> State:
        if self._feed is None:
            self._feed = upstream.follow([self._queue], "", 0, [self._key])
        told, limits, _, _ = await asyncio.gather(
            upstream.explain(self._queue, self._key),
            unless_refused(upstream.limits(), LimitPage(limits=[])),
            self._feed.ready(),
            self._ask_series(upstream),
        )
        mine = self._feed.keys.get((self._queue, "default"), {}).get(self._key)
        state = State()
        state.texts = _texts(self._key, self._queue, told, upstream.clock.now_s()) | {
            "at": cell(upstream.clock.as_of()),
            "arrived": cell(rate(mine.arriving_per_second if mine is not None else 0.0)),
            "served": cell(rate(mine.delivered_per_second if mine is not None else 0.0)),
        }
        state.tables["waits"] = wait_rows(told.waits, _WAITS)
        state.tables["limits"] = own_rows(limits.limits)
        state.plots["hour"] = self._plot
        return state

    async def _ask_series(self, upstream: Upstream) -> None:
        """The hour, once it has another point."""
        step = int(time.time()) // STEP_S
        if step == self._hour_at:
            return
        series = await upstream.series(self._queue, "", [self._key])
        times, first = point_times(series)
        points = series.keys[0].points[first:] if series.keys else []
        seconds = series.step_ms / 1000
        lines: dict[str, list[float | None]] = {
            "arrived": [each.arrived / seconds if each.recorded else None for each in points],
            "served": [each.served / seconds if each.recorded else None for each in points],
        }
        self._plot = Plot(times if points else [], lines, {"arrived": -1, "served": 0}, (), "a second")
        self._hour_at = step


def _texts(key: str, queue: str, told: KeyExplanation, now_s: float) -> dict[str, Cell]:
    late = told.pending > 0 and told.oldest_age_ms >= LATE_MS
    tail = told.tail_forecast
    likely_s = tail.likely_ms / 1000 if tail is not None and not tail.unknown else BAR_S
    waits = told.pending > 0
    return {
        "headline": cell(_headline(key, queue, told), tone=_tone(told, late=late)),
        "head": cell(
            f"Next message: {_when(told.head_forecast, told.state, now_s)}" if waits else "Nothing waits."
        ),
        "tail": cell(f"The last that waits now: {_when(tail, told.state, now_s)}" if waits else ""),
        "forecast": cell("", bar=min(1.0, likely_s / BAR_S) if waits else 0.0),
        "waiting": cell(count(told.pending)),
        "in-hand": cell(count(told.in_flight)),
        "oldest": cell(("▲ " if late else "") + age(told.oldest_age_ms), tone="late" if late else ""),
    }


def _tone(told: KeyExplanation, *, late: bool) -> str:
    return "paused" if told.state == "paused" else "late" if late else ""


def _headline(key: str, queue: str, told: KeyExplanation) -> str:
    who = f"{named(key)} in {queue}"
    if not told.pending:
        held = f": {counted(told.in_flight, 'message')} in consumers' hands" if told.in_flight else ""
        return f"{who} waits for nothing{held}."
    state = told.state
    if (
        state == "beyond_committed" and told.until is None
    ):  # it has no such rate, and is not told that others have
        state = "not_its_turn"
    why = _CAUSES.get(state, "waits")
    return f"{who} {why}: {counted(told.pending, 'message')}, the oldest {age(told.oldest_age_ms)}."


def _when(forecast: Forecast | None, state: str, now_s: float) -> str:
    if forecast is None:
        return "this broker makes no forecast."
    if forecast.unknown == "delayed" and state == "succeeds":
        return "once leases and delays that its messages wait for are over."
    if forecast.unknown:
        return f"{_UNKNOWN.get(forecast.unknown, forecast.unknown)}."
    at = datetime.fromtimestamp(now_s + forecast.likely_ms / 1000, UTC)
    between = f"nine times in ten {age(forecast.earliest_ms)} to {age(forecast.latest_ms)} from now"
    return f"about {clock(at)}, in {age(forecast.likely_ms)}; {between}."


# The page, and its stream.


def asked(console: Console) -> Endpoint:
    """The page without any numbers: the stream brings what it shows, to browsers with the key."""

    async def answered(request: Request) -> Response:
        broker = _broker(console, request)
        state = State(texts={name: cell("") for name in TEXTS}, tables={"waits": [], "limits": []})
        context = {
            "state": state,
            "wait_columns": WAIT_COLUMNS,
            "limit_columns": OWN_COLUMNS,
            "live": f"/t/{broker.name}/live",
        }
        return HTMLResponse(console.render("tenant.html", context))

    return answered


def followed(console: Console) -> Endpoint:
    """The stream of a link's holder. `Origin` was judged already; there is no form, and so no token."""

    async def answered(request: Request) -> Response:
        try:
            return await entered(request)
        except Trouble as trouble:
            # In words alone: the page puts them where its numbers would be.
            return PlainTextResponse(f"{trouble.title}. {trouble.text} {trouble.advice}\n", trouble.status)

    async def entered(request: Request) -> Response:
        broker = _broker(console, request)
        given = _KEY.fullmatch(request.headers.get("authorization", ""))
        if given is None:
            raise Trouble(
                401,
                "This is no link",
                "Its end, behind the #, is missing or cut off.",
                "Ask for it again.",
            )
        queue, key = _of_link(await _whose(console, broker, given[1]))
        if console.watches.watching(_WATCHED) >= STREAMS_FOR_TENANTS_MAX:
            raise Trouble(
                503, "Too many pages are open", "No more are kept current now.", "It is tried again."
            )
        upstream = console.watches.upstream(broker, given[1])
        watch = console.watches.watch(upstream, (_WATCHED, queue, key), lambda: TenantTopic(queue, key))
        if watch.watchers >= VIEWERS_MAX:
            raise Trouble(503, "This link is open too often", f"{VIEWERS_MAX} pages show it already.")
        watch.looked_at_s = time.monotonic()
        console.links.add((broker.name, given[1]))
        return stream(watch, lambda: True)

    return answered


def _broker(console: Console, request: Request) -> Broker:
    name = request.path_params.get("broker") or next(iter(console.brokers))
    if name not in console.brokers:
        raise Trouble(404, "There is no such broker", "This console was not told of one by that name.")
    return console.brokers[name]


def _silent() -> Trouble:
    """What strangers may read of a broker that does not answer: operators are told its address, which is inside."""
    return Trouble(SILENT, "The broker does not answer", "Nothing came from it.", "It is tried again.")


async def _whose(console: Console, broker: Broker, key: str) -> Identity:
    try:
        return await console.whose(broker, key)
    except Trouble as trouble:
        if trouble.logs_out:
            raise Trouble(
                401, "This link has ended", "It expired, or it was revoked.", "Ask for another one."
            ) from trouble
        if trouble.status == SILENT:
            raise _silent() from trouble
        raise


def _of_link(who: Identity) -> tuple[str, str]:
    """The queue and the fairness key that a link shows. Raises Trouble for any other key."""
    rights = who.permissions
    is_link = who.auth_enabled and who.principal.startswith(LINK_PREFIX)
    if not is_link or not who.tenant or [each.right for each in rights] != ["view"]:
        raise Trouble(
            403,
            "This is not a link's key",
            "A key that may do more does not belong into an address, where others read it.",
            "Log in with it, or make a link: fila auth link create QUEUE KEY.",
        )
    return rights[0].queue, who.tenant
