"""The group of group_world.py, whose nodes go by watching.py: who bids, and does it serve before long?

    python -m tests.simulation.serving_world FIRST COUNT

Nodes ask each other how they are, over links that break. One of them may have a damaged copy, or a clock that is off.
Beside what group_world.py judges:

    a bid                its node has a sound copy and a right clock
    a takeover           none of an owner that lives, is heard of, and whose log goes on, unless it hands over
    a move               the other node serves before long where nothing fails, and no term was short by it
    the end              somebody serves, however many terms ended soon
"""

from __future__ import annotations

import sys
from dataclasses import replace

from fila_server.cluster.watching import PROBE_MS, Bidden, Handed, Hindered, Missed, Read, Watch
from tests.core.driven_group import Node
from tests.simulation.group_clients import Wrong
from tests.simulation.group_world import World, run

SKEW_MAX_MS = 2_000
SKEW_MS = 3_600_000
DAMAGE = "the copy is damaged"
UNTIL_IT_MOVES = 20
"""Turns of each node."""
QUIET_MS = 15_000
"""For so long nothing has failed, and an owner is deposed by nobody."""


class ServingWorld(World):
    """One run."""

    steps, calm_steps = 300, 3_000
    pauses_ms = (0, 20, 100, 300)
    calm_ms = 300

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rnd = self.random
        self.unfit = {rnd.choice((1, 2)): rnd.choice((DAMAGE, "clock"))} if rnd.random() < 0.5 else {}
        self.watches = [self._watch(place) for place in range(3)]
        self.probed_ms, self.heard_reads = [0] * 3, [0] * 3
        self.cut: set[frozenset[int]] = set()
        self.down: set[int] = set()
        self.told: set[int] = set()
        """Nodes that an other one has answered since they began."""
        self.failed_ms = self.clock.now_ms
        self.is_moved = False
        self.judged |= dict.fromkeys(("bids", "waits", "unfit", "moves"), 0)

    def _watch(self, place: int) -> Watch:
        watch = Watch(self.nodes[place].number, SKEW_MAX_MS)
        if self.unfit.get(place) == DAMAGE:
            watch.take(self.clock.now_ms, Hindered(DAMAGE))
        return watch

    def _skew_ms(self, place: int) -> int:
        return SKEW_MS if self.unfit.get(place) == "clock" else 0

    # ---- what happens

    def _fate(self) -> None:
        rnd = self.random
        super()._fate()
        self.failed_ms = self.clock.now_ms
        drawn = rnd.random()
        link = frozenset(rnd.sample(range(3), 2))
        if drawn < 0.03:
            self.cut.add(link)
        elif drawn < 0.09:
            self.cut.discard(link)
        elif drawn < 0.11:
            self._move()

    def _move(self) -> int | None:
        """An owner asks a standby that would take over, and tells it to. It may have been deposed, and not know it
        yet; and it goes on, which harms nobody."""
        owners = [place for place, node in enumerate(self.nodes) if node.engine is not None]
        owners = [place for place in owners if self.sleeps_until[place] <= self.step]
        fit = [
            place
            for place in range(3)
            if self.nodes[place].engine is None
            and self.sleeps_until[place] <= self.step
            and not self.watches[place].lacks(self.clock.now_ms)
        ]
        if not owners or not fit:
            return None
        chosen = self.random.choice(fit)
        self.watches[chosen].take(self.clock.now_ms, Handed(self.nodes[owners[0]].number))
        return chosen

    def _crash(self, place: int, power: bool = False) -> None:
        super()._crash(place, power)
        self.failed_ms = self.clock.now_ms
        self.watches[place], self.heard_reads[place] = self._watch(place), 0
        self.told.discard(place)
        if self.step < self.steps and self.random.random() < 0.5:
            self.down.add(place)
            self.sleeps_until[place] = self.step + self.random.randrange(5, 60)

    def _calm(self) -> None:
        self.cut.clear()
        self.down.clear()
        super()._calm()

    # ---- who serves

    def _wants_to_serve(self, place: int) -> bool:
        node, watch, now = self.nodes[place], self.watches[place], self.clock.now_ms
        answers, is_end = node.copy.answers
        if answers > self.heard_reads[place]:
            self.heard_reads[place] = answers
            ahead_ms = node.copy.wall_ms - self.wall_ms - self._skew_ms(place)
            watch.take(now, Read(node.copy.position, is_end, *node.copy.owner, ahead_ms))
        if now >= self.probed_ms[place] + PROBE_MS:
            self.probed_ms[place] = now
            for other in {0, 1, 2} - {place}:
                self._probe(place, other)
        decision = watch.decide(now)
        self.judged["waits"] += "this bid waits" in decision.why
        self.judged["unfit"] += watch.obstacle != ""
        self.is_moved = decision.is_moved
        return decision.bids

    def _probe(self, place: int, other: int) -> None:
        now, answering = self.clock.now_ms, self.nodes[other]
        if frozenset((place, other)) in self.cut or self.sleeps_until[other] > self.step:
            self.watches[place].take(now, Missed(answering.number, other in self.down))
            return
        self.down.discard(other)
        self.told.add(place)
        told = self.watches[other].report(now)
        if answering.engine is not None:
            told = replace(told, position=answering.copy.position, may_bid=False)
        clock_ms = self._skew_ms(place) - self._skew_ms(other)
        self.watches[place].take(now, replace(told, clock_ms=clock_ms))

    def _bid(self, node: Node) -> None:
        place = node.number - 1
        if self.unfit.get(place) == DAMAGE or (place in self.unfit and place in self.told):
            raise Wrong(f"node {node.number} bids, and is unfit: {self.unfit[place]}")
        is_quiet = self.clock.now_ms > self.failed_ms + QUIET_MS
        if self._owner() is not None and is_quiet and not self.is_moved:
            raise Wrong(f"node {node.number} bids, and an owner serves")
        self.judged["bids"] += 1
        self.made += 1
        self.bid_at = self.step
        self.judged["moves"] += self.is_moved
        self.watches[place].take(self.clock.now_ms, Bidden())
        node.copy.bid(self.made, self.wall_ms, is_moved=self.is_moved)

    # ---- the end

    def _judge_all(self) -> None:
        self._judge_move()
        super()._judge_all()

    def _judge_move(self) -> None:
        """One where nothing fails: the other node serves within some turns."""
        short = [node.copy.owner[1] for node in self.nodes]
        chosen = self._move()
        if chosen is None:
            return

        for _ in range(UNTIL_IT_MOVES):
            self.clock.advance(self.calm_ms)
            for place in range(3):
                while self.nodes[place].end.turn(self.clock.now_ms, 999):
                    pass
                self._act(place)
            if self._owner() == chosen:
                break
        else:
            raise Wrong(f"the owner handed over to node {chosen + 1}, and it does not serve")
        if self.nodes[chosen].copy.owner[1] > max(*short, 1):
            raise Wrong(
                f"a move counts among the short terms: {self.nodes[chosen].copy.owner[1]} after {short}"
            )


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    judged = run(first, count, ServingWorld)
    print(f"{count} runs from {first}: " + ", ".join(f"{number} {name}" for name, number in judged.items()))
