"""What becomes of a message that was handled: what the handler returned or raised, as a verdict for the broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fila.nack import LimitedBy, limited_nack
from fila.values import duration_ms

ERROR_CHARS_MAX = 2_000
"""An error's text is cut here: it is stored with the message."""


class Retry(Exception):
    """Raise it in a handler: the message failed and comes back, after `delay` ("5s", or milliseconds) or when the
    queue's policy says."""

    def __init__(self, error: str = "", *, delay: str | int | None = None) -> None:
        super().__init__(error)
        self.delay_ms = None if delay is None else duration_ms("delay", delay)


class Reject(Exception):
    """Raise it in a handler: the message can never succeed, and becomes a dead letter now."""


class Release(Exception):
    """Raise it in a handler: the message did not fail; it goes back to its place, and no attempt counts."""


class Limited(Exception):
    """Raise it in a handler: the provider behind a limit refused the call (HTTP's 429), and asked for `retry_after`
    seconds. The limit slows down for all workers, and the message comes back uncounted; see `fila.Message.limited`."""

    def __init__(self, error: str = "", *, retry_after: float | None = None, limit: str = "") -> None:
        super().__init__(error)
        self.nack = limited_nack(error, retry_after, limit)
        """What the broker is told of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the broker is told of one message."""

    kind: Literal["ack", "retry", "reject", "release", "limited"]
    error: str = ""
    delay_ms: int | None = None
    limited: LimitedBy | None = None


ACK = Outcome("ack")
RELEASE = Outcome("release")


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Which exceptions mean what, by type; the closest class wins. What is not named is tried again by the queue's
    policy, until its `max_attempts`."""

    retry: Mapping[type[BaseException], int | None]
    """Tried again after so many milliseconds; None: by the queue's policy."""
    reject: tuple[type[BaseException], ...]
    release: tuple[type[BaseException], ...]

    def of(self, error: BaseException) -> Outcome:
        """Return what an exception means."""
        text = text_of(error)
        if isinstance(error, Retry):
            return Outcome("retry", text, error.delay_ms)
        if isinstance(error, Reject):
            return Outcome("reject", text)
        if isinstance(error, Release):
            return RELEASE
        if isinstance(error, Limited):
            return Outcome("limited", text, error.nack.delay_ms, error.nack.limited)
        for kind in type(error).__mro__:
            if kind in self.reject:
                return Outcome("reject", text)
            if kind in self.release:
                return RELEASE
            if kind in self.retry:
                return Outcome("retry", text, self.retry[kind])
        return Outcome("retry", text)


def text_of(error: BaseException) -> str:
    """Return an exception as a dead letter shows it."""
    if isinstance(error, Retry | Reject | Limited):
        return str(error)[:ERROR_CHARS_MAX]
    said = str(error)
    return (f"{type(error).__name__}: {said}" if said else type(error).__name__)[:ERROR_CHARS_MAX]
