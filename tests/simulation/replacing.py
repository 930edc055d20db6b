"""Messages that replace others, over histories by chance: kills, power cuts, failures, delays, two channels.

Every answer is waited for, so the oracle knows of each dedup key which messages there are, and the newest of them:

    what is delivered    is the newest of its dedup key; an older one goes on only where it is leased already
    two leases           no dedup key has two in a channel at a time
    what waits           is one message of each dedup key in a channel, at most
    the end              of each message comes once: an ack, a dead letter, or that it gave way; never of the newest
    debounce             no delay ends later than `max_wait_ms` after the first message of those that waited
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fila.v1 import admin_pb2 as admin
from fila.v1 import messages_pb2 as messages
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from tests.core.driven_engine import DrivenEngine

REPLACE = service.EnqueueOptions.ON_DUPLICATE_REPLACE
CHANNELS = ("default", "other")
DEDUP_KEYS = ("x", "y", "z")
LEASE_MS, RETRY_MS, ATTEMPTS_MAX, WINDOW_MS = 5_000, 1_000, 3, 3_000
DELAY_MS, MAX_WAIT_MS = 400, 1_500


class Broken(AssertionError):
    """A later message did not take the place of an earlier one."""


@dataclass
class Chain:
    """One dedup key in one channel."""

    newest: int = 0
    leased: dict[int, messages.Message] = field(default_factory=dict)
    ended: Counter[int] = field(default_factory=Counter)
    """By message: how many ends of it were answered."""


class History:
    """One engine and what is known of it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.engine = DrivenEngine(seed=seed & 0xFFFF)
        order = self.random.choice([admin.KEY_ORDER_RELAXED, admin.KEY_ORDER_STRICT])
        self.engine.create_queue(
            "q",
            channels=list(CHANNELS),
            fairness_key_header="k",
            key_order=order,
            visibility_timeout_ms=LEASE_MS,
            max_attempts=ATTEMPTS_MAX,
            dedup_window_ms=WINDOW_MS,
            durability=admin.DURABILITY_FSYNC,
            retry=admin.RetryPolicy(kind=admin.RetryPolicy.KIND_FIXED, base_ms=RETRY_MS),
        )
        self.chains = {(channel, dedup): Chain() for channel in CHANNELS for dedup in DEDUP_KEYS}
        self.dedup_by_number: dict[int, str] = {}
        self.number_by_offset: dict[int, int] = {}
        self.waits_since_ms: dict[str, int] = {}
        self.number = 0
        self.judged = Counter[str]()

    def run(self, steps: int) -> None:
        acts = (
            [self.enqueue] * 7 + [self.lease] * 6 + [self.ack] * 3 + [self.nack] * 2
            + [self.release, self.pass_time, self.pass_time, self.restart]
        )  # fmt: skip
        for _ in range(steps):
            self.engine.sleep(1)
            self.random.choice(acts)()
        self.drain()

    # --- what happens -----------------------------------------------------------------------

    def enqueue(self) -> None:
        dedup = self.random.choice(DEDUP_KEYS)
        options: dict[str, Any] = {}
        if self.random.random() < 0.3:
            options = {"delay_ms": DELAY_MS, "max_wait_ms": MAX_WAIT_MS}
        self.number += 1
        offset = self.engine.enqueue(
            "q",
            b"%d" % self.number,
            {"k": self.random.choice("ab")},
            dedup_key=dedup,
            on_duplicate=REPLACE,
            **options,
        )
        self.dedup_by_number[self.number] = dedup
        self.number_by_offset[offset] = self.number
        for channel in CHANNELS:
            self.chains[channel, dedup].newest = self.number
        self.waits_since_ms.setdefault(dedup, self.engine.wall_ms)
        self._check_what_waits()

    def lease(self, channel: str = "") -> list[messages.Message]:
        channel = channel or self.random.choice(CHANNELS)
        got = self.engine.lease("q", self.random.choice([1, 2, 100]), channel)
        for message in got:
            self._delivered(channel, message)
        return got

    def _delivered(self, channel: str, message: messages.Message) -> None:
        number = int(message.payload)
        chain = self.chains[channel, self.dedup_by_number[number]]
        self.judged["deliveries"] += 1
        self.waits_since_ms.pop(self.dedup_by_number[number], None)
        if number != chain.newest:
            raise Broken(f"{number} came in {channel}, and {chain.newest} is the newest of its dedup key")
        if chain.leased:
            raise Broken(f"{number} came in {channel} while {list(chain.leased)} is leased")
        if chain.ended[number]:
            raise Broken(f"{number} came in {channel} after its end")
        chain.leased[number] = message

    def _some_leased(self) -> tuple[str, Chain, int] | None:
        held = [(where[0], chain, number) for where, chain in self.chains.items() for number in chain.leased]
        return self.random.choice(held) if held else None

    def ack(self) -> None:
        if (chosen := self._some_leased()) is not None:
            channel, chain, number = chosen
            if self.engine.ack("q", [chain.leased.pop(number)], channel) == [0]:
                chain.ended[number] += 1
                self.judged["acks"] += 1

    def nack(self) -> None:
        if (chosen := self._some_leased()) is not None:
            channel, chain, number = chosen
            message = chain.leased.pop(number)
            self.engine.nack("q", [message], self.random.choice([0, 700]), channel)
            self._failed(chain, number, message.metadata.attempt_count + 1)

    def _failed(self, chain: Chain, number: int, attempts: int) -> None:
        if number != chain.newest:
            self.judged["failures behind which one waits"] += 1
        if attempts >= ATTEMPTS_MAX:
            chain.ended[number] += 1

    def release(self) -> None:
        """It did not fail."""
        if (chosen := self._some_leased()) is not None:
            channel, chain, number = chosen
            message = chain.leased.pop(number)
            item = service.SettleItem(message_id=message.id, lease_id=message.metadata.lease_id, release=True)
            request = service.NackBatchRequest(queue="q", channel=channel, items=[item])
            self.engine.call(commands.NACK_BATCH, request, service.SettleBatchResponse)

    def pass_time(self) -> None:
        self.engine.sleep(self.random.choice([50, 500, 6_000]), 50)
        self._look_at_leases()

    def restart(self) -> None:
        self.random.choice([self.engine.kill, self.engine.cut_power, self.engine.stop])()
        self.engine.reopen(away_ms=self.random.choice([0, 700]))
        self.engine.others += self.engine.settle_down()
        self.judged["restarts"] += 1
        self._look_at_leases()
        self._check_what_waits()

    def _look_at_leases(self) -> None:
        """Some have expired, and a power cut may forget the leases of its last moment."""
        for (channel, _), chain in self.chains.items():
            for number, message in list(chain.leased.items()):
                request = admin.GetMessageRequest(queue="q", channel=channel, message_id=message.id)
                found = self.engine.call(commands.GET_MESSAGE, request, admin.GetMessageResponse)
                if found.state != admin.GetMessageResponse.STATE_LEASED:
                    del chain.leased[number]
                    if found.state == admin.GetMessageResponse.STATE_NOT_KNOWN:
                        chain.ended[number] += 1

    # --- what must be true ------------------------------------------------------------------

    def _check_what_waits(self) -> None:
        for channel in CHANNELS:
            for number in self._waiting(channel):
                chain = self.chains[channel, self.dedup_by_number[number]]
                if number != chain.newest:
                    raise Broken(f"{number} waits in {channel} beside {chain.newest}, which replaced it")
            self.judged["looks"] += 1
        for dedup, since_ms in self.waits_since_ms.items():
            if self.engine.wall_ms - since_ms > MAX_WAIT_MS:
                self.judged["waits beyond the bound"] += 1
                self._is_due(dedup)

    def _is_due(self, dedup: str) -> None:
        """Nobody has taken it for so long: it must be ready, or wait for a lease or a retry."""
        for channel in CHANNELS:
            request = admin.GetMessageRequest(queue="q", channel=channel, dedup_key=dedup)
            found = self.engine.call(commands.GET_MESSAGE, request, admin.GetMessageResponse)
            is_delayed = found.state == admin.GetMessageResponse.STATE_DELAYED and not found.waits_for
            if is_delayed and found.attempts == 0 and self.engine.wall_ms > found.until.ToMilliseconds():
                raise Broken(f"{dedup} is delayed in {channel} beyond {found.until}")

    def _waiting(self, channel: str) -> list[int]:
        request = admin.ListPendingRequest(queue="q", channel=channel, max_messages=1000)
        found = self.engine.call(commands.LIST_PENDING, request, admin.ListPendingResponse).messages
        leased = admin.GetMessageResponse.STATE_LEASED
        return [self.number_by_offset[each.offset] for each in found if each.state != leased]

    def drain(self) -> None:
        for _ in range(300):
            for channel in CHANNELS:
                self.lease(channel)
            while self._some_leased():
                self.ack()
            if not any(self.engine.stats("q", channel).depth for channel in CHANNELS):
                break
            self.engine.sleep(200, 50)
        for (channel, dedup), chain in self.chains.items():
            if chain.newest and chain.ended[chain.newest] != 1:
                raise Broken(f"the newest of {dedup} in {channel} ended {chain.ended[chain.newest]} times")
            if any(ends > 1 for ends in chain.ended.values()):
                raise Broken(f"{chain.ended} of {dedup} in {channel}")
