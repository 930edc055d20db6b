"""A recording in which all happens that the reference judges: weights, costs, returns, failures, caps, limits."""

from __future__ import annotations

import random
from collections.abc import Callable

from fila.v1 import admin_pb2 as admin
from fila_server.core.protocol import commands
from tests.core.driven_session import DrivenSession
from tests.recording.recorded import RecordedEngine

TENANTS = {"ant": 1, "bee": 2, "cat": 5, "dog": 1}
BACKLOG = 24
"""Messages that each tenant has at least, so that all want to be served all the time."""
COSTS = ("0.7", "1", "1.3", "4.2")


class Stall:
    """One queue of the market: tenants with a backlog, and a stream with little room that takes what comes."""

    def __init__(
        self, engine: RecordedEngine, name: str, chance: random.Random, limit: str = "", room: int = 6
    ) -> None:
        self._engine, self._chance, self._limit = engine, chance, limit
        self.name = name
        self._waiting = dict.fromkeys(TENANTS, 0)
        self._settled = 0
        engine.create_queue(
            name,
            fairness_key_header="tenant",
            cost_header="cost",
            weights=TENANTS,
            throttle_key_headers=["provider"],
            max_attempts=9,
        )
        self._stream = DrivenSession(engine, name, max_in_flight=room, initial_credit=1_000_000)

    def fill(self) -> None:
        """As many messages as every tenant lacks."""
        for tenant, waiting in self._waiting.items():
            for _ in range(BACKLOG - waiting):
                headers = {"tenant": tenant, "cost": self._chance.choice(COSTS)}
                if self._limit:
                    headers["provider"] = self._limit
                self._engine.enqueue(self.name, b"x", headers)
            self._waiting[tenant] = max(waiting, BACKLOG)

    def serve(self) -> None:
        """Take what came: most of it is done, some is returned, some fails."""
        self._stream.read()
        came = self._stream.messages[self._settled :]
        self._settled = len(self._stream.messages)
        done = []
        for message in came:
            what, lease = self._chance.random(), [message.metadata.lease_id]
            if what < 0.04:
                self._stream.say(nack={"lease_ids": lease, "release": True})
            elif what < 0.08:
                self._stream.say(nack={"lease_ids": lease, "delay_ms": 50})
            else:
                done += lease
                self._waiting[message.metadata.fairness_key] -= 1
        if done:
            self._stream.say(ack={"lease_ids": done})

    def weigh(self, tenant: str, weight: int) -> None:
        """An operator gives a tenant another weight."""
        self._policy(admin.SetKeyPolicyRequest(queue=self.name, fairness_key=tenant, weight=weight))

    def cap(self, tenant: str, cap: int) -> None:
        """An operator bounds what a tenant may have out."""
        self._policy(admin.SetKeyPolicyRequest(queue=self.name, fairness_key=tenant, max_in_flight=cap))

    def _policy(self, request: admin.SetKeyPolicyRequest) -> None:
        self._engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)


def market(engine: RecordedEngine, seed: int = 5, steps: int = 150) -> None:
    """Four queues side by side: without a limit, behind a slow one, behind one that lets several go at once, capped."""
    chance = random.Random(seed)
    engine.set_config("throttle.slow", "20,1")
    engine.set_config("throttle.wide", "60,4")
    stalls = [Stall(engine, "free", chance), Stall(engine, "slow", chance, "slow", 40)]
    stalls += [Stall(engine, "wide", chance, "wide", 40), Stall(engine, "capped", chance)]
    changes: list[Callable[[], None]] = [
        lambda: stalls[0].weigh("ant", chance.choice((1, 3))),
        lambda: stalls[1].weigh("dog", chance.choice((1, 8))),
        lambda: stalls[3].cap("ant", chance.choice((1, 2))),
    ]
    for step in range(steps):
        for stall in stalls:
            stall.fill()
            stall.serve()
        if step % 40 == 20:
            for change in changes:
                change()
        engine.sleep(50)
