"""A fake broker and a client of it, for every test that asks."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from fila import Backoff, FilaClient
from tests.sdk.fake_broker import FakeBroker


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    """A started broker with one queue, `orders`."""
    broker = FakeBroker()
    broker.add("orders")
    await broker.start()
    yield broker
    broker.answering.set()
    await broker.stop()


@pytest.fixture
async def client(broker: FakeBroker) -> AsyncIterator[FilaClient]:
    """A client that waits hardly at all before it tries again."""
    async with FilaClient.connect(
        broker.address,
        retry_for_s=5.0,
        call_timeout_s=5.0,
        backoff=Backoff(base_s=0.001, cap_s=0.02, randomness=random.Random(1)),
    ) as client:
        yield client
