"""A consumer's session: what it says is begun, when it hands out nothing, what it gives back, and how it resumes."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import Any

import pytest

from fila import ConnectionEvent, FilaClient
from fila.connection import write
from tests.sdk.conftest import (
    QUICK_BACKOFF,
    SETTLE_TIMEOUT_S,
    ManualClock,
    Watched,
    begun,
    drained,
    fill,
    said,
    until,
)
from tests.sdk.fake_broker import FakeBroker
from tests.sdk.fake_session import FakeSession


def session(broker: FakeBroker) -> FakeSession:
    (only,) = broker.tracked.values()
    return only


# Begun.


async def test_a_slow_first_delivery_is_declared_and_a_quick_one_is_not(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 30)

    count = 0
    async for msg in client.consume("orders"):
        count += 1
        if count == 30:
            await until(lambda: msg.lease_id in begun(broker))  # noqa: B023 - awaited at once
            await msg.ack()
            break
        await msg.ack()

    assert len(begun(broker)) < 15, "settling says it"


DIES_AT_ONCE = """
import asyncio, os, sys
from fila import FilaClient

async def main():
    client = await FilaClient.connect(sys.argv[1])
    async for msg in client.consume("orders"):
        os._exit(9)

asyncio.run(main())
"""

DIES_AT_ONCE_IN_A_THREAD = """
import os, sys
from fila.sync import FilaClient

for msg in FilaClient.connect(sys.argv[1]).consume("orders"):
    os._exit(9)
"""


@pytest.mark.parametrize("program", [DIES_AT_ONCE, DIES_AT_ONCE_IN_A_THREAD])
async def test_a_message_that_came_back_and_kills_its_worker_in_the_first_statement_counts(
    broker: FakeBroker, client: FilaClient, program: str
) -> None:
    broker.grace_s = 0.0
    orders = broker.queues["orders"]
    await fill(client, 1)
    (msg,) = await client.lease("orders")
    await msg.release()

    dying = await asyncio.create_subprocess_exec(sys.executable, "-c", program, broker.address)

    assert await dying.wait() == 9
    await until(lambda: orders.attempts)
    assert [*orders.attempts.values()] == [1]


async def test_only_what_came_back_of_a_batch_is_declared_first(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 5)
    pulled = await client.lease("orders", 2)
    await asyncio.gather(*(msg.release() for msg in pulled))
    queue = broker.queues["orders"]
    unseen = queue.ready[2]
    queue.came_back[unseen.id] = False

    async for batch in client.consume("orders", prefetch=5).batches():
        came_back = {msg.id for msg in batch if msg.came_back}
        redelivered = {msg.id for msg in batch if msg.redelivered}
        await until(lambda: begun(broker))
        assert (came_back, redelivered) == ({unseen.id}, {msg.id for msg in pulled})
        declared = {msg.lease_id for msg in batch if msg.id in came_back | redelivered}
        # On a slow machine the others have been in hand for so long by now that they are declared, too.
        first = said(broker, "begun")[0]
        assert (len(batch), set(first.lease_ids)) == (5, declared)
        await client.ack_many(batch)
        break


# The window.


async def test_behind_a_slow_handler_nothing_lies_buffered_and_what_did_counts_no_attempt(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 5)
    orders = broker.queues["orders"]
    got = []

    consumer = client.consume("orders")
    async with drained(broker, consumer):
        async for msg in consumer:
            got.append(msg.payload)
            await until(lambda: len(orders.leased) == 1)
            await asyncio.sleep(0.06)
            await msg.ack()

    assert got == [b"%d" % i for i in range(5)], "what went back kept its place"
    assert not orders.attempts
    first = said(broker, "window")[0]
    assert (first.size, len(first.give_back)) == (1, 1)


async def test_a_loop_that_acks_first_and_works_afterwards_makes_no_room_by_its_ack(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 5)
    waiting: list[int] = []

    consumer = client.consume("orders")
    async with drained(broker, consumer):
        async for msg in consumer:
            await msg.ack()
            if not waiting:
                await until(lambda: broker.queues["orders"].returned)
            await asyncio.sleep(0.06)
            waiting.append(len(broker.queues["orders"].leased))

    assert waiting == [0] * 5, "what lay in the buffer went back, and nothing came behind a later ack"
    assert len(broker.queues["orders"].returned) == 1


async def test_a_fixed_prefetch_never_speaks_of_windows(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 10)

    async for msg in client.consume("orders", prefetch=4):
        await until(lambda: len(broker.queues["orders"].leased) == 4)
        await asyncio.sleep(0.06)
        assert len(broker.queues["orders"].leased) == 4
        await msg.ack()
        break

    assert said(broker, "open")[0].max_in_flight == 4
    await until(lambda: said(broker, "close"))
    assert {frame.size for frame in said(broker, "window")} == {0}, "only when it leaves"


async def test_two_consumers_share_slow_work(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 20)
    counts, shared = [0, 0], [0, 0]
    consumers = [client.consume("orders") for _ in counts]

    async def work(worker: int) -> None:
        async for msg in consumers[worker]:
            counts[worker] += 1
            shared[worker] += min(counts) > 0  # how long the second takes to open is no part of it
            await asyncio.sleep(0.051)
            await msg.ack()

    async with drained(broker, *consumers):
        first = asyncio.create_task(work(0))
        await until(lambda: counts[0])
        await asyncio.gather(first, work(1))

    assert sum(counts) == 20
    assert min(shared) >= sum(shared) // 2 - 2
    assert counts[1] > 1


async def test_a_loop_that_starts_tasks_is_not_held_up(broker: FakeBroker, client: FilaClient) -> None:
    await fill(client, 40)
    running: set[asyncio.Task[None]] = set()
    all_run = asyncio.Event()

    async def handle(msg: Any) -> None:
        await all_run.wait()
        await msg.ack()

    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        async for msg in client.consume("orders"):
            running.add(asyncio.create_task(handle(msg)))
            if len(running) == 40:
                break
    all_run.set()
    await asyncio.gather(*running)

    assert len(broker.acked) == 40


# Alive.


async def test_nothing_is_handed_out_while_the_broker_does_not_answer(broker: FakeBroker) -> None:
    clock = ManualClock()
    orders = broker.queues["orders"]
    orders.config.visibility_timeout_ms = 1000
    async with FilaClient.connect(broker.address, clock=clock) as client:
        await fill(client, 3)
        messages = aiter(client.consume("orders", prefetch=3))
        await (await anext(messages)).ack()
        await until(lambda: len(orders.leased) == 2)
        broker.silent = True
        clock.advance(1.0)

        waiting = asyncio.ensure_future(anext(messages))
        await until(lambda: said(broker, "alive"))  # it asks
        assert not waiting.done()

        broker.silent = False
        assert (await waiting).payload == b"1"


async def test_alive_reports_how_long_messages_take(broker: FakeBroker, client: FilaClient) -> None:
    broker.queues["orders"].config.visibility_timeout_ms = 1000
    await fill(client, 3)

    took_us: list[float] = []
    async for msg in client.consume("orders"):
        began_s = time.monotonic()
        await asyncio.sleep(0.02)
        await msg.ack()
        took_us.append((time.monotonic() - began_s) * 1e6)
        if len(took_us) == 3:
            await until(lambda: len(said(broker, "alive")) > 1 and said(broker, "alive")[-1].handling_time_us)
            break

    assert [frame.sequence for frame in said(broker, "alive")][:2] == [1, 2]
    assert 20_000 <= said(broker, "alive")[-1].handling_time_us < max(took_us) + 100_000


# Revoked.


async def test_revoked_messages_are_dropped_and_the_program_is_told_of_those_it_has(
    broker: FakeBroker, client: FilaClient
) -> None:
    await fill(client, 3)
    orders = broker.queues["orders"]
    told: list[str] = []

    async for msg in client.consume("orders", prefetch=3):
        if told:
            assert msg.payload == b"fresh", "of the others none is handed out"
            break
        assert msg.lost == ""
        msg.on_lost(lambda: told.append("lost"))
        await until(lambda: len(orders.leased) == 3)
        mine = session(broker)
        orders.leased.clear()
        mine.revoke(mine.leases, "SEEK")
        await until(lambda: told)
        assert msg.lost == "SEEK"
        msg.on_lost(lambda: told.append("asked late"))
        await client.enqueue("orders", b"fresh")

    assert told == ["lost", "asked late"]


# A broken connection.


async def test_a_short_break_costs_nothing(broker: FakeBroker, watched: Watched) -> None:
    await fill(watched.client, 4)
    orders = broker.queues["orders"]
    got = []

    consumer = watched.client.consume("orders", prefetch=3)
    async with drained(broker, consumer):
        async for msg in consumer:
            got.append(msg.payload)
            if msg.payload == b"0":
                await until(lambda: len(orders.leased) == 3)
                held = {*orders.leased}
                broker.break_connections()
                await until(lambda: len(said(broker, "open")) == 2)
                resume = said(broker, "open")[1].resume
                assert (resume.consumer_id, set(resume.lease_ids)) == (1, held)
            await msg.ack()

    assert got == [b"0", b"1", b"2", b"3"]
    assert not orders.attempts
    assert not orders.returned
    assert len(broker.acked) == 4


async def test_a_resume_names_what_is_being_settled(broker: FakeBroker, watched: Watched) -> None:
    await fill(watched.client, 1)
    async for msg in watched.client.consume("orders"):
        broker.answering.clear()
        ack = msg.ack()
        await until(lambda: broker.settle_frames)
        broker.break_connections()
        await until(lambda: len(said(broker, "open")) == 2)
        broker.answering.set()
        await ack
        break

    assert said(broker, "open")[1].resume.lease_ids == [msg.lease_id]
    assert len(broker.acked) == 1
    assert not broker.queues["orders"].returned


async def test_a_resume_that_cannot_name_all_leaves_out_what_is_being_settled(
    broker: FakeBroker, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a full window it would be more than the broker takes, which would refuse the session for good."""
    monkeypatch.setattr("fila.session.FRAME_LEASES_MAX", 4)
    await fill(watched.client, 5)
    orders = broker.queues["orders"]
    async for msg in watched.client.consume("orders", prefetch=5):
        await until(lambda: len(orders.leased) == 5)
        held = {*orders.leased} - {msg.lease_id}
        broker.answering.clear()
        ack = msg.ack()
        await until(lambda: broker.settle_frames)
        broker.break_connections()
        await until(lambda: len(said(broker, "open")) == 2)
        broker.answering.set()
        await ack  # repeated: that its lease is gone says that it was settled, or as good as
        break

    assert {*said(broker, "open")[1].resume.lease_ids} == held


async def test_the_first_word_on_a_new_stream_is_open_whatever_is_said_meanwhile(
    broker: FakeBroker, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer declares what is in hand; it may fire as the stream is opened anew."""
    await fill(watched.client, 2)
    consumer = watched.client.consume("orders", prefetch=2)
    in_hand: list[Any] = []

    async def write_late(stream: Any, request: Any) -> None:
        if in_hand:
            assert consumer._session is not None
            consumer._session._begun._post([in_hand[0].lease_id])
            await consumer._session._writer.posted()
        await write(stream, request)

    monkeypatch.setattr("fila.session.write", write_late)
    async for msg in consumer:
        if not in_hand:
            in_hand.append(msg)
            broker.break_connections()
            await until(lambda: len(watched.events) == 2)
        await msg.ack()
        if msg is not in_hand[0]:
            break

    assert [event.kind for event in watched.events] == ["lost", "back"]
    assert len(broker.acked) == 2


async def test_what_a_resume_did_not_save_is_told(broker: FakeBroker, watched: Watched) -> None:
    await fill(watched.client, 2)
    orders = broker.queues["orders"]
    async for msg in watched.client.consume("orders", prefetch=2):
        await until(lambda: len(orders.leased) == 2)
        broker.tracked.clear()  # as if the grace had passed
        orders.leased.clear()
        broker.break_connections()
        await until(lambda: msg.lost)  # noqa: B023 - awaited at once
        break

    assert msg.lost == "LEASE_LOST"
    assert [event.kind for event in watched.events] == ["lost", "back"]
    assert watched.events[1].leases_lost == 2


async def test_a_break_is_told_both_ways(
    broker: FakeBroker, watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "fila")
    await fill(watched.client, 1)

    async for msg in watched.client.consume("orders"):
        began_s = time.monotonic()
        broker.break_connections()
        await until(lambda: len(watched.events) == 2)
        took_s = time.monotonic() - began_s
        await msg.ack()
        break

    lost, back = watched.events
    assert (lost.kind, lost.queue, back.kind) == ("lost", "orders", "back")
    assert 0 < back.outage_s <= took_s
    assert "lost its stream" in caplog.text
    assert "has its stream back" in caplog.text


async def test_a_program_that_fails_to_listen_does_not_end_the_stream(broker: FakeBroker) -> None:
    def fail(event: ConnectionEvent) -> None:
        raise RuntimeError(event.kind)

    async with FilaClient.connect(broker.address, backoff=QUICK_BACKOFF, on_connection=fail) as client:
        await fill(client, 1)
        async for msg in client.consume("orders"):
            broker.break_connections()
            await until(lambda: len(said(broker, "open")) == 2)
            await msg.ack()
            break
