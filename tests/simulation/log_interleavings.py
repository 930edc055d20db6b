"""Owners and standbys over a log in memory, in random interleavings: is every answer true?

    python -m tests.simulation.log_interleavings FIRST COUNT      runs by their seeds; exit code 1 at a wrong one

Three nodes tail one log (core/log/model). They bid, own, append, confirm and answer, by the rules of core/log/reading
and core/log/owning. Records land late, twice, or with their reports lost or without an offset; single ones fail, and
may be in the log all the same. Leaders move, the log stalls, readers lag, nodes are stopped and woken, and start anew,
while what they had in their queues lands later. In some runs the log loses its end once.

A write's answer says how many writes were applied before it. When the run is over, a reader that shares no code with
the rules (tests/log/twin.py) replays the log, and judges:

    each answer's record is effective, with the result that was answered, and was answered once
    a write that was answered before another was asked for stands before it
    what a node applied is how the replay begins; nobody halted, unless the log was cut
    who resigned for a takeover was deposed by name
    when nothing fails any more, somebody answers

A run whose log was cut may hold an answer that the cut made untrue. There, what is judged is that each reader which
has not halted applied what the replay did.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fila_server.core.log.model import SimulatedEnd, SimulatedLog
from fila_server.core.log.owning import LogOwner
from fila_server.core.log.record import KIND_BARRIER, KIND_PART, KIND_PASS, KIND_TAKEOVER, decode, encode
from tests.log import twin

CLUSTER = b"a cluster of one"
STEPS = 220
CALM_STEPS = 400
A_BID = 1 << 40
"""The tag of a takeover: no write has it."""


class Wrong(Exception):
    """A promise was broken."""


@dataclass
class Write:
    """A call that writes, and what became of it."""

    number: int
    result: int
    asked: int
    answered: int | None = None


@dataclass
class Node:
    """A process: what it read, what it applied, and what it owns."""

    rule: Any
    end: SimulatedEnd
    bid: int | None = None
    owns: bool = False
    sleeps_until: int = 0
    applied: list[int] = field(default_factory=list)
    waiting: dict[int, Write | None] = field(default_factory=dict)
    """What is appended and not confirmed, by tag; None where nobody waits for its answer."""
    rest: list[tuple[Write | None, dict[str, Any]]] = field(default_factory=list)
    """Parts of a write for which the log had no room."""


class World:
    """One run."""

    def __init__(self, seed: int, new_rule: Callable[[], Any] = LogOwner) -> None:
        self.chance = random.Random(seed)
        self.new_rule = new_rule
        self.log = SimulatedLog()
        self.step = self.now_ms = self.made = self.resigned = 0
        self.writes: list[Write] = []
        self.is_cut = False
        self.may_cut = self.chance.random() < 0.15
        self.ghosts: list[SimulatedEnd] = []
        self.nodes = [self._new_node() for _ in range(3)]
        faults = self.chance.choice((0, 20, 60))
        errors = self.chance.choice((0, 0, 10, 40))
        self.log.chances(2 * faults, 2 * faults, errors, errors)

    def _new_node(self) -> Node:
        node = Node(self.new_rule(), SimulatedEnd(self.log))
        self._slow(node)
        return node

    def _slow(self, node: Node) -> None:
        node.end.slow(
            self.chance.choice((0, 0, 5, 40)), self.chance.choice((0, 0, 1, 4)), self.chance.choice((4, 64))
        )

    # ---- what happens

    def run(self) -> None:
        for self.step in range(STEPS):
            self.now_ms += self.chance.randrange(4)
            self._fate()
            self._act(self.chance.randrange(3))
        self._calm()
        self._judge()

    def _fate(self) -> None:
        """What happens to machines and networks."""
        drawn = self.chance.random()
        for end in [node.end for node in self.nodes] + self.ghosts[-2:]:
            if self.chance.random() < 0.4:
                end.turn(self.now_ms, self.chance.getrandbits(32))
        if drawn < 0.02:
            self.log.move(self.chance.randrange(3))
        elif drawn < 0.03:
            self.log.stall(self.chance.random() < 0.5)
        elif drawn < 0.06:
            self._slow(self.chance.choice(self.nodes))
        elif drawn < 0.09:
            self.chance.choice(self.nodes).sleeps_until = self.step + self.chance.randrange(5, 60)
        elif drawn < 0.095:
            self._start_anew(self.chance.randrange(3))
        elif drawn < 0.11 and self.may_cut and not self.is_cut and len(self.log) > 8:
            self.log.cut(self.chance.randrange(1, 6))
            self.log.move(self.chance.randrange(3))
            self.is_cut = True

    def _act(self, place: int) -> None:
        node = self.nodes[place]
        if node.sleeps_until > self.step or node.rule.halted:
            return
        if not node.owns:
            self._follow(node)
            if self.chance.random() < 0.05 and node.bid is None and not node.rule.halted:
                self._bid(node)
            return
        if self.chance.random() < 0.6:
            self._write(node)
        if self.chance.random() < 0.7 and not self._confirm(node):
            self._start_anew(place)

    def _start_anew(self, place: int) -> None:
        """What a process appended and did not land may land all the same."""
        self.ghosts.append(self.nodes[place].end)
        self.nodes[place] = self._new_node()

    # ---- a standby

    def _read(self, node: Node, first: int) -> list[tuple[int, bytes]]:
        records, start, end = node.end.read(first)
        is_told = end >= 0  # nobody reads a log that stalls
        return records if is_told and node.rule.reaches(start, end) else []

    def _follow(self, node: Node) -> None:
        position = node.rule.position
        records = self._read(node, max(0, position))
        if records and position >= 0:
            if not node.rule.stands(records[0][1]):
                return
            records = records[1:]
        for tag, _, _, error in node.end.reports():
            if tag == A_BID and error:
                node.bid = None
        for offset, content in records:
            taken = node.rule.take(offset, content)
            self._apply(node, taken, content)
            if node.bid is not None and decode(content)[1].get("nonce") == node.bid:
                if taken == twin.TERM:
                    self._own(node)
                    return
                node.bid = None

    def _apply(self, node: Node, taken: int, content: bytes) -> None:
        if taken in (twin.WHOLE, twin.LAST_PIECE):
            node.applied.append(int.from_bytes(decode(content)[1]["body"], "little"))

    def _bid(self, node: Node) -> None:
        self.made += 1
        nonce = self.made
        content = encode(
            kind=KIND_TAKEOVER,
            term=node.rule.term,
            nonce=nonce,
            cluster=CLUSTER,
            incarnation=1,
            format=1,
            name="n",
        )
        if node.end.append(content, A_BID) == 0:
            node.bid = nonce

    # ---- an owner

    def _own(self, node: Node) -> None:
        node.owns, node.bid = True, None
        node.rule.begin()

    def _write(self, node: Node) -> None:
        """A write of one record or of some parts; now and then a barrier. The log may have no room for all parts."""
        if not node.rest:
            self.made += 1
            drawn = self.chance.random()
            parts = self.chance.randrange(2, 4) if drawn < 0.25 else 1
            if drawn < 0.1:
                node.rest.append((None, {"kind": KIND_BARRIER}))
            else:
                ahead = sum(write is not None for write in node.waiting.values())
                self.writes.append(Write(self.made, len(node.applied) + ahead, self.step))
                fields = {
                    "kind": KIND_PART if parts > 1 else KIND_PASS,
                    "body": self.made.to_bytes(8, "little"),
                }
                node.rest = [(None, fields | {"part": part, "parts": parts}) for part in range(parts)]
                node.rest[-1] = (self.writes[-1], node.rest[-1][1])
        while node.rest and self._append(node, node.rest[0][0], **node.rest[0][1]):
            node.rest.pop(0)

    def _append(self, node: Node, write: Write | None, **fields: Any) -> bool:
        term, seq, chain = node.rule.next_stamp()
        content = encode(term=term, seq=seq, chain=chain, **fields)
        tag = node.rule.add(content)
        if node.end.append(content, tag) != 0:
            node.rule.take_back()
            return False
        node.waiting[tag] = write
        return True

    def _confirm(self, node: Node) -> bool:
        """False: the term is over."""
        for tag, offset, broker, error in node.end.reports():
            node.rule.report(tag, offset, broker, error)
        while True:
            step, tag = node.rule.next()
            if step == twin.CONFIRMED:
                self._answer(node, tag)
            elif step == twin.READS:
                step = self._read_back(node)
                if step == twin.READS:
                    return True
            if step == twin.RESIGNS:
                self.resigned += 1
                return False
            if step in (twin.WAITS, twin.HALTS):
                return True

    def _read_back(self, node: Node) -> int:
        term = node.rule.term
        for offset, content in self._read(node, node.rule.reads_from):
            step, tag = node.rule.read(offset, content)
            if step == twin.RESIGNS and decode(content)[1]["term"] != term:
                raise Wrong(f"the owner of {term} resigned for a takeover that deposes another term")
            if step == twin.CONFIRMED:
                self._answer(node, tag)
            if step != twin.READS:
                return int(step)
        return twin.HALTS if node.rule.halted else twin.READS

    def _answer(self, node: Node, tag: int) -> None:
        write = node.waiting.pop(tag)
        if write is None:
            return
        node.applied.append(write.number)
        if write.answered is not None:
            raise Wrong(f"write {write.number} was answered twice")
        write.answered = self.step

    # ---- the end

    def _calm(self) -> None:
        """Nothing fails any more: somebody answers, unless the log was cut."""
        self.log.chances()
        self.log.stall(False)
        for node in self.nodes:
            node.end.slow()
            node.sleeps_until = 0
        before = len(self.writes)
        for self.step in range(STEPS, STEPS + CALM_STEPS):
            self.now_ms += 50
            for end in [*self.ghosts, *(node.end for node in self.nodes)]:
                end.turn(self.now_ms, self.chance.getrandbits(32))
            self._act(self.step % 3)
            if any(write.answered is not None for write in self.writes[before:]):
                break
        else:
            if not self.is_cut:
                raise Wrong("nobody answers, and nothing fails any more")
        for node in self.nodes:
            if not (node.owns or node.rule.halted):
                self._follow(node)

    def _replay(self) -> list[int]:
        reader = twin.Reader()
        applied = []
        for offset in range(len(self.log)):
            content = self.log.content(offset)
            taken = reader.take(offset, content)
            if taken in (twin.WHOLE, twin.LAST_PIECE):
                applied.append(int.from_bytes(decode(content)[1]["body"], "little"))
            if taken == twin.HALT:
                break
        if reader.halted and not self.is_cut:
            raise Wrong(f"the replay of a whole log halts, reason {reader.halted}, at {reader.position + 1}")
        return applied

    def _judge(self) -> None:
        applied = self._replay()
        for node in self.nodes:
            if node.rule.halted and not self.is_cut:
                raise Wrong(f"a node halted, reason {node.rule.halted}, and the log lost nothing")
            can_tell = not (node.rule.halted or (self.is_cut and node.owns))
            if can_tell and node.applied != applied[: len(node.applied)]:
                raise Wrong(f"a node applied {node.applied}, the log has {applied}")
        if self.is_cut:
            return
        places = {number: place for place, number in enumerate(applied)}
        answered = [write for write in self.writes if write.answered is not None]
        for write in answered:
            if places.get(write.number) != write.result:
                found = places.get(write.number)
                raise Wrong(
                    f"write {write.number} was answered with {write.result}; the log has it at {found}"
                )
        for earlier in answered:
            for later in answered:
                if earlier.answered < later.asked and earlier.result >= later.result:
                    raise Wrong(f"{earlier} was answered before {later} was asked for, and stands behind it")


@dataclass
class Seen:
    """What some runs met; a simulation that meets nothing judges nothing."""

    answers: int = 0
    takeovers: int = 0
    resigned: int = 0
    halted: int = 0

    def add(self, world: World) -> None:
        self.answers += sum(write.answered is not None for write in world.writes)
        self.resigned += world.resigned
        self.halted += sum(bool(node.rule.halted) for node in world.nodes)
        reader = twin.Reader()
        for offset in range(len(world.log)):
            reader.take(offset, world.log.content(offset))
        self.takeovers += reader.terms


def run(first: int, count: int, new_rule: Callable[[], Any] = LogOwner) -> Seen:
    """Runs by their seeds. Raises Wrong, with the seed."""
    seen = Seen()
    for seed in range(first, first + count):
        world = World(seed, new_rule)
        try:
            world.run()
        except Wrong as wrong:
            raise Wrong(f"seed {seed}: {wrong}") from None
        seen.add(world)
    return seen


def main(first: int, count: int) -> None:
    seen = run(first, count)
    print(
        f"{count} runs from {first}: {seen.answers} answers, {seen.takeovers} takeovers, {seen.resigned} terms given up"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
