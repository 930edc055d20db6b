"""Workers before a provider that answers 429 and counts: the limit that learns from them uses nearly all it has."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from fila import FilaClient
from fila.v1 import admin_pb2, limit_pb2
from fila.worker import App, Limited
from tests.e2e.conftest import RunningServer
from tests.simulation.providers import Tokens

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

PROVIDER_A_SECOND = 60.0
SECONDS = float(os.environ.get("FILA_LEARN_S") or 1_200)
APART_S = min(120.0, SECONDS / 4)
BACKLOG = 500
ANSWERS_AFTER_S = 0.05


class Provider:
    """It lets so many calls a second pass, with a second's worth of slack."""

    def __init__(self) -> None:
        self.tokens = Tokens(1.0)
        self.began_s = time.monotonic()
        self.passed = self.refused = 0

    async def call(self) -> None:
        """Raises Limited."""
        now_s = time.monotonic() - self.began_s
        wait_s = self.tokens.wait_s(now_s, PROVIDER_A_SECOND)
        if now_s > APART_S:
            self.passed += wait_s is None
            self.refused += wait_s is not None
        await asyncio.sleep(ANSWERS_AFTER_S)
        if wait_s is not None:
            raise Limited("429", retry_after=wait_s)


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("start", [0.5, 2.0])
async def test_workers_use_nearly_all_that_a_provider_lets_pass(
    server: RunningServer, client: FilaClient, start: float
) -> None:
    name = f"provider-{start:g}"
    server.admin.CreateQueue(
        admin_pb2.CreateQueueRequest(name=name, config=admin_pb2.QueueConfig(throttle_key_headers=["to"]))
    )
    limit = limit_pb2.Limit(
        name=name,
        rates=[limit_pb2.Rate(per_second=start * PROVIDER_A_SECOND, burst=1)],
        learn=limit_pb2.Learn(min=1, max=1_000),
    )
    server.admin.SetLimit(limit_pb2.SetLimitRequest(limit=limit))
    provider = Provider()
    app = App(server.addresses["grpc"])

    @app.worker(name, concurrency=30)
    async def handle(payload: bytes) -> None:
        await provider.call()

    working = asyncio.create_task(app.serve())
    while (elapsed_s := time.monotonic() - provider.began_s) < SECONDS:
        depth = server.admin.GetStats(admin_pb2.GetStatsRequest(queue=name)).depth
        if depth < BACKLOG:
            await asyncio.gather(*(client.enqueue(name, b"x", {"to": name}) for _ in range(BACKLOG)))
        await asyncio.sleep(1)
    app.stop()
    await working

    used = provider.passed / ((elapsed_s - APART_S) * PROVIDER_A_SECOND)
    refused = provider.refused / (provider.passed + provider.refused)
    print(f"from {start:g} of the limit: used {used:.1%}, refused {refused:.2%} of {provider.passed}")
    assert used >= 0.95
    assert refused <= 0.005
