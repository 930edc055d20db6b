"""A log that loses its end, or does not, and an operator who reseeds the group each time with the copy that holds most.

    python -m tests.simulation.reseeding_world FIRST COUNT

Each time some nodes are behind, and some lose what they had not synced. Now and then the node that was chosen dies
before its term has a record: then another one that stands where it stood may serve, or it is chosen once more. What is
judged:

    the end              all that was answered is there, once
    the stores           they are the same on all nodes that have read to the end, which all do at last
"""

from __future__ import annotations

import random
import shutil
import sys

from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.runtime.store_copy import FOLLOWS, HALTS
from tests.core.driven_engine import fresh_directory
from tests.core.driven_group import Group, Node, Serving
from tests.simulation.group_clients import Wrong
from tests.simulation.group_world import run
from tests.simulation.log_replay import dumped

ROUNDS = 4
TURNS_MAX = 10


class ReseedingWorld:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.group = Group()
        self.serving: Serving = self.group.owner()
        for _ in range(2):
            self.group.node()
        self.nodes = self.group.nodes
        self.answered: set[bytes] = set()
        self.incarnation = 1_764_000_000
        self.judged = dict.fromkeys(("reseeds", "copies", "followed", "died", "others served"), 0)

    def run(self) -> None:
        for _ in range(ROUNDS):
            self._serve()
            self._lose_the_end()
            self._operate()
            self._judge_stores()
        self._judge_messages()

    # ---- what happens

    def _serve(self) -> None:
        owner = self.serving
        for _ in range(self.random.randrange(1, 6)):
            payload = b"%d" % len(self.answered)
            owner.submit(commands.ENQUEUE, service.EnqueueRequest(queue="q", payload=payload))
            owner.settle_down()
            self.answered.add(payload)
            for node in self.nodes:
                if node.engine is None and self.random.random() < 0.4:
                    self._reads(node)

    def _lose_the_end(self) -> None:
        length = len(self.group.log)
        self.group.log.cut(self.random.choice((0, 0, 1, 2, 5, length)))
        for node in self.nodes:
            if node.engine is None and self.random.random() < 0.3:
                node.cut_power()
            else:
                node.kill()
            node.start()
            self._reads(node)

    def _operate(self) -> None:
        """The copy that holds most: it has all that was answered."""
        while True:
            chosen = max(self.nodes, key=lambda node: (node.copy.incarnation, node.copy.position))
            self.judged["reseeds"] += 1
            self.incarnation += 1
            chosen.copy.rebase(len(self.group.log))
            if not chosen.copy.bid(self.incarnation, 0, incarnation=self.incarnation):
                raise Wrong("the log takes nothing")
            chosen.end.turn(self.group.clock.now_ms, 999)
            if self.random.random() < 0.3:
                self.judged["died"] += 1
                chosen.kill()
                chosen.start()
                if (successor := self._another(chosen)) is None:
                    continue
                self._go_on(successor)
                return
            while chosen.follow():
                pass
            if chosen.engine is None:
                raise Wrong(f"node {chosen.number} was chosen, and does not own: {chosen.copy.why}")
            self._go_on(chosen)
            return

    def _another(self, dead: Node) -> Node | None:
        """A node that took the dead one's takeover for its term, and bids as on any day."""
        for node in self.nodes:
            self._reads(node)
            if node is not dead and node.copy.state == FOLLOWS and node.copy.incarnation == self.incarnation:
                node.take_over(nonce=self.incarnation)
                self.judged["others served"] += 1
                return node
        return None

    def _go_on(self, owner: Node) -> None:
        assert owner.engine is not None
        self.serving = owner.engine
        self.serving.settle_down()
        for node in self.nodes:
            if node is owner:
                continue
            self._reads(node)
            self.judged["followed"] += node.copy.state == FOLLOWS
            if node.copy.state == HALTS:
                self._take_copy(node, owner)

    def _take_copy(self, node: Node, source: Node) -> None:
        node.take_copy(source)
        self.judged["copies"] += 1

    def _reads(self, node: Node) -> None:
        node.copy.look_again()
        while node.follow():
            pass

    # ---- what is judged

    def _judge_stores(self) -> None:
        for node in self.nodes:
            self._reads(node)
            if node.copy.state == HALTS:
                raise Wrong(f"node {node.number} halts behind a reseed: {node.copy.why}")
        found = []
        for number, node in enumerate(self.nodes):
            place = fresh_directory()
            node.copy.checkpoint(str(place / "rocksdb"))
            (place / "format").write_text("fila 3\n")
            found.append(dumped(place))
            shutil.rmtree(place)
            if found[number] != found[0]:
                raise Wrong(f"the store of node {node.number} is another than that of node 1")

    def _judge_messages(self) -> None:
        owner = self.serving
        token = owner.submit(commands.LEASE, service.LeaseRequest(queue="q", max_messages=1000))
        [told] = [payload for told, _, _, payload in owner.settle_down() if told == token]
        payloads = sorted(message.payload for message in service.LeaseResponse.FromString(told).messages)
        if payloads != sorted(self.answered):
            raise Wrong(f"{len(self.answered)} were answered, and {len(payloads)} are there")

    def remove(self) -> None:
        for node in self.nodes:
            node.remove()


if __name__ == "__main__":
    judged = run(int(sys.argv[1]), int(sys.argv[2]), ReseedingWorld)
    print(f"{sys.argv[2]} runs: " + ", ".join(f"{number} {name}" for name, number in judged.items()))
