"""When keys end, by a clock that may be set forward and back: which are over now, and which have long been.

Nothing is taken for over because it once was: each look goes by the clock as it then stands. Only ids whose end the
clock has crossed since the last look are reported, so a look costs nothing while nothing ends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator


class Ends:
    """Ids with an end, in its order."""

    def __init__(self) -> None:
        self._by_end: list[tuple[int, str]] = []
        self._end_by_id: dict[str, int] = {}
        self._now_ms = 0
        """As of the last look."""

    def put(self, key_id: str, end_ms: int) -> bool:
        """Keep when it ends, 0 for never; return whether it is over, as of the last look."""
        self.drop(key_id)
        if end_ms:
            self._end_by_id[key_id] = end_ms
            insort(self._by_end, (end_ms, key_id))
        return bool(end_ms) and end_ms <= self._now_ms

    def drop(self, key_id: str) -> None:
        """Know nothing of it any more."""
        end_ms = self._end_by_id.pop(key_id, None)
        if end_ms is not None:
            del self._by_end[bisect_left(self._by_end, (end_ms, key_id))]

    def look(self, now_ms: int) -> list[tuple[str, bool]]:
        """The ids whose end lies between the last look's time and this one's, and whether they are over now."""
        before, now = self._place(self._now_ms), self._place(now_ms)
        self._now_ms = now_ms
        return [(key_id, before < now) for _, key_id in self._by_end[min(before, now) : max(before, now)]]

    def over_since(self, end_ms: int) -> Iterator[str]:
        """The ids that ended then or before, those that ended first first."""
        return (key_id for _, key_id in self._by_end[: self._place(end_ms)])

    def _place(self, now_ms: int) -> int:
        return bisect_right(self._by_end, (now_ms, "\U0010ffff"))
