"""A Redis edge on a free port over the model of a core, and a client that speaks raw bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvloop

from fila_server.broker.calls import Broker
from fila_server.config.schema import Address, Limits, Redis
from fila_server.edges.redis import server as redis_server
from tests.doors import PLAIN, open_door
from tests.redis.model_engine import ModelEngine
from tests.redis.raw_client import RawClient

Connect = Callable[[], Awaitable[RawClient]]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of the real server: its transports differ from asyncio's in when they pause and close."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def engine() -> ModelEngine:
    return ModelEngine()


@pytest.fixture
def settings() -> Redis:
    return Redis(bind_address=Address("127.0.0.1:0"), max_connections=50)


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
async def server(
    engine: ModelEngine, settings: Redis, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[redis_server.Server]:
    monkeypatch.setattr("fila_server.edges.redis.connection.LINGER_S", 0.05)
    broker = Broker(engine)
    await broker.start()
    server = await redis_server.start(broker, settings, limits, data_dir="data", door=open_door(), tls=PLAIN)
    yield server
    await server.close()
    await broker.stop()


@pytest.fixture
async def connect(server: redis_server.Server) -> AsyncIterator[Connect]:
    clients: list[RawClient] = []

    async def connect() -> RawClient:
        clients.append(RawClient(*await asyncio.open_connection(*server.address)))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()


@pytest.fixture
async def client(connect: Connect) -> RawClient:
    return await connect()
