"""Refused logins and rights, told in sums: once a second for each principal, address and reason, so that nobody can
flood the log by being refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fila_server.access.failures import network_of
from fila_server.events import PER_KIND_A_SECOND, emit

REPORT_AFTER_S = 1.0
ROWS_MAX = PER_KIND_A_SECOND - 1
"""Different ones a second; the rest is one sum."""


class Denials:
    """Counts, and tells."""

    def __init__(self, call_later: Callable[..., Any], now_s: Callable[[], float]) -> None:
        self._call_later = call_later
        self._now_s = now_s
        self._counts: dict[tuple[str, str, str], int] = {}
        self._others = 0
        self.total = 0

    def add(self, why: str, who: str, address: str) -> None:
        """Count one refusal."""
        self.total += 1
        if not self._counts:
            self._call_later(REPORT_AFTER_S, self.report)
        row = (why, who[:128], network_of(address))
        if row in self._counts or len(self._counts) < ROWS_MAX:
            self._counts[row] = self._counts.get(row, 0) + 1
        else:
            self._others += 1

    def report(self) -> None:
        """Tell what was counted since the last time."""
        counts, self._counts = self._counts, {}
        others, self._others = self._others, 0
        for (why, who, address), count in counts.items():
            emit("access.denied", principal=who, peer=address, count=count, why=why)
        if others:
            emit("access.denied", count=others, why="others")
