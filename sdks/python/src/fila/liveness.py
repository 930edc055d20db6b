"""Until when a session may hand messages out: a broker that was not heard from may have given them to others.

The consumer says `alive`, the broker answers. Whatever the broker answered last, it has heard from this consumer
no earlier than that frame was sent; so for a visibility timeout from the sending it has not called the consumer
silent. Judged by the client's monotonic clock: no two machines' clocks agree.
"""

from __future__ import annotations

from collections import deque

ALIVE_PER_TIMEOUT = 4
"""So many `alive` frames are sent within a visibility timeout."""

ALIVE_EVERY_S_MAX = 10.0
"""An `alive` frame is sent at least this often, however long the timeout."""

UNANSWERED_MAX = 8
"""More unanswered frames would say nothing new."""


class Liveness:
    """What a session knows of whether it is heard. Times are seconds on the client's monotonic clock."""

    def __init__(self) -> None:
        self.hand_out_until_s = float("-inf")
        """Nothing is handed out from then on, until more is heard."""
        self.asked_at_s = float("-inf")
        """When `alive` was said last."""
        self._timeout_s = 0.0
        self._sequence = 0
        self._unanswered: deque[tuple[int, float]] = deque()

    def opened(self, sent_at_s: float, timeout_s: float) -> None:
        """The broker answered an `open` that was sent then; from now on it judges by this timeout."""
        self._timeout_s = timeout_s
        self._unanswered.clear()
        self.hand_out_until_s = sent_at_s + timeout_s
        self.asked_at_s = sent_at_s

    def opened_without_rules(self) -> None:
        """The broker is older than these rules."""
        self.hand_out_until_s = float("inf")

    def lost(self) -> None:
        """The stream is over."""
        self.hand_out_until_s = float("-inf")
        self._timeout_s = 0.0

    @property
    def interval_s(self) -> float:
        """How long after one `alive` the next is due."""
        return min(self._timeout_s / ALIVE_PER_TIMEOUT, ALIVE_EVERY_S_MAX)

    def say_alive(self, now_s: float) -> int | None:
        """Return the number of a frame to send now; None when enough are unanswered."""
        if len(self._unanswered) >= UNANSWERED_MAX:
            return None
        self._sequence += 1
        self._unanswered.append((self._sequence, now_s))
        self.asked_at_s = now_s
        return self._sequence

    def should_ask(self, now_s: float) -> bool:
        """Whether nothing may be handed out although the stream stands, and nobody has asked the broker lately: this
        client slept, or was stopped for a while."""
        return (
            self._timeout_s > 0
            and self.hand_out_until_s <= now_s
            and now_s - self.asked_at_s >= self.interval_s
        )

    def answered(self, sequence: int) -> None:
        """The broker heard the frame of this number."""
        while self._unanswered and self._unanswered[0][0] <= sequence:
            number, sent_at_s = self._unanswered.popleft()
            if number == sequence:
                self.hand_out_until_s = max(self.hand_out_until_s, sent_at_s + self._timeout_s)
