"""The step of limits as a small machine whose states are all visited: four messages, two limits, every part.

A message needs limit 0, limit 1, or both. It goes when every part of each has enough, and takes all of them in one
step. What the broker does is `Rules`; each mutant changes one of them, and must be found.

    tokens    a rate of burst 2; a tick brings one
    slots     one a limit: messages in flight are counted, also after a restart
    budget    two a period; the clock may go on, or be set back
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")

WAITING, LEASED, DONE = range(3)
NEEDS = ((0,), (1,), (0, 1), (0, 1))
SLOTS, BUDGET, BURST = 1, 2, 2
PERIODS = 2
RETURNS_MAX = 2


class Broken(AssertionError):
    """A state that must not be, and the way there."""


@dataclass(frozen=True)
class State:
    """What the broker knows, and below it what really happened, which no rule reads."""

    messages: tuple[int, ...] = (WAITING,) * len(NEEDS)
    tokens: tuple[int, ...] = (BURST, BURST)
    spent: tuple[int, ...] = (0, 0)
    period: int = 0
    clock: int = 0
    held: tuple[tuple[int, ...], ...] = ((),) * len(NEEDS)
    """Limits of which a waiting message holds something."""
    returns: int = 0
    lost: tuple[int, ...] = (0, 0)
    """Tokens that came back to a full bucket; below 0, as many came from nowhere."""
    spent_really: tuple[tuple[int, ...], ...] = ((0,) * PERIODS,) * 2


@dataclass(frozen=True)
class Rules:
    """The broker's, and what mutants do instead."""

    takes_one_by_one: bool = False
    waits_holding: bool = False
    refunds_twice: bool = False
    reopens_a_period: bool = False
    forgets_leases: bool = False
    is_shadow: bool = False

    def has(self, state: State, limit: int, message: int) -> bool:
        in_flight = sum(
            1
            for each, needs in enumerate(NEEDS)
            if limit in needs
            and (state.messages[each] == LEASED or limit in state.held[each])
            and each != message
        )
        return state.tokens[limit] > 0 and in_flight < SLOTS and state.spent[limit] < BUDGET

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Everything that may happen next."""
        for message, what in enumerate(state.messages):
            if what == WAITING:
                yield from self._go(state, message)
            elif what == LEASED:
                yield f"{message} acked", self._with(state, message, DONE)
                if state.returns < RETURNS_MAX and not self.is_shadow:
                    yield f"{message} returned", self._returned(state, message)
        for limit in range(2):
            if state.tokens[limit] < BURST:
                yield (
                    f"tick {limit}",
                    replace(state, tokens=_put(state.tokens, limit, state.tokens[limit] + 1)),
                )
        if state.clock + 1 < PERIODS:
            yield "later", self._clock(state, state.clock + 1)
        if state.clock > 0:
            yield "set back", self._clock(state, state.clock - 1)
        if self.forgets_leases:
            yield (
                "restart",
                replace(
                    state, messages=tuple(WAITING if what == LEASED else what for what in state.messages)
                ),
            )

    def _go(self, state: State, message: int) -> Iterator[tuple[str, State]]:
        needs = [limit for limit in NEEDS[message] if limit not in state.held[message]]
        if self.is_shadow:
            # It takes where there is something, and goes in any case.
            for limit in needs:
                if self.has(state, limit, message):
                    state = _take(state, limit)
            yield f"{message} goes", self._with(state, message, LEASED)
        elif all(self.has(state, limit, message) for limit in needs):
            for limit in needs:
                state = _take(state, limit)
            yield f"{message} goes", self._with(state, message, LEASED)
        elif self.takes_one_by_one or self.waits_holding:
            for limit in needs:
                if self.has(state, limit, message):
                    taken = _take(state, limit)
                    if self.waits_holding:
                        held = (*state.held[message], limit)
                        taken = replace(taken, held=_put(state.held, message, held))
                    yield f"{message} takes of {limit}", taken

    def _with(self, state: State, message: int, what: int) -> State:
        return replace(
            state, messages=_put(state.messages, message, what), held=_put(state.held, message, ())
        )

    def _returned(self, state: State, message: int) -> State:
        """It was never written: everything comes back, up to the burst."""
        back = 2 if self.refunds_twice else 1
        for limit in NEEDS[message]:
            tokens = min(state.tokens[limit] + back, BURST)
            state = replace(
                state,
                tokens=_put(state.tokens, limit, tokens),
                lost=_put(state.lost, limit, state.lost[limit] + 1 - (tokens - state.tokens[limit])),
                spent=_put(state.spent, limit, max(state.spent[limit] - back, 0)),
                spent_really=_spend(state, limit, -1),
            )
        return self._with(replace(state, returns=state.returns + 1), message, WAITING)

    def _clock(self, state: State, clock: int) -> State:
        period = clock if self.reopens_a_period else max(state.period, clock)
        spent = (0, 0) if period != state.period else state.spent
        return replace(state, clock=clock, period=period, spent=spent)


def judge(state: State, rules: Rules) -> None:
    """Raises Broken."""
    for limit in range(2):
        holders = [m for m, needs in enumerate(NEEDS) if limit in needs and state.messages[m] == LEASED]
        if rules.is_shadow:
            continue
        if len(holders) > SLOTS:
            raise Broken(f"{len(holders)} in flight of limit {limit}")
        if state.tokens[limit] < 0 or state.lost[limit] < 0:
            raise Broken(f"limit {limit} gave more tokens than came")
        if max(state.spent_really[limit]) > BUDGET:
            raise Broken(f"limit {limit} spent more than its budget in one period")
        took = sum(state.spent_really[limit])
        went = sum(limit in needs and state.messages[m] != WAITING for m, needs in enumerate(NEEDS))
        if took != went:
            raise Broken(f"{went} messages of limit {limit} went, and {took} took something of it")
    if any(state.held):
        raise Broken("a message that waits holds something")


def visit(rules: Rules) -> dict[State, list[State]]:
    """Every state that can be reached, each judged, with what may follow. Raises Broken with the way there."""
    first = State()
    came_by: dict[State, tuple[State, str] | None] = {first: None}
    follow: dict[State, list[State]] = {}
    ahead = [first]
    while ahead:
        state = ahead.pop()
        try:
            judge(state, rules)
        except Broken as broken:
            way = []
            at: State | None = state
            while at is not None and (step := came_by[at]) is not None:
                at, name = step
                way.append(name)
            raise Broken(f"{broken}, after {', '.join(reversed(way))}") from None
        follow[state] = []
        for name, after in rules.steps(state):
            follow[state].append(after)
            if after not in came_by:
                came_by[after] = (state, name)
                ahead.append(after)
    return follow


def without_progress(follow: dict[State, list[State]]) -> list[tuple[State, int]]:
    """States in which a message waits that no budget holds, and from which it never goes, whatever happens."""
    before: dict[State, list[State]] = {}
    for state, after in follow.items():
        for each in after:
            before.setdefault(each, []).append(state)
    stuck = []
    for message, needs in enumerate(NEEDS):
        goes = [state for state in follow if state.messages[message] == LEASED]
        reached = set(goes)
        while goes:
            for state in before.get(goes.pop(), []):
                if state not in reached:
                    reached.add(state)
                    goes.append(state)
        stuck += [
            (state, message)
            for state in follow
            if state not in reached
            and state.messages[message] == WAITING
            and all(state.spent[limit] < BUDGET for limit in needs)
        ]
    return stuck


def _put(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])


def _spend(state: State, limit: int, change: int) -> tuple[tuple[int, ...], ...]:
    row = state.spent_really[limit]
    return _put(state.spent_really, limit, _put(row, state.period, row[state.period] + change))


def _take(state: State, limit: int) -> State:
    return replace(
        state,
        tokens=_put(state.tokens, limit, state.tokens[limit] - 1),
        spent=_put(state.spent, limit, state.spent[limit] + 1),
        spent_really=_spend(state, limit, 1),
    )
