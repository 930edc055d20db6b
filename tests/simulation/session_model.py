"""What must be true of deliveries to sessions, message by message, and the judges that count how often they looked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fila.v1 import messages_pb2 as messages
from tests.simulation.oracles import Broken

READY, HELD, DONE, DEAD = "ready", "held", "done", "dead"
BURST, RATE_PER_S = 10.0, 5.0
TTL_LATE_MS, DELAY_EARLY_MS = 200, 1
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
    expires_ms: int = 0  # its time to live; 0: none
    due_ms: int = 0  # not before; 0: at once
    delayed: bool = False  # it was, so it stands anywhere
    maybe_dead: bool = False
    maybe_gone: bool = False  # a seek may have found it, or not
    lease_id: int = 0
    holder: int = 0  # the session's number
    begun: bool = False
    maybe_begun: bool = False  # a power cut may have forgotten it
    was_begun: bool = False  # when it came back uncounted, once
    maybe_was_begun: bool = False

    def fails(self, cap: int) -> None:
        self.has_failed, self.came_back = True, True
        self.most_attempts += 1
        self.least_attempts += not self.maybe_begun
        self.state = DEAD if cap and self.least_attempts >= cap else READY
        self.maybe_dead = bool(cap) and self.state == READY and self.most_attempts >= cap

    def returns(self) -> None:
        self.state, self.came_back = READY, True
        self.was_begun = self.was_begun or self.begun
        self.maybe_was_begun = self.maybe_was_begun or self.maybe_begun


@dataclass(eq=False)
class Bucket:
    """What every channel's deliveries of throttled messages take from."""

    level: float = BURST
    at_ns: int = 0

    def clock(self, mono_ns: int) -> None:
        self.level = min(BURST, self.level + RATE_PER_S * (mono_ns - self.at_ns) / 1e9)
        self.at_ns = mono_ns


class SessionModel:
    """All messages of one channel, and the judges."""

    def __init__(self, queue: str, channel: str, bucket: Bucket, judged: Counter[str]) -> None:
        self.queue, self.channel = queue, channel
        self.messages: dict[bytes, Told] = {}
        self.by_lease: dict[int, Told] = {}
        self.judged = judged
        self.bucket = bucket
        self.noisy_since_return: int | None = None
        self.max_attempts = 0
        self.dead = 0  # for sure
        self.leased = 0  # since the broker started
        self.begun, self.maybe_begun_more = 0, 0
        self.wall_ms = 0

    def judge(self, what: str, good: bool, why: str) -> None:
        self.judged[what] += 1
        if not good:
            raise Broken(f"{what}: {why}")

    # --- deliveries ------------------------------------------------------------------------------

    def delivered(self, payload: bytes, meta: messages.MessageMetadata, holder: int) -> None:
        told = self.messages[payload]
        lease_id, attempts = meta.lease_id, meta.attempt_count
        what = f"{payload.decode()} to {holder} in {self.queue}/{self.channel} under {lease_id}"
        if told.expires_ms:
            on_time = self.wall_ms <= told.expires_ms + TTL_LATE_MS
            self.judge("nothing is delivered past its time to live", on_time, f"{what}, {told.expires_ms}")
        if told.due_ms:
            due = self.wall_ms >= told.due_ms - DELAY_EARLY_MS
            self.judge(
                "nothing is delivered before its time", due, f"{what}: {told.due_ms} at {self.wall_ms}"
            )
        self.judge("one holder", told.state == READY, f"{what} while it is {told.state} with {told.holder}")
        self.judge(
            "attempts are begun failures",
            told.least_attempts <= attempts <= told.most_attempts,
            f"{what} says {attempts}, not {told.least_attempts}..{told.most_attempts}",
        )
        self._judge_marks(told, meta, what)
        self._judge_place(told, what)
        self._judge_turn(told, what)
        if told.throttled:
            level = self.bucket.level
            self.judge("no bucket over its curve", level >= 1 - LATENESS, f"{what} with {level}")
            self.bucket.level -= 1
        told.maybe_dead, told.maybe_gone, told.due_ms = False, False, 0
        told.least_attempts = told.most_attempts = attempts
        told.state, told.lease_id, told.holder = HELD, lease_id, holder
        told.begun = told.maybe_begun = False
        self.by_lease[lease_id] = told
        self.leased += 1

    def _judge_marks(self, told: Told, meta: messages.MessageMetadata, what: str) -> None:
        if meta.attempt_count or told.came_back:
            self.judge("what comes back says so", meta.redelivered or meta.came_back, what)
        if meta.attempt_count or told.was_begun:
            self.judge("what was begun is redelivered", meta.redelivered, what)
        elif not told.maybe_was_begun:
            self.judge("only what was begun is redelivered", not meta.redelivered, what)

    def _judge_place(self, told: Told, what: str) -> None:
        if told.has_failed or told.throttled or told.delayed:
            return
        before = [
            other
            for other in self.messages.values()
            if other.state == READY
            and not other.has_failed
            and not other.throttled
            and not (other.delayed or other.maybe_gone)
            and not 0 < other.expires_ms <= self.wall_ms
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
            t.state == READY
            and t.key == "quiet"
            and not (t.throttled or t.has_failed or t.expires_ms or t.delayed)
            for t in self.messages.values()
        )
        self.noisy_since_return = 0 if quiet else None

    # --- ends of leases --------------------------------------------------------------------------

    def held_by(self, holder: int) -> list[Told]:
        return [told for told in self.messages.values() if told.state == HELD and told.holder == holder]

    def begins(self, lease_id: int) -> None:
        """Its consumer says so, or settles it."""
        told = self.by_lease[lease_id]
        self.begun += not (told.begun or told.maybe_begun)
        self.maybe_begun_more += told.maybe_begun and not told.begun
        told.begun = True

    def acked(self, lease_id: int) -> None:
        self.by_lease.pop(lease_id).state = DONE

    def failed(self, lease_id: int) -> None:
        told = self.by_lease.pop(lease_id)
        told.fails(self.max_attempts)
        self.dead += told.state == DEAD

    def rejected(self, lease_id: int) -> None:
        self.by_lease.pop(lease_id).state = DEAD
        self.dead += 1

    def came_back(self, lease_id: int, *, tokens: bool) -> None:
        told = self.by_lease.pop(lease_id)
        told.returns()
        if told.throttled and tokens:
            self.bucket.level = min(BURST, self.bucket.level + 1)

    def gone(self, holder: int) -> None:
        """Begun messages failed, the others are back."""
        for told in self.held_by(holder):
            if told.begun or told.maybe_begun:
                self.failed(told.lease_id)
            else:
                self.came_back(told.lease_id, tokens=False)

    def seeked(self, kept: dict[bytes, bool]) -> None:
        """Anew, with everything that is kept: what another channel still needs, and what this one had not done.
        True: for sure."""
        for payload, told in self.messages.items():
            if payload not in kept:
                continue
            told.maybe_gone = not kept[payload]
            told.state, told.has_failed, told.came_back, told.maybe_dead = READY, False, False, False
            told.was_begun = told.maybe_was_begun = False
            told.delayed, told.due_ms = False, 0
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
        """Nobody is owed anything. Of one that was delayed it is not kept that it came back (docs/concepts.md)."""
        for told in self.messages.values():
            if told.delayed:
                told.maybe_was_begun = told.maybe_was_begun or told.was_begun
                told.came_back = told.was_begun = False
        self.leased = self.begun = self.maybe_begun_more = 0
        self.noisy_since_return = None

    def clock(self, wall_ms: int) -> None:
        self.wall_ms = wall_ms
        for told in self.messages.values():
            if told.state == READY and 0 < told.expires_ms < wall_ms - TTL_LATE_MS:
                told.state = DONE

    def is_kept(self, told: Told) -> bool | None:
        """Whether it is stored for this channel's sake; None: nobody knows."""
        if told.state == READY and (
            told.maybe_dead or told.maybe_gone or 0 < told.expires_ms <= self.wall_ms
        ):
            return None
        return told.state in (READY, HELD)

    @property
    def maybe_dead(self) -> int:
        return sum(told.maybe_dead for told in self.messages.values())
