"""How many messages a consumer holds: enough that no loop waits for the wire, no more than 50 ms of work.

What lies in a client's buffer is out of the broker's hands: another consumer can't take it, and no quiet tenant
can overtake it. So the buffer is measured in time, not in messages:

    buffered work = unbegun messages x median handling time / loops that come free      at most `buffer_us`

This module is a function of (time, event) to (window, give_back), with no clock and no I/O.
`sdks/conformance/prefetch.yaml` states it step by step, and every SDK replays that file.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, NamedTuple, Protocol

BUFFER_US = 50_000
"""How much work may lie in the buffer, in microseconds."""

BUFFER_MESSAGES_MAX = 1_000
"""How many messages may lie in the buffer, however quick they are; and how many may be in hand beyond the loops."""

WINDOW_MAX = 10_000
"""The broker's bound on a session's window."""

SAMPLES_MAX = 31
"""The median is that of so many newest samples."""

SAMPLE_EVERY_US = 1_000
"""Handling times are taken of messages handed out at least this far apart: a quick loop need not time each."""

AGE_FACTOR = 4
"""A message that waited `buffer_us` times this shows that the median misled."""

SETTLED_PER_BUFFERED = 4
"""So many messages must be settled for each that may lie in the buffer, and anew for each that went back: so at most
one in four is delivered in vain, however uneven the work is."""

Prefetch = int | Literal["auto"]


class Decision(NamedTuple):
    """What to tell the broker now, in one Window frame."""

    window: int
    """How many unsettled leases the session may hold from now on."""
    give_back: int
    """How many unbegun messages to return with it: those that came last, which would wait longest."""


class HandlingTimes:
    """The newest samples of how long the program takes for a message."""

    def __init__(self) -> None:
        self._samples: deque[int] = deque(maxlen=SAMPLES_MAX)
        self.median_us = 0
        """The lower median; 0 while there is no sample."""

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, handling_us: int) -> None:
        """Take in a sample; the oldest beyond SAMPLES_MAX goes."""
        self._samples.append(handling_us)
        self.median_us = sorted(self._samples)[(len(self._samples) - 1) // 2]

    def clear(self) -> None:
        """Begin anew."""
        self._samples.clear()
        self.median_us = 0


class PrefetchControl(Protocol):
    """What a session tells of its buffer, and asks for its window. Times are microseconds of one monotonic clock."""

    times: HandlingTimes
    acks_first: bool
    """Whether loops work on for long after the broker's answer to their settlements, or may do so for all that is
    known. Then `settled` of all that a loop took must be told at once, and what it decides be sent before the
    settlement."""

    @property
    def window(self) -> int:
        """The window in force, which a session is opened with."""

    @property
    def check_at_us(self) -> int | None:
        """When `tick` may decide something next; None: not before another event."""

    def joined(self, now_us: int, loop: int, size: int) -> Decision | None:
        """A loop that works on up to `size` messages at once begins."""

    def left(self, now_us: int, loop: int) -> Decision | None:
        """A loop ends. What it still has in hand stays in hand until it is settled."""

    def delivered(self, now_us: int, count: int) -> Decision | None:
        """Messages arrived in the buffer."""

    def began(self, now_us: int, loop: int, count: int) -> None:
        """A loop took messages out of the buffer."""

    def settled(self, now_us: int, loop: int, count: int) -> Decision | None:
        """Messages that a loop took are in hand no longer: the program settled or released them, or their leases are
        lost. The loop may have left meanwhile."""

    def answered(self, now_us: int, loop: int) -> None:
        """The broker has answered the settlement of all that a loop took, before the loop asked for more."""

    def dropped(self, count: int) -> None:
        """Messages left the buffer otherwise: revoked, or their lease is over. They count as the oldest."""

    def idle(self, now_us: int, loop: int) -> Decision | None:
        """A loop came free and found the buffer empty."""

    def handled(
        self, now_us: int, handling_us: int, asking: int | None, after_us: int | None
    ) -> Decision | None:
        """A sample: a message took so long, until it was settled and its loop had asked for more. `asking` is the
        loop when it is its asking that ends the sample; `began` or `idle` of the same loop follows. `after_us` is how
        long ago the settlement of all it took was answered, 0 when it is not yet; None while it holds something."""

    def tick(self, now_us: int) -> Decision | None:
        """Time passed."""


class FixedPrefetch:
    """A window of one size, whatever happens."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.times = HandlingTimes()
        self.acks_first = False
        self.check_at_us: int | None = None

    def joined(self, now_us: int, loop: int, size: int) -> None:
        """Nothing depends on it."""

    def left(self, now_us: int, loop: int) -> None:
        """Nothing depends on it."""

    def delivered(self, now_us: int, count: int) -> None:
        """Nothing depends on it."""

    def began(self, now_us: int, loop: int, count: int) -> None:
        """Nothing depends on it."""

    def settled(self, now_us: int, loop: int, count: int) -> None:
        """Nothing depends on it."""

    def answered(self, now_us: int, loop: int) -> None:
        """Nothing depends on it."""

    def dropped(self, count: int) -> None:
        """Nothing depends on it."""

    def idle(self, now_us: int, loop: int) -> None:
        """Nothing depends on it."""

    def handled(
        self,
        now_us: int,  # noqa: ARG002 - as the protocol
        handling_us: int,
        asking: int | None,  # noqa: ARG002
        after_us: int | None,  # noqa: ARG002
    ) -> None:
        """Only noted, for who asks how long messages take."""
        self.times.add(handling_us)

    def tick(self, now_us: int) -> None:
        """Nothing depends on it."""


class _Loop:
    __slots__ = ("answered_us", "began_us", "has_left", "held", "is_settled", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.held = 0
        """How many messages that it took are in hand."""
        self.began_us: int | None = None
        """When it took what it works on; None while it waits for work."""
        self.is_settled = False
        """Whether it has settled all it took, and has not asked for more since."""
        self.has_left = False
        """Whether its places left the window with that."""
        self.answered_us: int | None = None
        """When the broker answered that."""

    @property
    def counted_since_us(self) -> int | None:
        """Since when it has counted as coming free, which it does for `buffer_us`; None while no moment ends it. A
        loop that has worked for longer than a buffer lasts does not: when it will be free is not known."""
        return self.answered_us if self.is_settled else self.began_us


class AdaptivePrefetch:
    """A window that follows how fast the program works."""

    def __init__(self, buffer_us: int = BUFFER_US) -> None:
        self.times = HandlingTimes()
        self.acks_first = True  # until a loop has shown how soon it asks after the answer
        self.window = 0
        self._buffer_us = buffer_us
        self._after = HandlingTimes()  # from the broker's answer to the loop's asking
        self._loops: dict[int, _Loop] = {}
        self._slots = 0  # of all loops together
        self._working = 0  # how many of them have something to work on
        self._moved = False  # whether a loop's places left the window or come back to it
        self._in_hand = 0
        self._unbegun = 0
        self._arrivals: deque[list[int]] = deque()  # [when, how many are left], oldest first
        self._taken = 0  # not subtracted from the arrivals yet
        self._earned = SETTLED_PER_BUFFERED  # what was settled, less what went back
        self._decided_us = 0

    # Events that change counts. They come with every message, so they decide next to nothing.

    def began(self, now_us: int, loop: int, count: int) -> None:
        """A loop took messages out of the buffer."""
        taker = self._loops[loop]
        self._asks(taker, now_us)
        taker.held += count
        self._in_hand += count
        self._unbegun -= count
        self._taken += count

    def settled(self, now_us: int, loop: int, count: int) -> Decision | None:
        """Messages that a loop took are in hand no longer. It decides when the loop's places leave the window, and for
        the last message of a loop that passed them on: no other event may come before the next delivery, which a
        window that is too wide would make too large."""
        self._in_hand -= count
        self._earned = min(self._earned + count, SETTLED_PER_BUFFERED * BUFFER_MESSAGES_MAX)
        worker = self._loops.get(loop)
        if worker is not None:
            worker.held -= count
            if not worker.held and worker.began_us is not None:
                worker.is_settled, worker.answered_us = True, None
                if self.acks_first:
                    self._moved = worker.has_left = True
                    return self._decide(now_us)
        return None if self._in_hand or self._working else self._decide(now_us)

    def answered(self, now_us: int, loop: int) -> None:
        """The broker has answered the settlement of all that a loop took."""
        worker = self._loops.get(loop)
        if worker is not None and worker.is_settled:
            worker.answered_us = now_us

    def dropped(self, count: int) -> None:
        """Messages left the buffer otherwise."""
        self._unbegun -= count
        self._taken += count

    # Events that decide.

    def joined(self, now_us: int, loop: int, size: int) -> Decision | None:
        """A loop that works on up to `size` messages at once begins."""
        self._loops[loop] = _Loop(size)
        self._slots += size
        return self._decide(now_us)

    def left(self, now_us: int, loop: int) -> Decision | None:
        """A loop ends."""
        gone = self._loops.pop(loop)
        self._slots -= gone.size
        if gone.began_us is not None:
            self._working -= 1
        return self._decide(now_us)

    def delivered(self, now_us: int, count: int) -> Decision | None:
        """Messages arrived in the buffer."""
        self._unbegun += count
        self._arrivals.append([now_us, count])
        return self._decide(now_us)

    def idle(self, now_us: int, loop: int) -> Decision | None:
        """A loop came free and found the buffer empty."""
        waiting = self._loops[loop]
        self._asks(waiting, now_us)
        waiting.began_us = None
        self._working -= 1
        return self._decide(now_us)

    def handled(
        self, now_us: int, handling_us: int, asking: int | None, after_us: int | None
    ) -> Decision | None:
        """A sample. A loop that is just asking is not stuck, however long it took."""
        self.times.add(handling_us)
        if asking is not None:
            if after_us is not None:
                self._after.add(after_us)
                self.acks_first = self._after.median_us > self._buffer_us
            self._asks(self._loops[asking], now_us)
        return self._decide(now_us)

    def tick(self, now_us: int) -> Decision | None:
        """Time passed."""
        return self._decide(now_us)

    @property
    def check_at_us(self) -> int | None:
        """When `tick` may decide something next: a loop becomes stuck, or the oldest message too old."""
        oldest_us = self._oldest_us()
        if oldest_us is None:
            return None
        moments = [oldest_us + AGE_FACTOR * self._buffer_us]
        counted = (loop.counted_since_us for loop in self._loops.values())
        moments += [since_us + self._buffer_us for since_us in counted if since_us is not None]
        return min((moment for moment in moments if moment > self._decided_us), default=None)

    def _asks(self, loop: _Loop, now_us: int) -> None:
        """A loop asks for more: it counts as coming free from now on."""
        if loop.began_us is None:
            self._working += 1
        elif loop.has_left:
            self._moved = True
        loop.began_us = now_us
        loop.is_settled = loop.has_left = False

    # The decision.

    def _decide(self, now_us: int) -> Decision | None:
        self._decided_us = now_us
        idle = coming = places = 0
        for loop in self._loops.values():
            if loop.began_us is None:
                idle += 1
                places += loop.size
                continue
            since_us = loop.answered_us if loop.is_settled else loop.began_us  # as counted_since_us
            if since_us is None or now_us - since_us < self._buffer_us:
                coming += 1
                if loop.size > loop.held and not (loop.is_settled and self.acks_first):
                    places += loop.size - loop.held
        oldest_us = self._oldest_us()
        # With a loop idle nothing lies unbegun for longer than it takes to hand it out.
        aged = (
            not idle
            and self._unbegun > 1
            and oldest_us is not None
            and now_us - oldest_us >= AGE_FACTOR * self._buffer_us
        )
        if aged:
            self.times.clear()
            self._earned = SETTLED_PER_BUFFERED

        # What is in hand, and one for each free place of the loops that come free: so a loop that passes its messages
        # on is not held up.
        hands = min(self._in_hand + places, max(self._slots, BUFFER_MESSAGES_MAX))
        buffer = self._buffer_messages(idle + coming)
        target = min(hands + buffer, WINDOW_MAX)
        spare = max(0, hands - self._in_hand)
        give_back = 0
        if not idle and (aged or self._unbegun > spare + 2 * buffer):
            give_back = max(0, self._unbegun - spare - buffer)
        tells = give_back > 0 or self._is_worth_telling(target, idle)
        self._moved = False
        if not tells:
            return None
        self.window = target
        self._earned = max(0, self._earned - SETTLED_PER_BUFFERED * give_back)
        self._forget_newest(give_back)
        return Decision(target, give_back)

    def _buffer_messages(self, coming_free: int) -> int:
        """How many messages may wait: what the loops that come free do in `buffer_us`."""
        median_us = self.times.median_us
        if not coming_free or 5 * median_us > 4 * self._buffer_us:
            return 0  # so near to `buffer_us` that half of what waits would go back
        if not self.times:
            return 1
        return min(self._earned // SETTLED_PER_BUFFERED, self._buffer_us * coming_free // max(median_us, 1))

    def _is_worth_telling(self, target: int, idle: int) -> bool:
        """Whether the difference matters: small ones would cost a frame for every message."""
        told = self.window
        if self._moved:
            return target != told
        if target > told:
            starved = idle > 0 and told <= self._in_hand
            return starved or target - told >= max(1, told >> 3)
        return told - target >= max(1, told >> 2)

    # Since when the oldest has waited.

    def _oldest_us(self) -> int | None:
        arrivals = self._arrivals
        while arrivals and self._taken >= arrivals[0][1]:
            self._taken -= arrivals.popleft()[1]
        return arrivals[0][0] if arrivals else None

    def _forget_newest(self, count: int) -> None:
        self._unbegun -= count
        while count:
            newest = self._arrivals[-1]
            part = min(count, newest[1])
            newest[1] -= part
            count -= part
            if not newest[1]:
                self._arrivals.pop()
