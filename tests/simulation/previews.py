"""Loads in which a key's policy is previewed and then really set, again and again, and what then happened."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import events_pb2
from fila_server.core.protocol import commands
from fila_server.operations.forecast import Interval, Unknown
from fila_server.operations.preview import Previewing
from tests.simulation.forecasts import KEYS, QUEUE, WARM_UP_MS, Asked, Load, Outcome

ROUND_MS = 80_000
"""A change, and until the next one."""
HELD_MS = 15_000
"""How long a key is paused that is to be resumed."""
JUDGED_MS = 60_000
"""Forecasts of what comes later than so are not judged: another change comes first."""
ROUNDS = 6 if os.environ.get("FILA_SOAK") else 3


class Previewed(Load):
    """Somebody changes one key a round, right after asking what that would do."""

    def __init__(self, seed: int, kind: str) -> None:
        super().__init__(seed)
        self.kind = kind
        self.key = ""
        self.own, self.losing = Outcome(), Outcome()
        self.unchanged = Outcome()
        """What came of the forecasts for the case that nothing is changed, though it was."""
        self.untouched: dict[int, Interval] = {}
        broker: Any = SimpleNamespace(
            call=self._asked, speeds=self.speeds, queue_configs={QUEUE: admin.QueueConfig()}
        )
        self.previewing = Previewing(broker)
        self.after(WARM_UP_MS, self.begin)

    async def _asked(self, kind: int, frame: bytes) -> bytes:
        return self._call(kind, frame)

    def ask(self) -> None:
        """Here questions come with changes only."""

    def begin(self) -> None:
        """End the round before, and begin the next."""
        for key in KEYS:
            for asked in self.waiting[key]:
                self.judge(asked)
            self.waiting[key] = []
        if self.key:
            self.set(weight=0, paused=False, max_in_flight=0, rate_per_second=0)
        self.key = self.random.choice(KEYS)
        if self.kind == "resume":
            self.set(paused=True)
        self.after(HELD_MS, self.change)
        self.after(ROUND_MS, self.begin)

    def set(self, **change: Any) -> None:
        request = admin.SetKeyPolicyRequest(queue=QUEUE, fairness_key=self.key, **change)
        self.engine.submit(commands.SET_KEY_POLICY, request)

    def change(self) -> None:
        changes: dict[str, dict[str, Any]] = {
            "weight": {"weight": self.random.choice([2, 3, 4])},
            "rate": {"rate_per_second": self.random.choice([3.0, 5.0, 8.0]), "burst": 5.0},
            "cap": {"max_in_flight": self.random.choice([1, 2])},
            "resume": {"paused": False},
        }
        change = changes[self.kind]
        policy = admin.SetKeyPolicyRequest(fairness_key=self.key, **change)
        request = admin.PreviewKeyPolicyRequest(queue=QUEUE, policy=policy)
        told = asyncio.run(self.previewing.preview(request))
        self.note(self.key, told.pending, told.head, place=1, outcome=self.own)
        self.note(self.key, told.pending, told.tail, place=told.pending, outcome=self.own)
        for loss in told.losing:
            self.note(loss.fairness_key, loss.pending, loss.tail, place=loss.pending, outcome=self.losing)
        self.set(**change)

    def note(
        self, key: str, pending: int, told: admin.ForecastChange, *, place: int, outcome: Outcome
    ) -> None:
        if not pending:
            return
        if told.after.unknown:
            name = events_pb2.Forecast.Unknown.Name(told.after.unknown).removeprefix("UNKNOWN_")
            outcome.unknown[Unknown[name]] += 1
            return
        if told.after.latest_ms > JUDGED_MS:
            return
        kind = "tail" if place > 1 else "head"
        asked = Asked(self.now_ms, key, kind, self.gone[key] + place, _interval(told.after), pending)
        if not told.before.unknown:
            self.untouched[id(asked)] = _interval(told.before)
        self.waiting[key].append(asked)

    def judge(self, asked: Asked) -> None:
        assert isinstance(asked.told, Interval)
        took_ms = self.now_ms - asked.at_ms
        _count(self.own if asked.key == self.key else self.losing, asked.told, took_ms)
        if (before := self.untouched.get(id(asked))) is not None:
            _count(self.unchanged, before, took_ms)
        self.asked.append(asked)


def _interval(told: events_pb2.Forecast) -> Interval:
    return Interval(told.earliest_ms, told.likely_ms, told.latest_ms)


def _count(outcome: Outcome, told: Interval, took_ms: int) -> None:
    if took_ms < told.earliest_ms:
        outcome.early += 1
    elif took_ms > told.latest_ms:
        outcome.late += 1
    else:
        outcome.held += 1
    outcome.widths_ms.append(told.latest_ms - told.earliest_ms)
    outcome.waits_ms.append(took_ms)


def measure(kind: str, seed: int) -> Previewed:
    """Four consumers, a little more than they can do, and some seconds of it waiting."""
    load = Previewed(seed, kind)
    for _ in range(4):
        load.join()
    for key in KEYS:
        load.produce(key, 13)
        load.send(key, 150)
    load.run(WARM_UP_MS + ROUNDS * ROUND_MS + 1_000)
    return load
