"""Keys that share one limit, and who judges how: random histories of the whole core before a slow twin and a promise.

    python -m tests.simulation.shared_limits FIRST COUNT      histories by their seeds; exit code 1 at a wrong one

A history has two to five keys of one queue, or of two, with any weights and costs; all their messages name one bucket,
so that nothing but its tokens decides. Two keys always want more; the others come and go, change their weights and are
paused. After each pass

- the twin says whose messages went: it walks every round and looks at everything;
- each interval in which two keys of a queue wanted tokens is held against Promise 2 of docs/fairness.md.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.core.structures.reference import IDLE, ReferenceBucket, ReferenceRing
from tests.core.driven_engine import DrivenEngine
from tests.core.driven_session import DrivenSession
from tests.simulation.histories import Bench, Wrong, main

QUANTUM = 1000
RATE_PER_S = 10
TOKEN_MS = 1000 // RATE_PER_S
A_LITTLE_NS = 10
"""Past the moment of a token, which its timer lets pass."""
KEYS_MAX = 5
LOW = 20
"""A key that always wants more has so many messages at least."""


# --- the twin --------------------------------------------------------------------------------


@dataclass(eq=False)
class Key:
    """One key before the bucket. Costs are in thousandths."""

    name: str
    queue: int
    number: int
    """In its queue's ring."""
    weight: int
    cost_max: int
    costs_vary: bool
    waiting: deque[int] = field(default_factory=deque)
    tokens: int = 0
    thought: int = 0
    owed: int = 0
    is_paused: bool = False
    stands: bool = False
    saved_for: int = 0
    """What it was to pay when its last turn ended, without what it owed, and"""
    spoken_then: int = 0
    """what its messages with tokens were thought to cost then."""
    spoken_since: int = 0
    """The most that they were thought to cost since: in the turn that it has."""

    def cost(self, chance: random.Random) -> int:
        return chance.randint(1, self.cost_max) if self.costs_vary else self.cost_max


class Twin:
    """A ring a queue, a ring of the queues, and a bucket in exact fractions."""

    def __init__(self, keys: list[Key], burst: int, now_ns: int) -> None:
        self.keys = keys
        self.bucket = ReferenceBucket(RATE_PER_S, burst, now_ns)
        self.by_number = {(key.queue, key.number): key for key in keys}
        self.rings = [ReferenceRing(QUANTUM, KEYS_MAX) for _ in range(2)]
        self.queues = ReferenceRing(QUANTUM, 2)
        for key in keys:
            self.rings[key.queue].reweigh(key.number, key.weight)

    def changed(self, key: Key) -> None:
        """It has other messages or tokens than before, or was paused or resumed."""
        ring = self.rings[key.queue]
        if key.is_paused or not key.waiting:
            key.stands, key.tokens, key.thought, key.owed = False, 0, 0, 0
            ring.leave(key.number)
        if key.stands and len(key.waiting) > key.tokens:
            if ring.place(key.number) == IDLE:
                key.owed = max(key.owed, 0)
                key.saved_for = key.spoken_then = key.spoken_since = 0
            ring.join(key.number)
            self.queues.join(key.queue)
        else:
            ring.leave(key.number)
        for queue in range(2):
            if self.rings[queue].is_empty:
                self.queues.leave(queue)

    def comes(self, key: Key) -> None:
        """It has messages, may go, and asks for a token. Somebody always wants one, so it waits."""
        if not key.stands and key.waiting and not key.is_paused:
            key.stands = True
        self.changed(key)

    def speak(self, now_ns: int) -> None:
        """As many tokens as there are go to who has the turn."""
        self.bucket.refill(now_ns, demanded=True)
        while self.bucket.level >= 1 and (queue := self.queues.turn()) is not None:
            if not self.queues.afford(queue, QUANTUM):
                continue
            self.queues.charge(queue, QUANTUM)
            self.bucket.take()
            self._to_a_key(queue)

    def _to_a_key(self, queue: int) -> None:
        ring = self.rings[queue]
        while True:
            number = ring.turn()
            assert number is not None, "it stands among the queues, so one of its keys wants a token"
            key = self.by_number[queue, number]
            thought = key.waiting[0]
            charged = max(thought + key.owed, 0)
            if ring.afford(key.number, charged):
                break
            key.saved_for, key.spoken_then, key.spoken_since = thought, key.thought, 0
        ring.charge(key.number, charged)
        key.owed += thought - charged
        key.thought += thought
        key.spoken_since = max(key.spoken_since, key.thought)
        key.tokens += 1
        self.changed(key)

    def deliver(self, key: Key) -> int:
        """Its first message goes; what that cost."""
        cost = key.waiting.popleft()
        share = key.thought // key.tokens if key.tokens > 1 else key.thought
        key.thought -= share
        key.tokens -= 1
        key.owed += cost - share
        self.changed(key)
        if key.waiting:
            self.rings[key.queue].again(key.number)
        return cost


# --- the promise -----------------------------------------------------------------------------


@dataclass(slots=True)
class Terms:
    """Of one key in one pass: the most that its messages with tokens were thought to cost, and the most it owed."""

    spoken: int
    owed: int


class Window:
    """An interval in which two keys wanted tokens and kept their weights; `drift` is S_i/w_i - S_j/w_j.

    It may begin in a turn, where an operator changed a weight: what was spoken for in that turn counts, too."""

    __slots__ = ("costs", "drift", "least", "most", "owed", "spoken")

    def __init__(self, one: Key, other: Key) -> None:
        self.costs = [one.saved_for, other.saved_for]
        self.spoken = [max(key.spoken_then, key.spoken_since) for key in (one, other)]
        self.owed = [0, 0]
        self.drift = self.least = self.most = 0.0

    def sees(self, i: int, cost: int, terms: Terms) -> None:
        """What counts for the bound: the largest so far of each."""
        if cost > self.costs[i]:
            self.costs[i] = cost
        if terms.spoken > self.spoken[i]:
            self.spoken[i] = terms.spoken
        if terms.owed > self.owed[i]:
            self.owed[i] = terms.owed

    def moves(self, i: int, cost: int, weight: int) -> None:
        """A message of one of them went."""
        if cost > self.costs[i]:
            self.costs[i] = cost
        self.drift += (1 - 2 * i) * cost / weight
        self.least = min(self.least, self.drift)
        self.most = max(self.most, self.drift)

    def bound(self, i: int, weight: int) -> float:
        """What one of them adds to it."""
        return (self.costs[i] + QUANTUM * weight + self.spoken[i] + self.owed[i]) / weight


class Promise:
    """Promise 2 of docs/fairness.md, over every interval of a history."""

    def __init__(self) -> None:
        self.windows: dict[tuple[Key, Key], Window] = {}
        self.judged = 0

    def forget(self, key: Key) -> None:
        for pair in [pair for pair in self.windows if key in pair]:
            del self.windows[pair]

    def look(self, wanting: list[Key], delivered: list[tuple[Key, int]], terms: Mapping[str, Terms]) -> None:
        """A pass is over: what it delivered, in order, and who wants more behind it, as before it."""
        went = {key for key, _ in delivered}
        before, self.windows = self.windows, {}
        for pair in combinations(wanting, 2):
            one, other = pair
            if one.queue != other.queue:
                continue
            window = before.get(pair) or Window(one, other)
            self.windows[pair] = window
            window.sees(0, one.waiting[0], terms[one.name])
            window.sees(1, other.waiting[0], terms[other.name])
            self.judged += 1
            if one not in went and other not in went:
                continue  # as far apart as before, and the bound never falls
            for key, cost in delivered:
                if key is one:
                    window.moves(0, cost, one.weight)
                elif key is other:
                    window.moves(1, cost, other.weight)
            bound = window.bound(0, one.weight) + window.bound(1, other.weight)
            if window.most - window.least > bound + 1e-6:
                raise Wrong(f"{pair}: {window.most - window.least:.3f} apart, the bound is {bound:.3f}")


# --- a history -------------------------------------------------------------------------------


class History:
    """One story of some keys before one bucket, by its seed."""

    def __init__(self, engine: DrivenEngine, sessions: list[DrivenSession], seed: int) -> None:
        self.engine = engine
        self.chance = chance = random.Random(seed)
        self.promise = Promise()
        self.bucket = f"b{seed}"
        self.burst = chance.choice([1, 1, 1, 2, 5])
        two_queues = chance.random() < 0.3
        self.sessions = sessions[: 1 + two_queues]
        self.keys = [
            Key(
                name=f"{'qr'[queue]}{number}.{seed}",
                queue=queue,
                number=number,
                weight=chance.choice([1, 1, 2, 3, 10, 100]),
                cost_max=chance.choice([100, 1000, 1000, 2500, 10_000, 100_000]),
                costs_vary=chance.random() < 0.5,
            )
            for queue in range(1 + two_queues)
            for number in range(chance.randint(2, KEYS_MAX))
        ]
        self.sets = chance.choice([1, 1, 3])
        """Sets of throttle keys that each key's messages name: a key has one turn, whatever their number."""

    def clear(self) -> None:
        for queue, session in zip("qr", self.sessions, strict=False):
            self.engine.ack(queue, session.messages)
            session.messages.clear()
            self.engine.call(
                commands.PURGE_QUEUE, admin.PurgeQueueRequest(queue=queue), admin.PurgeQueueResponse
            )
        self.engine.set_config(f"throttle.{self.bucket}", "")

    def run(self) -> None:
        engine, chance = self.engine, self.chance
        engine.set_config(f"throttle.{self.bucket}", f"{RATE_PER_S},{self.burst}")
        self._empty_the_bucket()
        self.twin = Twin(self.keys, self.burst, engine.mono_ns)
        self.twin.bucket.level -= self.burst
        for key in self.keys:
            self._send(key, chance.randint(LOW, 2 * LOW) if self._always(key) else chance.randint(0, 4))
            self._read()
        for _ in range(chance.randint(15, 40)):
            self._happens()
            for key in self.keys:
                if self._always(key) and len(key.waiting) < LOW:
                    self._send(key, LOW)
            self._read()
            engine.advance(TOKEN_MS * chance.choice([1, 1, 1, 1, 1, 2, 5]))
            engine.mono_ns += A_LITTLE_NS
            self._read()

    def _always(self, key: Key) -> bool:
        return key.number < 2

    def _empty_the_bucket(self) -> None:
        for _ in range(self.burst):
            self.engine.enqueue("q", b"", {"k": "first", "t": self.bucket})
        self.sessions[0].read()

    def _happens(self) -> None:
        chance = self.chance
        key = chance.choice(self.keys)
        what = chance.random()
        if what < 0.25 and not key.is_paused:
            self._send(key, chance.randint(1, 6))
        elif what < 0.35:
            key.weight = chance.choice([1, 2, 3, 10, 100])
            self.twin.rings[key.queue].reweigh(key.number, key.weight)
            self.promise.forget(key)
            self._policy(key, weight=key.weight)
        elif what < 0.45 and not self._always(key):
            key.is_paused = not key.is_paused
            self._policy(key, paused=key.is_paused)
            self.twin.comes(key)

    def _policy(self, key: Key, *, weight: int | None = None, paused: bool | None = None) -> None:
        request = admin.SetKeyPolicyRequest(
            queue="qr"[key.queue], fairness_key=key.name, weight=weight, paused=paused
        )
        self.engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)

    def _send(self, key: Key, count: int) -> None:
        if count == 0:
            return
        costs = [key.cost(self.chance) for _ in range(count)]
        sent = service.EnqueueBatchRequest()
        for cost in costs:
            headers = {"k": key.name, "w": str(key.weight), "c": str(cost / 1000), "t": self.bucket}
            if self.sets > 1:
                headers["u"] = f"other{self.chance.randrange(self.sets)}"
            sent.messages.add(queue="qr"[key.queue], payload=b"%d" % cost, headers=headers)
        self.engine.call(commands.ENQUEUE_BATCH, sent, service.EnqueueBatchResponse)
        key.waiting.extend(costs)
        self.twin.comes(key)

    def _read(self) -> None:
        """A pass: what the core delivered is what the twin says, and keeps the promise."""
        wanted = [key for key in self.keys if key.stands and len(key.waiting) > key.tokens]
        before = {key.name: key.owed for key in self.keys}
        self.twin.speak(self.engine.mono_ns)
        due = Counter({key.name: key.tokens for key in self.keys if key.tokens})
        by_name = {key.name: key for key in self.keys}
        delivered = [
            (message.metadata.fairness_key, int(message.payload))
            for session in self.sessions
            for message in session.read()
        ]
        went = Counter(name for name, _ in delivered)
        if went != due:
            raise Wrong(f"went {dict(went)}, due were {dict(due)} of {self.keys}")
        order = []
        terms = {key.name: Terms(key.thought, max(key.owed, before[key.name])) for key in self.keys}
        for name, cost in delivered:
            key = by_name[name]
            if (first := self.twin.deliver(key)) != cost:
                raise Wrong(f"{name} sent a message of {cost}, its first one was of {first}")
            order.append((key, cost))
            terms[name].owed = max(terms[name].owed, key.owed)
        wants = [key for key in wanted if key.stands and len(key.waiting) > key.tokens]
        self.promise.look(wants, order, terms)


def bench() -> Bench:
    """One core with two queues and their consumers."""
    engine = DrivenEngine({"scheduler.quantum": QUANTUM})
    sessions = []
    for queue in "qr":
        engine.create_queue(
            queue,
            fairness_key_header="k",
            weight_header="w",
            cost_header="c",
            throttle_key_headers=["t", "u"],
            visibility_timeout_ms=12 * 3600 * 1000,
        )
        sessions.append(DrivenSession(engine, queue, tracks_begun=False, max_in_flight=10_000))
    return Bench(engine, lambda seed: History(engine, sessions, seed))


if __name__ == "__main__":
    main(bench())
