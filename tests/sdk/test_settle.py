"""Acks and nacks: how they gather, what they name, and what their callers learn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from fila import ClientClosed, FilaClient, LeaseLost, MessageNotFound, QueueNotFound, SomeFailed
from tests.sdk.conftest import until
from tests.sdk.fake_broker import FakeBroker


async def fill(client: FilaClient, count: int) -> None:
    await client.enqueue_many("orders", [b"%d" % i for i in range(count)])


async def test_acks_of_one_turn_of_the_loop_leave_as_one_frame(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 100)

    async for batch in client.consume("orders", prefetch=100).batches():
        await asyncio.gather(*(msg.ack() for msg in batch))
        break

    assert broker.settle_frames == [100]


async def test_acks_gather_while_frames_are_unanswered(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 50)
    broker.answering.set()
    acks: list[Awaitable[None]] = []
    async for msg in client.consume("orders", prefetch=50):
        if not acks:
            broker.answering.clear()
        acks.append(msg.ack())
        await asyncio.sleep(0.001)
        if len(acks) == 50:
            break
    broker.answering.set()
    for ack in acks:
        await ack

    assert len(broker.settle_frames) <= 6, "four in flight, and what gathered meanwhile"
    assert sum(broker.settle_frames) == 50


async def test_no_more_than_two_frames_of_many_leases_are_unanswered(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 500)
    acks: list[Awaitable[None]] = []
    broker.answering.clear()

    def two_frames_or_all_are_sent() -> bool:
        sent = sum(len(settler._in_flight) for settler in client._settlers)
        return sent >= min(2, len(acks) // 100)

    async for batch in client.consume("orders", prefetch=500).batches(max_messages=100):
        acks += [msg.ack() for msg in batch]
        await until(two_frames_or_all_are_sent)
        await asyncio.sleep(0.001)
        if len(acks) == 500:
            break
    broker.answering.set()
    for ack in acks:
        await ack

    assert broker.settle_frames == [100, 100, 300]


async def test_an_ack_resolves_only_when_the_broker_has_answered(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 1)
    async for msg in client.consume("orders"):
        broker.answering.clear()
        ack = asyncio.ensure_future(msg.ack())
        await asyncio.sleep(0.02)
        assert not ack.done()

        broker.answering.set()
        await ack
        break


async def test_an_ack_by_id_names_the_lease_the_message_was_delivered_under(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 1)
    orders = broker.queues["orders"]
    async for msg in client.consume("orders"):
        # The lease expires unseen, and the message is delivered to somebody else.
        expired = orders.leased.pop(msg.lease_id)
        orders.leased[999] = expired

        with pytest.raises(LeaseLost) as failed:
            await client.ack("orders", msg.id)

        assert (failed.value.message_id, failed.value.lease_id) == (msg.id, msg.lease_id)
        assert 999 in orders.leased, "the other holder's"
        break


async def test_an_ack_by_id_of_a_pulled_message_names_its_lease_too(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 1)
    (msg,) = await client.lease("orders")
    orders = broker.queues["orders"]
    orders.leased[999] = orders.leased.pop(msg.lease_id)

    with pytest.raises(LeaseLost):
        await client.ack("orders", msg.id)


async def test_an_ack_by_id_after_the_loop_still_names_its_lease(
    broker: FakeBroker, client: FilaClient
) -> None:
    orders = broker.queues["orders"]
    orders.config.visibility_timeout_ms = 1000
    await fill(client, 2)
    taken = []
    async for msg in client.consume("orders"):
        taken.append(msg)
        if len(taken) == 2:
            break
    await taken[0].ack()
    await until(lambda: not client._sessions)  # it waited a second for the other
    orders.leased[999] = orders.leased.pop(taken[1].lease_id)

    with pytest.raises(LeaseLost):
        await client.ack("orders", taken[1].id)
    assert 999 in orders.leased, "the other holder's"


async def test_an_id_this_client_never_saw_settles_what_is_leased(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 1)
    (message,) = broker.deliver(broker.queues["orders"], 1)

    await client.ack("orders", message.id)

    assert not broker.queues["orders"].leased
    with pytest.raises(MessageNotFound) as failed:
        await client.ack("orders", message.id)
    assert failed.value.message_id == message.id


async def test_a_nack_tells_why_and_when(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 3)
    seen = 0
    async for msg in client.consume("orders"):
        seen += 1
        if msg.attempt_count:
            await msg.ack()
            if seen == 6:
                break
        elif msg.offset == 1:
            await msg.nack("printer on fire", delay_ms=0)
        elif msg.offset == 2:
            await msg.nack("out of paper")
        else:
            await client.nack("orders", msg.id, "again", 5)

    ids = [message.id for message in broker.queues["orders"].log]
    assert broker.queues["orders"].nacks == [
        (ids[0], "printer on fire", 0),
        (ids[1], "out of paper", None),
        (ids[2], "again", 5),
    ]
    assert seen == 6


async def test_a_providers_refusal_travels_with_its_nack(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 1)
    async for msg in client.consume("orders"):
        await msg.limited(retry_after_s=0.05, limit="openai", error="429")
        break

    ((_, error, delay_ms),) = broker.queues["orders"].nacks
    assert (error, delay_ms) == ("429", 50)
    (feedback,) = broker.queues["orders"].feedback
    assert (feedback.limit, feedback.kind, feedback.retry_after_ms) == ("openai", feedback.KIND_LIMITED, 50)


@pytest.mark.parametrize(
    ("retry_after_s", "wrong"),
    [(-1, ValueError), (float("nan"), ValueError), ("30", TypeError), (True, TypeError)],
)
async def test_what_is_no_time_is_refused_before_anything_is_sent(
    broker: FakeBroker, client: FilaClient, retry_after_s: Any, wrong: type[Exception]
) -> None:
    await fill(client, 1)
    async for msg in client.consume("orders"):
        with pytest.raises(wrong, match="retry_after must be"):
            msg.limited(retry_after_s)
        await msg.ack()
        break
    assert broker.queues["orders"].nacks == []


async def test_many_that_fail_alike_leave_together(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 10)
    messages = await client.lease("orders", 10)

    await client.nack_many(messages[:6], "down", 1000)
    await client.ack_many(messages[6:])

    assert broker.settle_calls == [6, 4]


async def test_of_many_the_refused_ones_are_told(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 3)
    messages = await client.lease("orders", 3)
    del broker.queues["orders"].leased[messages[1].lease_id]

    with pytest.raises(SomeFailed) as failed:
        await client.ack_many(messages)

    assert list(failed.value.failures) == [1]
    assert isinstance(failed.value.failures[1], MessageNotFound)


@pytest.mark.parametrize("refused_as", ["MESSAGE_NOT_FOUND", "LEASE_LOST"])
async def test_an_ack_whose_answer_was_lost_is_repeated_and_finds_its_work_done(
    broker: FakeBroker, client: FilaClient, refused_as: str
) -> None:
    await fill(client, 1)
    orders = broker.queues["orders"]
    async for msg in client.consume("orders"):
        broker.answering.clear()
        ack = asyncio.ensure_future(msg.ack())
        await until(lambda: broker.settle_frames)
        done = orders.leased.pop(msg.lease_id)  # it did its work
        if refused_as == "LEASE_LOST":
            orders.leased[0] = done  # the fake's way of knowing the message still
        broker.break_connections()  # and the answer got lost
        broker.answering.set()

        await ack
        break


async def test_a_refusal_nobody_awaits_is_logged(
    broker: FakeBroker, client: FilaClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fila")
    await fill(client, 1)
    (msg,) = await client.lease("orders")
    broker.queues["orders"].leased.clear()

    msg.ack()

    await until(lambda: "nobody awaited it" in caplog.text)


async def test_a_cancelled_wait_does_not_take_the_ack_back(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 2)
    one, two = await client.lease("orders", 2)
    broker.answering.clear()
    waits = [asyncio.ensure_future(one.ack()), asyncio.ensure_future(two.ack())]
    await until(lambda: broker.settle_calls)

    waits[0].cancel()
    broker.answering.set()
    await waits[1]

    assert not broker.queues["orders"].leased


async def test_a_missing_queue_fails_the_ack(client: FilaClient) -> None:
    with pytest.raises(QueueNotFound) as failed:
        await client.ack("order", "00000000-0000-7000-8000-000000000001")

    assert failed.value.queue == "order"


async def test_closing_sends_the_acks_that_nobody_awaited(broker: FakeBroker) -> None:
    client = await FilaClient.connect(broker.address)
    await fill(client, 3)
    for msg in await client.lease("orders", 3):
        msg.ack()

    await client.close()

    assert not broker.queues["orders"].leased
    with pytest.raises(ClientClosed):
        msg.ack()


async def test_a_negative_delay_is_refused_at_once(client: FilaClient) -> None:
    await fill(client, 1)
    (msg,) = await client.lease("orders")

    with pytest.raises(ValueError, match="delay_ms must be from 0 to 18446744073709551615, got -1"):
        msg.nack("x", delay_ms=-1)
