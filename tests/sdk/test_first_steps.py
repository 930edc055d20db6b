"""The calls everybody starts with, exactly as the README has them."""

from __future__ import annotations

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
