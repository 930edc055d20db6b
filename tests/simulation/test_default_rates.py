"""Random histories of a queue with a default rate: no key, registered or not, ever takes more than its bucket gives."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

HISTORIES = 60
ACTS = 80
KEYS = [f"k{i}" for i in range(8)]


@contextmanager
def broker(**defaults: float) -> Iterator[DrivenEngine]:
    engine = DrivenEngine()
    try:
        engine.create_queue(
            "q", fairness_key_header="k", visibility_timeout_ms=43_200_000, key_defaults=defaults
        )
        yield engine
    finally:
        engine.remove()


class History:
    """What was taken of each key, and when; time stands still while the broker is away."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rate = self.random.choice([0.5, 2.0, 7.0, 40.0])
        self.burst = self.random.choice([1.0, 3.0, 10.0])
        self.now_ms = 0
        self.taken: dict[str, list[int]] = defaultdict(list)
        self.held: list[messages.Message] = []
        self.waiting: dict[str, int] = defaultdict(int)

    def run(self) -> None:
        with broker(rate_per_second=self.rate, burst=self.burst) as engine:
            for _ in range(ACTS):
                act = self.random.choice(
                    [self.send, self.take, self.send, self.take, self.sleep, self.settle, self.kill, self.say]
                )
                act(engine)
                self.judge()
            self.drain(engine)

    def send(self, engine: DrivenEngine) -> None:
        for key in self.random.sample(KEYS, 3):
            for _ in range(self.random.choice([1, 2, 20])):
                engine.enqueue("q", key.encode(), {"k": key})
                self.waiting[key] += 1

    def sleep(self, engine: DrivenEngine, ms: int = 0) -> None:
        ms = ms or self.random.choice([10, 100, 700, 3000, 20_000])
        engine.sleep(ms)
        self.now_ms += ms

    def take(self, engine: DrivenEngine, most: int = 0) -> None:
        for message in engine.lease("q", most=most or self.random.choice([1, 5, 100])):
            key = message.payload.decode()
            self.taken[key].append(self.now_ms)
            self.waiting[key] -= 1
            self.held.append(message)

    def settle(self, engine: DrivenEngine) -> None:
        acked, self.held = self.held, []
        if acked:
            engine.ack("q", acked)

    def kill(self, engine: DrivenEngine) -> None:
        self.settle(engine)
        engine.kill()
        engine.reopen(away_ms=self.random.choice([0, 100, 60_000]))

    def say(self, engine: DrivenEngine) -> None:
        """A word that is taken back leaves the default as it was."""
        key = self.random.choice(KEYS)
        for request in (
            admin.SetKeyPolicyRequest(queue="q", fairness_key=key, max_in_flight=50, weight=3),
            admin.SetKeyPolicyRequest(queue="q", fairness_key=key, cap_by_default=True, weight=0),
        ):
            engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)

    def judge(self) -> None:
        for key, moments in self.taken.items():
            for first in range(len(moments)):
                over_s = (moments[-1] - moments[first]) / 1000
                assert len(moments) - first <= self.burst + self.rate * over_s + 1, (key, moments[first:])

    def drain(self, engine: DrivenEngine) -> None:
        """Nothing is held back longer than the rate asks for."""
        for _ in range(max(self.waiting.values(), default=0) + 2):
            self.sleep(engine, int(1000 / self.rate) + 1)
            self.take(engine, most=100)
            self.settle(engine)
            self.judge()
        assert not any(self.waiting.values())


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.soak) for part in (2, 3))])
@pytest.mark.costly("histories of a whole core, and each of their intervals")
def test_over_every_interval_a_key_takes_its_burst_and_its_rate_and_is_never_left_lying(part: int) -> None:
    for seed in range(part * HISTORIES // 4, (part + 1) * HISTORIES // 4):
        History(seed).run()
