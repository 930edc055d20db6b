"""When a user's next request is meant to begin, whatever became of the one before it.

A user that waits for a slow answer before it sends again asks less of a broker exactly while the broker is slow, and
its report shows one slow request where an open load would have had a hundred. So every request has a moment named
beforehand, and its latency counts from that moment.
"""

from __future__ import annotations


class Schedule:
    """Evenly spaced moments. With a rate of 0 the loop is closed: a request begins when the last one ended."""

    def __init__(self, rate_per_s: float, began: float, offset: float = 0.0) -> None:
        """`began` and all moments are seconds of one clock; `offset`, 0 to 1, is how far into its first interval
        the first moment lies, so that users that started together don't send in step."""
        if rate_per_s < 0:
            raise ValueError(f"a rate is 0 or more requests a second, got {rate_per_s:g}")
        self._interval_s = 1 / rate_per_s if rate_per_s else 0.0
        self._due = began + self._interval_s * offset

    def next(self, now: float) -> float:
        """The moment at which the next request is meant to begin. A moment that has passed stays as it was: the
        request is late, and its latency says so."""
        if not self._interval_s:
            return now
        due = self._due
        self._due += self._interval_s
        return due
