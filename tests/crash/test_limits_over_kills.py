"""Limits over `kill -9` of the real server: no slot and no budget too many, and names of a pattern keep their rate."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    limit_pb2,
    messages_pb2,
    service_pb2,
    service_pb2_grpc,
)
from tests.e2e.conftest import RunningServer, launch, wait_until_started

SOAK = bool(os.environ.get("FILA_SOAK"))
KILLS = int(os.environ.get("FILA_KILLS") or (200 if SOAK else 5))
SLOTS, BUDGET, PERIOD_MS = 3, 12, 2_000
LEASE_MS = 2_500
A_TICK_MS = 5
"""Between the end of a lease as it was told and the moment at which the broker ends it."""

KEYS = int(os.environ.get("FILA_LIMIT_KEYS") or (10_000 if SOAK else 200))
EACH = int(os.environ.get("FILA_LIMIT_MESSAGES") or (400 if SOAK else 20))
RATE_PER_S, BURST = 2.0, 1.0
LOST_AT_A_KILL = 2
"""Messages of a key that a kill takes on their way, and what it waits for while nobody asks."""

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.timeout(0 if SOAK else 120),
    pytest.mark.costly("a server starts, works and is killed, some times over"),
]

Message = messages_pb2.Message


@asynccontextmanager
async def _life(tmp_path: Path, number: int) -> AsyncIterator[tuple[RunningServer, Any, Any]]:
    """One life of the server; it ends by a kill."""
    log = tmp_path / f"log-{number}"
    server = wait_until_started(launch(tmp_path / "data", log, FILA_STORAGE__MIN_FREE_BYTES="0"))
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 16 << 20)]
    channel = aio.insecure_channel(server.addresses["grpc"], options=options)
    try:
        yield server, service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
    finally:
        await channel.close()
        server.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(server.process.wait)


async def _prepare(admin: Any, queues: Iterable[str], limit: limit_pb2.Limit) -> None:
    config = admin_pb2.QueueConfig(
        fairness_key_header="k",
        throttle_key_headers=["k"],
        visibility_timeout_ms=LEASE_MS,
        max_attempts=0,
    )
    for queue in queues:
        await admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue, config=config))
    await admin.SetLimit(limit_pb2.SetLimitRequest(limit=limit))


async def _send(service: Any, queue: str, keys: Iterable[str]) -> None:
    batch = [service_pb2.EnqueueMessage(headers={"k": key}) for key in keys]
    await service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=queue, messages=batch))


# --- slots and budgets -----------------------------------------------------------------------


def _live(leases: Iterable[tuple[int, int]], moment_ms: int) -> int:
    """How many of these leases had begun by then and lasted on."""
    return sum(began_ms <= moment_ms < until_ms - A_TICK_MS for began_ms, until_ms in leases)


@dataclass
class Account:
    """What one consumer holds for sure, and what of each budget went to it."""

    held: dict[str, dict[int, tuple[int, int]]] = field(default_factory=lambda: defaultdict(dict))
    """By throttle key: leases that were not settled, when they began and until when they last."""
    spent: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By throttle key and period."""
    above: list[str] = field(default_factory=list)
    full: int = 0
    """Deliveries that took the last slot, and"""
    whole: int = 0
    """budgets that were used up."""

    def delivered(self, message: Message) -> None:
        (key,) = message.metadata.throttle_keys
        begins_ms = message.timestamps.leased_at.ToMilliseconds()
        held = self.held[key]
        held[message.metadata.lease_id] = begins_ms, message.timestamps.lease_expires_at.ToMilliseconds()
        # What was leased later may have come first, so each such moment is looked at again.
        moments = [began_ms for began_ms, _ in held.values() if began_ms >= begins_ms]
        live = max(_live(held.values(), moment_ms) for moment_ms in moments)
        self.spent[key, begins_ms // PERIOD_MS] += 1
        spent = self.spent[key, begins_ms // PERIOD_MS]
        if live > SLOTS:
            leases = {number: lease for number, lease in held.items() if lease[1] > begins_ms}
            self.above.append(f"{live} of {key} in flight at {begins_ms} or after: {leases}")
        if spent > BUDGET:
            self.above.append(f"{spent} of {key} in period {begins_ms // PERIOD_MS}")
        self.full += live == SLOTS
        self.whole += spent == BUDGET

    @property
    def has_judged_enough(self) -> bool:
        return self.full > KILLS and self.whole > KILLS // 2

    def settling(self, message: Message) -> None:
        (key,) = message.metadata.throttle_keys
        self.held[key].pop(message.metadata.lease_id, None)


async def _work(service: Any, queue: str, account: Account, chance: random.Random) -> None:
    """Most messages are acked, some fail, some are held until their leases run out; until the server is killed."""
    held: list[Message] = []
    while True:
        request = service_pb2.LeaseRequest(queue=queue, max_messages=chance.choice([1, 5, 50]), wait_ms=50)
        found = (await service.Lease(request)).messages
        for message in found:
            account.delivered(message)
        held += found
        chance.shuffle(held)
        ends = [held.pop() for _ in range(chance.randint(0, len(held)))]
        for message in ends:
            account.settling(message)
        items = [service_pb2.SettleItem(lease_id=message.metadata.lease_id) for message in ends]
        half = len(items) // 4
        if items[half:]:
            await service.AckBatch(service_pb2.AckBatchRequest(queue=queue, items=items[half:]))
        if items[:half]:
            await service.NackBatch(service_pb2.NackBatchRequest(queue=queue, items=items[:half]))


async def test_slots_and_budgets_are_never_exceeded_over_kills(tmp_path: Path) -> None:
    account, chance = Account(), random.Random(11)
    keys = [f"tenant:{number}" for number in range(8)]
    limit = limit_pb2.Limit(
        name="tenant:*",
        max_in_flight=SLOTS,
        budget=limit_pb2.Budget(amount=BUDGET, period_ms=PERIOD_MS, unit=limit_pb2.Limit.UNIT_MESSAGES),
    )
    number = 0
    # On a slow machine some more lives, until enough was judged.
    while number <= KILLS or (not account.has_judged_enough and number < 4 * KILLS):
        async with _life(tmp_path, number) as (server, service, admin):
            if number == 0:
                await _prepare(admin, "qr", limit)
            working = []
            for queue in "qr":
                await _send(service, queue, keys * 4)
                working.append(asyncio.ensure_future(_work(service, queue, account, chance)))
            await asyncio.wait(working, timeout=chance.uniform(0.1, 1.2), return_when="FIRST_EXCEPTION")
            server.process.send_signal(signal.SIGKILL)
            for each in await asyncio.gather(*working, return_exceptions=True):
                assert isinstance(each, grpc.RpcError), each
        number += 1
    print(
        f"{number} kills, {account.spent.total()} deliveries, {account.full} took the last slot,"
        f" {account.whole} budgets used up, {len(account.above)} above a bound"
    )
    assert account.above == []
    assert account.has_judged_enough


# --- the rate of names that nobody registered ----------------------------------------------------


@dataclass
class Rates:
    """What came of each key, and for how long it was served."""

    came: Counter[str] = field(default_factory=Counter)
    first_ms: int = 0
    last_ms: int = 0
    served_s: float = 0.0

    def delivered(self, message: Message) -> None:
        self.came[message.metadata.fairness_key] += 1
        at_ms = message.timestamps.leased_at.ToMilliseconds()
        self.first_ms = min(self.first_ms or at_ms, at_ms)
        self.last_ms = max(self.last_ms, at_ms)


async def _take(service: Any, rates: Rates, until_s: float) -> None:
    """Take and ack all that comes, until then."""
    acking: set[asyncio.Future[Any]] = set()
    while time.monotonic() < until_s:
        found = (
            await service.Lease(service_pb2.LeaseRequest(queue="q", max_messages=2_000, wait_ms=20))
        ).messages
        for message in found:
            rates.delivered(message)
        if found:
            items = [service_pb2.SettleItem(lease_id=message.metadata.lease_id) for message in found]
            acking.add(
                asyncio.ensure_future(service.AckBatch(service_pb2.AckBatchRequest(queue="q", items=items)))
            )
        _, acking = await asyncio.wait(acking, timeout=0.001) if acking else (None, acking)


async def test_names_of_a_pattern_that_nobody_registered_keep_their_rate_over_a_kill(tmp_path: Path) -> None:
    rates = Rates()
    keys = [f"tenant:{number}" for number in range(KEYS)]
    limit = limit_pb2.Limit(name="tenant:*", rates=[limit_pb2.Rate(per_second=RATE_PER_S, burst=BURST)])
    half_s = EACH / RATE_PER_S * 0.4
    for number in range(2):
        async with _life(tmp_path, number) as (_, service, admin):
            if number == 0:
                await _prepare(admin, "q", limit)
                for _ in range(EACH):
                    for at in range(0, KEYS, 5_000):
                        await _send(service, "q", keys[at : at + 5_000])
            began_s = time.monotonic()
            await _take(service, rates, began_s + half_s)
            rates.served_s += time.monotonic() - began_s
    span_s = (rates.last_ms - rates.first_ms) / 1000
    most = BURST + RATE_PER_S * span_s + 1
    due = RATE_PER_S * rates.served_s
    least = due * 0.99 - LOST_AT_A_KILL
    few, many = min(rates.came[key] for key in keys), max(rates.came.values())
    print(
        f"{KEYS} keys, {rates.came.total()} deliveries in {rates.served_s:.1f} s of {span_s:.1f} s:"
        f" {few} to {many} a key, {due:.1f} due, {most:.1f} at most"
    )
    assert many <= most
    assert few >= least
