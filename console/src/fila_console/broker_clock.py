"""What the broker's clock says. It may differ from that of this machine, and what a broker tells has its times."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from fila_console.wording import age, clock

DIFFERS_S_MIN = 5.0
"""Less is taken for the way of an answer."""


class BrokerClock:
    """Of one broker, by the times that its numbers carry."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def hear(self, at: datetime) -> None:
        """The broker has just told this time."""
        ahead_s = at.timestamp() - time.time()
        self._ahead_s = ahead_s if abs(ahead_s) >= DIFFERS_S_MIN else 0.0

    def now_s(self) -> float:
        """Its time, in seconds since 1970; this machine's before anything was heard."""
        return time.time() + self._ahead_s

    def now(self) -> str:
        """Its time, as people read it."""
        return clock(datetime.fromtimestamp(self.now_s(), UTC))

    def as_of(self) -> str:
        """When a page was made; and that the clocks differ, where they do."""
        if not self._ahead_s:
            return f"as of {self.now()}"
        way = "ahead of" if self._ahead_s > 0 else "behind"
        return (
            f"as of {self.now()} by the broker's clock, {age(abs(self._ahead_s) * 1000)} {way} this console's"
        )
