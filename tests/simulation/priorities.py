"""Priorities inside a key, beside a slow twin that knows each message's place, over histories by chance.

The twin is key_order's, a list a key, with a priority on each message. Of what may go of a key the highest priority
goes first, and of that what stands first in the list. So whatever comes back (a failure, an expired lease, a release,
a delay that ends, a redrive, a restart) keeps its priority, and a replacement brings its own to the place it takes.
"""

from dataclasses import dataclass
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine
from tests.simulation.key_order import (
    ATTEMPTS_MAX,
    KEYS,
    LEASE_MS,
    READY,
    RETRY_MS,
    Broken,
    History,
    Told,
    Twin,
)

USUAL = 1
REPLACE = service.EnqueueOptions.ON_DUPLICATE_REPLACE
BY_HEADER = {"0": 0, "1": 1, "2": 2, "3": 3, "2.9": 2, "-4": 0, "17": 3, "x": USUAL, "": USUAL}


@dataclass(eq=False)
class Ranked(Told):
    """One message, as the twin has it."""

    priority: int = USUAL
    dedup_key: str = ""


class RankedTwin(Twin):
    """The highest priority first, and the list's order within it."""

    def __init__(self) -> None:
        super().__init__(strict=False)
        self.dead: list[tuple[str, Ranked]] = []

    def may_go(self, key: str) -> list[Told]:
        return sorted(super().may_go(key), key=lambda told: -_ranked(told).priority)

    def fail(self, key: str, told: Told, delay_ms: int, now_ms: int) -> None:
        super().fail(key, told, delay_ms, now_ms)
        told.due_ms = told.due_ms if delay_ms else 0
        if told not in self.keys[key] and told.attempts >= ATTEMPTS_MAX and not 0 < told.dies_ms <= now_ms:
            self.dead.append((key, _ranked(told)))


class RankedHistory(History):
    """One engine, its twin, and what happens to both."""

    twin: RankedTwin

    def __init__(self, seed: int, engine: type[DrivenEngine] = DrivenEngine) -> None:
        super().__init__(seed)
        self.engine.remove()
        self.engine = engine(seed=seed & 0xFFFF)
        self.engine.create_queue(
            "q",
            fairness_key_header="k",
            priority_header="p",
            throttle_key_headers=["t"],
            visibility_timeout_ms=LEASE_MS,
            max_attempts=ATTEMPTS_MAX,
            retry=admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=RETRY_MS),
        )
        self.twin = RankedTwin()
        self.restarts = self.ahead = 0
        """Deliveries that went before a message that stood before them."""

    def run(self, steps: int) -> None:
        acts = (
            [self.enqueue] * 7 + [self.lease] * 6 + [self.ack] * 4 + [self.nack] * 3 + [self.replace] * 2
            + [self.pass_time] * 3 + [self.restart] * 3 + [self.purge, self.pause, self.release, self.redrive]
        )  # fmt: skip
        for _ in range(steps):
            self.sleep(1)  # so that no two moments are one
            self.random.choice(acts)()
        self.drain()

    def _some_priority(self) -> tuple[int, dict[str, str], dict[str, int]]:
        """What a message's priority will be, and by which header and option."""
        headers, options, priority = {}, {}, USUAL
        if self.random.random() < 0.6:
            said = self.random.choice(list(BY_HEADER))
            headers["p"], priority = said, BY_HEADER[said]
        if self.random.random() < 0.3:
            options["priority"] = priority = self.random.choice([0, 1, 2, 3])
        if self.random.random() < 0.3:
            headers["t"] = self.random.choice(["mail", "sms"])
        return priority, headers, options

    def enqueue(self) -> None:
        for _ in range(self.random.choice([1, 2, 6])):
            key = self.random.choice(KEYS)
            priority, headers, said = self._some_priority()
            times = self._some_times(delayed=0.05)
            self.number += 1
            dedup_key = f"d{self.number}" if self.random.random() < 0.3 else ""
            options: dict[str, Any] = {**said, **times, "dedup_key": dedup_key}
            offset = self.engine.enqueue("q", b"%d" % self.number, {"k": key, **headers}, **options)
            self._stands(key, Ranked(self.number, offset, priority=priority, dedup_key=dedup_key), times)

    def replace(self) -> None:
        waiting = [
            (key, told)
            for key in KEYS
            for told in self.twin.keys[key]
            if told.state == READY and _ranked(told).dedup_key and not told.dies_ms
        ]
        if not waiting:
            return
        key, old = self.random.choice(waiting)
        priority, headers, options = self._some_priority()
        self.number += 1
        payload, dedup_key = b"%d" % self.number, _ranked(old).dedup_key
        self.twin.last_offset = self.engine.enqueue(
            "q", payload, {"k": key, **headers}, dedup_key=dedup_key, on_duplicate=REPLACE, **options
        )
        told = Ranked(self.number, old.offset, moved=old.moved, priority=priority, dedup_key=dedup_key)
        line = self.twin.keys[key]
        line[line.index(old)] = told

    def lease(self) -> None:
        most = self.random.choice([1, 1, 1, 2, 5, 100])
        allowed = {key: self.twin.may_go(key) for key in KEYS}
        lines = {key: [told for told in self.twin.keys[key] if told.state == READY] for key in KEYS}
        got = self.engine.lease("q", most=most)
        for message in got:
            key = message.metadata.fairness_key
            if allowed[key]:
                told = _ranked(allowed[key][0])
                self.ahead += told is not lines[key][0]
                lines[key].remove(told)
                self._shows(message.metadata, told)
            self._delivered(message, allowed)
        could = sum(len(each) for each in allowed.values())
        if len(got) < min(most, could + len(got)):
            raise Broken(f"{could} more could go, {most} were asked for, and {len(got)} came: {self.twin}")
        behind = [told for line in self.twin.keys.values() for told in line if told.lease in got[1:]]
        for leased in behind:
            self._acked(leased)  # leases that end at one moment come back in any order

    def _acked(self, told: Told) -> None:
        assert told.lease is not None
        if self.engine.ack("q", [told.lease]) != [0]:
            raise Broken(f"the ack of {told} was refused")
        self.twin.keys[told.lease.metadata.fairness_key].remove(told)

    def _shows(self, metadata: Any, told: Ranked) -> None:
        shown = metadata.priority if metadata.HasField("priority") else USUAL
        if shown != told.priority:
            raise Broken(f"{told} was delivered with priority {shown}")

    def restart(self) -> None:
        """Not where two delays have ended, or may before it is back: these end at one moment then, in any order."""
        soon_ms = self.engine.wall_ms + 800
        due = [told.due_ms for line in self.twin.keys.values() for told in line]
        if sum(0 < moment <= soon_ms for moment in due) < 2:
            self.restarts += 1
            super().restart()

    def redrive(self) -> None:
        request = admin.RedriveRequest(dlq_queue="q.dlq", count=256)
        answer = self.engine.call(commands.REDRIVE_MOVE, request, admin.RedriveResponse)
        if answer.redriven != len(self.twin.dead):
            raise Broken(f"{answer.redriven} were redriven, and {len(self.twin.dead)} were dead")
        for key, told in self.twin.dead:
            self.twin.last_offset += 1
            told.offset, told.moved, told.state, told.due_ms = self.twin.last_offset, None, READY, 0
            told.attempts, told.dies_ms, told.dedup_key = 0, 0, ""
            self.twin.keys[key].append(told)
        self.twin.dead.clear()


def _ranked(told: Told) -> Ranked:
    assert isinstance(told, Ranked)
    return told
