"""What a nack asks for."""

from __future__ import annotations

import math
from typing import NamedTuple

from fila.arguments import require_text
from fila.v1.service_pb2 import LimitFeedback

RETRY_AFTER_MS_MAX = 300_000
"""A limit closes for so long at most: then the provider is asked again."""


class LimitedBy(NamedTuple):
    """A provider's refusal."""

    limit: str
    """One of the message's throttle keys; empty for each of them whose limit learns."""
    retry_after_ms: int
    """0 where the provider did not say."""

    @property
    def wire(self) -> LimitFeedback:
        """As it travels."""
        kind = LimitFeedback.KIND_LIMITED
        return LimitFeedback(limit=self.limit, kind=kind, retry_after_ms=self.retry_after_ms)


def limited_nack(error: str, retry_after_s: float | None, limit: str) -> Nack:
    """Return what tells of a refusal. Where no limit learns of it, the message fails, and comes back after that time.
    Raises TypeError and ValueError for what is no time or text."""
    require_text("limit", limit)
    if retry_after_s is None:
        return Nack(error, limited=LimitedBy(limit, 0))
    if isinstance(retry_after_s, bool) or not isinstance(retry_after_s, int | float):
        raise TypeError(f"retry_after must be a number of seconds, got {type(retry_after_s).__name__}")
    if not retry_after_s >= 0:
        raise ValueError(f"retry_after must be 0 or more seconds, got {retry_after_s}")
    retry_after_ms = math.ceil(min(retry_after_s * 1000, RETRY_AFTER_MS_MAX))
    return Nack(error, retry_after_ms, limited=LimitedBy(limit, retry_after_ms))


class Nack(NamedTuple):
    """Messages that are nacked alike travel together."""

    error: str = ""
    """What went wrong; hooks read it and a dead letter keeps it."""
    delay_ms: int | None = None
    """Retry after exactly so long, instead of the policy's backoff."""
    dead_letter: bool = False
    """Now, whatever the queue's policy says."""
    release: bool = False
    """It did not fail: back to its place, uncounted."""
    limited: LimitedBy | None = None
    """A provider refused it."""
