"""A recording of a queue to which everything happens by chance: what comes, goes, fails, waits, and is changed."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import Refused
from tests.core.driven_session import DrivenSession
from tests.recording.recorded import RecordedEngine, Tables, tables_of

STEPS = 60
QUEUE = "orders"
WEIGHTS = {"ant": 1, "bee": 2, "cat": 5}
TENANTS = tuple(WEIGHTS)
COSTS = (("1",), ("1",), ("0.7", "1", "1.3", "4.2"))
LATER_MS = (0, 5, 20, 50)
REPLACE = service.EnqueueOptions.ON_DUPLICATE_REPLACE


class MixedCrowd:
    """One queue, and all that its producers, consumers and operators do to it."""

    def __init__(self, seed: int) -> None:
        self._chance = chance = random.Random(seed)
        self._engine = RecordedEngine(seed=seed)
        self._channels = chance.choice([["default"], ["default"], ["a", "b"]])
        self._costs = chance.choice(COSTS)
        self._at_once = chance.choice([2, 6, 12])
        self._has = {
            what for what in ("priorities", "limit", "replaced", "ttl", "delays") if chance.random() < 0.35
        }
        self._engine.create_queue(QUEUE, **self._settings())
        if "limit" in self._has:
            self._engine.set_config("throttle.slow", chance.choice(["20,1", "50,5", "5,2"]))
        self._leased: dict[str, list[messages.Message]] = {channel: [] for channel in self._channels}
        self._session: DrivenSession | None = None
        self._settled = 0
        if chance.random() < 0.5:
            first, most = self._named(self._channels[0]), chance.choice([2, 6])
            self._session = DrivenSession(
                self._engine, QUEUE, channel=first, max_in_flight=most, initial_credit=1_000_000
            )

    def _settings(self) -> dict[str, Any]:
        return {
            "fairness_key_header": "tenant",
            "cost_header": "cost",
            "priority_header": "priority" if "priorities" in self._has else "",
            "throttle_key_headers": ["limit"] if "limit" in self._has else [],
            "weights": WEIGHTS,
            "max_attempts": self._chance.choice([2, 9]),
            "channels": [] if self._channels == ["default"] else self._channels,
            "ttl_to_dlq": self._chance.random() < 0.2,
        }

    @staticmethod
    def _named(channel: str) -> str:
        return "" if channel == "default" else channel

    def recorded(self) -> Tables:
        """What it recorded; the engine ends."""
        for _ in range(STEPS):
            for _ in range(self._chance.randrange(self._at_once)):
                self._enqueue()
            # The pass of the next call ends delays, or passes of their own have ended them.
            wait = self._engine.advance if self._chance.random() < 0.5 else self._engine.sleep
            wait(self._chance.choice([1, 5, 20, 60]))
            if self._chance.random() < 0.03:
                self._change_a_key()
            self._serve_session()
            self._serve(self._chance.choice(self._channels))
        return tables_of(self._engine)

    def _enqueue(self) -> None:
        chance = self._chance
        options: dict[str, Any] = {}
        headers = {"tenant": chance.choice(TENANTS), "cost": chance.choice(self._costs)}
        if "priorities" in self._has:
            headers["priority"] = chance.choice("0112")
        if "limit" in self._has and chance.random() < 0.4:
            headers["limit"] = "slow"
        if "replaced" in self._has and chance.random() < 0.2:
            headers["tenant"] = TENANTS[0]
            options |= {"dedup_key": chance.choice("xyz"), "on_duplicate": REPLACE}
        if "ttl" in self._has and chance.random() < 0.1:
            options["ttl_ms"] = chance.choice([20, 200])
        if "delays" in self._has and chance.random() < 0.1:
            options["delay_ms"] = chance.choice([5, 60])
        with suppress(Refused):  # one that it would replace is leased, and another waits behind that
            self._engine.enqueue(QUEUE, b"x", headers, **options)

    def _change_a_key(self) -> None:
        request = admin.SetKeyPolicyRequest(queue=QUEUE, fairness_key=self._chance.choice(TENANTS))
        what = self._chance.choice(["weight", "weight", "pause", "cap"])
        if what == "weight":
            request.weight = self._chance.choice([1, 3, 7])
        elif what == "pause":
            request.paused = self._chance.random() < 0.4
        else:
            request.max_in_flight = self._chance.choice([0, 1, 3])
        self._engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)

    def _serve_session(self) -> None:
        if self._session is None:
            return
        self._session.read()
        leases, self._settled = (
            self._session.lease_ids()[self._settled :],
            len(self._session.messages),
        )
        for lease in leases:
            what = self._chance.random()
            if what < 0.7:
                self._session.say(ack={"lease_ids": [lease]})
            elif what < 0.85:
                self._session.say(nack={"lease_ids": [lease], "delay_ms": self._chance.choice(LATER_MS)})
            else:
                self._session.say(nack={"lease_ids": [lease], "release": True})

    def _serve(self, channel: str) -> None:
        """Pull some, and settle some of what was pulled before: done, failed, or back as it was."""
        chance, leased, named = self._chance, self._leased[channel], self._named(channel)
        is_served = self._session is not None and channel == self._channels[0]
        if not is_served or chance.random() < 0.3:
            leased += self._engine.lease(QUEUE, chance.choice([1, 2, 5, 8]), named)
        chance.shuffle(leased)
        some = [leased.pop() for _ in range(min(4, len(leased)))]
        what = chance.random()
        if what < 0.6:
            self._engine.ack(QUEUE, some, named)
        elif what < 0.85:
            self._engine.nack(QUEUE, some, chance.choice(LATER_MS), named)
        else:
            items = [
                service.SettleItem(message_id=m.id, lease_id=m.metadata.lease_id, release=True) for m in some
            ]
            request = service.NackBatchRequest(queue=QUEUE, channel=named, items=items)
            self._engine.call(commands.NACK_BATCH, request, service.SettleBatchResponse)
