"""A broker over the fake core, and the real gRPC edge over that broker on a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from grpc import aio

from fila_server.broker.calls import Broker
from fila_server.config.schema import Address, Config, Server
from fila_server.edges.grpc import services
from fila_server.edges.grpc.server import RpcServer
from tests.doors import PLAIN, open_door
from tests.edge.fake_engine import FakeAdmin, FakeEngine


@pytest.fixture(autouse=True)
def no_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker asks the core for a series' points whenever ten seconds of the wall clock are over, in the midst of
    any test that counts what the core was asked."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(services, "record", never)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def admin(engine: FakeEngine) -> FakeAdmin:
    return FakeAdmin(engine)


@pytest.fixture
async def broker(engine: FakeEngine) -> AsyncIterator[Broker]:
    broker = Broker(engine, outstanding_calls_max=100)
    await broker.start()
    yield broker
    await broker.stop()


@pytest.fixture
async def channel(broker: Broker) -> AsyncIterator[aio.Channel]:
    server = RpcServer(broker, Config(server=Server(listen_addr=Address("127.0.0.1:0"))), open_door(), PLAIN)
    server.bind()
    await server.serve()
    async with aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        yield channel
    await server.stop(0)
