"""One fairness key: why it waits, until when, where its hour went, and what an operator can set."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.responses import Response

from fila.explanation import ChannelConsumers, Forecast, KeyExplanation, KeyHead, KeyPolicyPreview
from fila.observations import KeyPolicyState
from fila.shell_words import command_line
from fila.watched import SeriesPoint
from fila_console.addresses import key_path
from fila_console.cells import Cell, Plot, Row, State, cell, row
from fila_console.changes import NewKeyPolicy
from fila_console.dues import due_now, due_then
from fila_console.feed import FeedTopic
from fila_console.late import LATE_MS
from fila_console.series import STEP_S, point_times
from fila_console.suggestions import Pace, grows, last_minute, suggestions
from fila_console.trouble import Trouble, unless_refused
from fila_console.upstream import Upstream
from fila_console.visit import Undo, Visit, as_decimal, as_number
from fila_console.waits import wait_rows, waiting
from fila_console.watches import Watch
from fila_console.wording import (
    NO_FORECAST,
    age,
    brief,
    cause,
    clock,
    count,
    counted,
    forecast_said,
    named,
    part,
    pause_said,
    rate,
)

WEIGHT_MAX = 1_000
CAP_MAX = (1 << 32) - 1
RATE_MAX = 1_000_000.0
BAR_S = 600.0
"""What the forecast's bar stands for."""
BY_DEFAULT = ", by the queue's default"
WAIT_COLUMNS = ("Cause", ">>Waited in all", ">>Part")
MEANWHILE_COLUMNS = ("Key", ">>Part of what was served")
MEANWHILE_SHOWN = 6
_WAITS_FOR_PART = {"slots": "a free slot of", "budget": "the next period of the budget of"}
_WAITS = (
    ("no_consumer_ms", "nobody with room consumed the channel"),
    ("share_ms", "other keys had their turn"),
    ("throttle_ms", "a limit was used up"),
    ("delay_ms", "a delay or a backoff was running"),
    ("held_ms", "paused, at its cap or out of its rate"),
)


class KeyTopic(FeedTopic):
    """What the broker tells of one key: its numbers as they change, why it waits, its hour."""

    def __init__(self, queue: str, channel: str, key: str) -> None:
        super().__init__()
        self._queue = queue
        self._channel = channel
        self._key = key
        self._hour_at = 0
        self._plot = Plot([], {})
        self._pace: Pace | None = None
        self._channels = 0

    async def look(self, upstream: Upstream) -> State:
        """Ask the broker. Raises Trouble."""
        if self._feed is None:
            self._feed = upstream.follow([self._queue], self._channel, 0, [self._key])
        told, policies, *_ = await asyncio.gather(
            upstream.explain(self._queue, self._key, self._channel),
            upstream.key_policies(self._queue, self._key),
            self._feed.ready(),
            self._ask_series(upstream),
        )
        mine = self._feed.keys.get((self._queue, self._channel or "default"), {}).get(self._key)
        served = mine.delivered_per_second if mine is not None else 0.0
        arrived = mine.arriving_per_second if mine is not None else 0.0
        state = State()
        policy = next(iter(policies), None)
        state.texts = _headline(self._key, told, upstream.clock.now_s()) | _facts(
            told, served, arrived, policy
        )
        state.texts["at"] = cell(upstream.clock.as_of())
        state.texts |= suggestions(self._pace, mine, told.weight, told.consumers, WEIGHT_MAX, self._channels)
        state.tables["waits"] = wait_rows(told.waits, _WAITS)
        since, served_meanwhile = _meanwhile(upstream, self._queue, self._channel, told)
        state.texts["meanwhile-since"], state.tables["meanwhile"] = since, served_meanwhile
        state.plots["hour"] = self._plot
        return state

    async def _ask_series(self, upstream: Upstream) -> None:
        """The hour, once it has another point."""
        step = int(time.time()) // STEP_S
        if step == self._hour_at:
            return
        series, self._channels = await asyncio.gather(
            upstream.series(self._queue, self._channel, [self._key]), _channels(upstream, self._queue)
        )
        times, first = point_times(series)
        points = series.keys[0].points[first:] if series.keys else []
        channel: list[SeriesPoint | None] = [*series.points[first:]] if points else []
        if not series.points:  # a tenant is told nothing of the whole
            channel = [None] * len(points)
        seconds = series.step_ms / 1000
        lines: dict[str, list[float | None]] = {
            "arrived": [each.arrived / seconds if each.recorded else None for each in points],
            "served": [each.served / seconds if each.recorded else None for each in points],
            "due": [
                None if all_of is None or (due := due_then(each, all_of)) is None else due / seconds
                for each, all_of in zip(points, channel, strict=True)
            ],
        }
        colors = {"arrived": -1, "served": upstream.color(self._queue, self._key), "due": -1}
        self._plot = Plot(times if points else [], lines, colors, ["due"], "a second")
        self._pace = last_minute(series)
        self._hour_at = step


async def _channels(upstream: Upstream, queue: str) -> int:
    """How many channels the queue has; 0 where the key may not be told, which may set no rate either."""
    return len(await unless_refused(upstream.channels(queue), []))


def _headline(key: str, told: KeyExplanation, now_s: float) -> dict[str, Cell]:
    name = named(key)
    tone = "late" if told.pending and told.oldest_age_ms >= LATE_MS else ""
    waiting = counted(told.pending, "message")
    if told.state == "empty":
        text = f"{name} has nothing that waits and nothing in hand."
    elif told.state == "leased":
        text = f"{name} waits for nothing: {counted(told.in_flight, 'message')} in consumers' hands."
    elif told.state == "paused":
        text, tone = (
            f"{name} is paused: {counted(told.pending, 'message')} stay where they are until it is resumed.",
            "paused",
        )
    elif told.state == "capped":
        text = f"{name} is at its cap, {counted(told.in_flight, 'message')} in hand: {waiting} behind it."
    elif told.state == "throttled":
        of_what = _WAITS_FOR_PART.get(told.blocking_part, "its rate limit")
        if told.blocking_rate:
            of_what = f"rate {told.blocking_rate} of"
        limit = f"{of_what} {brief(told.blocking_bucket, 60)}"
        text = f"{name} waits for {limit}: {waiting}, the oldest {age(told.oldest_age_ms)}."
    elif told.state == "rate_limited":
        text = f"{name} waits for its rate: {waiting}, the oldest {age(told.oldest_age_ms)}."
    elif told.state == "in_order":
        text = f"{name} waits for an earlier message of its own: {waiting}, the oldest {age(told.oldest_age_ms)}."
    elif told.state == "beyond_committed":
        text = f"{name} waits until nobody is within a committed rate: {waiting}, the oldest {age(told.oldest_age_ms)}."
    elif told.state == "no_consumer":
        consumers = told.consumers.count + told.consumers.waiting_pulls if told.consumers is not None else 0
        full = "its consumer has" if consumers == 1 else f"its {consumers:,} consumers have"
        why = f"until {full} room" if consumers else "and nobody consumes"
        text = f"{name} waits {why}: {waiting}, the oldest {age(told.oldest_age_ms)}."
    elif told.state == "succeeds":
        text = f"{name} goes when the lease of the message that it replaces ends: {counted(told.pending, 'message')}."
    elif told.state == "delayed":
        text = f"All that {name} has is delayed: {counted(told.pending, 'message')}."
    else:
        text = f"{name} waits for its turn: {counted(told.pending, 'message')}, the oldest {age(told.oldest_age_ms)}."
    return {"headline": cell(text, tone=tone), **_forecast(told, now_s)}


def _forecast(told: KeyExplanation, now_s: float) -> dict[str, Cell]:
    """When the next message goes, and when all that waits now is gone, by the broker's own forecast."""
    if not told.pending:
        return {"head": cell("Nothing waits."), "tail": cell(""), "forecast": cell("", bar=0.0)}
    tail = told.tail_forecast
    likely_s = tail.likely_ms / 1000 if tail is not None and not tail.unknown else BAR_S
    return {
        "head": cell(f"Next message: {forecast_said(told.head_forecast, now_s, told.state)}"),
        "tail": cell(_last_said(told, now_s)),
        "forecast": cell("", bar=min(1.0, likely_s / BAR_S)),
    }


def _last_said(told: KeyExplanation, now_s: float) -> str:
    if told.state == "succeeds" and told.pending > 1:
        return "The last that waits now: when all leases and delays that they wait for are over."
    return f"The last that waits now: {forecast_said(told.tail_forecast, now_s, told.state)}"


def _facts(
    told: KeyExplanation, served: float | None, arrived: float | None, policy: KeyPolicyState | None
) -> dict[str, Cell]:
    weight = f"{told.weight:,}" + (" (set by an operator)" if policy is not None and policy.weight else "")
    late = told.pending > 0 and told.oldest_age_ms >= LATE_MS
    why = cause(
        told.state, told.blocking_bucket, told.blocking_part, told.blocking_rate, told.nobody_consumes
    )
    return {
        "waiting": cell(waiting(told)),
        "in-hand": cell(counted(told.in_flight, "message")),
        "oldest": cell(("▲ " if late else "") + age(told.oldest_age_ms), tone="late" if late else ""),
        "arrived": cell(rate(arrived)),
        "served": cell(rate(served)),
        "share": cell(part(told.share), bar=told.share),
        "due": due_now(told),
        "consumers": cell(_consumers(told.consumers)),
        "weight": cell(weight),
        "cap": cell(_cap(policy)),
        "rate": cell(_rate(policy)),
        "committed": cell(_committed(policy)),
        "why": cell(why + (BY_DEFAULT if told.by_default else "")),
        "paused": _paused(policy),
        "first": cell(
            _first(told.waits_for), tone="late" if told.waits_for and told.waits_for.attempts else ""
        ),
        "returning": cell(_returning(told), tone="late" if told.returning_count else ""),
    }


def _paused(policy: KeyPolicyState | None) -> Cell:
    if policy is None or not policy.paused:
        return cell("no")
    return cell(f"‖ paused{pause_said(policy.pause)}", tone="paused")


def _first(head: KeyHead | None) -> str:
    """What the others of its key wait for, where they go in order."""
    if head is None:
        return "none leased, none failed"
    failed = f", failed {counted(head.attempts, 'time')}" if head.attempts else ""
    if head.leased_at is not None:
        by = f" by {brief(head.consumer_name, 60)}" if head.consumer_name else ""
        return f"{head.message_id}: leased{by} since {clock(head.leased_at)}{failed}"
    return f"{head.message_id}{failed}: tried again at {clock(head.retry_at)}"


def _cap(policy: KeyPolicyState | None) -> str:
    if policy is None or not policy.max_in_flight:
        return "none"
    return count(policy.max_in_flight) + (BY_DEFAULT if policy.cap_by_default else "")


def _rate(policy: KeyPolicyState | None) -> str:
    if policy is None or not policy.rate_per_second:
        return "none"
    return rate(policy.rate_per_second) + (BY_DEFAULT if policy.rate_by_default else "")


def _committed(policy: KeyPolicyState | None) -> str:
    if policy is None or not policy.committed_per_second:
        return "none"
    return rate(policy.committed_per_second) + (BY_DEFAULT if policy.committed_by_default else "")


def _returning(told: KeyExplanation) -> str:
    if not told.returning_count:
        return ""
    often = f"{told.returning_count} times" + (" or more" if told.returning_count >= 127 else "")
    where = f"The message at offset {told.returning_offset:,}"
    return f"▲ {where} came back {often} without being begun: its consumers fail early."


def _consumers(told: ChannelConsumers | None) -> str:
    if told is None or not told.count:
        pulls = told.waiting_pulls if told is not None else 0
        return f"{counted(pulls, 'call')} that wait" if pulls else "none"
    room = f"{told.with_room:,} with room" if told.with_room else "all full"
    if told.at_quota:
        room += f", {told.at_quota:,} at their name's quota of messages in flight"
    return f"{told.count:,}, {room}: {told.held:,} of {told.window:,} in hand"


def _meanwhile(upstream: Upstream, queue: str, channel: str, told: KeyExplanation) -> tuple[Cell, list[Row]]:
    """Who was served while the key's next message waited, and since when that is."""
    served = told.served_meanwhile
    if served is None or not told.pending:
        return cell(""), []
    rows = [
        row(
            each.fairness_key,
            [
                cell(
                    named(each.fairness_key),
                    href=key_path(upstream.broker.name, queue, each.fairness_key, channel),
                    color=upstream.color(queue, each.fairness_key),
                ),
                cell(part(each.share), bar=each.share),
            ],
        )
        for each in served.keys[:MEANWHILE_SHOWN]
    ]
    rest = served.others_share + sum(each.share for each in served.keys[MEANWHILE_SHOWN:])
    if rest >= 0.005:
        rows.append(row("\0rest", [cell("all other keys", tone="quiet"), cell(part(rest), bar=rest)]))
    return cell(f"since {clock(served.since)}" if served.since else ""), rows


def watch(visit: Visit) -> Watch:
    """This key of this queue."""
    queue = visit.query("queue") or str(visit.request.path_params.get("queue", ""))
    channel, key = visit.query("channel"), visit.query("key")
    return visit.watch(("key", queue, channel, key), lambda: KeyTopic(queue, channel, key))


async def page(visit: Visit) -> Response:
    """The key's page."""
    queue, channel, key = visit.path("queue"), visit.query("channel"), visit.query("key")
    watched = watch(visit)
    state = await watched.current()
    policies = await visit.upstream.key_policies(queue, key)
    details = await unless_refused(visit.upstream.queue(queue), None)
    return visit.page(
        "key.html",
        here="queue",
        queue=queue,
        channel=channel,
        key=key,
        policy=next(iter(policies), None),
        state=state,
        live=visit.url("live", "key", queue=queue, channel=channel, key=key),
        locked=await visit.locked("manage", queue),
        wait_columns=WAIT_COLUMNS,
        meanwhile_columns=MEANWHILE_COLUMNS,
        weight_max=WEIGHT_MAX,
        in_order=details is not None and details.config.key_order == "strict",
    )


def _asked(field: Callable[[str], str]) -> NewKeyPolicy:
    """What a form asks for. Raises Trouble."""
    weight, cap, per_second = field("weight"), field("cap"), field("rate")
    return NewKeyPolicy(
        weight=as_number("weight", weight, WEIGHT_MAX) if weight else None,
        cap=as_number("cap", cap, CAP_MAX) if cap else None,
        rate=as_decimal("rate", per_second, RATE_MAX) if per_second else None,
        paused={"yes": True, "no": False}.get(field("paused")),
        comment=field("comment").strip(),
        burst=as_decimal("burst", burst, RATE_MAX) if (burst := field("burst")) else None,
        cap_by_default=field("cap_by_default") == "yes",
        rate_by_default=field("rate_by_default") == "yes",
        committed=as_decimal("committed", first, RATE_MAX) if (first := field("committed")) else None,
        committed_by_default=field("committed_by_default") == "yes",
    )


async def preview(visit: Visit) -> Response:
    """What would change, by the broker's own forecast, for beside the button."""
    queue, key, channel = visit.path("queue"), visit.query("key"), visit.query("channel")
    asked = _asked(visit.query)
    if asked == NewKeyPolicy():
        return visit.done("What would change is told here before you press.")
    told, series, channels = await asyncio.gather(
        visit.upstream.preview_key_policy(queue, key, asked, channel),
        visit.upstream.series(queue, channel, [key]),
        _channels(visit.upstream, queue),
    )
    changes = [("Its next message", _soon(told.head.before), _soon(told.head.after))]
    if told.pending > 1:
        name = f"The last of {told.pending:,} that wait"
        changes.append((name, _soon(told.tail.before), _soon(told.tail.after)))
    return visit.page(
        "previewed.html",
        sentence=_previewed(told, asked, grows(asked.rate, last_minute(series), channels)),
        changes=changes if told.pending else [],
        losing=[
            (
                f"{named(each.fairness_key)}, {counted(each.pending, 'message')}",
                _soon(each.tail.before),
                _soon(each.tail.after),
            )
            for each in told.losing
        ],
    )


def _soon(forecast: Forecast) -> tuple[str, str]:
    """When, and between what nine times in ten."""
    if forecast.unknown:
        return NO_FORECAST.get(forecast.unknown, forecast.unknown), ""
    return f"in {age(forecast.likely_ms)}", f"{age(forecast.earliest_ms)} to {age(forecast.latest_ms)}"


def _previewed(told: KeyPolicyPreview, asked: NewKeyPolicy, backlog: str) -> str:
    """What is asked for, in words, with what a rate does to the backlog; what comes of it is the forecast's."""
    parts = []
    if asked.weight is not None:
        parts.append(f"Weight {told.weight_after:,} instead of {told.weight_before:,}.")
    if asked.rate is not None:
        parts.append(
            f"At most {rate(asked.rate)} delivered, over all channels." if asked.rate else "No rate."
        )
        parts.append(backlog)
    if asked.committed is not None:
        first = f"{rate(asked.committed)} of it go before keys beyond their committed rates."
        parts.append(first if asked.committed else "Nothing committed.")
    if asked.cap is not None:
        most = counted(asked.cap, "message")
        parts.append(f"At most {most} in hand at once, in each channel." if asked.cap else "No cap.")
    if not told.pending:
        parts.append("Nothing of it waits now: it counts from its next message on.")
    return " ".join(each for each in parts if each)


async def change(visit: Visit) -> Response:
    """Weigh, cap, slow, pause or resume it."""
    # In the address, since a field of a form keeps neither a CR nor a NUL.
    queue, key = visit.path("queue"), visit.query("key")
    if visit.field("skip"):
        return await _skip(visit, queue, key)
    asked = _asked(visit.field)
    if asked == NewKeyPolicy(comment=asked.comment):
        raise Trouble(400, "Nothing was asked for", "Give a weight, a rate or a cap, or press pause.")
    before = next(iter(await visit.upstream.key_policies(queue, key)), None)
    await visit.upstream.set_key_policy(queue, key, asked)
    done = []
    if asked.weight is not None:
        done.append(f"weight {asked.weight:,}" if asked.weight else "weight as the queue has it")
    if asked.rate is not None:
        done.append(f"at most {rate(asked.rate)}" if asked.rate else "no rate")
    if asked.cap is not None:
        done.append(f"at most {asked.cap:,} in hand" if asked.cap else "no cap")
    if asked.committed is not None:
        done.append(f"{rate(asked.committed)} committed" if asked.committed else "nothing committed")
    if asked.rate_by_default:
        done.append("rate as the queue has it")
    if asked.committed_by_default:
        done.append("committed rate as the queue has it")
    if asked.cap_by_default:
        done.append("cap as the queue has it")
    if asked.paused is not None:
        done.append("paused" if asked.paused else "resumed")
    text = f"Done at {visit.upstream.clock.now()}: {named(key)} {', '.join(done)}."
    done_now = visit.changed(
        text,
        line=_line(queue, key, asked),
        undo=_way_back(visit, asked, before),
        tone="paused" if asked.paused else "done",
    )
    # The page's script empties the form's fields, and with them the preview of a change that is made by now.
    done_now.headers["HX-Trigger"] = "fila:done"
    return done_now


def _line(queue: str, key: str, asked: NewKeyPolicy) -> str:
    """What does the same from a shell; nothing where no shell could hand on the key."""
    numbers = {"weight": asked.weight, "rate": asked.rate, "cap": asked.cap, "committed": asked.committed}
    acts = [(act, f"{value:.15g}") for act, value in numbers.items() if value is not None]
    held = {
        "rate": asked.rate_by_default,
        "committed": asked.committed_by_default,
        "cap": asked.cap_by_default,
    }
    acts += [(act, "default") for act, is_asked in held.items() if is_asked]
    lines = [command_line(f"fila key {act}", queue, key, value) for act, value in acts]
    if asked.paused is not None:
        why = ["--reason", asked.comment] if asked.paused and asked.comment else []
        lines.append(
            command_line(f"fila key {'pause' if asked.paused else 'resume'}", queue, key, options=why)
        )
    return " && ".join(lines) if all(lines) else ""


def _way_back(visit: Visit, asked: NewKeyPolicy, before: KeyPolicyState | None) -> Undo:
    """What was set for the key of what is asked now; the queue's defaults where nothing was."""
    fields: list[tuple[str, str]] = []
    if asked.weight is not None:
        fields.append(("weight", str(before.weight if before else 0)))
    if asked.rate is not None and (before is None or before.rate_by_default):
        fields.append(("rate_by_default", "yes"))
    elif asked.rate is not None and before is not None:
        fields.append(("rate", f"{before.rate_per_second:.6f}"))
        fields += [("burst", f"{before.burst:.6f}")] if before.rate_per_second and before.burst else []
    if asked.cap is not None and (before is None or before.cap_by_default):
        fields.append(("cap_by_default", "yes"))
    elif asked.cap is not None and before is not None:
        fields.append(("cap", str(before.max_in_flight)))
    if asked.committed is not None and (before is None or before.committed_by_default):
        fields.append(("committed_by_default", "yes"))
    elif asked.committed is not None and before is not None:
        fields.append(("committed", f"{before.committed_per_second:.6f}"))
    if asked.paused is not None:
        fields.append(("paused", "yes" if before is not None and before.paused else "no"))
    address = visit.url("queues", visit.path("queue"), "key", key=visit.query("key"))
    return Undo(address, "as it was", fields)


async def _skip(visit: Visit, queue: str, key: str) -> Response:
    """Make the key's first message a dead letter."""
    skipped = await visit.upstream.skip_message(queue, key, visit.query("channel"))
    return visit.done(
        f"Done at {visit.upstream.clock.now()}: {skipped.message_id}, at offset {skipped.offset:,}, is a dead letter.",
        tone="done",
    )
