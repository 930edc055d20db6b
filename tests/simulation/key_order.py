"""A queue whose keys are in order, beside a slow twin that knows each message's place, over histories by chance.

The twin is a list a key. It says which messages may go at each moment: the first of each key that has none in flight
and none that waits for its retry. Every answer is waited for, so after a kill or a power cut it knows all there is.

    strict     a failed message stays where it stands, and its key waits until its retry is due
    relaxed    what fails goes to the back, and all that is ready may go: for the time that the order is switched off
"""

import random
from dataclasses import dataclass, field
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine, Refused

KEYS = ("a", "b", "c")
LEASE_MS, RETRY_MS, ATTEMPTS_MAX = 5_000, 1_000, 3
READY, LEASED, RETRY, DELAYED = "ready", "leased", "retry", "delayed"


class Broken(AssertionError):
    """A promise of order was not kept."""


@dataclass(eq=False)
class Told:
    """One message, as the twin has it."""

    number: int
    offset: int
    state: str = READY
    due_ms: int = 0
    """When its lease, its delay or its wait for a retry ends."""
    dies_ms: int = 0
    attempts: int = 0
    lease: messages.Message | None = field(default=None, repr=False)
    moved: tuple[int, int] | None = None
    """Behind which offset it went to the back, and as which of those that did."""


@dataclass
class Twin:
    """A list a key, in the order in which its messages go."""

    keys: dict[str, list[Told]] = field(default_factory=lambda: {key: [] for key in KEYS})
    strict: bool = True
    paused: set[str] = field(default_factory=set)
    moves: int = 0
    last_offset: int = 0

    def may_go(self, key: str) -> list[Told]:
        """In this order; none where it waits for a message of its own."""
        ready = [told for told in self.keys[key] if told.state == READY]
        if key in self.paused:
            return []
        if not self.strict:
            return ready
        waits = any(told.state in (LEASED, RETRY) for told in self.keys[key])
        return [] if waits else ready[:1]

    def to_the_back(self, key: str, told: Told) -> None:
        self.moves += 1
        told.state, told.moved = READY, (self.last_offset, self.moves)
        self.keys[key].remove(told)
        self.keys[key].append(told)

    def fail(self, key: str, told: Told, delay_ms: int, now_ms: int) -> None:
        told.attempts += 1
        told.lease = None
        if told.attempts >= ATTEMPTS_MAX or 0 < told.dies_ms <= now_ms:
            self.keys[key].remove(told)
        elif self.strict:
            told.moved = None
            told.state, told.due_ms = (RETRY, now_ms + delay_ms) if delay_ms else (READY, 0)
        elif delay_ms:
            told.state, told.due_ms = DELAYED, now_ms + delay_ms
        else:
            self.to_the_back(key, told)

    def until(self, now_ms: int) -> None:
        """What is due by now happens, the earliest first."""
        while True:
            due = [
                (moment, key, told)
                for key, line in self.keys.items()
                for told in line
                for moment in (
                    told.due_ms if told.state != READY else 0,
                    told.dies_ms if told.state != LEASED else 0,
                )
                if 0 < moment <= now_ms
            ]
            if not due:
                return
            moment, key, told = min(due, key=lambda each: each[0])
            if told.state == LEASED:
                self.fail(key, told, RETRY_MS, moment)
            elif told.dies_ms == moment:
                self.keys[key].remove(told)
            elif told.state == RETRY:
                told.state = READY
            else:
                self.to_the_back(key, told)

    def starts_again(self) -> None:
        """What went to the back stands behind the offset that was the last then; all else stands by its offset."""
        for line in self.keys.values():
            line.sort(
                key=lambda told: (told.moved[0], 1, told.moved[1]) if told.moved else (told.offset, 0, 0)
            )


class History:
    """One engine, its twin, and what happens to both."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.engine = DrivenEngine(seed=seed & 0xFFFF)
        self.engine.create_queue("q", **_settings(strict=True))
        self.twin = Twin()
        self.judged = 0
        self.number = 0

    def run(self, steps: int) -> None:
        acts = (
            [self.enqueue] * 5 + [self.lease] * 8 + [self.ack] * 5 + [self.nack] * 3
            + [self.pass_time] * 4 + [self.skip, self.purge, self.pause, self.switch, self.restart, self.release]
        )  # fmt: skip
        for _ in range(steps):
            self.sleep(1)  # so that no two moments are one
            self.random.choice(acts)()
        self.drain()

    def sleep(self, ms: int) -> None:
        for _ in range(0, ms, 50):
            self.engine.sleep(min(50, ms))
        self.twin.until(self.engine.wall_ms)

    # --- what happens -----------------------------------------------------------------------

    def enqueue(self) -> None:
        for _ in range(self.random.choice([1, 1, 3])):
            key = self.random.choice(KEYS)
            options = self._some_times(delayed=0.1)
            self.number += 1
            offset = self.engine.enqueue("q", b"%d" % self.number, {"k": key}, **options)
            self._stands(key, Told(self.number, offset), options)

    def _some_times(self, delayed: float) -> dict[str, int]:
        """A delay, a time to live, or neither, as options of an enqueue; `delayed` is how likely the first is."""
        options = {}
        if self.random.random() < delayed:
            options["delay_ms"] = self.random.choice([300, 4_000])
        if self.random.random() < 0.1:
            options["ttl_ms"] = self.random.choice([900, 7_000])
        return options

    def _stands(self, key: str, told: Told, options: dict[str, int]) -> None:
        """It was enqueued with these options."""
        now_ms = self.engine.wall_ms
        if "delay_ms" in options:
            told.state, told.due_ms = DELAYED, now_ms + options["delay_ms"]
        told.dies_ms = now_ms + options["ttl_ms"] if "ttl_ms" in options else 0
        self.twin.last_offset = told.offset
        self.twin.keys[key].append(told)
        self.sleep(1)

    def lease(self) -> None:
        most = self.random.choice([1, 2, 100]) if self.twin.strict else 1
        allowed = {key: self.twin.may_go(key) for key in KEYS}
        got = self.engine.lease("q", most=most)
        for message in got:
            self._delivered(message, allowed)
        could = sum(len(each) for each in allowed.values())
        if len(got) < min(most, could):
            raise Broken(f"{could} could go, {most} were asked for, and {len(got)} came: {self.twin}")

    def _delivered(self, message: messages.Message, allowed: dict[str, list[Told]]) -> None:
        key, number = message.metadata.fairness_key, int(message.payload)
        self.judged += 1
        first = allowed[key].pop(0) if allowed[key] else None
        if first is None or first.number != number:
            raise Broken(f"{number} of {key} was delivered, {first} is its first: {self.twin.keys[key]}")
        if message.metadata.attempt_count != first.attempts:
            raise Broken(f"{number} of {key} says {message.metadata.attempt_count} attempts: {first}")
        first.state, first.lease, first.due_ms = LEASED, message, self.engine.wall_ms + LEASE_MS

    def _some_leased(self) -> tuple[str, Told, messages.Message] | None:
        held = [(key, told, told.lease) for key in KEYS for told in self.twin.keys[key] if told.lease]
        return self.random.choice(held) if held else None

    def ack(self) -> None:
        if (chosen := self._some_leased()) is not None:
            key, told, message = chosen
            if self.engine.ack("q", [message]) != [0]:
                raise Broken(f"the ack of {told} was refused")
            self.twin.keys[key].remove(told)

    def nack(self) -> None:
        if (chosen := self._some_leased()) is not None:
            key, told, message = chosen
            delay_ms = self.random.choice([0, 200, 3_000])
            if self.engine.nack("q", [message], delay_ms) != [0]:
                raise Broken(f"the nack of {told} was refused")
            self.twin.fail(key, told, delay_ms, self.engine.wall_ms)

    def release(self) -> None:
        """It did not fail, and goes back to where it stood."""
        if (chosen := self._some_leased()) is not None:
            _, told, message = chosen
            item = service.SettleItem(message_id=message.id, lease_id=message.metadata.lease_id, release=True)
            request = service.NackBatchRequest(queue="q", items=[item])
            self.engine.call(commands.NACK_BATCH, request, service.SettleBatchResponse)
            told.state, told.lease, told.due_ms = READY, None, 0

    def pass_time(self) -> None:
        self.sleep(self.random.choice([50, 500, 2_000]))

    def skip(self) -> None:
        key = self.random.choice(KEYS)
        line = self.twin.keys[key]
        heads = [told for told in line if told.state in (LEASED, RETRY)]
        heads = heads or [told for told in line if told.state == READY][:1]
        if not self.twin.strict or len(heads) != 1:
            return
        request = admin.SkipMessageRequest(queue="q", fairness_key=key)
        answer = self.engine.call(commands.SKIP_MESSAGE, request, admin.SkipMessageResponse)
        if answer.offset != heads[0].offset:
            raise Broken(f"{answer.offset} was skipped, and not {heads[0]}")
        line.remove(heads[0])

    def purge(self) -> None:
        """All but what is leased."""
        key = self.random.choice(KEYS)
        request = admin.PurgeQueueRequest(queue="q", fairness_key=key)
        self.engine.call(commands.PURGE_QUEUE, request, admin.PurgeQueueResponse)
        self.twin.keys[key] = [told for told in self.twin.keys[key] if told.state == LEASED]

    def pause(self) -> None:
        key = self.random.choice(KEYS)
        self.twin.paused ^= {key}
        request = admin.SetKeyPolicyRequest(queue="q", fairness_key=key, paused=key in self.twin.paused)
        self.engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)

    def switch(self) -> None:
        """Off only while no key waits for a message of its own: that message holds its key until it has ended."""
        waits = any(told.state in (LEASED, RETRY) for line in self.twin.keys.values() for told in line)
        if self.twin.strict and waits:
            return
        self.twin.strict = not self.twin.strict
        config = admin.QueueConfig(**_settings(strict=self.twin.strict), channels=["default"])
        request = admin.UpdateQueueRequest(queue="q", config=config)
        self.engine.call(commands.UPDATE_QUEUE, request, admin.UpdateQueueResponse)

    def restart(self) -> None:
        self.random.choice([self.engine.kill, self.engine.cut_power, self.engine.stop])()
        self.engine.reopen(away_ms=self.random.choice([0, 700]))
        self.engine.others += self.engine.settle_down()
        self.twin.until(self.engine.wall_ms)
        self.twin.starts_again()
        self._ask_for_leases()

    def _ask_for_leases(self) -> None:
        """A power cut may forget the leases of its last moment, and nothing else that was answered."""
        for line in self.twin.keys.values():
            for told in line:
                if told.lease is None:
                    continue
                request = service.ExtendLeaseRequest(
                    queue="q",
                    message_id=told.lease.id,
                    lease_id=told.lease.metadata.lease_id,
                    extend_ms=LEASE_MS,
                )
                try:
                    self.engine.call(commands.EXTEND_LEASE, request, service.ExtendLeaseResponse)
                except Refused:
                    told.state, told.lease, told.due_ms = READY, None, 0
                else:
                    told.due_ms = self.engine.wall_ms + LEASE_MS

    def drain(self) -> None:
        for key in sorted(self.twin.paused):
            request = admin.SetKeyPolicyRequest(queue="q", fairness_key=key, paused=False)
            self.engine.call(commands.SET_KEY_POLICY, request, admin.SetKeyPolicyResponse)
        self.twin.paused.clear()
        for _ in range(400):
            if not any(self.twin.keys.values()):
                break
            self.lease()
            while self._some_leased():
                self.ack()
            self.sleep(100)
        if self.engine.stats("q").depth or any(self.twin.keys.values()):
            raise Broken(
                f"the queue has {self.engine.stats('q').depth} messages left, and the twin {self.twin}"
            )


def _settings(*, strict: bool) -> dict[str, Any]:
    return {
        "fairness_key_header": "k",
        "key_order": admin.KEY_ORDER_STRICT if strict else admin.KEY_ORDER_RELAXED,
        "visibility_timeout_ms": LEASE_MS,
        "max_attempts": ATTEMPTS_MAX,
        "retry": admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=RETRY_MS),
    }
