"""The Python SDK against a real server: what the fake of tests/sdk promises must be true here."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import fila.sync
from fila import (
    AnswerLost,
    Backoff,
    FilaClient,
    FilaError,
    Invalid,
    LeaseLost,
    LimitExceeded,
    MessageNotFound,
    NewMessage,
    Overloaded,
    QueueExists,
    QueueNotFound,
    SomeFailed,
)
from tests.e2e.conftest import RunningServer, StartServer
from tests.ports import KeptPort

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

QUICK_BACKOFF = Backoff(base_s=0.01, cap_s=0.1, randomness=random.Random(1))
SETTLE_TIMEOUT_S = 30.0
README = Path(__file__).parents[2] / "sdks/python/README.md"


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[FilaClient]:
    async with FilaClient.connect(server.addresses["grpc"], backoff=QUICK_BACKOFF) as client:
        yield client


async def settled_at(client: FilaClient, queue: str, depth: int, in_flight: int = 0) -> None:
    """Return when a queue's numbers are these."""
    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        while True:
            stats = await client.get_stats(queue)
            if (stats.depth, stats.in_flight) == (depth, in_flight):
                return
            await asyncio.sleep(0.01)


async def is_empty(client: FilaClient, queue: str) -> bool:
    stats = await client.get_stats(queue)
    return (stats.depth, stats.in_flight) == (0, 0)


async def test_what_is_enqueued_is_consumed_and_acked(client: FilaClient, queue: str) -> None:
    message_id = await client.enqueue(queue, headers={"tenant": "acme"}, payload=b"hello")

    async for msg in client.consume(queue):
        assert (msg.id, msg.payload, msg.headers) == (message_id, b"hello", {"tenant": "acme"})
        assert (msg.queue, msg.channel, msg.attempt_count, msg.offset) == (queue, "default", 0, 1)
        assert msg.lease_expires_at > msg.leased_at >= msg.enqueued_at
        await client.ack(queue, msg.id)
        break

    await settled_at(client, queue, 0)
    with pytest.raises(MessageNotFound):
        await client.ack(queue, message_id)


async def test_many_go_through_in_order_and_only_once(client: FilaClient, queue: str) -> None:
    ids = await client.enqueue_many(
        queue, (NewMessage(payload=b"%d" % i, headers={"tenant": "acme"}) for i in range(5000))
    )
    got = []
    async for batch in client.consume(queue, prefetch=1000).batches():
        got += [msg.id for msg in batch]
        await client.ack_many(batch)
        if len(got) >= len(ids):
            break

    assert got == ids
    await settled_at(client, queue, 0)


async def test_many_callers_and_many_workers_share_a_client(client: FilaClient, queue: str) -> None:
    async def produce(name: int) -> None:
        for i in range(50):
            await client.enqueue(queue, b"%d-%d" % (name, i))

    consumer = client.consume(queue, prefetch=20)
    got: list[bytes] = []
    acked = 0

    async def work() -> None:
        nonlocal acked
        async for msg in consumer:
            got.append(msg.payload)
            await msg.ack()
            acked += 1
            if acked == 500:
                consumer.close()

    await asyncio.gather(*(produce(name) for name in range(10)), *(work() for _ in range(5)))

    assert sorted(got) == sorted(b"%d-%d" % (name, i) for name in range(10) for i in range(50))
    await settled_at(client, queue, 0)


async def test_leaving_a_loop_gives_back_what_was_not_handed_out(client: FilaClient, queue: str) -> None:
    await client.enqueue_many(queue, [b"x"] * 100)

    async for msg in client.consume(queue, prefetch=50):
        await msg.ack()
        break

    await settled_at(client, queue, 99)
    (again,) = await client.lease(queue)
    assert (again.offset, again.attempt_count) == (2, 0), "its place in line, and no failure counted"
    await again.ack()


async def test_a_message_taken_out_of_the_loop_can_still_be_settled(client: FilaClient, queue: str) -> None:
    await client.enqueue_many(queue, [b"x"] * 10)
    async for msg in client.consume(queue):
        taken = msg
        break
    await asyncio.sleep(0.1)

    await taken.ack()

    await settled_at(client, queue, 9)


async def test_a_late_ack_cannot_settle_the_next_holders_delivery(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, visibility_timeout_ms=1000, retry={"kind": "fixed", "base_ms": 1})
    await client.enqueue(queue, b"slow work")
    (first,) = await client.lease(queue)
    (second,) = await client.lease(queue, wait_ms=20_000)
    assert (second.id, second.attempt_count) == (first.id, 1)

    with pytest.raises(LeaseLost) as failed:
        await first.ack()

    assert (failed.value.message_id, failed.value.lease_id) == (first.id, first.lease_id)
    await second.ack()


async def test_extending_a_lease_keeps_the_message(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, visibility_timeout_ms=1000)
    await client.enqueue(queue, b"x")
    async for msg in client.consume(queue):
        # The broker keeps the lease of a living consumer by itself for ten minutes; an extension beyond them counts.
        expires_at = await msg.extend(1_200_000)
        assert expires_at > msg.lease_expires_at
        await asyncio.sleep(1.2)
        await msg.ack()
        break

    await settled_at(client, queue, 0)


async def test_a_failed_message_comes_back_when_it_was_told_to(client: FilaClient, queue: str) -> None:
    await client.enqueue(queue, b"x")
    deliveries = []
    async for msg in client.consume(queue):
        deliveries.append(msg.attempt_count)
        if len(deliveries) == 3:
            await msg.ack()
            break
        await msg.nack("not yet", delay_ms=10)

    assert deliveries == [0, 1, 2]


async def test_a_message_given_up_says_why(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, max_attempts=1)
    await client.enqueue(queue, b"x")
    (msg,) = await client.lease(queue)
    await msg.nack("printer on fire")

    (letter,) = await client.peek(f"{queue}.dlq")

    assert letter.id == msg.id
    assert letter.dead_letter is not None
    assert (letter.dead_letter.source_queue, letter.dead_letter.reason) == (queue, "max_attempts")
    assert letter.dead_letter.last_error == "printer on fire"


async def test_errors_carry_what_they_are_about(client: FilaClient, queue: str) -> None:
    with pytest.raises(QueueNotFound) as missing:
        await client.enqueue("no-such-queue", b"x")
    assert missing.value.queue == "no-such-queue"
    with pytest.raises(QueueNotFound):
        await anext(aiter(client.consume("no-such-queue")))
    with pytest.raises(QueueExists) as exists:
        await client.create_queue(queue)
    assert exists.value.queue == queue
    with pytest.raises(Invalid, match="visibility_timeout"):
        await client.update_queue(queue, visibility_timeout_ms=1)
    with pytest.raises(LimitExceeded):
        await client.enqueue(queue, b"x" * ((1 << 20) + 1))


@pytest.mark.parametrize("batching", [True, False])
async def test_a_full_queue_refuses_until_there_is_room(
    server: RunningServer, client: FilaClient, queue: str, batching: bool
) -> None:
    await client.update_queue(queue, max_depth=1)
    await client.enqueue(queue, b"first")
    async with FilaClient.connect(server.addresses["grpc"], batching=batching) as impatient:
        with pytest.raises(Overloaded):
            await impatient.enqueue(queue, b"second")

    async with FilaClient.connect(
        server.addresses["grpc"], batching=batching, wait_when_overloaded_s=10, backoff=QUICK_BACKOFF
    ) as patient:
        call = asyncio.create_task(patient.enqueue(queue, b"second"))
        await asyncio.sleep(0.1)
        (msg,) = await client.lease(queue)
        await msg.ack()
        assert (await call).offset >= 2


async def test_a_bad_message_among_many_is_told_alone(client: FilaClient, queue: str) -> None:
    with pytest.raises(SomeFailed) as failed:
        await client.enqueue_many(queue, [b"a", b"x" * ((1 << 20) + 1), b"b"])

    assert list(failed.value.failures) == [1]
    await settled_at(client, queue, 2)


async def test_a_queue_deleted_under_a_consumer_reaches_the_loop(client: FilaClient, queue: str) -> None:
    waiting = asyncio.ensure_future(anext(aiter(client.consume(queue))))
    await asyncio.sleep(0.1)

    await client.delete_queue(queue)

    with pytest.raises(QueueNotFound):
        await asyncio.wait_for(waiting, SETTLE_TIMEOUT_S)


def test_the_synchronous_twin_does_the_same(server: RunningServer, queue: str) -> None:
    with fila.sync.FilaClient.connect(server.addresses["grpc"]) as client:
        ids = client.enqueue_many(queue, [b"%d" % i for i in range(300)])
        got = []
        for msg in client.consume(queue, prefetch=50):
            got.append(msg.id)
            msg.ack()
            if len(got) == 100:
                break
        for batch in client.consume(queue).batches():
            got += [msg.id for msg in batch]
            client.ack_many(batch)
            if len(got) >= len(ids):
                break

        assert sorted(got) == sorted(ids)
        assert client.get_stats(queue).depth == 0


class Killed:
    """A server that is killed and started again on its port and data."""

    def __init__(self, start_server: StartServer, kept_port: KeptPort) -> None:
        self._start = start_server
        self.address = kept_port.address
        self.server = start_server(FILA_SERVER__LISTEN_ADDR=self.address)

    def again(self, number: signal.Signals) -> None:
        self.server.stop(number)
        self.server = self._start(self.server.data_dir, FILA_SERVER__LISTEN_ADDR=self.address)


@pytest.fixture
def killed(start_server: StartServer, kept_port: KeptPort) -> Killed:
    return Killed(start_server, kept_port)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_answered_is_lost_when_the_broker_dies_under_a_client(
    killed: Killed, number: signal.Signals
) -> None:
    async with FilaClient.connect(killed.address, backoff=QUICK_BACKOFF, retry_for_s=30) as client:
        await client.create_queue("orders")
        answered: set[str] = set()
        uncertain = 0
        stopping = asyncio.Event()

        async def produce() -> None:
            nonlocal uncertain
            while not stopping.is_set():
                try:
                    answered.add(await client.enqueue("orders", b"x"))
                except AnswerLost:
                    uncertain += 1

        producers = [asyncio.create_task(produce()) for _ in range(10)]
        for _ in range(2):
            await asyncio.sleep(0.5)
            await asyncio.to_thread(killed.again, number)
        await asyncio.sleep(0.5)
        stopping.set()
        await asyncio.gather(*producers)

        got: set[str] = set()
        async for batch in client.consume("orders", prefetch=1000).batches():
            got |= {msg.id for msg in batch}
            await client.ack_many(batch)
            if await is_empty(client, "orders"):
                break

    assert answered <= got
    assert len(got) <= len(answered) + uncertain


@pytest.mark.slow
async def test_with_dedup_keys_everything_is_stored_once_whatever_dies(killed: Killed) -> None:
    async with FilaClient.connect(killed.address, backoff=QUICK_BACKOFF, retry_for_s=30) as client:
        await client.create_queue("orders")

        async def produce(name: int) -> None:
            for i in range(60):
                payload = f"{name}-{i}"
                await client.enqueue("orders", payload.encode(), dedup_key=payload)
                await asyncio.sleep(0.02)

        producers = [asyncio.create_task(produce(name)) for name in range(5)]
        await asyncio.sleep(0.4)
        await asyncio.to_thread(killed.again, signal.SIGKILL)
        await asyncio.gather(*producers)

        got: list[bytes] = []
        async for batch in client.consume("orders").batches():
            got += [msg.payload for msg in batch]
            await client.ack_many(batch)
            if await is_empty(client, "orders"):
                break

    assert sorted(got) == sorted(f"{name}-{i}".encode() for name in range(5) for i in range(60))


@pytest.mark.slow
async def test_a_consumer_outlives_its_broker(killed: Killed) -> None:
    async with FilaClient.connect(killed.address, backoff=QUICK_BACKOFF, retry_for_s=30) as client:
        await client.create_queue("orders", visibility_timeout_ms=2000)
        got: set[str] = set()

        async def consume() -> None:
            async for msg in client.consume("orders", prefetch=10):
                got.add(msg.id)
                with contextlib.suppress(FilaError):
                    await msg.ack()

        consuming = asyncio.create_task(consume())
        ids: set[str] = set()
        for number in (signal.SIGKILL, signal.SIGTERM):
            ids |= set(await client.enqueue_many("orders", [b"x"] * 50))
            await asyncio.to_thread(killed.again, number)
        ids |= set(await client.enqueue_many("orders", [b"x"] * 50))

        await settled_at(client, "orders", 0)
        consuming.cancel()

    assert got >= ids


SAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.timeout(180)  # a process for each sample
def test_every_sample_of_the_readme_runs(start_server: StartServer) -> None:
    address = start_server().addresses["grpc"]

    for number, sample in enumerate(SAMPLES, 1):
        program = sample.replace("localhost:5555", address)
        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, ""), f"sample {number}"
