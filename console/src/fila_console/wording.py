"""How a number, an age, a moment and a stranger's text are written: numbers with units, times with their zone.

Text that came from producers, keys or errors may hold characters that change how the text around them reads
(direction marks, control characters). `shown` replaces them by their code, so that what is read is what is there.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from fila.explanation import Forecast, Pause

_HIDDEN = re.compile(
    # C0 and C1 without tab and newline; soft hyphen; zero width; direction marks; separators; lone surrogates;
    # tags and variation selectors.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc\ud800-\udfff\U000e0000-\U000e0fff]"
)
CELL_CHARACTERS_MAX = 200
"""Longer texts are cut in tables; the page of the thing itself shows all of it."""

UNKNOWN = "\N{EN DASH}"
"""Stands where a number was not measured, or there is none."""

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def shown(text: str) -> str:
    """Return `text` with every character that hides or reorders others written as its code."""
    return _HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def brief(text: str, most: int = CELL_CHARACTERS_MAX) -> str:
    """Return `text` as `shown` writes it, cut after `most` characters of the original."""
    return shown(text) if len(text) <= most else shown(text[:most]) + "…"


def one_line(text: str) -> str:
    """Return `text` as `shown` writes it, and line breaks and tabs, which a page shows as blanks, by their code too."""
    return re.sub("[\t\n]", lambda found: f"\\u{{{ord(found[0]):x}}}", shown(text))


def named(key: str) -> str:
    """A fairness key as people read it; the empty one has a name too."""
    return one_line(brief(key)) if key else "(no key)"


def count(number: float) -> str:
    """`12,345`."""
    return f"{number:,.0f}"


def amount(number: float) -> str:
    """`0.1`, `2.5`, `1,000,000`: a number that may have a fraction, without an exponent."""
    return f"{number:,.0f}" if abs(number) >= 1e5 else f"{number:,.6g}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 message`, `12,345 messages`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


SERVED = "messages acked a second"


def served_unit(failed: float, returned: float) -> str:
    """What stands beside the number of those served, in attempts and leases a second."""
    beside = [
        f"{rate(value)} {word}" for value, word in ((failed, "failed"), (returned, "returned")) if value
    ]
    return ", ".join([SERVED, *beside])


def rate(per_second: float | None) -> str:
    """`12.3/s`; a dash where it was not measured yet."""
    if per_second is None:
        return UNKNOWN
    if per_second and per_second < 0.05:
        return f"{per_second * 60:.1f}/min"
    return f"{per_second:,.1f}/s" if per_second < 100 else f"{per_second:,.0f}/s"


def part(fraction: float | None) -> str:
    """`33 %`; a dash where it was not measured yet."""
    if fraction is None:
        return UNKNOWN
    if 0 < fraction < 0.01:
        return "< 1 %"
    return f"{fraction * 100:.0f} %"


def age(milliseconds: float) -> str:
    """`420 ms`, `12.3 s`, `4 min 05 s`, `3 h 12 min`, `5 d 3 h`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{math.floor(seconds * 10) / 10:.1f} s"
    if seconds < 3600:
        return (
            f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
            if seconds % 60 < 59.5
            else f"{seconds / 60:.0f} min"
        )
    if seconds < 86_400:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:02.0f} min"
    return f"{seconds // 86_400:.0f} d {seconds % 86_400 // 3600:.0f} h"


def size(octets: float) -> str:
    """`12.3 MiB`."""
    unit = 0
    while octets >= 1024 and unit < len(_BYTE_UNITS) - 1:
        octets /= 1024
        unit += 1
    return (
        f"{octets:.0f} {_BYTE_UNITS[unit]}"
        if unit == 0 or octets >= 100
        else f"{octets:.1f} {_BYTE_UNITS[unit]}"
    )


def clock(moment: datetime | None, *, seconds: bool = True) -> str:
    """`14:02:10 UTC`."""
    if moment is None:
        return UNKNOWN
    return moment.astimezone(UTC).strftime("%H:%M:%S UTC" if seconds else "%H:%M UTC")


def pause_said(pause: Pause | None) -> str:
    """` since 2026-03-02 14:02:10 UTC by alice: the provider is down`, as far as it is known."""
    if pause is None:
        return ""
    since = f" since {moment(pause.since)}" if pause.since is not None else ""
    by = f" by {brief(pause.by, 60)}" if pause.by else ""
    return since + by + (f": {brief(pause.comment, 200)}" if pause.comment else "")


def moment(at: datetime | None, *, milliseconds: bool = False) -> str:
    """`2026-03-02 14:02:10 UTC`."""
    if at is None:
        return UNKNOWN
    text = at.astimezone(UTC)
    return (
        text.strftime("%Y-%m-%d %H:%M:%S")
        + (f".{text.microsecond // 1000:03d}" if milliseconds else "")
        + " UTC"
    )


_CAUSES = {
    "no_consumer": "no consumer has room",
    "not_its_turn": "other keys are served first",
    "throttled": "its limit is used up",
    "paused": "paused",
    "rate_limited": "its rate is used up",
    "capped": "at its cap of messages in hand",
    "in_order": "an earlier message of it is not done",
    "beyond_committed": "keys within their committed rates go first",
    "succeeds": "it replaces a message that is leased, and goes when that lease ends",
    "higher_first": "messages of a higher priority of its key go first",
    "delayed": "all it has is delayed",
    "leased": "all it has is in hand",
    "empty": "nothing waits",
}


_PARTS = {"slots": "all slots taken", "budget": "its budget is spent"}


def cause(word: str, bucket: str = "", part: str = "", rate: int = 0, nobody_consumes: bool = False) -> str:
    """Why a key waits, in words; `bucket` is the one that holds it back, by this part of its limit."""
    text = "nobody consumes this channel" if nobody_consumes else _CAUSES.get(word, word or "not known")
    if not bucket:
        return text
    of_it = f"its rate {rate}" if rate else _PARTS.get(part, "")
    return f"{text}: {brief(bucket, 60)}" + (f" ({of_it})" if of_it else "")


NO_FORECAST = {
    "nothing_pending": "nothing waits",
    "paused": "not before it is resumed",
    "delayed": "when its delay is over",
    "no_consumer": "not before somebody consumes",
    "no_tokens": "its rate limit gains no tokens",
    "not_watched": "known in a few seconds, once the broker has seen its pace",
}
"""Why there is no forecast."""


def forecast_said(forecast: Forecast | None, now_s: float, state: str = "") -> str:
    """A forecast as a sentence, of a key in this state; `now_s` by the clock of the broker."""
    if forecast is None:
        return "this broker makes no forecast."
    if forecast.unknown == "delayed" and state == "succeeds":
        return "when the lease of the message that it replaces ends."
    if forecast.unknown:
        return f"{NO_FORECAST.get(forecast.unknown, forecast.unknown)}."
    at = datetime.fromtimestamp(now_s + forecast.likely_ms / 1000, UTC)
    between = f"nine times in ten {age(forecast.earliest_ms)} to {age(forecast.latest_ms)} from now"
    return f"about {clock(at)}, in {age(forecast.likely_ms)}; {between}."
