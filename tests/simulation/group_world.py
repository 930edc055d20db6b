"""A group of three nodes over a log in memory: is every answer of an owner true, whatever befalls log and nodes?

    python -m tests.simulation.group_world FIRST COUNT      runs by their seeds; exit code 1 at a wrong one

Each node is a whole core on a store of its own (tests/core/driven_group.py). Standbys follow the log, one bids, and
owns when its takeover counts. Records land late, twice, or with their reports lost or without an offset; single ones
fail, and may be in the log all the same. Leaders move, the log stands still, readers lag. Nodes are stopped and woken,
killed, cut from power, and start anew, while what they had in their queues lands later. Clients enqueue, lease, ack,
nack and ask for numbers, now of this owner, now of one that does not know yet that it was deposed.

When something leaves a node:

    an answer            there is an effective record of the node's term behind all that was in the log when the
                         call was asked; what it says was stored, acked or leased is so from then on
    "not now"            nothing of the call is in the log, then and later
    "nothing is ready"   no message waits that was answered before the call was asked
    a message            it was enqueued; nobody holds it under a lease that is told and runs; it was not acked
    its attempts         each of them was told to somebody and failed, or may be of a call whose answer was lost

When the run is over and nothing fails any more: somebody serves; all that was answered and not acked is there, and
nothing else; and the stores of all nodes are what a replay of the effective records makes of nothing
(tests/simulation/log_replay.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.log.model import SimulatedEnd
from fila_server.core.protocol import commands
from fila_server.core.runtime.store_copy import HALTS, RESIGNS
from tests.core.driven_group import Node
from tests.simulation.group_clients import QUEUES, Call, Clients, Wrong
from tests.simulation.log_replay import dumped

VISIBILITY_MS = 4_000
UNTIL_IT_LANDS = 10
"""Steps of calm after which nothing is under way to the log any more."""


class World(Clients):
    """One run."""

    steps, calm_steps = 160, 600
    pauses_ms: tuple[int, ...] = (0, 1, 3, 20, 150)
    calm_ms = 20

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rnd = self.random
        hot: dict[str, int | str] = {"storage.hot_payload_bytes": 1} if rnd.random() < 0.3 else {}
        self.nodes = [Node(number + 1, self.log, self.clock, hot) for number in range(3)]
        self.asked = [{} for _ in self.nodes]
        self.sleeps_until = [0] * 3
        self.ghosts: list[SimulatedEnd] = []
        self.step = self.bid_at = 0
        self.landing = rnd.choice((0.2, 0.6, 0.9))

    # ---- what happens

    def run(self) -> None:
        self._begin()
        faults, failing = self.random.choice((0, 20, 60)), self.random.choice((0, 0, 10, 40))
        self.log.chances(2 * faults, 2 * faults, failing, failing)
        for node in self.nodes:
            self._slow(node)
        steps = range(self.steps)
        for self.step in steps:
            self.clock.advance(self.random.choice(self.pauses_ms))
            self._fate()
            self._act(self.random.randrange(3))
        self._calm()
        self._judge_all()

    def _begin(self) -> None:
        owner = self.nodes[0].take_over()
        for name, durability in QUEUES.items():
            owner.create_queue(
                name, visibility_timeout_ms=VISIBILITY_MS, max_attempts=1000, durability=durability,
                retry=admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=1000),
            )  # fmt: skip

    def _slow(self, node: Node) -> None:
        rnd = self.random
        if self.step >= self.steps:
            return
        node.end.slow(rnd.choice((0, 0, 5, 40)), rnd.choice((0, 0, 1, 4)), rnd.choice((4, 64)))

    def _fate(self) -> None:
        """What happens to machines and networks."""
        rnd, drawn = self.random, self.random.random()
        for end in [node.end for node in self.nodes] + self.ghosts[-2:]:
            if rnd.random() < self.landing:
                end.turn(self.clock.now_ms, rnd.getrandbits(32))
        if drawn < 0.02:
            self.log.move(rnd.randrange(3))
        elif drawn < 0.04:
            self.log.stall(rnd.random() < 0.5)
        elif drawn < 0.06:
            self._slow(rnd.choice(self.nodes))
        elif drawn < 0.09:
            self.sleeps_until[rnd.randrange(3)] = self.step + rnd.randrange(5, 40)
        elif drawn < 0.105:
            self._crash(rnd.randrange(3), rnd.random() < 0.5)
        elif drawn < 0.13:
            rnd.choice(self.nodes).sync()

    def _crash(self, place: int, power: bool = False) -> None:
        node = self.nodes[place]
        self.ghosts.append(node.cut_power() if power else node.kill())
        self.judged["crashes"] += 1
        for call in self.asked[place].values():
            self.lost_pulls += call.most
        self.asked[place].clear()
        self.readings[place].clear()
        node.start()
        self._slow(node)

    def _act(self, place: int) -> None:
        node = self.nodes[place]
        if self.sleeps_until[place] > self.step:
            return
        if node.copy.state == HALTS:
            raise Wrong(f"node {place + 1} halted: {node.copy.why}")
        if node.engine is None:
            node.follow()
            self.judged["takeovers"] += node.engine is not None
            if self._wants_to_serve(place):
                self._bid(node)
            return
        for _ in range(self.random.choice((0, 1, 1, 3)) if node.copy.serves else 0):
            self._ask(place)
        self._turn(place)

    def _wants_to_serve(self, _place: int) -> bool:
        """A node may bid at any time: each answer is true all the same."""
        return self.random.random() < 0.04

    def _bid(self, node: Node) -> None:
        if self.step >= self.steps and self._owner() is not None:
            return
        self.made += 1
        self.bid_at = self.step
        node.copy.bid(self.made, self.clock.wall_ns // 1_000_000)

    def _turn(self, place: int) -> None:
        """What an owner's threads do; it starts anew when its term is over."""
        node = self.nodes[place]
        engine = node.engine
        assert engine is not None
        engine.run_pass()
        self._hear(place)
        if self.random.random() < 0.7:
            engine.core.commit()
        if self.random.random() < 0.7:
            engine.core.load()
        if self.random.random() < 0.5:
            engine.run_pass()
            self._hear(place)
        if node.copy.state == RESIGNS:
            self.judged["terms over"] += 1
            self._crash(place)

    # ---- the end

    def _calm(self) -> None:
        """Nothing fails any more: what is asked is answered, by an owner that stays one."""
        self.log.chances()
        self.log.stall(False)
        self.landing = 1
        self.sleeps_until = [0] * 3
        for node in self.nodes:
            node.end.slow()
        before, self.bid_at = self.judged["answers"], self.steps
        steps = range(self.steps, self.steps + self.calm_steps)
        for self.step in steps:
            self.clock.advance(self.calm_ms)
            for end in [*self.ghosts, *(node.end for node in self.nodes)]:
                while end.turn(self.clock.now_ms, 999):
                    pass
            self._act(self.step % 3)
            is_quiet = self.step > self.bid_at + UNTIL_IT_LANDS and self.judged["answers"] > before + 3
            if is_quiet and self._owner() is not None:
                break
        else:
            raise Wrong("nobody answers, and nothing fails any more")

    def _owner(self) -> int | None:
        """The node whose term it is; what others know of theirs is over, or that of a bid by a process that ended."""
        for place, node in enumerate(self.nodes):
            if node.engine is not None and node.term == self.replay.term:
                return place
        return None

    def _judge_all(self) -> None:
        place = self._owner()
        assert place is not None
        engine = self.nodes[place].engine
        assert engine is not None
        for _ in range(20):
            self._settle_down(place)
            if not self.asked[place]:
                break
            self.clock.advance(20)
        else:
            raise Wrong(f"never answered: {self.asked[place]}")
        self._drain(place)
        for name, known in self.known.items():
            if known.is_refused and name in self.replay.payloads:
                raise Wrong(f"{name!r} was refused as if nothing of it had been appended, and is in the log")
            if known.answered_ms is not None and not known.ack_asked:
                raise Wrong(f"{name!r} was answered, and is gone")
        self._judge_order()
        self._judge_stores()

    def _settle_down(self, place: int) -> None:
        node = self.nodes[place]
        assert node.engine is not None
        for _ in range(400):
            again = node.engine.run_pass()
            self._hear(place)
            if not node.engine.commit() | bool(node.engine.core.load()) and (
                again is None or again > self.clock.mono_ns
            ):
                return
            if node.copy.state == RESIGNS:
                raise Wrong(f"an owner resigned though nothing fails: {node.copy.why}")
        raise Wrong("the owner never comes to rest")

    def _drain(self, place: int) -> None:
        """Take and ack what is there. Those that are held come when their leases are over."""
        for round_ in range(12):
            for queue in QUEUES:
                call = Call("lease", queue, self.wall_ms, len(self.log), most=1000)
                engine = self.nodes[place].engine
                assert engine is not None
                self.tokens += 1
                request = service.LeaseRequest(queue=queue, max_messages=1000)
                self.asked[place][engine.submit(commands.LEASE, request, self.tokens)] = call
                self._settle_down(place)
                self._ack_all(place, queue)
            if round_ < 8:
                self.clock.advance(VISIBILITY_MS)
            self._settle_down(place)

    def _ack_all(self, place: int, queue: str) -> None:
        held = [known.held for known in self.known.values() if known.held and known.queue == queue]
        call = Call("ack", queue, self.wall_ms, len(self.log))
        call.leases = [lease for lease in held if not lease.is_settled and lease.until_ms > self.wall_ms]
        for lease in call.leases:
            lease.is_settled = self.known[lease.payload].ack_asked = True
        items = [
            service.SettleItem(message_id=each.message_id, lease_id=each.lease_id) for each in call.leases
        ]
        engine = self.nodes[place].engine
        assert engine is not None
        self.tokens += 1
        request = service.AckBatchRequest(queue=queue, items=items)
        self.asked[place][engine.submit(commands.ACK_BATCH, request, self.tokens)] = call
        self._settle_down(place)

    def _judge_order(self) -> None:
        """What was answered before another was asked for stands before it."""
        for queue in QUEUES:
            done = [k for k in self.known.values() if k.queue == queue and k.answered_ms is not None]
            if len({known.offset for known in done}) < len(done):
                raise Wrong(f"an offset of {queue} was given twice")
            newest = 0
            answers = sorted(done, key=lambda known: known.answered_ms or 0)
            at = 0
            for known in sorted(done, key=lambda known: known.asked_ms):
                while (answers[at].answered_ms or 0) < known.asked_ms:
                    newest = max(newest, answers[at].offset)
                    at += 1
                if known.offset < newest:
                    raise Wrong(f"offset {known.offset} of {queue} was asked for after {newest} was answered")

    def _judge_stores(self) -> None:
        """All nodes start anew and read to the end: then each store is what the log makes of nothing."""
        expected = self.replay.families()
        for node in self.nodes:
            node.kill()
            node.start()
            while node.follow():
                pass
            if node.copy.state == HALTS:
                raise Wrong(f"node {node.number} halted: {node.copy.why}")
            node.kill()
            found = dumped(node.directory)
            for family, rows in expected.items():
                if found[family] != rows:
                    raise Wrong(f"node {node.number}: family {family} is not what the log makes of it")

    def remove(self) -> None:
        for node in self.nodes:
            node.remove()


class Judged(Protocol):
    """One run, and how often each of its oracles judged."""

    judged: dict[str, int]

    def run(self) -> None: ...

    def remove(self) -> None: ...


def run(first: int, count: int, new_world: Callable[[int], Judged] = World) -> dict[str, int]:
    """Runs by their seeds; how often each oracle judged. Raises Wrong, with the seed."""
    judged: dict[str, int] = {}
    for seed in range(first, first + count):
        world = new_world(seed)
        try:
            world.run()
        except Wrong as wrong:
            raise Wrong(f"seed {seed}: {wrong}") from None
        finally:
            world.remove()
        for name, number in world.judged.items():
            judged[name] = judged.get(name, 0) + number
    return judged


def main(first: int, count: int) -> None:
    judged = run(first, count)
    print(f"{count} runs from {first}: " + ", ".join(f"{number} {name}" for name, number in judged.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
