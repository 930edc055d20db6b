"""What happens once, over `kill -9` of the real server: the end of a message that is taken back or gives way to a later
one, a moment's firing."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import admin_pb2, admin_pb2_grpc, messages_pb2, schedule_pb2, service_pb2, service_pb2_grpc
from tests.e2e.conftest import RunningServer, launch, wait_until_started

SOAK = bool(os.environ.get("FILA_SOAK"))
KILLS = int(os.environ.get("FILA_KILLS") or (200 if SOAK else 4))
SEED = int(os.environ.get("FILA_KILLS_SEED") or 2)
ORDERS, TICKS = "orders", "ticks"
SCHEDULES, EVERY_MS = 5, 1_000
NOT_FOUND = service_pb2.CancelMessagesResponse.OUTCOME_NOT_FOUND

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.timeout(0 if SOAK else 180),
    pytest.mark.costly("a server starts, works and is killed, some times over"),
]


@dataclass
class Account:
    """What was seen of all messages, over all lives."""

    alive: set[str] = field(default_factory=set)
    """Enqueued, and no end of them was answered."""
    ends: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Acks and cancels that were answered."""
    may_have_ended: set[str] = field(default_factory=set)
    """Something was asked that would end them, and a kill came before the answer."""
    after_their_end: list[str] = field(default_factory=list)
    gave_way: set[str] = field(default_factory=set)
    """Another message that replaces them was answered, or may be stored."""
    newest: dict[str, str] = field(default_factory=dict)
    """By dedup key; none of a key of which a message may be stored without an answer, or was taken back."""
    behind_a_newer: list[str] = field(default_factory=list)
    fired: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    """By schedule and moment: the messages."""
    judged: Counter[str] = field(default_factory=Counter)

    def ended(self, message_id: str, how: str) -> None:
        self.judged[how] += 1
        self.ends[message_id].append(how)
        self.alive.discard(message_id)

    def delivered(self, message: messages_pb2.Message) -> None:
        self.judged["deliveries"] += 1
        key = message.headers.get("dedup", "")
        if key in self.newest:
            self.judged["deliveries of the newest"] += 1
            if self.newest[key] != message.id:
                self.behind_a_newer.append(message.id)
        if message.id in self.ends:
            self.after_their_end.append(message.id)


class Life:
    """One life of the server, and who works in it."""

    def __init__(self, server: RunningServer, account: Account, chance: random.Random) -> None:
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.channel = aio.insecure_channel(server.addresses["grpc"], options=options)
        self.service: Any = service_pb2_grpc.FilaServiceStub(self.channel)
        self.admin: Any = admin_pb2_grpc.FilaAdminStub(self.channel)
        self.account, self.chance = account, chance

    async def begin(self) -> None:
        # Each dedup key has turns of its own: behind all others, its newest message would hardly ever be delivered.
        config = admin_pb2.QueueConfig(
            visibility_timeout_ms=1_000, max_attempts=0, fairness_key_header="dedup"
        )
        for queue in (ORDERS, TICKS):
            await self.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=queue, config=config))
        for number in range(SCHEDULES):
            settings = schedule_pb2.ScheduleSettings(every_ms=EVERY_MS, missed=schedule_pb2.MISSED_RULE_ALL)
            request = schedule_pb2.CreateScheduleRequest(
                queue=TICKS, schedule=f"s{number}", settings=settings
            )
            await self.admin.CreateSchedule(request)

    async def work(self) -> None:
        """Until the server is gone."""
        held: list[messages_pb2.Message] = []
        while True:
            await self._enqueue()
            for _ in range(3):
                await self._replace()
            held += await self._lease(ORDERS, 8)
            await self._cancel()
            self.chance.shuffle(held)
            await self._ack([held.pop() for _ in range(min(len(held), 4))])
            await self.collect()

    async def _enqueue(self) -> None:
        items = [service_pb2.EnqueueMessage(payload=b"x") for _ in range(10)]
        for item in items[:3]:
            item.options.delay_ms = self.chance.choice((50, 400))
        request = service_pb2.EnqueueBatchRequest(queue=ORDERS, messages=items)
        answer = await self.service.EnqueueBatch(request)
        self.account.alive |= {result.message_id for result in answer.results}

    async def _replace(self) -> None:
        """The latest of a dedup key wins, whatever has become of the one before."""
        key = self.chance.choice(("x", "y", "z"))
        request = service_pb2.EnqueueRequest(queue=ORDERS, payload=b"x", headers={"dedup": key})
        request.options.dedup_key = key
        request.options.on_duplicate = request.options.ON_DUPLICATE_REPLACE
        request.options.delay_ms = self.chance.choice((0, 0, 50))
        account = self.account
        account.gave_way.add(account.newest.pop(key, ""))
        answer = await self.service.Enqueue(request)
        account.newest[key] = answer.message_id
        account.alive.add(answer.message_id)
        account.judged["replacements"] += 1

    async def _lease(self, queue: str, most: int) -> list[messages_pb2.Message]:
        found = (await self.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=most))).messages
        for message in found:
            self.account.delivered(message)
        return list(found)

    async def _cancel(self) -> None:
        """Some that wait, are delayed or leased, and some that have ended."""
        known = sorted(self.account.alive)[-40:] + list(self.account.ends)[-5:]
        chosen = self.chance.sample(known, min(6, len(known)))
        meant = self._may_end(set(chosen) & self.account.alive)
        for key, message_id in list(self.account.newest.items()):
            if message_id in chosen:
                del self.account.newest[key]
        request = service_pb2.CancelMessagesRequest(queue=ORDERS, message_ids=chosen)
        answer = await self.service.CancelMessages(request)
        self.account.may_have_ended -= meant
        for message_id, outcome in zip(chosen, answer.outcomes, strict=True):
            if outcome != NOT_FOUND:
                self.account.ended(message_id, "cancels")

    async def _ack(self, messages: list[messages_pb2.Message], queue: str = ORDERS) -> None:
        if not messages:
            return
        asked = self._may_end({message.id for message in messages})
        items = [service_pb2.SettleItem(lease_id=message.metadata.lease_id) for message in messages]
        answer = await self.service.AckBatch(service_pb2.AckBatchRequest(queue=queue, items=items))
        self.account.may_have_ended -= asked
        for message, result in zip(messages, answer.results, strict=True):
            if result.code == 0:
                self.account.ended(message.id, "acks")

    def _may_end(self, asked: set[str]) -> set[str]:
        """Those of which a kill has left nothing open before."""
        fresh = asked - self.account.may_have_ended
        self.account.may_have_ended |= fresh
        return fresh

    async def collect(self) -> int:
        """What schedules have fired."""
        found = await self._lease(TICKS, 1_000)
        for message in found:
            moment = message.headers["fila-schedule"], message.headers["fila-schedule-moment"]
            self.account.fired[moment].add(message.id)
        await self._ack(found, TICKS)
        return len(found)

    async def end(self) -> None:
        """No schedule fires any more, and all that is left is acked."""
        await asyncio.sleep(EVERY_MS / 1000 + 0.5)
        for number in range(SCHEDULES):
            await self.admin.DeleteSchedule(
                schedule_pb2.DeleteScheduleRequest(queue=TICKS, schedule=f"s{number}")
            )
        while await self._depth(TICKS):
            await self.collect()
            await asyncio.sleep(0.05)
        while await self._depth(ORDERS):
            await self._ack(await self._lease(ORDERS, 100))
            await asyncio.sleep(0.05)

    async def _depth(self, queue: str) -> int:
        stats = await self.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue))
        return int(stats.depth + stats.in_flight)


def left_out(fired: dict[tuple[str, str], set[str]]) -> int:
    """Moments between the first and the last of each schedule that have no message."""
    moments: dict[str, list[int]] = defaultdict(list)
    for name, moment in fired:
        moments[name].append(round(datetime.fromisoformat(moment).timestamp() * 1000))
    return sum((max(each) - min(each)) // EVERY_MS + 1 - len(each) for each in moments.values())


async def _live(server: RunningServer, life: Life, kill_after_s: float) -> None:
    working = asyncio.ensure_future(life.work())
    try:
        await asyncio.wait([working], timeout=kill_after_s)
        server.process.send_signal(signal.SIGKILL)
        with pytest.raises(grpc.RpcError):
            await working
    finally:
        await life.channel.close()
        await asyncio.to_thread(server.process.wait)


async def test_a_message_ends_once_and_a_moment_fires_once_whenever_the_server_is_killed(
    tmp_path: Path,
) -> None:
    account, chance = Account(), random.Random(SEED)
    for number in range(KILLS):
        log = tmp_path / f"log-{number}"
        server = wait_until_started(launch(tmp_path / "data", log, FILA_STORAGE__MIN_FREE_BYTES="0"))
        life = Life(server, account, chance)
        if number == 0:
            await life.begin()
        await _live(server, life, chance.uniform(0.05, 1.2))
    server = wait_until_started(launch(tmp_path / "data", tmp_path / "log", FILA_STORAGE__MIN_FREE_BYTES="0"))
    life = Life(server, account, chance)
    await life.end()
    await life.channel.close()
    assert server.stop() == 0

    moments = len(account.fired)
    print(f"{KILLS} kills, {dict(account.judged)}, {moments} moments")
    assert account.after_their_end == []
    assert [each for each in account.ends.items() if len(each[1]) > 1] == []
    assert account.behind_a_newer == []
    assert account.judged["deliveries of the newest"] >= KILLS
    assert account.alive <= account.may_have_ended | account.gave_way, (
        "somebody ended, and nobody asked for it"
    )
    assert [each for each in account.fired.items() if len(each[1]) > 1] == []
    assert moments >= SCHEDULES
    assert left_out(account.fired) == 0
