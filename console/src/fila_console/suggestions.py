"""Numbers to begin with where a key is weighed, slowed or capped: each from what was seen, and it says from what."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fila.answers import KeyState
from fila.explanation import ChannelConsumers
from fila.watched import Series
from fila_console.cells import Cell, cell
from fila_console.wording import count, counted, rate

MINUTE_STEPS = 6
"""Of ten seconds."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What came to a key and what it got, a second, over the last minute."""

    arrived: float
    """Messages."""
    served: float
    """Cost."""


def last_minute(series: Series) -> Pace | None:
    """The pace of the first key in `series` over what was recorded of the last minute; None where nothing was."""
    points = series.keys[0].points[-MINUTE_STEPS:] if series.keys else []
    known = [each for each in points if each.recorded]
    if not known:
        return None
    seconds = len(known) * series.step_ms / 1000
    return Pace(sum(each.arrived for each in known) / seconds, sum(each.served for each in known) / seconds)


def suggestions(
    pace: Pace | None,
    told: KeyState | None,
    weight: int,
    consumers: ChannelConsumers | None,
    weight_max: int,
    channels: int,
) -> dict[str, Cell]:
    """The texts beside the fields of a key's settings: a number each to press, and where it comes from.

    `pace` is that of one of the queue's `channels`.
    """
    return _rates(pace, told, channels) | _weights(weight, weight_max) | _caps(consumers)


def _rates(pace: Pace | None, told: KeyState | None, channels: int) -> dict[str, Cell]:
    if channels > 1:
        text = "A rate counts all channels together; this page knows one."
        return _said("rate", text, half="", same="")
    got = _messages(pace, told)
    if pace is None or not got:
        return _said("rate", "It got nothing in the last minute that a rate could go by.", half="", same="")
    text = f"half of what it got in the last minute, or as much ({rate(got)}; {rate(pace.arrived)} arrived)"
    return _said("rate", text, half=_rounded(got / 2), same=_rounded(got))


def _messages(pace: Pace | None, told: KeyState | None) -> float:
    """What it got, in messages: what is recorded is their cost, and a key's messages have cost much the same so far."""
    if pace is None:
        return 0.0
    if told is None or not told.served_total:
        return pace.served
    return pace.served * told.delivered_total / told.served_total


def _weights(weight: int, most: int) -> dict[str, Cell]:
    more = count(weight * 2) if 0 < weight * 2 <= most else ""
    if weight > 1:
        text = f"half of the {count(weight)} it has now" + (", or twice as much" if more else "")
        return _said("weight", text, less=count(weight // 2), more=more)
    if not weight:
        return _said("weight", "", less="", more="")
    return _said("weight", "twice the 1 it has now, which is the least: a rate slows it", less="", more=more)


def _caps(consumers: ChannelConsumers | None) -> dict[str, Cell]:
    if consumers is None or not (consumers.count or consumers.waiting_pulls):
        return _said("cap", "Nobody consumes that a cap could go by.", half="")
    if consumers.window < 2:
        return _said("cap", "Consumers hold too little for a cap to go by.", half="")
    most = counted(consumers.window, "message")
    return _said("cap", f"half of the {most} that consumers may hold", half=count(consumers.window // 2))


def _said(field: str, text: str, **numbers: str) -> dict[str, Cell]:
    return {f"{field}-{name}": cell(number) for name, number in numbers.items()} | {
        f"{field}-from": cell(text)
    }


def _rounded(number: float) -> str:
    """Two digits that count, as a field takes them: `0.25`, `7.5`, `31`, `1500`."""
    if number >= 10:
        step = 10 ** (int(math.log10(number)) - 1)
        return str(round(number / step) * step)
    digits = min(6, 1 - math.floor(math.log10(max(number, 1e-6))))
    return f"{max(number, 1e-6):.{digits}f}".rstrip("0").rstrip(".")


def grows(asked_rate: float | None, pace: Pace | None, channels: int) -> str:
    """What a rate does to the backlog while as much arrives as in the last minute: it caps deliveries, not arrivals.

    Of a queue with several channels nothing is said: each delivers what arrives, and the rate counts all of it.
    """
    if not asked_rate or pace is None or channels > 1:
        return ""
    more = pace.arrived - asked_rate
    arrived = f"{rate(pace.arrived)} arrived in the last minute"
    if more > 0:
        return f"{arrived}: at that pace its backlog grows by {counted(max(1, round(more * 60)), 'message')} a minute."
    return f"{arrived}, which is no more than that: its backlog does not grow."
