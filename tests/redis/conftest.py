"""A real server for a module's tests, emptied after each of them, and clients that speak raw bytes to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from fila.v1 import admin_pb2
from tests.e2e.conftest import RunningServer, launch, start_server, wait_until_started
from tests.redis.raw_client import RawClient, Status

__all__ = ["start_server"]

Connect = Callable[[], Awaitable[RawClient]]
NOTICED_S_MAX = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("redis")
    running = wait_until_started(
        launch(folder / "data", folder / "server.log", FILA_STORAGE__DURABILITY="os")
    )
    yield running
    assert running.stop() == 0, running.log_file.read_text()


@pytest.fixture(scope="module")
def admin(server: RunningServer) -> Any:
    """The server's admin calls over gRPC: how a test looks at what its commands did."""
    return server.admin


async def connected_to(server: RunningServer) -> RawClient:
    host, _, port = server.addresses["redis"].rpartition(":")
    return RawClient(*await asyncio.open_connection(host, int(port)))


@pytest.fixture
async def connect(server: RunningServer, admin: Any) -> AsyncIterator[Connect]:
    """Makes clients of one test, whose queues go with it."""
    clients: list[RawClient] = []

    async def connect() -> RawClient:
        clients.append(await connected_to(server))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()
    for queue in admin.ListQueues(admin_pb2.ListQueuesRequest()).queues:
        if not queue.name.endswith(".dlq"):
            admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=queue.name))


@pytest.fixture
async def client(connect: Connect) -> RawClient:
    """A client, when those of earlier tests are gone."""
    client = await connect()
    await until_connected(client, 1)
    return client


@pytest.fixture
async def orders(client: RawClient) -> RawClient:
    """A client that has made a queue `orders` with a channel `mail`."""
    assert await client("SET", "orders", "mail") == Status("OK")
    return client


async def info(client: RawClient) -> dict[str, Any]:
    """What INFO server says: client_count, blocked_client_count, ..."""
    about: dict[str, Any] = json.loads((await client("INFO", "server"))[0])
    return about


async def until_connected(client: RawClient, count: int) -> None:
    """Return when so many clients are connected, this one among them."""
    async with asyncio.timeout(NOTICED_S_MAX):
        while (await info(client))["client_count"] != count:
            pass


async def until_blocked(client: RawClient, count: int) -> None:
    """Return when so many clients wait for messages."""
    async with asyncio.timeout(NOTICED_S_MAX):
        while (await info(client))["blocked_client_count"] != count:
            pass
