"""The calls everybody starts with, as the SDK's README has them."""

from __future__ import annotations

import asyncio

import pytest

import fila.sync
from fila import FilaClient
from tests.sdk.fake_broker import FakeBroker


async def test_what_is_enqueued_is_consumed_and_acked(broker: FakeBroker):
    client = await FilaClient.connect(broker.address)

    message_id = await client.enqueue("orders", headers={"tenant": "acme"}, payload=b"hello")
    async for msg in client.consume("orders"):
        assert (msg.id, msg.payload, msg.headers) == (message_id, b"hello", {"tenant": "acme"})
        await client.ack("orders", msg.id)
        break
    await client.close()

    assert message_id.offset == 1
    orders = broker.queues["orders"]
    assert not orders.ready
    assert not orders.leased


# Mistakes of the first ten minutes.


async def test_a_client_that_was_made_instead_of_connected_says_how() -> None:
    with pytest.raises(TypeError, match=r"await FilaClient\.connect\('localhost:5555'\)"):
        FilaClient("localhost:5555")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"FilaClient\.connect\('localhost:5555'\)"):
        fila.sync.FilaClient("localhost:5555")  # type: ignore[arg-type]


async def test_a_forgotten_await_says_what_to_write(broker: FakeBroker) -> None:
    forgotten = FilaClient.connect(broker.address)

    with pytest.raises(AttributeError, match=r"client = await FilaClient\.connect"):
        forgotten.enqueue("orders", b"x")  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="async with"), forgotten:  # type: ignore[attr-defined]
        pass
    with pytest.warns(RuntimeWarning, match="was dropped: write `client = await"):
        del forgotten


async def test_the_wrong_kind_of_loop_says_which_is_right(client: FilaClient) -> None:
    with pytest.raises(TypeError, match="`async for`"):
        for _ in client.consume("orders"):  # type: ignore[attr-defined]
            pass


def test_a_loop_of_the_wrong_client_says_which_is_right(broker_thread: FakeBroker) -> None:
    async def loop(client: fila.sync.FilaClient) -> None:
        async for _ in client.consume("orders"):  # type: ignore[attr-defined]
            pass

    with (
        fila.sync.FilaClient.connect(broker_thread.address) as client,
        pytest.raises(TypeError, match="with `for`"),
    ):
        asyncio.run(loop(client))
