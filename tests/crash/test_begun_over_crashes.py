"""Sessions that say what they have begun, over `kill -9` and power cuts of the real server."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.crash import powercut
from tests.e2e.conftest import RunningServer, launch, wait_until_started

HERE = 4
LIVES = int(os.environ.get("FILA_KILLS") or (100 if os.environ.get("FILA_SOAK") else HERE))

pytestmark = [
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.timeout(240 if LIVES == HERE else 0),
    pytest.mark.costly("a server starts, works and is killed, some times over"),
]

Session = service_pb2.ConsumeSessionRequest
MESSAGES = 60
GRACE_MS = 1_000
QUEUE = "work"


class Life:
    """One life of a server, and one session's view of it."""

    def __init__(self, address: str) -> None:
        self.channel = aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.service: Any = service_pb2_grpc.FilaServiceStub(self.channel)
        self.admin: Any = admin_pb2_grpc.FilaAdminStub(self.channel)

    async def open(self, **resume: Any) -> tuple[Any, Any]:
        call = self.service.ConsumeSession()
        fields = {"queue": QUEUE, "tracks_begun": True, "max_in_flight": 1_000, **resume}
        await call.write(Session(open=fields))
        return call, (await _next(call)).opened

    async def receive(self, call: Any, count: int) -> dict[bytes, int]:
        leases: dict[bytes, int] = {}
        while len(leases) < count:
            for message in (await _next(call)).delivery.messages:
                leases[message.payload] = message.metadata.lease_id
        return leases

    async def begin(self, call: Any, leases: list[int]) -> None:
        """Returns once the broker has it: an answer to what came behind it has come back."""
        await call.write(Session(begun={"lease_ids": leases}))
        await call.write(Session(alive={"sequence": 7}))
        while not (await _next(call)).HasField("alive"):
            pass

    async def attempts(self, count: int) -> dict[bytes, int]:
        """Of all that is pending, once the grace is over."""
        found: dict[bytes, int] = {}
        async with asyncio.timeout(20):
            while len(found) < count:
                request = admin_pb2.PeekMessagesRequest(queue=QUEUE, max_messages=1_000)
                peeked = (await self.admin.PeekMessages(request)).messages
                found = {message.payload: message.metadata.attempt_count for message in peeked}
                await asyncio.sleep(0.1)
        return found


async def _next(call: Any) -> Any:
    response = await asyncio.wait_for(call.read(), 20)
    assert response is not aio.EOF
    return response


@asynccontextmanager
async def living(data_dir: Path, log: Path, how: str, seed: int) -> AsyncIterator[tuple[Life, RunningServer]]:
    environ = {"FILA_STORAGE__MIN_FREE_BYTES": "0"}
    if how == "power":
        environ |= powercut.environment(data_dir, seed=seed)
    server = wait_until_started(launch(data_dir, log, **environ))
    life = Life(server.addresses["grpc"])
    try:
        yield life, server
    finally:
        await life.channel.close()
        server.process.kill()
        await asyncio.to_thread(server.process.wait)


async def _die(server: RunningServer, how: str) -> None:
    if how == "kill":
        server.process.send_signal(signal.SIGKILL)
    else:
        await asyncio.to_thread(powercut.cut, server.process.pid)
    await asyncio.to_thread(server.process.wait)


async def _filled(life: Life) -> None:
    config = admin_pb2.QueueConfig(disconnect_grace_ms=GRACE_MS, max_attempts=0)
    await life.admin.CreateQueue(admin_pb2.CreateQueueRequest(name=QUEUE, config=config))
    batch = [service_pb2.EnqueueMessage(payload=b"%d" % i) for i in range(MESSAGES)]
    await life.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=QUEUE, messages=batch))


@pytest.mark.parametrize("how", ["kill", pytest.param("power", marks=pytest.mark.needs("cc"))])
async def test_after_a_crash_only_what_was_begun_counts(how: str, tmp_path: Path) -> None:
    for number in range(LIVES):
        chance = random.Random(number)
        data_dir = tmp_path / f"data-{number}"
        async with living(data_dir, tmp_path / "log", how, number) as (life, server):
            await _filled(life)
            call, _ = await life.open()
            leases = await life.receive(call, MESSAGES)
            begun = set(chance.sample(sorted(leases), chance.randint(1, MESSAGES)))
            await life.begin(call, [leases[payload] for payload in begun])
            await _die(server, how)

        async with living(data_dir, tmp_path / "log-2", "kill", number) as (life, _):
            attempts = await life.attempts(MESSAGES)

        assert {attempts[payload] for payload in leases if payload not in begun} <= {0}
        # A power cut may forget that a message was begun; a kill may not.
        assert {attempts[payload] for payload in begun} <= ({0, 1} if how == "power" else {1})


async def test_a_session_resumes_over_a_kill_with_what_it_still_holds(tmp_path: Path) -> None:
    for number in range(LIVES):
        chance = random.Random(number)
        data_dir = tmp_path / f"data-{number}"
        async with living(data_dir, tmp_path / "log", "kill", number) as (life, server):
            await _filled(life)
            call, opened = await life.open()
            leases = await life.receive(call, MESSAGES)
            begun = chance.sample(sorted(leases), 20)
            await life.begin(call, [leases[payload] for payload in begun])
            await _die(server, "kill")
        kept = [leases[payload] for payload in [*begun[:10], *(p for p in leases if p not in begun)][:30]]

        async with living(data_dir, tmp_path / "log-2", "kill", number) as (life, _):
            resume = {"consumer_id": opened.consumer_id, "lease_ids": kept}
            call, again = await life.open(resume=resume)
            await call.write(Session(ack={"sequence": 1, "lease_ids": kept}))
            while not (response := await _next(call)).HasField("settled"):
                pass
            call.cancel()
            attempts = await life.attempts(MESSAGES - len(kept))

        assert again.consumer_id == opened.consumer_id
        assert not again.lost_lease_ids
        assert not response.settled.failures
        assert set(attempts.values()) == {0}  # what it did not name returned, begun or not
