"""What must be true of deliveries to sessions, message by message, and the judges that count how often they looked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.simulation.oracles import Broken

READY, HELD, DONE = "ready", "held", "done"
BURST, RATE_PER_S = 10.0, 5.0
LATENESS = 0.2
"""Tokens: wakes that come late are credited up to 10 ms, and the clock goes in steps."""
NOISY_BEFORE_QUIET_MAX = 3
"""Two grants of one message each, and the message whose turn it was."""


@dataclass(eq=False)
class Told:
    """One message, as far as somebody outside can know it."""

    payload: bytes
    offset: int
    key: str
    throttled: bool
    state: str = READY
    least_attempts: int = 0
    most_attempts: int = 0
    has_failed: bool = False  # then it stands somewhere at the back
    came_back: bool = False
    lease_id: int = 0
    holder: int = 0  # the session's number
    begun: bool = False
    maybe_begun: bool = False  # a power cut may have forgotten it

    def fails(self) -> None:
        self.state, self.has_failed, self.came_back = READY, True, True
        self.most_attempts += 1
        self.least_attempts += not self.maybe_begun

    def returns(self) -> None:
        self.state, self.came_back = READY, True


class SessionModel:
    """All messages, and the judges."""

    def __init__(self) -> None:
        self.messages: dict[bytes, Told] = {}
        self.by_lease: dict[int, Told] = {}
        self.judged: Counter[str] = Counter()
        self.level, self.level_at_ns = BURST, 0
        self.noisy_since_return: int | None = None
        self.returned = 0

    def judge(self, what: str, good: bool, why: str) -> None:
        self.judged[what] += 1
        if not good:
            raise Broken(f"{what}: {why}")

    # --- deliveries ------------------------------------------------------------------------------

    def delivered(self, payload: bytes, lease_id: int, attempts: int, redelivered: bool, holder: int) -> None:
        told = self.messages[payload]
        what = f"{payload.decode()} to {holder} under {lease_id}"
        self.judge("one holder", told.state == READY, f"{what} while it is {told.state} with {told.holder}")
        self.judge(
            "attempts are begun failures",
            told.least_attempts <= attempts <= told.most_attempts,
            f"{what} says {attempts}, not {told.least_attempts}..{told.most_attempts}",
        )
        if attempts or told.came_back:
            self.judge("what comes back says so", redelivered, what)
        self._judge_place(told, what)
        self._judge_turn(told, what)
        if told.throttled:
            self.judge("no bucket over its curve", self.level >= 1 - LATENESS, f"{what} with {self.level}")
            self.level -= 1
        told.least_attempts = told.most_attempts = attempts
        told.state, told.lease_id, told.holder = HELD, lease_id, holder
        told.begun = told.maybe_begun = False
        self.by_lease[lease_id] = told

    def _judge_place(self, told: Told, what: str) -> None:
        if told.has_failed or told.throttled:
            return
        before = [
            other
            for other in self.messages.values()
            if other.state == READY
            and not other.has_failed
            and not other.throttled
            and other.key == told.key
            and other.offset < told.offset
        ]
        self.judge("a return takes its old place", not before, f"{what} before {[o.payload for o in before]}")

    def _judge_turn(self, told: Told, what: str) -> None:
        if self.noisy_since_return is None:
            return
        if told.key == "quiet":
            self.noisy_since_return = None
            return
        self.noisy_since_return += 1
        self.judge(
            "a quiet key waits a grant", self.noisy_since_return <= NOISY_BEFORE_QUIET_MAX, f"{what} first"
        )

    def many_returned(self) -> None:
        quiet = any(
            t.state == READY and t.key == "quiet" and not t.throttled and not t.has_failed
            for t in self.messages.values()
        )
        self.noisy_since_return = 0 if quiet else None

    # --- ends of leases --------------------------------------------------------------------------

    def held_by(self, holder: int) -> list[Told]:
        return [told for told in self.messages.values() if told.state == HELD and told.holder == holder]

    def acked(self, lease_id: int) -> None:
        self.by_lease.pop(lease_id).state = DONE

    def failed(self, lease_id: int) -> None:
        self.by_lease.pop(lease_id).fails()

    def rejected(self, lease_id: int) -> None:
        self.by_lease.pop(lease_id).state = DONE

    def came_back(self, lease_id: int, *, tokens: bool) -> None:
        told = self.by_lease.pop(lease_id)
        told.returns()
        self.returned += 1
        if told.throttled and tokens:
            self.level = min(BURST, self.level + 1)

    def gone(self, holder: int) -> None:
        """Begun messages failed, the others are back."""
        for told in self.held_by(holder):
            if told.begun or told.maybe_begun:
                self.failed(told.lease_id)
            else:
                self.came_back(told.lease_id, tokens=False)

    def seeked(self) -> None:
        for told in self.messages.values():
            if told.state != DONE:
                told.state, told.has_failed, told.came_back = READY, False, False
                told.least_attempts = told.most_attempts = 0
        self.by_lease.clear()
        self.noisy_since_return = None

    def purged(self) -> None:
        for told in list(self.messages.values()):
            if told.state == READY or (told.state == HELD and not told.begun):
                self.by_lease.pop(told.lease_id, None)
                told.state = DONE
        self.noisy_since_return = None  # the quiet one may be gone

    def restarted(self) -> None:
        """How often a message came back is not kept with it."""
        for told in self.messages.values():
            told.came_back = False

    def clock(self, mono_ns: int) -> None:
        self.level = min(BURST, self.level + RATE_PER_S * (mono_ns - self.level_at_ns) / 1e9)
        self.level_at_ns = mono_ns
