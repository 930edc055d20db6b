"""What one consumer holds: messages that wait in its buffer, and those its program has in hand.

    delivered ──► ready ──► in hand ──► settled            began: a loop took it
                    │           └─────► lost               the broker took the lease back
                    └─► given back, revoked, past its lease

Each step is told to the prefetch controller, whose decisions go to the session as windows. `ready` may be taken
from by the threads of a synchronous client too: taking from a deque is atomic, and the accounts are done on the
client's own thread soon after.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from fila.arrivals import Arrivals
from fila.leases import Answer, LostLeases
from fila.loops import Loop, Sample
from fila.messages import LeasedMessage
from fila.prefetch import SAMPLE_EVERY_US, Decision, PrefetchControl

MessageT = TypeVar("MessageT", bound=LeasedMessage)

TICK_S_MAX = 0.05
"""How late at most a timer is looked at again: a loop may take a message after the timer was set."""


class Holding(Generic[MessageT]):
    """Ready and in-hand messages of one session. The HeldLeases of its settler are those in hand."""

    def __init__(
        self,
        control: PrefetchControl,
        now_s: Callable[[], float],
        tell: Callable[[int, list[int]], None],
    ) -> None:
        self.control = control
        self.ready: deque[MessageT] = deque()
        self.arrivals = Arrivals(self.ready)
        self.in_hand: dict[str, MessageT] = {}
        self.not_started: set[int] = set()
        """Leases in hand whose work has not begun: taken by a worker that waits for its turn. Any thread may change
        it."""
        self.lost = LostLeases()
        self.renewal_s = 0.0
        """How long the broker keeps a lease from when it begins; 0 when that does not count from then."""
        self.held_until_s = float("-inf")
        """When the last lease in hand ends, on the client's clock."""
        self.handed_out: Callable[[], object] = lambda: None
        """Called after messages were handed out, unless that is known."""
        self.is_declaring = False
        """Whether somebody looks after what is handed out already."""
        self._now_s = now_s
        self._tell = tell
        self._event_loop = asyncio.get_running_loop()
        self._loops = 0
        self._known: dict[int, Loop] = {}
        """Those that joined, without those that parted and have nothing in hand."""
        self._joined = 0
        self._waiting = 0  # loops that found nothing
        self._sampled: dict[int, Sample] = {}
        self._next_sample_s = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self._taken_by_threads: deque[tuple[MessageT, Loop, float]] = deque()
        self._accounting = False

    # Loops.

    def join(self, size: int) -> Loop:
        """A loop that works on up to `size` messages at once begins."""
        self._loops += 1
        self._joined += 1
        self._waiting += 1
        loop = self._known[self._loops] = Loop(self._loops)
        self._obey(self.control.joined(self._now_us(), loop.number, size))
        return loop

    def part(self, loop: Loop) -> None:
        """A loop ends."""
        self.account()
        self._note(loop, waits=False)
        self._tell_taken()
        self._joined -= 1
        loop.has_parted = True
        if loop.settled == loop.taken:
            del self._known[loop.number]
        self._obey(self.control.left(self._now_us(), loop.number))

    # Handing out.

    def deliver(self, messages: list[MessageT]) -> None:
        """Messages arrived."""
        self.ready.extend(messages)
        self._tell_taken()
        self._obey(self.control.delivered(self._now_us(), len(messages)))
        self.arrivals.came()
        self._watch()

    def take(self, loop: Loop, count_max: int, until_s: float) -> list[MessageT]:
        """Hand out up to `count_max` messages whose leases run; none from `until_s` on."""
        now_s = self._now_s()
        now_us = int(now_s * 1e6)
        if loop.sample is not None:
            self._asked(loop, now_s, now_us)
        taken: list[MessageT] = []
        ready = self.ready
        if now_s < until_s:
            while ready and len(taken) < count_max:
                message = ready.popleft()
                if message.held_until_s > now_s:
                    taken.append(message)
                else:
                    # It waited here past its lease: it is, or will be, delivered to somebody else.
                    self.control.dropped(1)
        if taken:
            self._begin(taken, loop, now_s, now_us)
        else:
            self._idle(loop, now_us)
        return taken

    def _idle(self, loop: Loop, now_us: int) -> None:
        self.arrivals.none_left()
        if not loop.waits:  # else it is known: another loop was quicker
            self._note(loop, waits=True)
            self._tell_taken()
            self._obey(self.control.idle(now_us, loop.number))

    def _note(self, loop: Loop, *, waits: bool) -> None:
        if loop.waits != waits:
            loop.waits = waits
            self._waiting += 1 if waits else -1

    def take_one(self, loop: Loop, until_s: float) -> MessageT | None:
        """As `take` of one message; what most loops do, so it is written out."""
        now_s = self._now_s()
        if loop.sample is not None:
            self._asked(loop, now_s, int(now_s * 1e6))
        ready, in_hand = self.ready, self.in_hand
        while ready and now_s < until_s:
            message = ready.popleft()
            if message.held_until_s <= now_s:
                self.control.dropped(1)
                continue
            if now_s >= self._next_sample_s or message.id in in_hand:
                self._begin([message], loop, now_s, int(now_s * 1e6))
                return message
            in_hand[message.id] = message
            message.taker = loop
            loop.taken += 1
            loop.began_s = now_s
            if self.renewal_s:
                message.held_until_s = self.held_until_s = now_s + self.renewal_s
            elif message.held_until_s > self.held_until_s:
                self.held_until_s = message.held_until_s
            if loop.waits:
                self._note(loop, waits=False)
            if not self.is_declaring:
                self.handed_out()
            return message
        self._idle(loop, int(now_s * 1e6))
        return None

    def take_by_thread(self, loop: Loop, until_s: float) -> MessageT | None:
        """Hand out one message to a thread that is not the client's; None when it has to wait."""
        now_s = self._now_s()
        while now_s < until_s:
            try:
                message = self.ready.popleft()
            except IndexError:
                return None
            self._taken_by_threads.append((message, loop, now_s))
            if not self._accounting:
                self._accounting = True
                try:
                    self._event_loop.call_soon_threadsafe(self.account)
                except RuntimeError:  # the client was closed meanwhile, and gave everything back
                    return None
            if message.held_until_s > now_s:
                return message
        return None

    def account(self) -> None:
        """Do the accounts of what threads took."""
        self._accounting = False
        while self._taken_by_threads:
            message, loop, now_s = self._taken_by_threads.popleft()
            now_us = int(now_s * 1e6)
            if loop.sample is not None:
                self._asked(loop, now_s, now_us)
            if message.held_until_s > now_s:
                self._begin([message], loop, now_s, now_us)
            else:
                self.control.dropped(1)

    def _begin(self, taken: list[MessageT], loop: Loop, now_s: float, now_us: int) -> None:
        in_hand, until_s = self.in_hand, now_s + self.renewal_s
        for message in taken:
            if message.id in in_hand:
                self._lose(in_hand[message.id], "LEASE_LOST")  # delivered again, so the former lease is over
            in_hand[message.id] = message
            message.taker = loop
            message.held_until_s = max(message.held_until_s, until_s)
        self.held_until_s = max(self.held_until_s, taken[-1].held_until_s)
        self._note(loop, waits=False)
        self._tell_taken()
        self.control.began(now_us, loop.number, len(taken))
        loop.taken += len(taken)
        loop.taken_told = loop.taken
        if now_s >= self._next_sample_s:
            self._next_sample_s = now_s + SAMPLE_EVERY_US / 1e6
            loop.sample = Sample(now_s, len(taken))
            for message in taken:
                self._sampled[message.lease_id] = loop.sample
        if not self.is_declaring:
            self.handed_out()

    def put_back(self, taken: Sequence[MessageT]) -> None:
        """Undo `take` of messages that nobody has seen: they wait in front, as if they had just come."""
        ours = [message for message in taken if self.in_hand.get(message.id) is message]
        for message in ours:
            self._drop(message)
        self.ready.extendleft(reversed(ours))
        self._obey(self.control.delivered(self._now_us(), len(ours)))
        self._watch()

    def give_up(self, count: int) -> list[int]:
        """Take out of the buffer what came last, and return its leases."""
        leases: list[int] = []
        while len(leases) < count:
            try:
                leases.append(self.ready.pop().lease_id)
            except IndexError:  # a thread was quicker
                break
        return leases

    # Settling: these are HeldLeases.

    def __len__(self) -> int:
        return len(self.in_hand)

    def get(self, message_id: str) -> int | None:
        """Return the lease under which a message is in hand."""
        message = self.in_hand.get(message_id)
        return None if message is None else message.lease_id

    def forget(self, message_id: str, lease_id: int, settled_by: Answer) -> None:
        """A message that is in hand is being settled."""
        if self._taken_by_threads:
            self.account()
        message = self.in_hand.get(message_id)
        if message is None or message.lease_id != lease_id:
            return
        del self.in_hand[message_id]
        loop = message.taker
        loop.settled += 1
        if loop.settled == loop.taken:
            loop.settled_by = settled_by
            if self.control.acks_first and not loop.waits:
                self._tell_taken()  # what it decides leaves before the settlement
        if lease_id in self._sampled:
            self._sample_settled(lease_id)
        if self.lost.is_watched:
            self.lost.settled(lease_id)
        if self._waiting == self._joined and not self.in_hand:
            self._tell_taken()  # no loop has anything: nothing else may be told for long

    def _drop(self, message: MessageT) -> None:
        del self.in_hand[message.id]
        loop = message.taker
        loop.settled += 1
        if loop.settled == loop.taken:
            loop.settled_by = Answer(self._now_s())
        if message.lease_id in self._sampled:
            self._sample_settled(message.lease_id)
        self._tell_taken()

    def _sample_settled(self, lease_id: int) -> None:
        sample = self._sampled.pop(lease_id)
        sample.unsettled -= 1
        if sample.asked and not sample.unsettled:
            now_s = self._now_s()
            self._handled(sample, now_s, int(now_s * 1e6))

    def lose(self, lease_ids: Iterable[int], reason: str) -> int:
        """The broker took these leases back: drop what waits, tell the program of what it has in hand. Return how many
        of them were held."""
        self.account()
        lost = set(lease_ids)
        before = len(self.ready) + len(self.in_hand)
        # In place, once around: a thread may be taking from it.
        for _ in range(len(self.ready)):
            try:
                waiting = self.ready.popleft()
            except IndexError:
                break
            if waiting.lease_id in lost:
                self.control.dropped(1)
            else:
                self.ready.append(waiting)
        for message in [message for message in self.in_hand.values() if message.lease_id in lost]:
            self._lose(message, reason)
        return before - len(self.ready) - len(self.in_hand)

    def _lose(self, message: MessageT, reason: str) -> None:
        self._drop(message)
        self.lost.add(message.lease_id, reason)

    # Measuring.

    def _asked(self, loop: Loop, now_s: float, now_us: int) -> None:
        """A loop came back for more; its sample is over as soon as its messages are settled too."""
        sample, loop.sample = loop.sample, None
        if sample is not None:
            sample.asked = True
            if not sample.unsettled:
                self._handled(sample, now_s, now_us, loop)

    def _handled(self, sample: Sample, now_s: float, now_us: int, asking: Loop | None = None) -> None:
        self._tell_taken()
        handling_us = int((now_s - sample.began_s) * 1e6) // sample.count
        if asking is None:
            self._obey(self.control.handled(now_us, handling_us, None, None))
            return
        after_us = None
        if asking.settled == asking.taken and asking.settled_by is not None:
            answered_s = asking.settled_by.answered_s
            after_us = 0 if answered_s is None else max(0, int((now_s - answered_s) * 1e6))
        self._obey(self.control.handled(now_us, handling_us, asking.number, after_us))

    # What the controller is told, and decides.

    def _tell_taken(self) -> None:
        """What loops take and settle one by one is told together, before anything that depends on it."""
        control = self.control
        settled: list[tuple[Loop, int]] = []
        answered: list[Loop] = []
        for loop in self._known.values():
            if loop.taken != loop.taken_told:
                count, loop.taken_told = loop.taken - loop.taken_told, loop.taken
                control.began(int(loop.began_s * 1e6), loop.number, count)
            if loop.settled != loop.settled_told:
                settled.append((loop, loop.settled - loop.settled_told))
                loop.settled_told = loop.settled
            if loop.settled_by is not loop.answer_told and loop.settled == loop.taken:
                answered.append(loop)
        for loop, count in settled:
            self._obey(control.settled(self._now_us(), loop.number, count))
            if loop.has_parted and loop.settled == loop.taken:
                del self._known[loop.number]
        for loop in answered:
            by = loop.settled_by
            if by is not None and by.answered_s is not None:
                loop.answer_told = by
                control.answered(int(by.answered_s * 1e6), loop.number)

    def _now_us(self) -> int:
        return int(self._now_s() * 1e6)

    def _obey(self, decision: Decision | None) -> None:
        if decision is not None:
            self._tell(decision.window, self.give_up(decision.give_back))

    def _watch(self) -> None:
        """See to it that the controller is asked when time alone changes something."""
        if self._timer is None and self.ready:
            self._tell_taken()
            check_at_us = self.control.check_at_us
            if check_at_us is not None:
                wait_s = min(max(0.0, check_at_us / 1e6 - self._now_s()), TICK_S_MAX)
                self._timer = self._event_loop.call_later(wait_s, self._look_again)
            elif any(loop.awaits_answer for loop in self._known.values()):
                self._timer = self._event_loop.call_later(
                    TICK_S_MAX, self._look_again
                )  # nobody tells of its coming

    def _look_again(self) -> None:
        self._timer = None
        self.account()
        self._tell_taken()
        check_at_us, now_us = self.control.check_at_us, self._now_us()
        if check_at_us is not None and check_at_us <= now_us:
            self._obey(self.control.tick(now_us))
        self._watch()

    def close(self) -> None:
        """Nothing comes any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
