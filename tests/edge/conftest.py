"""A broker over the fake core, and the services that come to Python over that broker, on a port of grpc's own server:
their handlers are grpcio's, with any reader of the sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from grpc import aio

from fila_server.broker.calls import Broker
from fila_server.config.schema import Config
from fila_server.services import handlers as services
from fila_server.services.identity import Identity
from tests.admissions import open_admission
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
    config = Config()
    served = services.Services(broker, config, Identity(open_admission()))
    server = aio.server(options=[("grpc.max_receive_message_length", services.received_bytes_max(config))])
    server.add_generic_rpc_handlers(served.handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await served.say_serving()
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await served.say_not_serving()
    await server.stop(0)
