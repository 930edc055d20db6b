"""A consumer cannot hurt anybody: with all defaults, slow work, poison, quiet tenants and broken connections, against a
real server with a lease of 2 s. `make bench` plays the same stories with the default lease."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from fila_bench import promises
from fila_bench.wire import Wire

from fila import ConnectionEvent, FilaClient, Message, Unavailable
from tests.e2e.conftest import RunningServer, StartServer
from tests.waiting import within_awaited

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.needs("module:fila_server.core.runtime.engine")]


@pytest.fixture
def address(server: RunningServer) -> str:
    return server.addresses["grpc"]


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    """A name; the stories make the queue."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]


async def test_slow_work_behind_one_worker_is_handled_once_and_nothing_expires(
    address: str, queue: str
) -> None:
    handled = await promises.slow_work(address, queue, count=40, handler_s=0.2, visibility_timeout="2s")

    assert handled.times_by_payload == Counter({b"%d" % i: 1 for i in range(40)})
    assert (handled.acked, handled.expired, handled.dead) == (40, 0, 0)


async def test_work_that_takes_longer_than_the_lease_is_handled_once(address: str, queue: str) -> None:
    handled = await promises.slow_work(address, queue, count=2, handler_s=3, visibility_timeout="2s")

    assert (handled.acked, handled.expired, handled.dead, handled.twice) == (2, 0, 0, 0)


async def test_a_quiet_tenant_is_served_after_at_most_three_others(address: str, queue: str) -> None:
    async def most_others(number: int) -> float:
        others = await promises.quiet_tenant(address, f"{queue}-{number}", rounds=5)
        assert len(others) == 5
        return max(others)

    await within_awaited(3, most_others)


async def test_two_workers_share_though_the_second_comes_late(address: str, queue: str) -> None:
    async def short_of_a_half(number: int) -> float:
        counts = await promises.two_workers(address, f"{queue}-{number}")
        assert sum(counts) == 100
        return 0.5 - promises.share_of_the_smaller(counts)

    await within_awaited(0.05, short_of_a_half)


@pytest.mark.timeout(240)  # five processes, one after the other
@pytest.mark.parametrize("after_s", [0, 0.005, 1])
async def test_poison_ages_nobody_else_and_dies_of_its_own_attempts(
    address: str, queue: str, after_s: float
) -> None:
    saw = await promises.poison(
        address, queue, count=300, after_s=after_s, visibility_timeout_ms="2s", disconnect_grace_ms="100ms"
    )

    assert (saw.dead, saw.attempts, saw.aged) == ([b"poison"], 4, 0)
    assert 4 <= saw.deaths <= 5, "it escapes the count once at most"


async def test_nothing_waits_behind_a_long_message_while_the_other_worker_is_free(
    address: str, queue: str
) -> None:
    async def longest_idle_s(number: int) -> float:
        idle_s = await promises.bimodal(address, f"{queue}-{number}", count=500)
        assert len(idle_s) == 500
        return max(idle_s)

    await within_awaited(0.25, longest_idle_s)


async def test_a_connection_cut_for_a_second_costs_a_running_handler_nothing(
    address: str, queue: str
) -> None:
    handled = await promises.cut_connection(
        address, queue, handler_s=4, cut_at_s=0.5, visibility_timeout="2s"
    )

    assert handled.times_by_payload == Counter({b"0": 1, b"1": 1, b"2": 1})
    assert (handled.acked, handled.expired, handled.dead) == (3, 0, 0)


async def test_a_killed_broker_keeps_what_was_begun_and_its_consumers_resume(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server(tmp_path / "kept")
    wire = Wire(server.addresses["grpc"])
    async with FilaClient.connect(await wire.open()) as client:
        await client.create_queue("orders", max_attempts=1, visibility_timeout_ms="2s")
        await client.enqueue_many("orders", [b"0", b"1"])
        messages = aiter(client.consume("orders", prefetch=2))
        first: Message = await anext(messages)
        await asyncio.sleep(0.2)

        server.process.kill()
        server.process.wait()
        wire.target = start_server(tmp_path / "kept").addresses["grpc"]

        await first.ack()
        async with asyncio.timeout(20):
            second = await anext(messages)
            await second.ack()
            stats = await client.get_stats("orders")
    wire.cut()

    assert (first.payload, second.payload) == (b"0", b"1")
    assert (stats.depth, stats.in_flight, stats.dead_lettered_total) == (0, 0, 0)


async def test_a_broker_that_stops_says_that_it_is_draining(start_server: StartServer) -> None:
    server = start_server()
    events: list[ConnectionEvent] = []
    async with FilaClient.connect(
        server.addresses["grpc"], on_connection=events.append, reconnect_for_s=0.5
    ) as client:
        await client.create_queue("orders")
        await client.enqueue("orders", b"x")
        messages = aiter(client.consume("orders"))
        await (await anext(messages)).ack()

        server.process.terminate()

        with pytest.raises(Unavailable):
            await anext(messages)
    assert [(event.kind, event.queue) for event in events] == [("draining", "orders")]
