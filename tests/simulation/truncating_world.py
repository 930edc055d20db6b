"""The group of group_world.py, whose log forgets its beginning by truncating.py, and whose nodes lose their disks.

    python -m tests.simulation.truncating_world FIRST COUNT

A node that the log has left behind, or whose disk is new, takes a copy from another one by sources.py. Beside what
group_world.py judges:

    a truncation         two nodes have what goes on their disks
    a power cut          a node has what it said it had synced
    a copy               it is of use where the log begins
    the end              nobody is without a copy
"""

from __future__ import annotations

import shutil
import sys

from fila_server.cluster.sources import Act, Lack, Search, Seen
from fila_server.cluster.truncating import Truncation
from fila_server.core.runtime.store_copy import BEGINS_LATER, BIDS, FOLLOWS, HALTS, OWNS
from tests.core.driven_engine import empty_directory
from tests.core.driven_group import Node
from tests.simulation.group_clients import Wrong
from tests.simulation.group_world import World, run

TURNS_MAX = 10


class TruncatingWorld(World):
    """One run."""

    steps = 240

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.begins = 0  # offset of the log's first record, which a log that stalls tells nobody
        kept_ms = self.random.choice((0, 100, 1_000))
        self.keepers = [Truncation(kept_ms, 0) for _ in self.nodes]
        for keeper in self.keepers:
            keeper.mark_ms = keeper.mark_bytes = keeper.every_ms = 1
        self.judged |= dict.fromkeys(("truncations", "copies", "disks lost", "synced"), 0)

    # ---- what happens

    def _fate(self) -> None:
        super()._fate()
        rnd = self.random
        if rnd.random() < 0.2:
            self.nodes[rnd.randrange(3)].sync()
        if rnd.random() < 0.3:
            self._truncate(rnd.randrange(3))
        if rnd.random() < 0.015:
            self._lose_disk(rnd.randrange(3))

    def _is_awake(self, place: int) -> bool:
        return self.sleeps_until[place] <= self.step

    def _gives(self, place: int, needed: int) -> bool:
        copy = self.nodes[place].copy
        return copy.state in (FOLLOWS, BIDS, OWNS) and copy.applied >= max(needed, 0)

    def _holds(self, place: int, needed: int) -> bool:
        copy = self.nodes[place].copy
        return copy.state in (FOLLOWS, BIDS, OWNS) and copy.synced >= max(needed, 0)

    def _truncate(self, place: int) -> None:
        """A node that takes itself for owner does, also one that was deposed and does not know it yet."""
        node, keeper, now = self.nodes[place], self.keepers[place], self.clock.now_ms
        if node.engine is None or node.copy.state != OWNS or not self._is_awake(place):
            return
        for other, its in enumerate(self.nodes):
            if self._is_awake(other):
                keeper.synced(now, its.number, its.copy.synced)
        below = keeper.decide(now).below
        if below is None:
            return
        holders = [each.number for each in self.nodes if each.copy.synced >= below - 1]
        if len(holders) < 2:
            raise Wrong(
                f"what is below {below} is truncated, and nodes {holders} alone have it on their disks"
            )
        node.end.truncate(below)
        self.begins = max(self.begins, below)
        keeper.truncated(below)
        self.judged["truncations"] += 1

    def _crash(self, place: int, power: bool = False) -> None:
        said = self.nodes[place].copy.synced
        super()._crash(place, power)
        self.keepers[place] = self._anew(self.keepers[place], self.nodes[place])
        self.judged["synced"] += power
        if power and self.nodes[place].copy.position < said:
            found = self.nodes[place].copy.position
            raise Wrong(f"node {place + 1} said that it had synced {said}, and has {found}")

    def _anew(self, keeper: Truncation, node: Node) -> Truncation:
        made = Truncation(keeper.kept_ms, 0)
        made.mark_ms = made.mark_bytes = made.every_ms = 1
        made.restore(keeper.marks, node.copy.position)
        return made

    def _lose_disk(self, place: int) -> None:
        """Unless no other disk holds what the log no longer does: so many are lost at once only with the messages.

        What a node has applied and not synced does not count, since a power cut takes it.
        """
        if not any(self._holds(other, self.begins - 1) for other in {0, 1, 2} - {place}):
            return
        self._crash(place)
        node = self.nodes[place]
        node.kill()
        shutil.rmtree(node.directory)
        node.directory = empty_directory()
        node.start()
        for keeper in self.keepers:  # it does not answer, and then says that it has none
            keeper.synced(self.clock.now_ms, node.number, -1)
        self.judged["disks lost"] += 1

    def _act(self, place: int) -> None:
        node = self.nodes[place]
        if not self._is_awake(place):
            return
        if node.copy.state == HALTS and node.copy.halted[0] == BEGINS_LATER:
            if node.engine is not None:
                self._crash(place)
            else:
                self._take_copy(place)
            return
        super()._act(place)
        self.keepers[place].read(self.clock.now_ms, self.nodes[place].copy.position, 0)

    def _take_copy(self, place: int) -> None:
        """From another node, if one gives it now."""
        node, now = self.nodes[place], self.clock.now_ms
        start = node.copy.halted[1]
        search = Search(now, Lack.BEHIND)
        search.log_begins(start)
        others = [
            Seen(
                str(other),
                answers=self._is_awake(other),
                gives=self._gives(other, -1),
                owns=self.nodes[other].copy.state == OWNS,
                position=self.nodes[other].copy.applied,
            )
            for other in {0, 1, 2} - {place}
        ]
        step = search.decide(now, others)
        if step.is_halt:
            raise Wrong(f"node {place + 1}: {step.why}")
        if step.act is not Act.TAKE:
            return
        assert step.source is not None
        node.take_copy(self.nodes[int(step.source.address)])
        if node.copy.position < start - 1:
            raise Wrong(
                f"node {place + 1} took a copy that ends at {node.copy.position}; the log begins at {start}"
            )
        self.judged["copies"] += 1

    # ---- the end

    def _judge_stores(self) -> None:
        for place, node in enumerate(self.nodes):
            node.kill()
            node.start()
            for _ in range(TURNS_MAX):
                while node.follow():
                    pass
                if node.copy.state != HALTS:
                    break
                self._take_copy(place)
        super()._judge_stores()


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    judged = run(first, count, TruncatingWorld)
    print(f"{count} runs from {first}: " + ", ".join(f"{number} {name}" for name, number in judged.items()))
