"""How many calls Python has at a time, so that nobody's idle calls take the places of others.

    all together                     `most`; refused beyond it. A quarter is left for the health service, or probes
                                     would take a server that is busy for a broken one
    of one caller's key              a quarter of them
    the health service, all callers  a quarter: its callers show no key. The oldest makes room, so that a caller that
                                     asks once is answered, however many others stay
    ... of one connection            STRANGER_MAX; refused beyond it, those that made room among them
    with long metadata               LONG_BYTES_MAX of it; refused beyond it. A header that was sent once is named by a
                                     byte of each later call (HPACK), and kept for each

A call holds its place until its status is known, one of the health service until it is gone: its client may leave the
answer unread, and what it then holds in the threads is counted by nobody else. One that made room for another counts
for its connection as long.
"""

from __future__ import annotations

from collections import Counter

from fila_server import errors
from fila_server.edge.context import Reported

HEALTH = "/grpc.health.v1.Health/"
"""What the paths of its calls begin with, for the threads (request_headers) too."""
STRANGER_MAX = 100
LONG_FROM_BYTES = 4 << 10
"""Of one call; no client that means well sends as much."""
LONG_BYTES_MAX = 64 << 20
"""Of all calls with more."""


class CallLimits:
    """Belongs to the loop's thread."""

    def __init__(self, most: int) -> None:
        self._part = max(1, most // 4)
        self._others = max(1, most - self._part)
        """Places of all calls but those of the health service."""
        self._whose: dict[int, int | str] = {}
        """Of which key each call is, or of which connection, if it is one of the health service."""
        self._counts: Counter[int | str] = Counter()
        self._strangers: dict[int, None] = {}
        """Calls of the health service, oldest first, but those that made room."""
        self._other_calls = 0
        self._long: dict[int, int] = {}
        """Bytes of their metadata."""
        self._long_bytes = 0

    def take(self, token: int, reported: Reported, size: int) -> int:
        """Count a call in that was told in `size` bytes; return the token of one that has made room for it and has to
        end, or 0. Raises Overloaded."""
        is_stranger = reported.path.startswith(HEALTH)
        whose = reported.peer if is_stranger else reported.caller
        if is_stranger:
            of_one, said = (
                STRANGER_MAX,
                f"this connection has {STRANGER_MAX} calls of the health service open",
            )
        elif whose:
            of_one, said = self._part, f"this key has {self._part} calls open that are not answered yet"
        else:
            of_one, said = self._others, ""
        if said and self._counts[whose] >= of_one:
            raise errors.Overloaded(f"{said}; end some first")
        if size > LONG_FROM_BYTES and self._long_bytes + size > LONG_BYTES_MAX:
            raise errors.Overloaded(
                f"calls that are open hold {LONG_BYTES_MAX >> 20} MiB of metadata; send less than "
                f"{LONG_FROM_BYTES >> 10} KiB with a call"
            )
        oldest = next(iter(self._strangers)) if is_stranger and len(self._strangers) >= self._part else 0
        if not is_stranger and self._other_calls >= self._others:
            raise errors.Overloaded(
                f"{self._others} calls are already waiting for an answer; call again when some have theirs"
            )
        self._whose[token] = whose
        self._counts[whose] += 1
        if is_stranger:
            if oldest:
                del self._strangers[oldest]
            self._strangers[token] = None
        else:
            self._other_calls += 1
        if size > LONG_FROM_BYTES:
            self._long[token] = size
            self._long_bytes += size
        return oldest

    def ended(self, token: int) -> None:
        """A call's status is known, and its metadata gone; its client may not have read it yet."""
        if isinstance(self._whose.get(token), str):
            self._long_bytes -= self._long.pop(token, 0)
        else:
            self.give(token)

    def give(self, token: int) -> None:
        """A call is gone; one that has no place gives none."""
        whose = self._whose.pop(token, None)
        if whose is None:
            return
        if isinstance(whose, str):
            self._strangers.pop(token, None)
        else:
            self._other_calls -= 1
        self._long_bytes -= self._long.pop(token, 0)
        self._counts[whose] -= 1
        if not self._counts[whose]:
            del self._counts[whose]
