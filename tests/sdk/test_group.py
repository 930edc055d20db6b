"""Of a group of brokers the client finds the one that serves, and follows it: calls, enqueues and consumers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from fila import AnswerLost, FilaClient, NotOwner, Unavailable
from fila.connection_events import ConnectionEvent
from fila.outage import Outage
from fila.places import parse_targets
from tests.sdk.conftest import QUICK_BACKOFF, ManualClock, stop_for_good, until
from tests.sdk.fake_broker import FakeBroker

NOBODY = "127.0.0.1:1"


@pytest.fixture
async def nodes() -> AsyncIterator[tuple[FakeBroker, FakeBroker]]:
    """The owner, and a standby that says so; they hold the same queue."""
    owner, standby = FakeBroker(), FakeBroker()  # type: ignore[abstract]
    owner.add("orders")
    standby.queues = owner.queues
    for each in (owner, standby):
        await each.start()
    standby.owner = owner.address
    yield owner, standby
    for each in (owner, standby):
        await stop_for_good(each)


def takes_over(owner: FakeBroker, standby: FakeBroker) -> None:
    """They change places, and what the owner was asked and has not answered ends without a word."""
    owner.owner, standby.owner = standby.address, None
    owner.break_connections()


@pytest.mark.parametrize("batching", [True, False])
async def test_a_client_goes_where_a_standby_sends_it(
    nodes: tuple[FakeBroker, FakeBroker], batching: bool
) -> None:
    owner, standby = nodes
    async with FilaClient.connect(standby.address, backoff=QUICK_BACKOFF, batching=batching) as client:
        await client.enqueue("orders", b"x")
        await client.get_stats("orders")
        assert len(standby.turned_away) == 1, "whatever follows goes to the owner at once"
        (leased,) = await client.lease("orders", max_messages=1)
        await client.ack("orders", leased.id)
        await client.enqueue("orders", b"y")
        async for message in client.consume("orders"):
            assert message.payload == b"y"
            break
    assert owner.acked
    assert len(standby.turned_away) == 1


async def test_a_consumer_that_comes_to_a_standby_consumes_at_the_owner(
    nodes: tuple[FakeBroker, FakeBroker],
) -> None:
    owner, standby = nodes
    async with FilaClient.connect(owner.address) as client:
        await client.enqueue("orders", b"x")
    async with FilaClient.connect(standby.address, backoff=QUICK_BACKOFF) as client:
        async for message in client.consume("orders"):
            assert message.payload == b"x"
            break
    assert standby.turned_away == ["ConsumeSession"]


async def test_a_standby_that_knows_no_owner_is_left_for_the_next_address(
    nodes: tuple[FakeBroker, FakeBroker],
) -> None:
    owner, standby = nodes
    standby.owner = ""
    both = f"http://{standby.address}, http://{owner.address}"
    async with FilaClient.connect(both, backoff=QUICK_BACKOFF) as client:
        assert (await client.enqueue("orders", b"x")).offset == 1
    assert standby.turned_away == ["EnqueueStream"]


async def test_an_address_where_nobody_answers_is_left_for_the_next(
    nodes: tuple[FakeBroker, FakeBroker],
) -> None:
    owner, _ = nodes
    clock = ManualClock()
    async with FilaClient.connect(f"{NOBODY},{owner.address}", backoff=QUICK_BACKOFF, clock=clock) as client:
        assert (await client.enqueue("orders", b"x")).offset == 1
    assert clock.slept_s == []


async def test_an_address_that_hangs_is_left_for_the_next(
    nodes: tuple[FakeBroker, FakeBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, _ = nodes
    monkeypatch.setattr("fila.connection.HANG_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = f"127.0.0.1:{silent.getsockname()[1]}"
        # Less than gRPC itself gives an attempt.
        async with FilaClient.connect(f"{hanging},{owner.address}", connect_timeout_s=0.5) as client:
            assert (await client.enqueue("orders", b"x")).offset == 1


async def test_where_nobody_answers_all_addresses_are_named() -> None:
    with pytest.raises(Unavailable, match=r"no Fila broker answers at 127.0.0.1:1, 127.0.0.1:2\. Start"):
        await FilaClient.connect(f"{NOBODY},127.0.0.1:2", connect_timeout_s=0.2, clock=ManualClock())


async def test_what_is_in_flight_to_a_node_that_refuses_is_sent_to_the_owner_once(
    nodes: tuple[FakeBroker, FakeBroker],
) -> None:
    owner, standby = nodes
    async with FilaClient.connect(f"{standby.address},{owner.address}", backoff=QUICK_BACKOFF) as client:
        # Without dedup keys: the client must know that none of them was taken.
        told = await asyncio.gather(*(client.enqueue("orders", b"%d" % number) for number in range(500)))
    assert sorted(each.offset for each in told) == list(range(1, 501))
    assert len(owner.queues["orders"].log) == 500


async def test_over_a_takeover_producer_and_consumer_go_on(nodes: tuple[FakeBroker, FakeBroker]) -> None:
    owner, standby = nodes
    both = f"{owner.address},{standby.address}"
    got: list[bytes] = []
    async with FilaClient.connect(both, backoff=QUICK_BACKOFF, retry_for_s=30.0) as client:

        async def consume() -> None:
            async for message in client.consume("orders"):
                got.append(message.payload)
                message.ack()

        consuming = asyncio.create_task(consume())
        for number in range(200):
            if number == 100:
                await until(lambda: len(set(got)) == 100)
                takes_over(owner, standby)
            await client.enqueue("orders", b"%d" % number, dedup_key=f"k{number}")
        await until(lambda: len(set(got)) == 200)
        consuming.cancel()
        await asyncio.gather(consuming, return_exceptions=True)
    assert len(owner.queues["orders"].log) == 200
    assert "ConsumeSession" in standby.calls
    assert "EnqueueStream" in standby.calls


async def test_an_answer_that_is_lost_in_a_takeover_is_told_to_be_lost(
    nodes: tuple[FakeBroker, FakeBroker],
) -> None:
    owner, standby = nodes
    async with FilaClient.connect(f"{owner.address},{standby.address}", backoff=QUICK_BACKOFF) as client:
        await client.enqueue("orders", b"before")
        owner.answering.clear()
        sent = asyncio.create_task(client.enqueue("orders", b"x"))
        await until(lambda: len(owner.queues["orders"].log) == 2)
        takes_over(owner, standby)
        with pytest.raises(AnswerLost):
            await sent
        # Another enqueue could meet the connection that is just ending, and its answer would be lost, too.
        await client.get_stats("orders")
        assert (await client.enqueue("orders", b"y")).offset == 3


async def test_two_standbys_that_name_each_other_are_asked_at_the_backoffs_pace_until_patience_ends(
    nodes: tuple[FakeBroker, FakeBroker],
) -> None:
    one, other = nodes
    one.owner, other.owner = other.address, one.address
    clock = ManualClock()
    async with FilaClient.connect(one.address, retry_for_s=10.0, clock=clock, batching=False) as client:
        with pytest.raises(NotOwner) as refused:
            await client.enqueue("orders", b"x")
    assert refused.value.owner in {one.address, other.address}
    assert len(one.turned_away) + len(other.turned_away) == len(clock.slept_s) + 1
    assert 5 <= len(clock.slept_s) <= 15


async def test_from_an_owner_that_nobody_gave_the_client_comes_back_to_its_addresses(
    nodes: tuple[FakeBroker, FakeBroker],
) -> None:
    owner, standby = nodes
    async with FilaClient.connect(standby.address, backoff=QUICK_BACKOFF, retry_for_s=30.0) as client:
        await client.enqueue("orders", b"x")
        standby.owner = None
        await owner.stop()
        await client.enqueue("orders", b"y", dedup_key="y")
        await owner.start()
    assert len(owner.queues["orders"].log) == 2
    assert "EnqueueStream" in standby.calls


@pytest.mark.parametrize(
    ("targets", "parsed"),
    [
        ("a:1", (["a:1"], False)),
        ("a:1, b:2 ,a:1", (["a:1", "b:2"], False)),
        ("http://a:1,https://b:2", (["a:1", "b:2"], True)),
    ],
)
def test_addresses_have_commas_between_them(targets: str, parsed: tuple[list[str], bool]) -> None:
    assert parse_targets(targets) == parsed


@pytest.mark.parametrize("targets", ["a:1,", ",", "a:1,ftp://b:2", ",".join(f"a:{n}" for n in range(17))])
def test_addresses_that_are_none_are_refused(targets: str) -> None:
    with pytest.raises(ValueError, match="target must"):
        parse_targets(targets)


def test_a_stream_that_ends_because_its_node_hands_over_is_draining():
    events: list[ConnectionEvent] = []
    connection: Any = SimpleNamespace(
        tell=events.append, options=SimpleNamespace(clock=SimpleNamespace(now_s=lambda: 0.0))
    )
    moved = NotOwner("fila-2 serves")
    moved.reason = "NOT_OWNER"
    Outage(connection, "orders", "default").begins(moved)
    Outage(connection, "orders", "default").begins(Unavailable("it broke"))
    assert [event.kind for event in events] == ["draining", "lost"]
