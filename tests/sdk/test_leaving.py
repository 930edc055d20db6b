"""A consumer that leaves: what goes back, and what it says of it; older brokers; threads."""

from __future__ import annotations

import threading

import pytest

import fila.sync
from fila import FilaClient, NotSupported
from fila.v1.service_pb2 import ConsumeSessionRequest
from tests.sdk.conftest import Watched, begun, drained, fill, said, until
from tests.sdk.fake_broker import FakeBroker
from tests.waiting import until as wait_until

# Leaving.


async def test_leaving_gives_the_buffer_back_at_once_and_keeps_what_is_in_hand(
    broker: FakeBroker, client: FilaClient
) -> None:
    orders = broker.queues["orders"]
    orders.config.visibility_timeout_ms = 1000
    await fill(client, 5)
    async for msg in client.consume("orders", prefetch=5):
        await until(lambda: len(orders.leased) == 5)
        taken = msg
        break

    await until(lambda: len(orders.ready) == 4)
    assert [*orders.leased] == [taken.lease_id]
    await until(lambda: said(broker, "alive"))  # the broker keeps what a living session has in hand
    await taken.ack()

    await until(lambda: said(broker, "close"))
    assert not orders.attempts


async def test_a_client_that_is_closed_gives_back_what_is_in_hand_uncounted(broker: FakeBroker) -> None:
    orders = broker.queues["orders"]
    async with FilaClient.connect(broker.address) as client:
        await fill(client, 1)
        await anext(aiter(client.consume("orders")))

    assert said(broker, "close")[-1].release
    assert (len(orders.ready), orders.attempts) == (1, {})


async def test_an_error_that_closes_the_client_is_no_reason_to_release_what_was_in_hand(
    broker: FakeBroker,
) -> None:
    broker.grace_s = 0.1
    orders = broker.queues["orders"]

    async def work() -> None:
        async with FilaClient.connect(broker.address) as client:
            await fill(client, 1)
            async for msg in client.consume("orders"):
                await until(lambda: msg.lease_id in begun(broker))  # noqa: B023 - awaited at once
                raise RuntimeError("poison")

    with pytest.raises(RuntimeError):
        await work()

    assert not said(broker, "close"), "it broke off, as if the process had ended"
    await until(lambda: orders.attempts)
    assert [*orders.attempts.values()] == [1]


async def test_a_released_message_keeps_its_place_and_a_rejected_one_is_dead(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 3)
    orders = broker.queues["orders"]
    got = []

    consumer = client.consume("orders")
    async with drained(broker, consumer):
        async for msg in consumer:
            got.append(msg.payload)
            if len(got) == 1:
                await msg.release()
            elif msg.payload == b"1":
                await msg.reject("cannot be read")
            else:
                await msg.ack()

    assert got == [b"0", b"0", b"1", b"2"] or sorted(got) == [b"0", b"0", b"1", b"2"]
    assert (orders.attempts, [error for _, error in orders.dead]) == ({}, ["cannot be read"])


async def test_pulled_messages_are_released_and_rejected_too(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 3)
    first, second, third = await client.lease("orders", 3)

    await first.release()
    await client.reject("orders", second.id, "no")
    await client.release("orders", third.id)

    orders = broker.queues["orders"]
    assert [message.payload for message in orders.ready] == [b"0", b"2"]
    assert (orders.dead, orders.attempts) == ([(second.id, "no")], {})


# What is asked for, and older brokers.


async def test_a_consumer_asks_for_what_it_was_given(broker: FakeBroker, watched: Watched) -> None:
    await fill(watched.client, 2)
    consumers = [
        watched.client.consume("orders"),
        watched.client.consume("orders", name="mine", max_lease_renewal_ms=60_000),
    ]
    for consumer in consumers:
        async for msg in consumer:
            await msg.ack()
            break

    first, second = said(broker, "open")
    assert (first.tracks_begun, first.name, first.max_in_flight) == (True, "worker-1", 2)
    assert not first.HasField("max_lease_renewal_ms")
    assert (second.name, second.max_lease_renewal_ms) == ("mine", 60_000)


async def test_a_broker_that_knows_none_of_this_is_consumed_from_as_before(
    broker: FakeBroker, client: FilaClient
) -> None:
    broker.old = True
    await fill(client, 20)
    got = []

    consumer = client.consume("orders")
    async with drained(broker, consumer):
        async for msg in consumer:
            got.append(msg.payload)
            if len(got) == 1:
                with pytest.raises(NotSupported, match="older"):
                    msg.release()
            await msg.ack()

    assert sorted(got) == sorted(b"%d" % i for i in range(20))
    assert [frame.max_in_flight for frame in said(broker, "open")] == [2, 256]
    kinds = {frame.WhichOneof("request") for frame in broker.frames}
    assert kinds == {"open", "close"}
    assert not broker.queues["orders"].attempts


# Threads.


def test_a_thread_takes_from_the_buffer_and_declares_what_came_back(broker_thread: FakeBroker) -> None:
    orders = broker_thread.queues["orders"]
    came_back = set()
    with fila.sync.FilaClient.connect(broker_thread.address) as client:
        client.enqueue_many("orders", [b"%d" % i for i in range(50)])
        for msg in client.lease("orders", 5):
            msg.nack("again", delay_ms=0)
        got = []
        for msg in client.consume("orders", prefetch=10):
            if msg.redelivered:
                came_back.add(msg.lease_id)
            got.append(msg.payload)
            msg.ack()
            if len(got) == 50:
                break

    assert len(came_back) == 5
    assert came_back <= begun(broker_thread)
    assert sorted(got) == sorted(b"%d" % i for i in range(50))
    assert not orders.leased


def test_a_thread_with_slow_work_holds_one_message(broker_thread: FakeBroker) -> None:
    orders = broker_thread.queues["orders"]
    with fila.sync.FilaClient.connect(broker_thread.address) as client:
        client.enqueue_many("orders", [b"%d" % i for i in range(5)])
        for count, msg in enumerate(client.consume("orders"), 1):
            wait_until(lambda: len(orders.leased) == 1)
            threading.Event().wait(0.06)
            assert len(orders.leased) == 1
            msg.ack()
            if count == 5:
                break

    assert not orders.attempts


def test_every_frame_the_sdk_may_send_has_its_place_in_the_fake() -> None:
    kinds = {field.name for field in ConsumeSessionRequest.DESCRIPTOR.oneofs_by_name["request"].fields}
    assert kinds == {"open", "credit", "ack", "nack", "extend", "close", "begun", "window", "alive"}
