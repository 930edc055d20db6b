"""Dead letters as their page shows them: what each died of, groups of those that died of the same, page by page."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from fila import StoredMessage
from fila.dead_letters import DeadLetterFilter
from fila_console.trouble import Trouble
from fila_console.upstream import Upstream
from fila_console.wording import age, count

DLQ_SUFFIX = ".dlq"
"""What a dead-letter queue's name ends with; the broker goes by it, too."""
PEEKED_AT_ONCE = 500
LOOK_S_MAX = 3.0
TREND_S = 600.0
KIND_CHARACTERS_MAX = 200
REASONS = ("max_attempts", "on_failure", "ttl", "rejected", "skipped")
"""What the broker buries for."""
BY_HAND = "put here by hand"

_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|[0-9a-f]{8}-[0-9a-f-]{27}|\d+")
_LEFT_OUT = "#"


@dataclass(frozen=True, slots=True)
class Letter:
    """One of them."""

    message: StoredMessage
    reason: str
    error: str
    kind: str
    """The last error with its numbers left out."""
    attempts: int
    died_at: datetime | None
    source: str
    """The queue it came from, and the channel unless it is the default one; empty where it was put here by hand."""

    def is_meant(self, wanted: DeadLetterFilter) -> bool:
        """Whether an operation with this filter means it."""
        return (
            wanted.fairness_key in ("", self.message.fairness_key)
            and wanted.reason in ("", self.reason)
            and wanted.error in self.error
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Letters that died of the same; what is empty does not count."""

    reason: str
    error: str
    """As a letter's `kind`."""
    key: str

    def takes(self, letter: Letter) -> bool:
        """Whether it is one of these."""
        return (
            self.reason in ("", letter.reason)
            and self.error in ("", letter.kind)
            and self.key in ("", letter.message.fairness_key)
        )

    def as_filter(self) -> DeadLetterFilter:
        """What comes nearest for an operation: it goes by a text that an error has in it, numbers and all."""
        return DeadLetterFilter(
            fairness_key=self.key,
            reason=self.reason if self.reason in REASONS else "",
            error=max(self.error.split(_LEFT_OUT), key=len),
        )


def trend(died_s: Sequence[float], now_s: float) -> str:
    """Whether more and more die of it, from when they did, in seconds since 1970."""
    if not died_s:
        return ""
    last = sum(at >= now_s - TREND_S for at in died_s)
    before = sum(now_s - 2 * TREND_S <= at < now_s - TREND_S for at in died_s)
    if not (last or before):
        return f"none for {age(max(0.0, now_s - max(died_s)) * 1000)}"
    return f"{count(last)} in the last 10 min, {count(before)} in the 10 before"


def letter_of(message: StoredMessage) -> Letter:
    """A message of a dead-letter queue."""
    dead = message.dead_letter
    if dead is None:
        return Letter(message, BY_HAND, "", "", 0, None, "")
    kind = _NUMBERS.sub(_LEFT_OUT, dead.last_error.partition("\n")[0])[:KIND_CHARACTERS_MAX]
    channel = "" if dead.source_channel in ("", "default") else f" / {dead.source_channel}"
    return Letter(
        message, dead.reason, dead.last_error, kind, dead.attempts, dead.at, dead.source_queue + channel
    )


def check_dlq(queue: str) -> str:
    """The name, if it is a dead-letter queue's. Raises Trouble."""
    if not queue.endswith(DLQ_SUFFIX):
        raise Trouble(
            400,
            "That is no dead-letter queue",
            f"The messages of {queue} are alive; its dead letters are in {queue}{DLQ_SUFFIX}.",
        )
    return queue


async def letters_of(upstream: Upstream, dlq: str, most: int) -> AsyncIterator[Letter]:
    """Page through a dead-letter queue, oldest first, for a few seconds at most. Raises Trouble."""
    after, looked_at, began_s = 0, 0, time.monotonic()
    while looked_at < most and time.monotonic() - began_s < LOOK_S_MAX:
        messages = await upstream.peek(dlq, after, min(PEEKED_AT_ONCE, most - looked_at))
        if not messages:
            return
        for message in messages:
            yield letter_of(message)
        looked_at += len(messages)
        after = messages[-1].offset
