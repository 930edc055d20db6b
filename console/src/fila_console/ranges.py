"""Ranges of time that a page may show, and its queries: of a reader's text these have nothing but the values of
labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from fila_console.moments import moment_of, text_of
from fila_console.prometheus import Span
from fila_console.trouble import Trouble

RANGES = {"1h": 3_600, "6h": 21_600, "24h": 86_400, "3d": 259_200, "7d": 604_800}
DEFAULT = "24h"
STEPS = 360
RATE_S_MIN = 120
"""A rate is taken over this time at least, so that a Prometheus that looks once a minute has enough to tell one."""
KEYS_SHOWN = 7
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


def seconds_of(name: str) -> int:
    """How long a range is. Raises Trouble."""
    if name not in RANGES:
        raise Trouble(400, "There is no such range", f"Choose one of {', '.join(RANGES)}.")
    return RANGES[name]


def end_of(until: str, now_s: float) -> int:
    """Where a range ends, in seconds since 1970; now where nothing is said. Raises Trouble."""
    return int(min(moment_of(until).timestamp(), now_s)) if until else int(now_s)


def until_of(at_s: int) -> str:
    """A moment as `end_of` reads it."""
    return text_of(datetime.fromtimestamp(at_s, UTC))


def span_of(seconds: int, end_s: int) -> Span:
    """A range in steps that begin where those of the range a moment before began."""
    step = seconds // STEPS
    end = end_s // step * step
    return Span(end - (STEPS - 1) * step, end, step)


def quoted(text: str) -> str:
    """A text as a query has it; its control characters by their code."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    # A lone surrogate is no text that a label could have.
    whole = escaped.encode("utf-8", "replace").decode()
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", whole) + '"'


def any_of(texts: Sequence[str]) -> str:
    """A pattern that matches just these, as a query has it."""
    return quoted("|".join(_SPECIAL.sub(r"\\\g<0>", text) for text in texts))


class Queries:
    """What is asked of some queues, or of one key of one queue."""

    def __init__(self, matchers: Sequence[str], labels: Sequence[tuple[str, str]], span: Span) -> None:
        """`matchers` say of which queues; `labels` are those of the broker."""
        self._which = (
            "{" + ",".join([*matchers, *(f"{name}={quoted(value)}" for name, value in labels)]) + "}"
        )
        self._window = f"[{max(span.step, RATE_S_MIN)}s]"
        self._whole = f"[{span.end - span.begin}s] @ {span.end}"

    def sum(self, metric: str) -> str:
        """Of a number."""
        return f"sum({metric}{self._which})"

    def most(self, metric: str) -> str:
        """The largest of a number."""
        return f"max({metric}{self._which})"

    def sources(self, metric: str, *identity: str) -> str:
        """How many sets of labels a number has beside those of `identity`, by which one broker tells its series apart:
        one broker has one set, unless it is recorded more than once."""
        return f"count(count without ({', '.join(identity)}) ({metric}{self._which}))"

    def rates(self, *counters: str, beside: str) -> str:
        """Counters together, a second; 0 where one did not begin, and nothing where `beside` was not recorded."""
        each = [f"(sum(rate({counter}{self._which}{self._window})) or vector(0))" for counter in counters]
        return f"({' + '.join(each)}) and on() count({beside}{self._which})"

    def leading(self, counter: str, label: str) -> str:
        """A counter a second, by a label, for the values that lead over the whole range."""
        leaders = f"topk({KEYS_SHOWN}, sum by ({label}) (increase({counter}{self._which}{self._whole})))"
        return f"sum by ({label}) (rate({counter}{self._which}{self._window})) and on({label}) {leaders}"
