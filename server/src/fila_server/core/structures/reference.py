"""Slow, obvious twins of the compiled structures; the judges in tests/core.

Each does what its compiled brother promises in the way that is easiest to see right: the ring walks every round,
the bucket counts in exact fractions, the timers and the heap look at everything. Nothing in the server imports
this module.
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

    def turn(self) -> int | None:
        if len(self.line) == 1 and not self.deferred:
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
        self.rate = Fraction(rate)
        self.burst = Fraction(burst)
        self.level = self.burst
        self.refilled_ns = now_ns

    def configure(self, rate: float, burst: float, now_ns: int) -> None:
        self.refill(now_ns)
        self.rate, self.burst = Fraction(rate), Fraction(burst)
        self.level = min(self.level, self.burst)

    def refill(self, now_ns: int, demanded: bool = False) -> None:
        cap = self.burst
        if demanded and self.burst:
            cap += self.rate * LATENESS_S
        elapsed_ns = max(0, now_ns - self.refilled_ns)
        earned = self.rate * Fraction(elapsed_ns, NS_PER_S)
        self.level = max(self.level, min(cap, self.level + earned))
        self.refilled_ns += elapsed_ns

    def take(self) -> None:
        self.level -= 1

    def give_back(self) -> None:
        self.level = max(self.level, min(self.level + 1, self.burst))

    def due_ns(self) -> Fraction | None:
        """The exact moment at which the level reaches 1; None = never."""
        if self.level >= 1:
            return Fraction(self.refilled_ns)
        if not self.rate or not self.burst:
            return None
        return self.refilled_ns + (1 - self.level) / self.rate * NS_PER_S


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
