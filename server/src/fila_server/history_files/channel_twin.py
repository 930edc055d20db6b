"""Whose turn it is in one channel, by docs/fairness.md: a slow ring that is told what became ready and what went.

A recording does not say all that the broker knew, so each flow is one of three:

    sure        all that happened to it was recorded: its turn is judged, delivery by delivery
    loose       it came to the line at a moment that is known to the pass alone. Where it stands is judged once it has
                been served where it was expected
    unsure      it may have been kept from its turn unseen (a limit, a cap, a pause, a hook), so it stands in no line
                here until it has no messages left

A flow's order beside others does not depend on flows that are left out: these only make rounds pass, which moves those
that save for a message. So these are loose when one that is unsure was served meanwhile.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from fila_server.core.structures.reference import DEFERRED, IDLE, ReferenceFlow, ReferenceRing

READY, LEASED, DELAYED, UNKNOWN, HELD, OVER = "ready", "leased", "delayed", "unknown", "held", "over"
"""UNKNOWN: it came or failed, and nothing says yet what becomes of it. HELD: it replaces another one, and waits until
that one gives way or its lease ends."""

PRIORITY_USUAL = 1

NOWHERE = 0
"""The place of a message whose place nobody knows; others count from 1."""


@dataclass(slots=True, eq=False)
class Message:
    """One message in one channel. Costs are in thousandths."""

    offset: int
    flow: Flow
    cost: int
    state: str = UNKNOWN
    failures: int = 0
    place: int = NOWHERE
    """Those of one key and priority go in the order of their places."""
    priority: int = PRIORITY_USUAL
    since_pass: int = 0
    """In which it took that place."""
    was_delayed: bool = False
    """It took it by itself, at a moment of that pass which nobody recorded."""
    behind: Message | None = None
    """The one that it replaces, as long as that one is there."""
    successor: Message | None = None
    """The one that replaces it."""
    takes_place: bool = True
    """It has no delay of its own, so it stands where the one before it stood."""
    due_ns: int = 0
    ended_in: int = -1
    """The pass in which its last lease ended."""
    is_limited: bool = False
    throttle_keys: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, int]:
        """The lowest of a key goes first."""
        return -self.priority, self.place


@dataclass(slots=True, eq=False)
class Flow:
    """One fairness key in one channel."""

    key: str
    number: int
    weight: int = 1
    is_sure: bool = True
    is_loose: bool = False
    is_owed: bool = False
    """It saves, and more or fewer rounds may have passed meanwhile."""
    is_held: bool = False
    """Its key has a cap, a rate or a pause."""
    reweighed_in: int = -1
    reweighed: int = 0
    """How often its weight changed."""
    ready: int = 0
    unknown: int = 0
    """Messages that may be ready or not."""
    named: set[str] = field(default_factory=set)
    """Throttle keys of its messages, since it had none left."""
    sets: set[tuple[str, ...]] = field(default_factory=set)
    """The same by message: which of them one names together."""
    dearest: int = 0
    cheapest: int = 0
    """Of its messages' costs, since it had none left."""
    came_back: bool = False
    """A delivery did, since then."""
    newest: Message | None = None
    """Of those that took a place at the back."""
    line: list[tuple[tuple[int, int], int, Message]] = field(default_factory=list)
    """A heap by rank; those that are not ready any more, or stand elsewhere now, are passed over."""


class ChannelTwin:
    """The twin of one channel. Messages say what happens to them; `goes` judges."""

    def __init__(self, quantum: int) -> None:
        self._ring = ReferenceRing(quantum, 0)
        self._by_key: dict[str, Flow] = {}
        self._flows: list[Flow] = []
        self._place = NOWHERE
        self._some_save = False
        self.ended_early = False
        """The last delivery may have looked at the turn of more than it took: who joins before the next is loose."""

    def flow(self, key: str, weight: int) -> Flow:
        """The flow of a key; a new one has this weight."""
        flow = self._by_key.get(key)
        if flow is None:
            flow = self._by_key[key] = Flow(key, len(self._flows))
            self._flows.append(flow)
            self._ring.flows.append(ReferenceFlow(flow.number))
            self.weighs(flow, weight, -1)
        return flow

    def __iter__(self) -> Iterator[Flow]:
        return iter(self._flows)

    def weighs(self, flow: Flow, weight: int, in_pass: int) -> None:
        """Its key's weight is another from now on."""
        self._again(flow)
        flow.weight, flow.reweighed_in = weight, in_pass
        flow.reweighed += 1
        self._ring.reweigh(flow.number, weight)

    def becomes_ready(
        self, message: Message, in_pass: int, *, old_place: bool = False, was_delayed: bool = False
    ) -> None:
        """It may go from now on: behind all others of its key, or where it stood before.

        was_delayed: by itself, at a moment of the pass which nobody recorded.
        """
        flow = message.flow
        flow.unknown -= message.state == UNKNOWN
        message.state = READY
        if not old_place:
            self._place += 1
            message.place, message.since_pass, message.was_delayed = self._place, in_pass, was_delayed
            newest, flow.newest = flow.newest, message
            if newest is not None and newest.cost != message.cost and _same_moment(newest, message):
                self.is_unsure(flow)  # what its next turn pays for, nobody knows
        self._some_save |= message.cost > self._ring.quantum
        heapq.heappush(flow.line, (message.rank, message.offset, message))
        flow.ready += 1
        if message.is_limited or flow.is_held:
            self.is_unsure(flow)
        if not flow.is_sure:
            return
        if self._ring.place(flow.number) == IDLE:
            self._ring.join(flow.number)
            flow.is_loose = self.ended_early
        elif old_place or self.first(flow) is message:
            self._again(flow)

    def delay_ends(self, message: Message, in_pass: int) -> None:
        """It is ready again in this pass, nobody knows when in it."""
        flow = message.flow
        was_idle = flow.ready == 0
        self.becomes_ready(message, in_pass, was_delayed=True)
        # Before the others of its key by its priority, it counts from a moment that is not known either.
        flow.is_loose |= flow.is_sure and (was_idle or self.first(flow) is message)

    def succeeds(self, message: Message, before: Message, in_pass: int, *, at_once: bool) -> None:
        """It is ready where the one that it replaces stood. at_once: now; else in this pass, nobody knows when."""
        flow = message.flow
        was_idle = flow.ready == 0
        message.place, message.since_pass, message.was_delayed = (
            before.place,
            before.since_pass,
            before.was_delayed,
        )
        self.becomes_ready(message, in_pass, old_place=True)
        if message.place == NOWHERE:
            self.is_unsure(flow)
        elif not at_once:
            flow.is_loose |= flow.is_sure and (was_idle or self.first(flow) is message)

    def comes_back(self, message: Message, in_pass: int) -> None:
        """A delivery that does not count: back to its place, and what it cost too, up to one grant."""
        flow = message.flow
        flow.came_back = True
        self.becomes_ready(message, in_pass, old_place=True)
        if flow.reweighed_in == in_pass or message.place == NOWHERE:
            self.is_unsure(flow)
        elif flow.is_sure:
            self._ring.refund(flow.number, message.cost)

    def _again(self, flow: Flow) -> None:
        """Another of its messages is its next one, or its weight changes: if it saves, it gets what it is owed."""
        if flow.is_owed:
            self.is_unsure(flow)  # how much, nobody knows
        else:
            self._ring.again(flow.number)

    def leaves(self, message: Message) -> None:
        """It is not ready any more, and nobody took it: it expired, or was purged."""
        flow = message.flow
        was_first = self.first(flow) is message
        message.state = OVER
        flow.ready -= 1
        if flow.is_sure and was_first:
            self._again(flow)
        self._emptied(flow)

    def goes(self, message: Message, in_pass: int) -> str | None:
        """It was delivered in this pass: what is wrong about that, "" for nothing, None where this cannot be said."""
        flow = message.flow
        wrong = self._judged(message, in_pass) if flow.is_sure else None
        message.state = LEASED
        flow.ready -= 1
        if not flow.is_sure:
            self._others_were_passed()
        elif flow.ready and self._may_all_come_later(flow, message, in_pass):
            # If it had nothing left at that moment, it lost its turn and stands at the back.
            self.is_unsure(flow)
        self._emptied(flow)
        self.ended_early = False
        return wrong

    def _may_all_come_later(self, flow: Flow, gone: Message, in_pass: int) -> bool:
        """Whether each ready message of a flow may have become ready in this pass after this one went."""
        return all(
            other.was_delayed and other.since_pass == in_pass
            for rank, _, other in flow.line
            if other is not gone and other.state == READY and other.rank == rank
        )

    def is_unsure(self, flow: Flow) -> None:
        """Nobody knows any more where it stands."""
        flow.is_sure = flow.is_loose = flow.is_owed = False
        self._ring.leave(flow.number)

    def all_unsure(self) -> None:
        """Begin anew with each flow once it has no messages left."""
        for flow in self._flows:
            if flow.ready or flow.unknown:
                self.is_unsure(flow)

    def _others_were_passed(self) -> None:
        """A flow that stands in no line here was served. The one before it had no more to spend, and one that saves
        for a message may have had a turn."""
        granted = self._ring.granted
        if granted is not None:
            next_one = self.first(self._flows[granted.number])
            if next_one is not None:
                self._ring.afford(granted.number, next_one.cost)
        self._rounds_are_unknown(are_owed=True)

    def _rounds_are_unknown(self, *, are_owed: bool) -> None:
        """More or fewer rounds may have passed than here, so a flow that saves for a message may have its turn at
        another moment. are_owed: and what it has saved until then is another sum."""
        if not self._some_save:
            return
        for flow in self._flows:
            next_one = self.first(flow) if flow.is_sure else None
            spends = self._ring.deficit(flow.number) + flow.weight * self._ring.quantum
            if next_one is not None and (next_one.cost > spends or self._ring.place(flow.number) == DEFERRED):
                flow.is_loose = True
                flow.is_owed |= are_owed

    def is_unknown(self, message: Message) -> None:
        """It came, or its lease ended, and what becomes of it is told by its next row."""
        message.state = UNKNOWN
        message.flow.unknown += 1

    def is_known(self, message: Message, state: str) -> None:
        """It is not ready, but in this state."""
        flow = message.flow
        flow.unknown -= message.state == UNKNOWN
        message.state = state
        self._emptied(flow)

    def goes_unseen(self, message: Message) -> None:
        """It was delivered, and nobody saw it become ready, so nobody knows its place."""
        flow = message.flow
        message.place = NOWHERE
        self.is_known(message, LEASED)
        if flow.ready or flow.unknown:
            self.is_unsure(flow)
        self._others_were_passed()

    def _emptied(self, flow: Flow) -> None:
        if flow.ready == 0 and flow.unknown == 0:
            self._ring.leave(flow.number)
            flow.is_sure, flow.is_loose, flow.is_owed = not flow.is_held, False, False
            flow.line.clear()
            flow.named.clear()
            flow.sets.clear()
            flow.dearest, flow.came_back = 0, False
        elif flow.ready == 0:
            self._ring.leave(flow.number)

    def first(self, flow: Flow) -> Message | None:
        """The message of a key that goes next."""
        while flow.line:
            rank, _, message = flow.line[0]
            if message.state == READY and message.rank == rank:
                return message
            heapq.heappop(flow.line)
        return None

    def _judged(self, message: Message, in_pass: int) -> str | None:
        flow = message.flow
        first = self.first(flow)
        if first is not None and first.rank < message.rank and not _same_moment(first, message):
            may_be_later = first.was_delayed and (flow.is_loose or first.since_pass == in_pass)
            self.is_unsure(flow)
            if may_be_later:
                return None
            said = f"offset {first.offset} of the same key was ready"
            if first.priority == message.priority:
                return f"{said} before it"
            return f"{said}, and its priority is {first.priority}, not {message.priority}"
        if flow.is_owed:
            self._rounds_are_unknown(are_owed=True)  # those until its turn, too
        while True:
            number = self._ring.turn()
            assert number is not None, "the flow of what was delivered is in line"
            at_turn = self._flows[number]
            next_one = message if at_turn is flow else self.first(at_turn)
            assert next_one is not None, "a flow in line has a message"
            deficit = self._ring.deficit(number)
            if not self._ring.afford(number, next_one.cost):
                continue
            if at_turn is flow:
                self._ring.charge(number, message.cost)
                if flow.is_loose:
                    self._rounds_are_unknown(are_owed=flow.is_owed)
                flow.is_loose = flow.is_owed = False
                return ""
            if at_turn.is_loose:
                was_owed = at_turn.is_owed
                self.is_unsure(at_turn)
                self._rounds_are_unknown(are_owed=was_owed)
                continue
            if flow.is_loose:
                self.is_unsure(flow)
                return None
            said = (
                f"it was the turn of key {at_turn.key!r} of weight {at_turn.weight}, which had "
                f"{deficit / 1000:g} to spend and offset {next_one.offset} of cost {next_one.cost / 1000:g} ready"
            )
            self.all_unsure()
            return said


def _same_moment(one: Message, other: Message) -> bool:
    """Whether nobody can say which of the two became ready first."""
    return one.since_pass == other.since_pass and (one.was_delayed or other.was_delayed)
