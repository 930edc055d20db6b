"""Slow, obvious twins of the compiled structures; the judges in tests/core.

Each does what its compiled brother promises in the way that is easiest to see right: the ring walks every round,
the bucket counts in exact fractions, the timers and the heap look at everything. In the server only the judge of
histories imports this module (history_files/judge.py).
"""

from dataclasses import dataclass
from fractions import Fraction

IDLE, ON_RING, DEFERRED = range(3)

LATENESS_S = Fraction(1, 100)
NS_PER_S = 1_000_000_000


@dataclass(slots=True, eq=False)
class ReferenceFlow:
    number: int
    weight: int = 1
    deficit: int = 0
    due_round: int = 0
    place: int = IDLE
    carried: bool = False  # part of the deficit came through a park, a pass or a refund; no turn ended since


class ReferenceRing:
    """Deficit round robin that walks: in every round every backlogged flow is looked at and gets its grant."""

    def __init__(self, quantum: int, flow_count: int) -> None:
        self.quantum = quantum
        self.round = 0
        self.flows = [ReferenceFlow(number) for number in range(flow_count)]
        self.line: list[ReferenceFlow | None] = [None]  # None is the end of a round
        self.deferred: list[ReferenceFlow] = []  # in the order in which they began to wait
        self.granted: ReferenceFlow | None = None

    def _grant(self, flow: ReferenceFlow) -> int:
        return flow.weight * self.quantum

    def _append(self, flow: ReferenceFlow) -> None:
        self.line.append(flow)
        flow.place = ON_RING

    def _remove(self, flow: ReferenceFlow) -> None:
        if flow.place == ON_RING:
            self.line.remove(flow)
        elif flow.place == DEFERRED:
            self.deferred.remove(flow)
        if self.granted is flow:
            self.granted = None
        flow.place = IDLE

    def _next_round(self) -> None:
        self.round += 1
        for flow in list(self.deferred):
            if flow.due_round == self.round:
                self.deferred.remove(flow)
                self._append(flow)  # its turn will add this round's grant
            else:
                flow.deficit += self._grant(flow)
        self.line.append(self.line.pop(0))

    def join(self, number: int) -> None:
        flow = self.flows[number]
        if flow.place == IDLE:
            flow.deficit, flow.carried = 0, False
            self._append(flow)

    def leave(self, number: int) -> None:
        flow = self.flows[number]
        self._remove(flow)
        flow.deficit, flow.carried = 0, False

    def park(self, number: int) -> None:
        flow = self.flows[number]
        self._remove(flow)
        flow.deficit = min(flow.deficit, self._grant(flow))

    def rejoin(self, number: int) -> None:
        flow = self.flows[number]
        if flow.place == IDLE:
            flow.carried = flow.deficit > 0
            self._append(flow)

    def again(self, number: int) -> None:
        flow = self.flows[number]
        if flow.place == DEFERRED:
            self._remove(flow)
            self._append(flow)

    @property
    def is_empty(self) -> bool:
        return len(self.line) == 1 and not self.deferred

    def turn(self) -> int | None:
        if self.is_empty:
            self.round = 0
            return None
        while self.line[0] is None:
            self._next_round()
        flow = self.line[0]
        if self.granted is not flow:
            self.granted = flow
            flow.deficit += self._grant(flow)
        return flow.number

    def afford(self, number: int, cost: int) -> bool:
        flow = self.flows[number]
        if flow.deficit >= cost:
            return True
        self._remove(flow)
        flow.carried = False
        rounds = 1
        while flow.deficit + rounds * self._grant(flow) < cost:
            rounds += 1
        if rounds == 1:
            self._append(flow)
        else:
            flow.due_round = self.round + rounds
            flow.place = DEFERRED
            self.deferred.append(flow)
        return False

    def charge(self, number: int, cost: int) -> None:
        flow = self.flows[number]
        flow.deficit = max(0, flow.deficit - cost)

    def refund(self, number: int, cost: int) -> None:
        flow = self.flows[number]
        if flow.place == DEFERRED:
            self.again(number)
        before = flow.deficit
        flow.deficit = max(before, min(before + cost, self._grant(flow)))
        if self.granted is flow:
            self.pass_on(number)
        elif flow.deficit > before:
            flow.carried = flow.deficit <= self._grant(flow)

    def reweigh(self, number: int, weight: int) -> None:
        flow = self.flows[number]
        grant_before, weight = self._grant(flow), max(weight, 1)
        if weight == flow.weight:
            return
        self.again(number)
        flow.weight = weight
        grant = self._grant(flow)
        if flow.place == IDLE:
            flow.deficit = min(flow.deficit, grant)
            return
        if self.granted is flow:
            unspent = min(flow.deficit, grant_before)
            flow.deficit -= unspent - min(unspent, grant)
        if flow.carried and grant < grant_before:
            flow.deficit = min(flow.deficit, grant + grant * (self.granted is flow))

    def pass_on(self, number: int) -> None:
        flow = self.flows[number]
        if flow.place != ON_RING:
            return
        if self.granted is flow:
            saved = flow.deficit - self._grant(flow)
            flow.deficit = max(saved, min(flow.deficit, self._grant(flow)))
            flow.carried = 0 < flow.deficit <= self._grant(flow)
        self._remove(flow)
        self._append(flow)

    def place(self, number: int) -> int:
        return self.flows[number].place

    def deficit(self, number: int) -> int:
        return self.flows[number].deficit


class ReferenceBucket:
    """A token bucket in exact arithmetic. Whether a token is taken is the caller's decision, at the edge of 1."""

    def __init__(self, rate: float, burst: float, now_ns: int = 0) -> None:
        self._says(rate, burst)
        self.level = self.burst
        self.refilled_ns = now_ns

    def _says(self, rate: float, burst: float) -> None:
        self.rate, self.burst = Fraction(rate), Fraction(burst)
        self.per_ns = self.rate / NS_PER_S
        self.cap_demanded = self.burst + self.rate * LATENESS_S if self.burst else self.burst

    def configure(self, rate: float, burst: float, now_ns: int) -> None:
        self.refill(now_ns)
        self._says(rate, burst)
        self.level = min(self.level, self.burst)

    def refill(self, now_ns: int, demanded: bool = False) -> None:
        if now_ns <= self.refilled_ns:
            return
        cap = self.cap_demanded if demanded else self.burst
        earned = self.per_ns * (now_ns - self.refilled_ns)
        self.level = max(self.level, min(cap, self.level + earned))
        self.refilled_ns = now_ns

    def take(self) -> None:
        self.level -= 1

    def give_back(self) -> None:
        self.level = max(self.level, min(self.level + 1, self.burst))

    def take_amount(self, amount: float) -> None:
        self.level -= Fraction(amount)

    def give_back_amount(self, amount: float) -> None:
        self.level = max(self.level, min(self.level + Fraction(amount), self.burst))

    def needs(self, amount: float, before: float = 0.0) -> Fraction:
        """The level at which so much goes behind what is counted on."""
        return min(Fraction(amount), self.burst) + Fraction(before)

    def due_ns(self, amount: float = 1.0, before: float = 0.0) -> Fraction | None:
        """The exact moment at which the level is what is needed; None = never."""
        needed = self.needs(amount, before)
        if self.burst and self.level >= needed:
            return Fraction(self.refilled_ns)
        if not self.rate or not self.burst or needed > self.burst:
            return None
        return self.refilled_ns + (needed - self.level) / self.rate * NS_PER_S


class ReferenceLedger:
    """Every spending with its moment, and a look at all of them. The clock is the latest moment that was told."""

    def __init__(self, amount: float, period_ms: int, anchor_ms: int, now_ms: int) -> None:
        self.amount, self.period_ms, self.anchor_ms = Fraction(amount), period_ms, anchor_ms
        self.newest_ms = now_ms
        self.entries: list[tuple[int, Fraction]] = []

    def configure(self, amount: float, period_ms: int, anchor_ms: int, now_ms: int) -> None:
        if (self.period_ms, self.anchor_ms) != (period_ms, anchor_ms):
            self.newest_ms, self.entries = now_ms, []
        self.amount, self.period_ms, self.anchor_ms = Fraction(amount), period_ms, anchor_ms
        self.turn(now_ms)

    def turn(self, now_ms: int) -> None:
        self.newest_ms = max(self.newest_ms, now_ms)

    @property
    def period(self) -> int:
        return self._period_of(self.newest_ms)

    def _period_of(self, moment_ms: int) -> int:
        return (moment_ms - self.anchor_ms) // self.period_ms

    @property
    def spent(self) -> Fraction:
        return sum((cost for at, cost in self.entries if self._period_of(at) == self.period), Fraction(0))

    def has(self, cost: float, before: float = 0.0) -> bool:
        return self.amount - self.spent - Fraction(before) >= min(Fraction(cost), self.amount)

    def take(self, cost: float) -> None:
        self.entries.append((self.newest_ms, Fraction(cost)))

    def give_back(self, cost: float) -> None:
        self.entries.append((self.newest_ms, -min(Fraction(cost), self.spent)))

    def reset(self, spent: float) -> None:
        self.entries = [(self.newest_ms, Fraction(spent))]

    def ends_ms(self) -> int:
        return self.anchor_ms + (self.period + 1) * self.period_ms


class ReferenceLearnedRate:
    """A rate that follows a provider: keeps every answer and every step since the last refusal, and looks at all."""

    def __init__(self, least: float, most: float, rate: float, now_ns: int = 0) -> None:
        self.least, self.most = least, most
        self.rate = self._within(rate)
        self.before = self.rate
        self.last_before_the_decrease = 0
        self.answers: list[bool] = []
        """Since the last decrease, oldest first: was it refused?"""
        self.pauses_s: list[float] = [0]
        self.refused_at_s: float | None = None
        self.left_of_it = 1.0
        self.steps_s: list[float] = []
        self.steps_beyond_s: list[float] = []
        self.grown_ns = self.open_ns = self.reset_ns = now_ns
        self.quiet_since_ns = now_ns - 2 * NS_PER_S
        self.latest = self.allowed = 0

    def _within(self, rate: float) -> float:
        return max(self.least, min(self.most, rate))

    def bound(self, least: float, most: float) -> None:
        self.least, self.most = least, most
        self.rate = self._within(self.rate)

    def _share(self) -> float:
        """An answer weighs 0.05, and each later one takes as much of what it weighs."""
        latest = enumerate(reversed(self.answers))
        return sum(0.05 * 0.95**later for later, refused in latest if refused)

    def refused(self, left: int, newest: int, retry_ns: int, now_ns: int) -> None:
        if left > self.last_before_the_decrease:
            self.last_before_the_decrease, self.before = newest, self.rate
            self.answers, self.pauses_s = [], []
        self.answers.append(True)
        self.pauses_s.append(retry_ns / NS_PER_S)
        self.open_ns = max(self.open_ns, now_ns + retry_ns)
        self.quiet_since_ns = now_ns
        self.steps_s, self.steps_beyond_s = [], []
        accepted_part = max(0.45, 1 - self._share())
        self.rate = self._within(min(self.rate, self.before * accepted_part * 0.97))
        self.refused_at_s = self.before * accepted_part if self._share() > 0.4 else self.before
        if self.rate == self.least:
            self.refused_at_s = None
        self.left_of_it = 1.0 if self.refused_at_s is None else min(1.0, self.rate / self.refused_at_s)

    def accepted(self) -> None:
        self.answers.append(False)

    def remains(self, left: int, remaining: int, in_flight: int, reset_ns: int, now_ns: int) -> None:
        if now_ns >= self.reset_ns or left >= self.latest:
            self.latest, self.reset_ns = left, now_ns + reset_ns
            self.allowed = max(0, remaining - in_flight)
            self._close_when_used_up()

    def take(self, now_ns: int) -> None:
        if now_ns < self.reset_ns:
            self.allowed -= 1
            self._close_when_used_up()

    def _close_when_used_up(self) -> None:
        if self.allowed <= 0:
            self.open_ns = max(self.open_ns, self.reset_ns)

    def grow(self, now_ns: int) -> bool:
        elapsed_s = (now_ns - self.grown_ns) / NS_PER_S
        if elapsed_s < 0.1:
            return False
        self.grown_ns = now_ns
        quiet_s = (now_ns - self.quiet_since_ns) / NS_PER_S
        if now_ns < self.open_ns or quiet_s < 2 or quiet_s * self.rate < 1.5:
            return False
        step_s = elapsed_s if elapsed_s < 1 else max(1.0, min(elapsed_s, 1 / self.rate))
        self.steps_s.append(step_s)
        before = self.rate
        if self.refused_at_s is None or self.rate >= 1.02 * self.refused_at_s:
            self.steps_beyond_s.append(step_s)
            grown = self.rate + self.rate * min(0.1, 0.006 * sum(self.steps_beyond_s)) * step_s
        else:
            back_s = max(15.0, 250 / self.refused_at_s, 20 * max(self.pauses_s))
            to_go = 1 - sum(self.steps_s) / min(40.0, back_s)
            grown = self.refused_at_s - self.refused_at_s * max(0.05, 1 - self.left_of_it) * to_go**3
        self.rate = self._within(max(grown, self.rate))
        return self.rate > before


class ReferenceTimers:
    """Everything that is set, and a look at all of it for the earliest."""

    def __init__(self) -> None:
        self.due_ns_by_number: dict[int, int] = {}

    def set(self, number: int, due_ns: int) -> None:
        self.due_ns_by_number[number] = due_ns

    def cancel(self, number: int) -> None:
        self.due_ns_by_number.pop(number, None)

    def due(self, now_ns: int) -> frozenset[int]:
        """All that may fire first: the earliest, if it is due, and those of the same moment."""
        earliest_ns = self.next()
        return frozenset(
            n for n, due_ns in self.due_ns_by_number.items() if due_ns == earliest_ns and due_ns <= now_ns
        )

    def next(self) -> int:
        return min(self.due_ns_by_number.values(), default=2**63 - 1)


class ReferenceHeap:
    """Numbers with ranks, and a look at all of them for the lowest."""

    def __init__(self) -> None:
        self.rank_by_number: dict[int, int] = {}

    def insert(self, number: int, rank: int) -> None:
        self.rank_by_number[number] = rank

    def remove(self, number: int) -> None:
        del self.rank_by_number[number]

    def first(self) -> set[int]:
        """All of the lowest rank."""
        lowest = min(self.rank_by_number.values(), default=0)
        return {number for number, rank in self.rank_by_number.items() if rank == lowest}
