"""A running app against a broker: what it takes, settles and gives back, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator

import pytest

from fila import FilaClient, QueueNotFound
from fila.worker import App, Reject, Release, Retry
from tests.sdk.conftest import SETTLE_TIMEOUT_S, said, until
from tests.sdk.fake_broker import FakeBroker


@contextlib.asynccontextmanager
async def serving(app: App) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(app.serve())
    try:
        yield task
    finally:
        app.stop()
        async with asyncio.timeout(SETTLE_TIMEOUT_S):
            await task


async def fill(client: FilaClient, count: int) -> None:
    await client.enqueue_many("orders", [b'{"n": %d}' % i for i in range(count)])


async def test_each_outcome_reaches_the_broker(broker: FakeBroker, client: FilaClient) -> None:
    app = App(broker.address)
    orders = broker.queues["orders"]
    seen = []

    @app.worker("orders", concurrency=3)
    async def handler(order: dict[str, int]) -> None:
        seen.append(order["n"])
        if order["n"] == 1 and seen.count(1) == 1:
            raise Retry("again", delay=10)
        if order["n"] == 2:
            raise Reject("never")
        if order["n"] == 3 and seen.count(3) == 1:
            raise Release

    await fill(client, 5)
    async with serving(app):
        await until(lambda: len(broker.acked) == 4)

    assert sorted(seen) == [0, 1, 1, 2, 3, 3, 4]
    assert [(error, delay_ms) for _, error, delay_ms in orders.nacks] == [("again", 10)]
    assert [error for _, error in orders.dead] == ["never"]
    assert [*orders.attempts.values()] == [1], "a release counts nothing"


async def test_a_stopping_worker_finishes_what_is_begun_and_gives_back_the_rest(
    broker: FakeBroker, client: FilaClient
) -> None:
    app = App(broker.address, prefetch=10)
    orders = broker.queues["orders"]
    go_on = asyncio.Event()
    begun: list[bytes] = []

    @app.worker("orders", concurrency=2)
    async def handler(payload: bytes) -> None:
        begun.append(payload)
        await go_on.wait()

    await fill(client, 10)
    async with serving(app):
        await until(lambda: len(orders.leased) == 10 and len(begun) == 2)
        app.stop()
        await until(lambda: len(orders.ready) == 8)
        assert len(orders.leased) == 2
        go_on.set()
        await until(lambda: len(broker.acked) == 2)

    assert len(broker.acked) == 2
    assert not orders.attempts


async def test_what_is_not_finished_in_time_is_cancelled_and_released(
    broker: FakeBroker, client: FilaClient
) -> None:
    app = App(broker.address, shutdown_grace_s=0.1)
    orders = broker.queues["orders"]
    begun, cancelled = [], []

    @app.worker("orders")
    async def handler(payload: bytes) -> None:
        begun.append(payload)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(payload)
            raise

    await fill(client, 1)
    async with serving(app):
        await until(lambda: begun)

    assert cancelled
    assert (len(orders.ready), orders.attempts, len(orders.returned)) == (1, {}, 1)


async def test_a_second_stop_ends_the_waiting(broker: FakeBroker, client: FilaClient) -> None:
    app = App(broker.address, shutdown_grace_s=60)
    orders = broker.queues["orders"]

    begun = threading.Event()

    @app.worker("orders")
    def handler(payload: bytes) -> None:
        begun.set()
        threading.Event().wait(60)

    await fill(client, 1)
    async with serving(app):
        await until(begun.is_set)
        app.stop()

    assert (len(orders.ready), orders.attempts) == (1, {})


async def test_a_lost_lease_cancels_the_handler_and_settles_nothing(
    broker: FakeBroker, client: FilaClient
) -> None:
    app = App(broker.address)
    orders = broker.queues["orders"]
    cancelled = asyncio.Event()

    @app.worker("orders")
    async def handler(payload: bytes) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    await fill(client, 1)
    async with serving(app):
        await until(lambda: said(broker, "begun"))
        (session,) = broker.tracked.values()
        orders.leased.clear()
        session.revoke(session.leases, "PURGE")
        await asyncio.wait_for(cancelled.wait(), SETTLE_TIMEOUT_S)

    assert not broker.settle_frames


def test_a_handler_that_blocks_the_loop_costs_its_own_attempt_and_no_other(broker_thread: FakeBroker) -> None:
    orders = broker_thread.queues["orders"]
    orders.config.visibility_timeout_ms = 1000
    app = App(broker_thread.address)
    done = []

    @app.worker("orders", concurrency=5, timeout="500ms")
    async def handler(order: dict[str, int]) -> None:
        if order["n"] == 2 and not orders.attempts:
            time.sleep(2)  # noqa: ASYNC251 - that is the fault
        await asyncio.sleep(0.2)
        done.append(order["n"])

    async def work() -> None:
        async with FilaClient.connect(broker_thread.address) as client:
            await fill(client, 5)
            async with serving(app):
                await until(lambda: len(done) >= 5)

    asyncio.run(work())

    assert sorted(done) == [0, 1, 2, 3, 4]
    assert [*orders.attempts.values()] == [1]
    assert "blocks the event loop" in orders.nacks[0][1]


async def test_what_ends_a_consumer_ends_the_app(broker: FakeBroker) -> None:
    app = App(broker.address)

    @app.worker("oders")
    async def handler(payload: bytes) -> None: ...

    with pytest.raises(QueueNotFound, match="oders"):
        await app.serve()


async def test_an_app_without_handlers_says_so() -> None:
    with pytest.raises(ValueError, match=r"@app\.worker"):
        await App().serve()


@pytest.mark.parametrize("is_child", [False, True])
async def test_spans_link_to_the_producers_and_are_their_children_where_that_is_asked_for(
    broker: FakeBroker, client: FilaClient, *, is_child: bool
) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from fila.tracing import traced

    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    app = App(broker.address)
    current = []

    @app.worker("orders", trace_parent=is_child)
    async def handler(payload: bytes) -> None:
        current.append(trace.get_current_span().get_span_context().trace_id)
        if len(current) == 1:
            raise ValueError("once")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer", provider.get_tracer)
        with provider.get_tracer("producer").start_as_current_span("produce") as produced:
            await client.enqueue("orders", b"", traced())
        async with serving(app):
            await until(lambda: len(broker.acked) == 1)

    first, second = [span for span in spans.get_finished_spans() if span.name == "process orders"]
    producer = produced.get_span_context()
    assert [link.context.trace_id for link in first.links] == ([] if is_child else [producer.trace_id])
    assert (first.parent and first.parent.span_id) == (producer.span_id if is_child else None)
    assert first.context.trace_id == current[0]
    assert [event.name for event in first.events] == ["exception"]
    assert not second.events
