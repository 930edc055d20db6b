"""The judge of one throttle key's limit. It knows no token: it counts what went, what came back and what is in flight.

docs/fairness.md lets a rate give one message more than its burst and what came in, which somebody had kept, and
docs/concepts.md one that costs more than the burst. So two messages, the dearest, stand in the bound of a rate. What
was kept for one that does not go after all others take, so the first may be one that never went. A
budget and slots keep theirs to the letter, but for a message of more than the budget, which goes first in its period.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fila.v1 import limit_pb2 as pb

LATE_S = 0.011
"""A token whose taker was late is not lost: so much of a rate comes on top of a burst."""


class Wrong(AssertionError):
    """A part gave more than it may."""


@dataclass
class Went:
    """One message of a throttle key; one that came back unseen counts -1 at that moment."""

    at_s: float
    cost: float
    period: int
    wall_ms: int
    messages: int = 1

    def amount(self, unit: pb.Limit.Unit) -> float:
        return self.messages * (self.cost if unit == pb.Limit.UNIT_COST else 1.0)


@dataclass
class Oracle:
    """Of one throttle key, under terms that have not changed since."""

    terms: pb.Limit
    went: list[Went] = field(default_factory=list)
    newest_period: int = 0
    """By which it counts, of its budget."""
    unsure_below: int = 0
    """While it counts by a period before this one, nobody knows whether it does."""
    spent: dict[int, float] = field(default_factory=dict)
    """By period, what was used of the budget."""
    dearest: dict[int, float] = field(default_factory=dict)

    # --- the clock ------------------------------------------------------------------------------

    def sees(self, wall_ms: int) -> None:
        """The clock reads this; the newest period that it was ever in is what counts."""
        if self.terms.HasField("budget"):
            self.newest_period = max(self.newest_period, self.period(wall_ms))

    def period(self, wall_ms: int) -> int:
        return (wall_ms - self.terms.budget.anchor_ms) // self.terms.budget.period_ms

    def _used(self, wall_ms: int) -> int:
        """The newest period that counts for sure: of the clock, or one in which something went."""
        return max(self.spent, default=self.period(wall_ms))

    def begins(self, ends_ms: int, wall_ms: int, newest_ms: int) -> None:
        """The broker says by which period it counts: of a new limit, or started again. It may have forgotten one
        in which nothing went, and none that was used."""
        told, used = self.period(ends_ms) - 1, self._used(wall_ms)
        if not max(used, self.period(wall_ms)) <= told <= self.period(newest_ms):
            raise Wrong(f"{self.terms.name}: counts by period {told}, and {used} was used")
        self.newest_period = told

    def starts_again(self, wall_ms: int, newest_ms: int) -> None:
        """The same where the broker does not say: between the newest used one and the clock's newest it may be any."""
        if self.terms.HasField("budget"):
            self.newest_period = max(self._used(wall_ms), self.period(wall_ms))
            self.unsure_below = self.period(newest_ms)

    # --- what went ------------------------------------------------------------------------------

    def goes(
        self, at_s: float, wall_ms: int, cost: float, dearest_since: Callable[[int], float] = lambda _: 0.0
    ) -> None:
        """A message went. `dearest_since`: what the dearest one cost that waited at some time since a moment of the
        wall clock, whether it went or not. Raises Wrong."""
        self.sees(wall_ms)
        self.went.append(Went(at_s, cost, self.newest_period, wall_ms))
        for place, rate in enumerate(self.terms.rates):
            learns = self.terms.HasField("learn") and place == 0  # the others stay what they are
            self._judge_rate(rate, self.terms.learn.max if learns else rate.per_second, dearest_since)
        if self.terms.HasField("budget"):
            self._judge_budget(self.went[-1])

    def comes_back(self, at_s: float, cost: float) -> None:
        """A delivery that nobody saw gave back what it took."""
        self.went.append(Went(at_s, cost, self.newest_period, 0, -1))
        if self.newest_period in self.spent:
            self.spent[self.newest_period] += self.went[-1].amount(self.terms.budget.unit)

    def forgets(self) -> None:
        """Something went, or came back, that was not seen: intervals begin anew. Of a budget less is known."""
        self.went.clear()

    def _judge_rate(self, rate: pb.Rate, per_second: float, dearest_since: Callable[[int], float]) -> None:
        """Every interval that ends now: burst, what came in, the lateness, and two messages (see above)."""
        end = self.went[-1].at_s
        amount, dearest = 0.0, 1.0
        for each in reversed(self.went):
            amount += each.amount(rate.unit)
            dearest = max(dearest, abs(each.amount(rate.unit)))
            bound = rate.burst + per_second * (end - each.at_s + LATE_S) + 2 * dearest
            if amount > bound + 1e-6 and rate.unit == pb.Limit.UNIT_COST:
                bound += max(0.0, dearest_since(each.wall_ms) - dearest)
            if amount > bound + 1e-6:
                raise Wrong(
                    f"{self.terms.name}: {amount} within {end - each.at_s:.3f} s, the bound is {bound}"
                )

    def _judge_budget(self, now: Went) -> None:
        if self.newest_period < self.unsure_below:
            return
        budget = self.terms.budget
        amount = now.amount(budget.unit)
        spent = self.spent[now.period] = self.spent.get(now.period, 0.0) + amount
        dearest = self.dearest[now.period] = max(self.dearest.get(now.period, 0.0), amount)
        if spent > max(budget.amount, dearest) + 1e-6:
            raise Wrong(f"{self.terms.name}: {spent} of a budget of {budget.amount} in one period")
