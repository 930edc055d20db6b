"""Consuming: what is handed out, what goes back, and what survives a broken stream."""

from __future__ import annotations

import asyncio

import pytest

from fila import ClientClosed, FilaClient, LeaseLost, Message, QueueNotFound, Unavailable
from fila.prefetch import Prefetch
from fila.v1 import service_pb2
from tests.sdk.conftest import QUICK_BACKOFF, ManualClock, drained, until
from tests.sdk.fake_broker import FakeBroker


async def fill(client: FilaClient, count: int) -> None:
    await client.enqueue_many("orders", [b"%d" % i for i in range(count)])


@pytest.mark.parametrize("prefetch", ["auto", 100])
async def test_a_loop_gets_every_message_in_order(
    broker: FakeBroker, client: FilaClient, prefetch: Prefetch
) -> None:
    await fill(client, 500)

    got = []
    consumer = client.consume("orders", prefetch=prefetch)
    async with drained(broker, consumer):
        async for msg in consumer:
            got.append(msg.payload)
            msg.ack()

    sent = [b"%d" % i for i in range(500)]
    if broker.queues[
        "orders"
    ].returned:  # the machine stood still: what waited went back, and came behind the next
        assert prefetch == "auto"
        got, sent = sorted(got), sorted(sent)
    assert got == sent


async def test_a_loop_may_take_what_has_arrived_in_one_piece(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 300)

    sizes = []
    consumer = client.consume("orders", prefetch=100)
    async with drained(broker, consumer):
        async for batch in consumer.batches():
            sizes.append(len(batch))
            await client.ack_many(batch)

    assert sum(sizes) == 300
    assert max(sizes) <= 100


async def test_no_more_is_leased_than_the_prefetch(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 50)

    async for _ in client.consume("orders", prefetch=10):
        await until(lambda: len(broker.queues["orders"].leased) == 10)
        await asyncio.sleep(0.02)
        assert len(broker.queues["orders"].leased) == 10
        break


async def test_a_loop_ends_when_nothing_came_for_as_long_as_it_was_told(client: FilaClient) -> None:
    now_s = asyncio.get_running_loop().time
    began_s = now_s()

    async for _ in client.consume("orders", stop_when_idle_s=0.1):
        pass

    assert now_s() - began_s >= 0.1


async def test_several_tasks_share_a_consumer(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 30)
    consumer = client.consume("orders", prefetch=5)
    got: list[bytes] = []

    async def work() -> None:
        async for msg in consumer:
            got.append(msg.payload)
            await msg.ack()

    async with drained(broker, consumer):
        await asyncio.gather(work(), work(), work())

    assert sorted(got) == sorted(b"%d" % i for i in range(30))


async def test_one_task_leaving_does_not_end_the_others_loops(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 10)
    consumer = client.consume("orders")
    staying = aiter(consumer)
    await (await anext(staying)).ack()

    async for msg in consumer:
        await msg.ack()
        break
    await asyncio.sleep(0.01)

    assert (await anext(staying)).payload == b"2"
    assert broker.calls.count("ConsumeSession") == 1


async def test_what_was_prefetched_and_not_handed_out_goes_back(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 20)
    orders = broker.queues["orders"]

    async for msg in client.consume("orders"):
        await msg.ack()
        break

    await until(lambda: not orders.leased)
    assert len(orders.ready) == 19
    assert not orders.nacks, "going back is no failure"


async def test_a_message_taken_out_of_the_loop_can_still_be_acked(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 20)
    orders = broker.queues["orders"]
    async for msg in client.consume("orders"):
        taken = msg
        break
    await asyncio.sleep(0.02)

    await taken.ack()

    await until(lambda: not orders.leased)
    assert taken.id not in [message.id for message in orders.ready]


async def test_what_is_never_settled_goes_back_when_its_lease_ends(
    broker: FakeBroker, client: FilaClient
) -> None:
    orders = broker.queues["orders"]
    orders.config.visibility_timeout_ms = 1000
    broker.grace_s = 0.1
    await fill(client, 3)

    async for _ in client.consume("orders", prefetch=3):
        break
    await until(lambda: len(orders.leased) == 1)  # the others went back at once

    await until(lambda: len(orders.ready) == 3)


async def test_closing_the_client_gives_everything_back(broker: FakeBroker) -> None:
    orders = broker.queues["orders"]
    client = await FilaClient.connect(broker.address)
    await fill(client, 5)
    messages = aiter(client.consume("orders"))
    first = await anext(messages)

    await client.close()

    assert len(orders.ready) == 5
    with pytest.raises(ClientClosed):
        await anext(messages)
    with pytest.raises(ClientClosed):
        await first.ack()


async def test_a_closed_consumer_ends_its_loops(client: FilaClient) -> None:
    consumer = client.consume("orders")

    async def work() -> str:
        async for _ in consumer:
            pass
        return "over"

    loop = asyncio.create_task(work())
    await asyncio.sleep(0.02)
    consumer.close()

    assert await loop == "over"
    with pytest.raises(ClientClosed):
        await anext(aiter(consumer))


async def test_a_missing_queue_reaches_the_loop(client: FilaClient) -> None:
    with pytest.raises(QueueNotFound) as failed:
        async for _ in client.consume("order"):
            pass

    assert failed.value.queue == "order"


async def test_a_queue_deleted_under_a_consumer_reaches_the_loop(
    broker: FakeBroker, client: FilaClient
) -> None:
    async def consume() -> None:
        async for _ in client.consume("orders"):
            pass

    loop = asyncio.create_task(consume())
    await until(lambda: broker.tracked)
    await client.delete_queue("orders")

    with pytest.raises(QueueNotFound, match="was deleted"):
        await loop


async def test_a_broken_stream_is_reopened_and_what_was_prefetched_stays_good(
    broker: FakeBroker, client: FilaClient
) -> None:
    # What is on the wire when it is cut comes again when its lease ends.
    broker.queues["orders"].config.visibility_timeout_ms = 1000
    await fill(client, 10)
    got: set[bytes] = set()

    async for msg in client.consume("orders", prefetch=4):
        if len(got) == 2:
            broker.break_connections()
        got.add(msg.payload)
        await msg.ack()
        if len(got) == 10:
            break

    assert broker.calls.count("ConsumeSession") >= 2
    assert not broker.queues["orders"].leased


async def test_a_consumer_outlives_its_brokers_restart(broker: FakeBroker, client: FilaClient) -> None:
    got = []

    async def consume() -> None:
        async for msg in client.consume("orders"):
            got.append(msg.payload)
            await msg.ack()

    loop = asyncio.create_task(consume())
    await asyncio.sleep(0.02)
    await broker.stop()
    await asyncio.sleep(0.02)
    await broker.start()
    await client.enqueue("orders", b"after")

    await until(lambda: got == [b"after"])
    loop.cancel()


async def test_a_consumer_gives_up_when_it_was_told_how_long_to_try(broker: FakeBroker) -> None:
    async with FilaClient.connect(broker.address, reconnect_for_s=0.05, backoff=QUICK_BACKOFF) as client:
        messages = aiter(client.consume("orders"))
        waiting = asyncio.ensure_future(anext(messages))
        await asyncio.sleep(0.02)
        await broker.stop()

        with pytest.raises(Unavailable):
            await waiting
        await broker.start()


async def test_a_consumer_has_all_its_time_to_reconnect_after_each_loss(broker: FakeBroker) -> None:
    clock = ManualClock()
    async with FilaClient.connect(broker.address, reconnect_for_s=5.0, clock=clock) as client:
        messages = aiter(client.consume("orders"))
        broker.store("orders", service_pb2.EnqueueMessage(payload=b"before"))
        await (await anext(messages)).ack()
        clock.advance(60.0)

        broker.break_connections()
        broker.store("orders", service_pb2.EnqueueMessage(payload=b"after"))

        assert (await anext(messages)).payload == b"after"


async def test_a_message_that_waited_past_its_lease_is_not_handed_out(broker: FakeBroker) -> None:
    clock = ManualClock()
    broker.renewal_ms = 0  # the bare visibility timeout, 30 s
    orders = broker.queues["orders"]
    async with FilaClient.connect(broker.address, clock=clock) as client:
        await fill(client, 3)
        got = []
        async for msg in client.consume("orders", prefetch=3):
            got.append(msg.payload)
            msg.ack()
            if len(got) == 1:
                await until(lambda: len(orders.leased) == 2)
                clock.advance(31)  # by now the others are somebody else's
                await client.enqueue("orders", b"fresh")
            else:
                break

    assert got == [b"0", b"fresh"]


async def test_extending_keeps_a_message(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 1)

    async for msg in client.consume("orders"):
        expires_at = await msg.extend(60_000)
        assert expires_at.timestamp() == 1_000_060
        await msg.ack()
        with pytest.raises(LeaseLost):
            await msg.extend(60_000)
        break

    assert broker.extends == [60_000]


async def test_pulling_returns_what_is_ready(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 5)

    first = await client.lease("orders", 3)
    rest = await client.lease("orders", 10)
    none = await client.lease("orders", 10)

    assert [len(first), len(rest), len(none)] == [3, 2, 0]
    await client.ack_many([*first, *rest])
    assert broker.settle_calls == [5], "one call for all of one queue and channel"
    assert not broker.queues["orders"].leased


async def test_pulling_waits_for_the_first(client: FilaClient) -> None:
    pull = asyncio.create_task(client.lease("orders", wait_ms=2000))
    await asyncio.sleep(0.02)
    await client.enqueue("orders", b"x")

    assert [message.payload for message in await pull] == [b"x"]


async def test_a_message_shows_what_it_carries(client: FilaClient) -> None:
    await client.enqueue("orders", b"pay", {"tenant": "acme"})

    (msg,) = await client.lease("orders")

    assert isinstance(msg, Message)
    assert (msg.queue, msg.channel, msg.offset, msg.fairness_key) == ("orders", "default", 1, "acme")
    assert (msg.attempt_count, msg.throttle_keys, msg.dead_letter) == (0, (), None)
    assert msg.leased_at.timestamp() == 1_000_000
    assert msg.lease_expires_at.timestamp() == 1_000_030
    assert "orders" in repr(msg)
    await msg.ack()


async def test_prefetch_below_one_is_refused_at_once(client: FilaClient) -> None:
    with pytest.raises(ValueError, match="prefetch must be at least 1, got 0"):
        client.consume("orders", prefetch=0)
