"""Stops calling a script that keeps failing, so that a broken hook costs nothing but its routing.

    closed --threshold failures in a row--> open --cooldown over--> half open
       ^                                      ^                        |
       '---------------- it works ------------+------ it fails --------'

While open nothing is called. Half open, the first call decides.
"""

from __future__ import annotations

CLOSED = "closed"
OPEN = "open"
HALF_OPEN = "half_open"


class CircuitBreaker:
    """One script's circuit. Time is told: every method that needs it takes `now_ns`."""

    __slots__ = ("_cooldown_ns", "_failures_in_a_row", "_opened_until_ns", "_threshold")

    def __init__(self, *, threshold: int, cooldown_ms: int) -> None:
        self._threshold = threshold
        self._cooldown_ns = cooldown_ms * 1_000_000
        self._failures_in_a_row = 0
        self._opened_until_ns: int | None = None

    @property
    def is_open(self) -> bool:
        """True from the failure that opened it to the success that closes it."""
        return self._opened_until_ns is not None

    def admits_calls(self, now_ns: int) -> bool:
        """Return whether calls may be made; a caller with several stops at the first that fails."""
        return self._opened_until_ns is None or now_ns >= self._opened_until_ns

    def record_success(self) -> bool:
        """Return whether this closed the circuit."""
        was_open = self._opened_until_ns is not None
        self._failures_in_a_row = 0
        self._opened_until_ns = None
        return was_open

    def record_failure(self, now_ns: int) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._threshold:
            # In the half-open state the count still stands, so one more failure opens it again.
            self._opened_until_ns = now_ns + self._cooldown_ns

    def state(self, now_ns: int) -> str:
        if self._opened_until_ns is None:
            return CLOSED
        return HALF_OPEN if now_ns >= self._opened_until_ns else OPEN

    def wait_ns(self, now_ns: int) -> int:
        """Return how long until a call may be made; a closed circuit that just failed one waits a cooldown."""
        if self._opened_until_ns is None:
            return self._cooldown_ns
        return max(0, self._opened_until_ns - now_ns)
