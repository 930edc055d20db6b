"""What operators and careful producers ask for, through the Python SDK, on a real server."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fila import Backoff, ChannelNotFound, ConfigKeyNotFound, FilaClient, Invalid
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import RunningServer
from tests.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

QUICK_BACKOFF = Backoff(base_s=0.01, cap_s=0.1, randomness=random.Random(1))


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[FilaClient]:
    async with FilaClient.connect(
        server.addresses["grpc"], backoff=QUICK_BACKOFF, call_timeout_s=30
    ) as client:
        yield client


async def test_a_delayed_message_is_pending_and_comes_when_it_is_due(client: FilaClient, queue: str) -> None:
    began_at_s = time.monotonic()
    await client.enqueue(queue, b"later", delay_ms=300)
    await client.enqueue(queue, b"at", deliver_at=datetime.now(UTC) + timedelta(milliseconds=400))
    assert (await client.get_stats(queue)).depth == 2

    (later,) = await client.lease(queue, wait_ms=20_000)
    assert time.monotonic() - began_at_s >= 0.295
    (at,) = await client.lease(queue, wait_ms=20_000)

    assert (later.payload, at.payload) == (b"later", b"at")
    assert time.monotonic() - began_at_s >= 0.395
    await client.ack_many([later, at])


async def test_a_message_nobody_wants_in_time_is_dropped(client: FilaClient, queue: str) -> None:
    await client.enqueue(queue, b"stale", ttl_ms=50)

    async def is_dropped() -> bool:
        return (await client.get_stats(queue)).depth == 0

    await eventually(is_dropped)
    assert await client.lease(queue) == []
    with pytest.raises(Invalid, match="ttl_ms"):
        await client.enqueue(queue, b"x", ttl_ms=0)


async def test_a_known_dedup_key_answers_the_first_id(client: FilaClient, queue: str) -> None:
    first = await client.enqueue(queue, b"x", dedup_key="order-1")
    again = await client.enqueue(queue, b"x", dedup_key="order-1")

    assert (again, again.offset) == (first, first.offset)
    assert (await client.get_stats(queue)).depth == 1


async def test_dead_letters_go_back_where_they_came_from(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, max_attempts=1)
    ids = await client.enqueue_many(queue, [b"a", b"b"])
    await client.nack_many(await client.lease(queue, 2), "down")
    assert [letter.id for letter in await client.peek(f"{queue}.dlq")] == ids

    assert await client.redrive(f"{queue}.dlq", count=1) == 1
    assert await client.redrive(f"{queue}.dlq") == 1

    back = await client.lease(queue, 2, wait_ms=20_000)
    assert [(message.id, message.attempt_count) for message in back] == [(ids[0], 0), (ids[1], 0)]
    await client.ack_many(back)
    with pytest.raises(Invalid):
        await client.redrive(queue)


async def test_runtime_config_is_kept_sorted_and_deleted(client: FilaClient, queue: str) -> None:
    await client.set_config(f"{queue}.b", "2")
    await client.set_config(f"{queue}.a", "1")

    assert await client.get_config(f"{queue}.a") == "1"
    assert await client.list_config(f"{queue}.") == {f"{queue}.a": "1", f"{queue}.b": "2"}
    await client.set_config(f"{queue}.a", "")
    with pytest.raises(ConfigKeyNotFound) as missing:
        await client.get_config(f"{queue}.a")
    assert missing.value.config_key == f"{queue}.a"


async def test_a_throttled_key_is_held_to_its_bucket(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, throttle_key_headers=["provider"])
    await client.set_config(f"throttle.{queue}", "0,2")
    headers = {"provider": queue}
    await asyncio.gather(*(client.enqueue(queue, b"%d" % i, headers) for i in range(5)))

    held = await client.lease(queue, 10, wait_ms=100)
    assert len(held) == 2, "the burst"
    await client.set_config(f"throttle.{queue}", "")
    freed = await client.lease(queue, 10, wait_ms=1000)
    while len(freed) < 3:
        freed += await client.lease(queue, 10, wait_ms=1000)

    await client.ack_many([*held, *freed])


async def test_a_paused_key_waits_and_says_so(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, fairness_key_header="tenant")
    await client.set_key_policy(queue, "acme", paused=True)
    await client.enqueue(queue, b"x", {"tenant": "acme"})
    assert await client.lease(queue, wait_ms=100) == []
    told = await client.explain_key(queue, "acme")
    assert (told.state, told.pending) == ("paused", 1)

    preview = await client.preview_key_policy(queue, "acme", paused=False, weight=5)
    assert preview.head.before.unknown == "paused"
    assert preview.head.after.unknown in ("no_consumer", "not_watched")
    assert (preview.pending, preview.weight_before, preview.weight_after) == (1, 1, 5)
    assert (await client.explain_key(queue, "acme")).state == "paused", "a preview changes nothing"

    policy = await client.set_key_policy(queue, "acme", paused=False, weight=5)

    assert (policy.paused, policy.weight) == (False, 5)
    (msg,) = await client.lease(queue, wait_ms=20_000)
    await msg.ack()


async def test_channels_each_see_every_message(client: FilaClient, queue: str) -> None:
    await client.create_channel(queue, "audit", start="oldest")
    ids = await client.enqueue_many(queue, [b"%d" % i for i in range(5)])

    for channel in (None, "audit"):
        got = []
        async for msg in client.consume(queue, channel=channel):
            assert msg.channel == (channel or "default")
            got.append(msg.id)
            await client.ack(queue, msg.id, channel=channel)
            if len(got) == len(ids):
                break
        assert got == ids

    assert {info.name for info in await client.list_channels(queue)} == {"default", "audit"}
    with pytest.raises(ChannelNotFound) as missing:
        await client.lease(queue, channel="nobody")
    assert (missing.value.queue, missing.value.channel) == (queue, "nobody")
    await client.delete_channel(queue, "audit")
    assert [info.name for info in await client.list_channels(queue)] == ["default"]


async def test_a_channel_seeks_back_over_what_is_retained(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, retention={"soft_period_ms": 3_600_000})
    ids = await client.enqueue_many(queue, [b"%d" % i for i in range(5)])
    await client.ack_many(await client.lease(queue, 5))

    assert await client.seek_channel(queue, None, 3) == 3

    again = await client.lease(queue, 10, wait_ms=20_000)
    assert [message.id for message in again] == ids[2:]
    assert await client.purge_channel(queue) == 0
    await client.ack_many(again)


async def test_the_log_is_read_without_leasing(client: FilaClient, queue: str) -> None:
    await client.enqueue_many(queue, [b"%d" % i for i in range(10)])

    read = [message.payload async for message in client.read_log(queue, from_offset=3, to_offset=6)]

    assert read == [b"2", b"3", b"4"]
    assert (await client.get_stats(queue)).in_flight == 0


async def test_queues_are_found_by_how_they_begin_or_by_a_part_and_page_by_page(client: FilaClient) -> None:
    names = [f"found-{number}" for number in range(5)]
    for name in (*names, "lost-and-Found"):
        await client.create_queue(name, expires_after_idle_ms="1h")

    async def found(**asked: Any) -> list[str]:
        return [info.name for info in await client.list_queues(**asked)]

    assert await found(prefix="FOUND-") == names
    assert await found(containing="found") == [*names, "lost-and-Found"]
    assert await found(prefix="lost", containing="found") == ["lost-and-Found"]
    assert await found(prefix="found-", page_size=2) == names[:2]
    assert await found(prefix="found-", page_size=2, page_token=names[1]) == names[2:4]
    assert await found(prefix="found-", page_token="found-4") == []
    assert await found(prefix="found;") == []
    assert set(await found()) >= set(names), "without a word all of them"
    with pytest.raises(Invalid, match="page_size must be at most 1000"):
        await found(page_size=1001)


async def test_a_paused_channel_says_since_when_by_whom_and_why(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, paused_channels=["default"], comment="it is rebuilt")
    await client.update_queue(queue, paused_channels=["default", "later"], comment="another")
    await client.update_queue(queue, max_attempts=3, comment="no pause is meant")
    [info] = await client.list_channels(queue)
    assert info.pause is not None
    assert (info.paused, info.pause.comment) == (True, "it is rebuilt"), "whose pause stays keeps its reason"
    assert info.pause.by
    told = await client.explain_key(queue, "default")
    assert told.pause is not None
    assert (told.state, told.pause.comment) == ("paused", "it is rebuilt")

    await client.update_queue(queue, paused_channels=[])
    [info] = await client.list_channels(queue)
    assert (info.paused, info.pause) == (False, None)
    with pytest.raises(Invalid, match="must be named once"):
        await client.update_queue(queue, paused_channels=["a", "a"])


async def test_who_pauses_again_with_another_reason_replaces_it_and_silence_leaves_it(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    async def reasons() -> dict[str, str]:
        told = {each.name: each.pause.comment for each in await client.list_channels(queue) if each.pause}
        found = await client.get_queue(queue)
        return {**told, "queue": found.pause.comment if found.pause else ""}

    await client.create_channel(queue, "audit")
    await client.update_queue(queue, paused_channels=["default"], comment="default at first")
    await client.update_queue(queue, paused_channels=["default", "audit"], comment="audit at first")
    await client.update_queue(queue, paused=True, comment="all at first")
    first = {each.name: each.pause for each in await client.list_channels(queue)}
    assert await reasons() == {
        "default": "default at first",
        "audit": "audit at first",
        "queue": "all at first",
    }

    await fila("channel", "pause", queue, "default", "--reason", "another")
    await fila("queue", "pause", queue, "--reason", "all for another")
    await fila("channel", "pause", queue, "audit")

    assert await reasons() == {"default": "another", "audit": "audit at first", "queue": "all for another"}
    for each in await client.list_channels(queue):
        before = first[each.name]
        assert before
        assert each.pause
        assert (each.pause.since, each.pause.by) == (before.since, before.by), "since when and by whom stays"
