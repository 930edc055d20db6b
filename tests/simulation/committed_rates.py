"""Keys with committed rates before a slow twin and two promises: random histories of the whole core.

    python -m tests.simulation.committed_rates FIRST COUNT      histories by their seeds; exit code 1 at a wrong one

A history has some keys of one queue, with any weights, costs and committed rates, and a consumer that asks for a few
messages now and then. Keys come and go, are paused, and get other weights and rates. At each pull

- the twin says which messages go, in their order: it looks at every key, whose buckets it counts in fractions;
- nobody beyond its committed rate goes while somebody within it has anything;
- for each pair of keys that wait, what either ring sent of theirs keeps the promise of docs/fairness.md.
"""

from __future__ import annotations

import random
from collections import deque
from copy import copy
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.structures.reference import ReferenceBucket, ReferenceRing
from tests.core.driven_engine import DrivenEngine
from tests.simulation.histories import Bench, Wrong, main

QUANTUM = 1000
KEYS_MAX = 6
FIRST, SHARED = 0, 1
"""The rings: of those within their committed rates, and of all."""
A_LITTLE_NS = 10
"""Past the moment of a token, which its timer lets pass."""


@dataclass(eq=False)
class Key:
    """One key. Costs are in thousandths."""

    name: str
    number: int
    weight: int
    cost_max: int
    committed: ReferenceBucket | None = None
    wanted: bool = False
    """It waits for a token, or was woken for one and took none yet."""
    waiting: deque[int] = field(default_factory=deque)
    is_paused: bool = False
    was_parked: bool = False

    @property
    def may_go(self) -> bool:
        return bool(self.waiting) and not self.is_paused


class Twin:
    """Two rings that walk, and a bucket a key."""

    def __init__(self, keys: list[Key]) -> None:
        self.keys = keys
        self.rings = ReferenceRing(QUANTUM, KEYS_MAX), ReferenceRing(QUANTUM, KEYS_MAX)
        for key in keys:
            self.weighs(key)

    def weighs(self, key: Key) -> None:
        for ring in self.rings:
            ring.reweigh(key.number, key.weight)

    def is_within(self, key: Key, now_ns: int) -> bool:
        if key.committed is None:
            return False
        key.committed.refill(now_ns, key.wanted)
        key.wanted |= key.committed.level < 1
        return key.committed.level >= 1

    @staticmethod
    def would_be_within(key: Key, now_ns: int) -> bool:
        """The same, asked by who only looks on. A bucket that is looked at keeps what came in while somebody waited,
        also above its burst, and a new rate finds it there; the core looks only where something happens."""
        if key.committed is None:
            return False
        bucket = copy(key.committed)
        bucket.refill(now_ns, key.wanted)
        return bucket.level >= 1

    def looks(self, key: Key, now_ns: int) -> None:
        """It came, went, or was changed: where it stands now."""
        first, shared = self.rings
        if not key.waiting:
            for ring in self.rings:
                ring.leave(key.number)
            key.was_parked = False
        elif key.is_paused:
            for ring in self.rings:
                ring.park(key.number)
            key.was_parked = True
        else:
            (shared.rejoin if key.was_parked else shared.join)(key.number)
            key.was_parked = False
            if self.is_within(key, now_ns):
                first.rejoin(key.number)
            else:
                first.park(key.number)

    def time_goes_on(self, now_ns: int) -> None:
        """Who has a token again stands first again, in the order of these moments."""
        due = []
        for key in self.keys:
            if key.committed is not None and key.may_go and key.wanted and key.committed.level < 1:
                missing = (1 - key.committed.level) / key.committed.per_ns
                due.append((key.committed.refilled_ns + missing, key.number))
        for at_ns, number in sorted(due):
            if at_ns < now_ns:
                self.looks(self.keys[number], now_ns)

    def sends(self, now_ns: int) -> tuple[Key, int, int] | None:
        """Whose message goes next, what it costs, and which ring sends it."""
        while True:
            which = FIRST
            number = self.rings[FIRST].turn()
            if number is None:
                which, number = SHARED, self.rings[SHARED].turn()
            if number is None:
                return None
            key, ring = self.keys[number], self.rings[which]
            cost = key.waiting[0]
            if not ring.afford(number, cost):
                continue
            if which == FIRST:
                assert key.committed is not None, "only who has a committed rate stands there"
                key.committed.refill(now_ns, key.wanted)
                key.committed.take()
                key.wanted = False
            ring.charge(number, cost)
            key.waiting.popleft()
            for each in self.rings:
                each.again(number)
            self.looks(key, now_ns)
            return key, cost, which


class Window:
    """An interval in which two keys waited on one ring; `drift` is S_i/w_i - S_j/w_j of what that sent."""

    __slots__ = ("costs", "drift", "least", "most")

    def __init__(self, *pair: Key) -> None:
        # Either may come back from a park, or save for what is gone: one grant, or the dearest there is.
        self.costs = [max(key.cost_max, QUANTUM * key.weight) for key in pair]
        self.drift = self.least = self.most = 0.0

    def moves(self, amount: float) -> None:
        """One of them was served."""
        self.drift += amount
        self.least, self.most = min(self.least, self.drift), max(self.most, self.drift)


class Promise:
    """Promise 1 of docs/fairness.md on each ring, over every interval of a history."""

    def __init__(self) -> None:
        self.windows: dict[tuple[int, Key, Key], Window] = {}
        self.judged = 0

    def forget(self, key: Key) -> None:
        for pair in [pair for pair in self.windows if key in pair]:
            del self.windows[pair]

    def look(self, standing: tuple[list[Key], list[Key]], sent: tuple[Key, int, int] | None) -> None:
        """Who stands on each ring, before and after this message went."""
        before, self.windows = self.windows, {}
        for which, keys in enumerate(standing):
            for one, other in combinations(keys, 2):
                pair = which, one, other
                window = self.windows[pair] = before.get(pair) or Window(one, other)
                if sent is None or sent[2] != which or sent[0] not in pair:
                    continue
                key, cost, _ = sent
                window.moves(cost / key.weight * (1 if key is one else -1))
                self._judge(pair, window)

    def _judge(self, pair: tuple[int, Key, Key], window: Window) -> None:
        self.judged += 1
        which, *keys = pair
        bound = sum(
            (cost + QUANTUM * key.weight) / key.weight for key, cost in zip(keys, window.costs, strict=True)
        )
        if window.most - window.least > bound + 1e-6:
            raise Wrong(
                f"ring {which}, {keys}: {window.most - window.least:.3f} apart, the bound is {bound:.3f}"
            )


class History:
    """One story of some keys, by its seed."""

    def __init__(self, engine: DrivenEngine, seed: int) -> None:
        self.engine = engine
        self.chance = chance = random.Random(seed)
        self.promise = Promise()
        self.keys = [
            Key(
                name=f"{number}.{seed}",
                number=number,
                weight=chance.choice([1, 1, 2, 3, 10, 100]),
                cost_max=chance.choice([100, 1000, 1000, 2500, 10_000, 100_000]),
            )
            for number in range(chance.randint(2, KEYS_MAX))
        ]
        self.twin = Twin(self.keys)
        self.leased: list[service.LeaseResponse] = []

    def clear(self) -> None:
        request = admin.PurgeQueueRequest(queue="q")
        for leased in self.leased:
            self.engine.ack("q", list(leased.messages))
        self.engine.call(commands.PURGE_QUEUE, request, admin.PurgeQueueResponse)
        for key in self.keys:
            self._policy(key, weight=0, paused=False, committed_per_second=0)

    def run(self) -> None:
        chance = self.chance
        for key in self.keys:
            if chance.random() < 0.7:
                self._commits(key)
            self._send(key, chance.randint(0, 30))
        for _ in range(chance.randint(10, 30)):
            self._happens()
            self.engine.mono_ns += chance.randint(1_000_000, 700_000_000)
            self.engine.wall_ns += 1
            self.twin.time_goes_on(self.engine.mono_ns)
            self.engine.mono_ns += A_LITTLE_NS
            self.engine.others += self.engine.settle_down()  # a pull comes before the timers of its pass
            self._pull(chance.choice([1, 1, 2, 3, 8]))

    def _happens(self) -> None:
        chance = self.chance
        key = chance.choice(self.keys)
        what = chance.random()
        if what < 0.35:
            self._send(key, chance.randint(1, 12))
        elif what < 0.45:
            key.weight = chance.choice([1, 2, 3, 10, 100])
            self.promise.forget(key)
            self.twin.weighs(key)
            self._policy(key, weight=key.weight)
        elif what < 0.6:
            key.is_paused = not key.is_paused
            self._policy(key, paused=key.is_paused)
        elif what < 0.7:
            self._commits(key)

    def _commits(self, key: Key) -> None:
        """Another committed rate, or none. Rates have many digits, so that no two tokens come at one moment."""
        rate = self.chance.choice([0.0, self.chance.uniform(0.3, 9), self.chance.uniform(0.3, 90)])
        burst, now_ns = max(rate, 1.0), self.engine.mono_ns
        if rate == 0:
            key.committed, key.wanted = None, False
            self.twin.rings[FIRST].leave(key.number)
        elif key.committed is None:
            key.committed = ReferenceBucket(rate, burst, now_ns)
        else:
            key.committed.configure(rate, burst, now_ns)
        self._policy(key, committed_per_second=rate)

    def _policy(self, key: Key, **said: Any) -> None:
        request = admin.SetKeyPolicyRequest(queue="q", fairness_key=key.name, **said)
        self.engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)
        self.twin.looks(key, self.engine.mono_ns)

    def _send(self, key: Key, count: int) -> None:
        if count == 0:
            return
        costs = [self.chance.randint(1, key.cost_max) for _ in range(count)]
        sent = service.EnqueueBatchRequest()
        for cost in costs:
            headers = {"k": key.name, "w": str(key.weight), "c": str(cost / 1000)}
            sent.messages.add(queue="q", payload=b"%d" % cost, headers=headers)
        self.engine.call(commands.ENQUEUE_BATCH, sent, service.EnqueueBatchResponse)
        was_empty = not key.waiting
        key.waiting.extend(costs)
        if was_empty:
            self.twin.looks(key, self.engine.mono_ns)

    def _standing(self) -> tuple[list[Key], list[Key]]:
        waiting = [key for key in self.keys if key.may_go]
        now_ns = self.engine.mono_ns
        return [key for key in waiting if self.twin.would_be_within(key, now_ns)], waiting

    def _pull(self, most: int) -> None:
        """What the core sends is what the twin sends, and keeps the promises."""
        request = service.LeaseRequest(queue="q", max_messages=most)
        leased = self.engine.call(commands.LEASE, request, service.LeaseResponse)
        self.leased.append(leased)
        went = [(each.metadata.fairness_key, int(each.payload)) for each in leased.messages]
        due: list[tuple[str, int]] = []
        before = self._standing()
        while len(due) < most and (sent := self.twin.sends(self.engine.mono_ns)) is not None:
            key, cost, which = sent
            if which == SHARED and before[FIRST]:
                raise Wrong(f"{key} went while {before[FIRST]} were within their committed rates")
            due.append((key.name, cost))
            now = self._standing()
            both = tuple([each for each in keys if each in now[which]] for which, keys in enumerate(before))
            self.promise.look((both[0], both[1]), sent)
            before = now
        if went != due:
            raise Wrong(f"went {went}, due were {due} of {self.keys}")


def bench() -> Bench:
    """One core with a queue."""
    engine = DrivenEngine({"scheduler.quantum": QUANTUM})
    engine.create_queue(
        "q",
        fairness_key_header="k",
        weight_header="w",
        cost_header="c",
        visibility_timeout_ms=12 * 3600 * 1000,
    )
    return Bench(engine, lambda seed: History(engine, seed))


if __name__ == "__main__":
    main(bench())
