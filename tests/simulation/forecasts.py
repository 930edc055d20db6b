"""Loads under a told clock in which the forecast is asked again and again, and what then happened.

Each message of a key goes in order here, nothing fails and nothing is delayed, so "the key's n-th message goes" is a
count of its deliveries.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.broker.speed import Speeds
from fila_server.core.protocol import commands
from fila_server.operations.explain import ask_forecast, situation_of
from fila_server.operations.forecast import Interval, Unknown, forecast
from fila_server.telemetry.snapshot import decode
from tests.core.driven_engine import DrivenEngine

TICK_MS = 1
LOOK_EVERY_MS = 2_000
ASK_EVERY_MS = 1_500
WARM_UP_MS = 30_000
QUEUE = "orders"
KEYS = [f"key-{number}" for number in range(8)]
KINDS = ("head", "tail", "head in line", "tail in line")
WINDOW = 5
HANDLING_MS = 200.0
"""A consumer handles 25 messages a second."""


@dataclass(frozen=True)
class Asked:
    """A forecast, and what came of it."""

    at_ms: int
    key: str
    kind: str
    target: int
    """How many of the key's messages have gone when this one has."""
    told: Interval | Unknown
    work: int


@dataclass
class Outcome:
    """How the forecasts of one kind did."""

    held: int = 0
    early: int = 0
    """It went before the interval."""
    late: int = 0
    unknown: Counter[Unknown] = field(default_factory=Counter)
    widths_ms: list[int] = field(default_factory=list)
    waits_ms: list[int] = field(default_factory=list)

    @property
    def told(self) -> int:
        return self.held + self.early + self.late

    @property
    def coverage(self) -> float:
        return self.held / self.told if self.told else 0.0

    def add(self, other: Outcome) -> None:
        self.held += other.held
        self.early += other.early
        self.late += other.late
        self.unknown += other.unknown
        self.widths_ms += other.widths_ms
        self.waits_ms += other.waits_ms


class Load:
    """One queue, its producers, its consumers, and somebody who asks."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.engine = DrivenEngine(seed=seed)
        self.engine.create_queue(
            QUEUE,
            fairness_key_header="tenant",
            throttle_key_headers=["provider"],
            cost_header="cost",
            durability=admin.DURABILITY_OS,
        )
        self.speeds = Speeds()
        self.began_ms = self.now_ms
        self.todo: list[tuple[int, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.sent: Counter[str] = Counter()
        self.gone: Counter[str] = Counter()
        self.streams: dict[int, bool] = {}
        self.asked: list[Asked] = []
        self.waiting: dict[str, list[Asked]] = {key: [] for key in KEYS}
        self.outcomes = {kind: Outcome() for kind in KINDS}
        self.every(LOOK_EVERY_MS, self.look)
        self.after(WARM_UP_MS, lambda: self.every(ASK_EVERY_MS, self.ask))

    @property
    def now_ms(self) -> int:
        return self.engine.mono_ns // 1_000_000

    # --- what happens -----------------------------------------------------------------------

    def after(self, ms: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.todo, (self.now_ms + max(round(ms), 1), next(self.order), what))

    def every(self, ms: float, what: Callable[[], None], *, spread: bool = False) -> None:
        def again() -> None:
            what()
            self.after(self.random.expovariate(1 / ms) if spread else ms, again)

        self.after(self.random.expovariate(1 / ms) if spread else ms, again)

    def send(self, key: str, count: int, provider: str = "", cost: int = 1) -> None:
        request = service.EnqueueBatchRequest(queue=QUEUE)
        for _ in range(count):
            message = request.messages.add(payload=b"x", headers={"tenant": key})
            if provider:
                message.headers["provider"] = provider
            if cost > 1:
                message.headers["cost"] = str(cost)
        self.engine.submit(commands.ENQUEUE_BATCH, request)
        self.sent[key] += count

    def produce(self, key: str, per_s: float, provider: str = "", cost: int = 1) -> None:
        self.every(1000 / per_s, lambda: self.send(key, 1, provider, cost), spread=True)

    def join(self) -> None:
        opened = service.ConsumeRequest(queue=QUEUE, max_in_flight=WINDOW, max_batch=WINDOW)
        self.streams[self.engine.submit(commands.CONSUME_OPEN, opened)] = True

    def leave(self) -> None:
        """The oldest consumer takes nothing more, and goes once it has finished what it has."""
        token = next(token for token, takes in self.streams.items() if takes)
        self.streams[token] = False
        self.engine.submit(commands.CONSUMER_CLOSE, b"", token)

    def weigh(self, key: str, weight: int) -> None:
        request = admin.SetKeyPolicyRequest(queue=QUEUE, fairness_key=key, weight=weight)
        self.engine.submit(commands.SET_KEY_POLICY, request)

    # --- time -------------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            self.engine.advance(self._until_next(end_ms))
            while self.todo and self.todo[0][0] <= self.now_ms:
                heapq.heappop(self.todo)[2]()
            for token, kind, _, payload in self.engine.others + self.engine.settle_down():
                if kind == commands.DELIVERY:
                    self.engine.submit(commands.WRITTEN, b"", token)
                    self.deliver(service.ConsumeResponse.FromString(payload))
            self.engine.others = []
        self.engine.remove()

    def _until_next(self, end_ms: int) -> int:
        """Milliseconds until something happens, here or in the core; at least TICK_MS, and what happens between is seen
        at its end."""
        wanted_ns = self.engine.run_pass()
        next_ms = min(end_ms, self.todo[0][0] if self.todo else end_ms)
        if wanted_ns is not None:
            next_ms = min(next_ms, -(-wanted_ns // 1_000_000))
        return max(next_ms - self.now_ms, TICK_MS)

    def deliver(self, response: service.ConsumeResponse) -> None:
        for message in response.messages:
            key = message.headers["tenant"]
            self.gone[key] += 1
            for asked in [asked for asked in self.waiting[key] if asked.target <= self.gone[key]]:
                self.waiting[key].remove(asked)
                self.judge(asked)
            item = service.SettleItem(message_id=message.id, lease_id=message.metadata.lease_id)
            self.after(self.random.gammavariate(2, HANDLING_MS / 2), partial(self.ack, item))

    def ack(self, item: service.SettleItem) -> None:
        self.engine.submit(commands.ACK_BATCH, service.AckBatchRequest(queue=QUEUE, items=[item]))

    def look(self) -> None:
        payload = self._call(commands.METRICS, b"")
        self.speeds.look(decode(payload), self.now_ms / 1000)

    def _call(self, kind: int, frame: bytes) -> bytes:
        token = self.engine.submit(kind, frame)
        self.engine.others += self.engine.settle_down()
        return self.engine.answer_of(token)[1]

    # --- questions --------------------------------------------------------------------------

    def ask(self) -> None:
        key = self.random.choice(KEYS)
        reply = self._call(commands.EXPLAIN_KEY, ask_forecast(QUEUE, "", key))
        situation = situation_of(reply)
        looks = self.speeds.of_channel(QUEUE, "default")
        for is_tail in (False, True):
            place = situation.backlog if is_tail else 1
            if not situation.backlog or (is_tail and place == 1):
                continue
            told = forecast(situation, looks, place)
            target = self.gone[key] + place
            kind = ("tail" if is_tail else "head") + (" in line" if situation.waiters is not None else "")
            asked = Asked(self.now_ms, key, kind, target, told, situation.backlog)
            if isinstance(told, Unknown):
                self.outcomes[kind].unknown[told] += 1
            else:
                self.waiting[key].append(asked)

    def judge(self, asked: Asked) -> None:
        assert isinstance(asked.told, Interval)
        outcome = self.outcomes[asked.kind]
        took_ms = self.now_ms - asked.at_ms
        if took_ms < asked.told.earliest_ms:
            outcome.early += 1
        elif took_ms > asked.told.latest_ms:
            outcome.late += 1
        else:
            outcome.held += 1
        outcome.widths_ms.append(asked.told.latest_ms - asked.told.earliest_ms)
        outcome.waits_ms.append(took_ms)
        self.asked.append(asked)


# --- the shapes ------------------------------------------------------------------------------


def steady(load: Load) -> None:
    """Four consumers, a little more than they can do, some keys heavier than others."""
    for _ in range(4):
        load.join()
    for number, key in enumerate(KEYS):
        load.produce(key, 8 + 2 * number)
        load.send(key, 40 * (number + 1))


def _burst(load: Load, key: str) -> None:
    load.send(key, load.random.randint(50, 400))


def bursty(load: Load) -> None:
    """Little most of the time, and now and then hundreds of messages of one key at once."""
    for _ in range(4):
        load.join()
    for key in KEYS:
        load.produce(key, 3)
        load.every(25_000, partial(_burst, load, key), spread=True)


def throttled(load: Load) -> None:
    """Half of the keys share two buckets that give less than they ask for; the others keep the consumers busy."""
    for _ in range(4):
        load.join()
    load.engine.set_config("throttle.mail", "8,5")
    load.engine.set_config("throttle.sms", "5,2")
    for number, key in enumerate(KEYS):
        provider = ("mail", "sms")[number % 2] if number < 4 else ""
        load.produce(key, 5 if provider else 24, provider)
        load.send(key, 60, provider)


def weights(load: Load) -> None:
    """As steady, and somebody weighs a key anew every twenty seconds."""
    steady(load)
    load.every(
        20_000,
        lambda: load.weigh(load.random.choice(KEYS), load.random.choice([1, 1, 2, 3])),
        spread=True,
    )


def joining(load: Load) -> None:
    """As steady, and a consumer joins or leaves every half minute."""
    steady(load)

    def change() -> None:
        here = sum(load.streams.values())
        if here <= 3 or (here < 6 and load.random.random() < 0.5):
            load.join()
        else:
            load.leave()

    load.every(30_000, change, spread=True)


# Keys of these share one bucket, which is what is scarce; two others use what consumers have left.


def _behind_a_bucket(load: Load, rate: int) -> list[str]:
    for _ in range(4):
        load.join()
    load.engine.set_config("throttle.mail", f"{rate},5")
    for key in KEYS[-2:]:
        load.produce(key, 12)
    return KEYS[:-2]


def line_weights(load: Load) -> None:
    """Weights of 1 to 3 behind the bucket."""
    keys = _behind_a_bucket(load, 20)
    for number, key in enumerate(keys):
        load.weigh(key, 1 + number % 3)
        load.produce(key, 2 + 2 * (number % 3), "mail")
        load.send(key, 60, "mail")


def line_costs(load: Load) -> None:
    """Costs of 1, 2 and 5 behind the bucket."""
    keys = _behind_a_bucket(load, 20)
    for number, key in enumerate(keys):
        cost = (1, 2, 5)[number % 3]
        load.produce(key, 7 / cost, "mail", cost)
        load.send(key, 90 // cost, "mail", cost)


def line_bursts(load: Load) -> None:
    """Hundreds of messages at once behind the bucket, now and then."""
    for key in _behind_a_bucket(load, 20):
        load.produce(key, 1, "mail")
        load.every(
            30_000,
            partial(lambda key: load.send(key, load.random.randint(20, 120), "mail"), key),
            spread=True,
        )


SHAPES: dict[str, Callable[[Load], None]] = {
    "steady": steady,
    "bursty": bursty,
    "throttled": throttled,
    "weights": weights,
    "joining": joining,
    "line-weights": line_weights,
    "line-costs": line_costs,
    "line-bursts": line_bursts,
}


def measure(shape: str, seed: int, ms: int = 240_000) -> Load:
    """Run one load and return it with its outcomes."""
    load = Load(seed)
    SHAPES[shape](load)
    load.run(ms)
    return load
