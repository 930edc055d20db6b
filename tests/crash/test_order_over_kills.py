"""Keys in order over `kill -9` of the real server: no ack before that of an earlier message, no two leases of a key."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.e2e.conftest import RunningServer, launch, wait_until_started

SOAK = bool(os.environ.get("FILA_SOAK"))
KILLS = int(os.environ.get("FILA_KILLS") or (50 if SOAK else 4))
KEYS, EACH = (1_000, 100) if SOAK else (50, 20)
FAILING = 0.2
QUEUE = "chats"

Row = tuple[int, int, int]
"""Key, number, lease."""

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.timeout(0 if SOAK else 120),
    pytest.mark.costly("a server starts, works and is killed, some times over"),
]


@dataclass
class Account:
    """What one consumer saw of each key: what it may have acked, and the lease that it may still hold."""

    done: dict[int, int] = field(default_factory=dict)
    """By key: so many of its first messages were acked, or may have been."""
    acked: set[tuple[int, int]] = field(default_factory=set)
    held: dict[int, tuple[int, int, float]] = field(default_factory=dict)
    """By key: message, lease, until when; gone once a settle was sent, which may have been carried out."""
    out_of_order: int = 0
    two_leases: int = 0
    deliveries: int = 0

    def delivered(self, key: int, number: int, lease_id: int, until_s: float) -> None:
        self.deliveries += 1
        other = self.held.get(key)
        if other is not None and other[1] != lease_id and other[2] > time.time():
            self.two_leases += 1
        if number > self.done.get(key, 0):
            self.out_of_order += 1
        self.held[key] = number, lease_id, until_s

    def settling(self, key: int, number: int, *, acks: bool) -> None:
        self.held.pop(key, None)
        if acks:
            self.done[key] = max(self.done.get(key, 0), number + 1)


class Life:
    """One life of the server, and the consumer in it."""

    def __init__(self, server: RunningServer, account: Account, chance: random.Random) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 16 << 20)]
        self.channel = aio.insecure_channel(server.addresses["grpc"], options=options)
        self.service: Any = service_pb2_grpc.FilaServiceStub(self.channel)
        self.admin: Any = admin_pb2_grpc.FilaAdminStub(self.channel)
        self.account, self.chance = account, chance

    async def fill(self) -> None:
        config = admin_pb2.QueueConfig(
            fairness_key_header="k",
            key_order=admin_pb2.KEY_ORDER_STRICT,
            visibility_timeout_ms=1_000,
            max_attempts=0,
            retry=admin_pb2.RetryPolicy(kind=admin_pb2.RetryPolicy.KIND_FIXED, base_ms=20),
        )
        await self.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=QUEUE, config=config))
        for number in range(EACH):
            batch = [
                service_pb2.EnqueueMessage(payload=b"%d %d" % (key, number), headers={"k": str(key)})
                for key in range(KEYS)
            ]
            await self.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=QUEUE, messages=batch))

    async def consume(self) -> None:
        """Until nothing is left."""
        while True:
            request = service_pb2.LeaseRequest(queue=QUEUE, max_messages=1_000, wait_ms=500)
            found = (await self.service.Lease(request)).messages
            if not found and await self._is_empty():
                return
            acks: list[Row] = []
            nacks: list[Row] = []
            for message in found:
                key, number = map(int, message.payload.split())
                lease_id = message.metadata.lease_id
                until_s = message.timestamps.lease_expires_at.ToMilliseconds() / 1000
                self.account.delivered(key, number, lease_id, until_s)
                fails = self.chance.random() < FAILING
                (nacks if fails else acks).append((key, number, lease_id))
            await asyncio.gather(self._settle(acks, acks=True), self._settle(nacks, acks=False))

    async def _settle(self, rows: list[Row], *, acks: bool) -> None:
        if not rows:
            return
        for key, number, _ in rows:
            self.account.settling(key, number, acks=acks)
        items = [service_pb2.SettleItem(lease_id=lease_id, error="no coffee") for _, _, lease_id in rows]
        if not acks:
            await self.service.NackBatch(service_pb2.NackBatchRequest(queue=QUEUE, items=items))
            return
        answer = await self.service.AckBatch(service_pb2.AckBatchRequest(queue=QUEUE, items=items))
        for (key, number, _), result in zip(rows, answer.results, strict=True):
            if result.code == 0:
                self.account.acked.add((key, number))
            # Refused: its lease had expired, and it comes again.

    async def _is_empty(self) -> bool:
        stats = await self.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE))
        return not (stats.depth or stats.in_flight)


async def _live(server: RunningServer, life: Life, kill_after_s: float | None) -> None:
    consuming = asyncio.ensure_future(life.consume())
    try:
        await asyncio.wait([consuming], timeout=kill_after_s)
        if kill_after_s is not None:
            server.process.send_signal(signal.SIGKILL)
        try:
            await consuming
        except grpc.RpcError:
            assert kill_after_s is not None, "nobody killed it"
    finally:
        await life.channel.close()
        server.process.kill()
        await asyncio.to_thread(server.process.wait)


async def test_the_order_of_keys_outlives_kills_and_failures(tmp_path: Path) -> None:
    account, chance = Account(), random.Random(7)
    for number in range(KILLS + 1):
        log = tmp_path / f"log-{number}"
        server = wait_until_started(launch(tmp_path / "data", log, FILA_STORAGE__MIN_FREE_BYTES="0"))
        life = Life(server, account, chance)
        if number == 0:
            await life.fill()
        await _live(server, life, chance.uniform(0.05, 1.5 if SOAK else 0.4) if number < KILLS else None)

    print(f"{KILLS} kills, {account.deliveries} deliveries, {len(account.acked)} acks answered")
    assert (account.out_of_order, account.two_leases) == (0, 0)
    assert account.done == dict.fromkeys(range(KEYS), EACH)
