"""Token buckets on a running server: how they are set, what they hold back, and what they must not."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from fila import ConfigKeyNotFound, FilaClient, Invalid, NewMessage
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import StartServer
from tests.waiting import within_awaited

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]


@pytest.fixture
async def calls(client: FilaClient, queue: str) -> str:
    """A queue whose messages name their throttle keys in two headers, and their tenant."""
    await client.update_queue(
        queue, fairness_key_header="tenant", throttle_key_headers=["provider", "region"]
    )
    return queue


async def send(client: FilaClient, queue: str, count: int, **headers: str) -> None:
    await client.enqueue_many(queue, [NewMessage(payload=b"x", headers=headers)] * count)


# --- setting them -------------------------------------------------------------------------


async def test_both_forms_set_one_bucket_and_read_back_in_both(client: FilaClient, fila: CommandLine) -> None:
    await fila("config", "set", "throttle.stripe", "100,200")
    assert (await fila("config", "get", "throttle:stripe:rate")).out.strip() == "100"
    assert (await fila("config", "get", "throttle:stripe:burst")).out.strip() == "200"

    await fila("config", "set", "throttle:stripe:rate", "50.5")

    assert await client.get_config("throttle.stripe") == "50.5,200"
    listed = await client.list_config("throttle.stripe") | await client.list_config("throttle:stripe")
    assert listed == {
        "throttle.stripe": "50.5,200",
        "throttle:stripe:rate": "50.5",
        "throttle:stripe:burst": "200",
    }


@pytest.mark.parametrize("form", ["throttle.{}", "throttle:{}:rate", "throttle:{}:burst"])
async def test_an_empty_value_on_any_form_removes_the_bucket(
    client: FilaClient, calls: str, form: str
) -> None:
    await client.set_config(f"throttle.{calls}", "0,0")
    await send(client, calls, 3, provider=calls)
    assert await client.lease(calls, 3) == []

    await client.set_config(form.format(calls), "")

    assert len(await client.lease(calls, 3, wait_ms=20_000)) == 3
    assert await client.list_config(f"throttle.{calls}") == {}
    assert await client.list_config(f"throttle:{calls}") == {}
    with pytest.raises(ConfigKeyNotFound):
        await client.get_config(f"throttle.{calls}")


async def test_a_bucket_limits_once_both_halves_are_known(client: FilaClient, calls: str) -> None:
    await client.set_config(f"throttle:{calls}:rate", "0")
    await send(client, calls, 4, provider=calls)
    assert len(await client.lease(calls, 2)) == 2

    await client.set_config(f"throttle:{calls}:burst", "1")

    assert len(await client.lease(calls, 2)) == 1
    assert await client.lease(calls, 2) == []
    await client.set_config(f"throttle:{calls}:rate", "")


BAD = ["", "5", "5,", ",5", "a,b", "-1,5", "5,-1", "nan,5", "5,nan", "inf,5", "5,inf", "1e999,5", "5,0.5", "5,5,5",
       "0x10,5", " 5,5", "5, 5", "5;5", "٣,5"]  # fmt: skip


@pytest.mark.parametrize("value", BAD[1:])
async def test_a_malformed_throttle_is_refused_and_nothing_is_stored(
    client: FilaClient, queue: str, value: str
) -> None:
    await client.set_config(f"throttle.{queue}", "7,8")

    with pytest.raises(Invalid, match="throttle"):
        await client.set_config(f"throttle.{queue}", value)

    assert await client.get_config(f"throttle.{queue}") == "7,8"
    await client.set_config(f"throttle.{queue}", "")


@pytest.mark.parametrize(
    ("half", "value"), [("rate", "-1"), ("rate", "nan"), ("rate", "x"), ("burst", "0.9"), ("burst", "inf")]
)
async def test_a_malformed_half_of_a_throttle_is_refused(
    client: FilaClient, queue: str, half: str, value: str
) -> None:
    with pytest.raises(Invalid, match="throttle"):
        await client.set_config(f"throttle:{queue}:{half}", value)
    with pytest.raises(ConfigKeyNotFound):
        await client.get_config(f"throttle:{queue}:{half}")


@pytest.mark.parametrize(
    "key",
    ["throttle:{}:rat", "throttle:{}", "throttle::rate", "throttle."],
    ids=["a typing error", "no half", "nothing between", "nothing after"],
)
async def test_a_key_that_only_looks_like_a_throttle_is_refused(
    client: FilaClient, queue: str, key: str
) -> None:
    with pytest.raises(Invalid, match="throttle:<key>:burst"):
        await client.set_config(key.format(queue), "5")
    with pytest.raises(ConfigKeyNotFound):
        await client.get_config(key.format(queue))


async def test_what_the_command_line_sets_wrong_is_one_line_and_exit_code_one(fila: CommandLine) -> None:
    ran = await fila("config", "set", "throttle.x", "fast", expect=1)
    assert "throttle" in ran.err
    assert ran.err.count("\n") == 1


# --- what they hold back ------------------------------------------------------------------


async def leased_for_s(client: FilaClient, queue: str, seconds: float) -> list[float]:
    """When the broker leased message after message, by its clock: what this process is late with counts nothing."""
    moments: list[float] = []
    async for message in client.consume(queue):
        moments.append(message.leased_at.timestamp())
        if moments[-1] - moments[0] > seconds:
            break
    return moments


async def test_a_bucket_holds_its_rate_under_a_backlog(client: FilaClient, queue: str) -> None:
    async def tokens_off(number: int) -> float:
        name = f"{queue}-{number}"
        await client.create_queue(name, throttle_key_headers=["provider"])
        await client.set_config(f"throttle.{name}", "50,5")
        await send(client, name, 400, provider=name)
        moments = await leased_for_s(client, name, 2.5)
        await client.set_config(f"throttle.{name}", "")
        # The last one came when its token did, so the time between first and last counts in full.
        off = len(moments) - 5 - 50 * (moments[-1] - moments[0])
        assert off <= 3, "never more than its rate, at any pace of the machine"
        return abs(off)

    await within_awaited(3, tokens_off)


async def test_a_changed_limit_applies_to_what_waits(
    client: FilaClient, calls: str, fila: CommandLine
) -> None:
    await client.set_config(f"throttle.{calls}", "0,1")
    await send(client, calls, 20, provider=calls)
    assert len(await client.lease(calls, 20)) == 1
    stats = await fila("queue", "inspect", calls)
    tokens, rate, burst, waiting_for_it = _bucket_row(stats.out, calls)
    assert (float(tokens), float(rate), float(burst), int(waiting_for_it)) == (0.0, 0.0, 1.0, 19)
    waiting = asyncio.ensure_future(client.lease(calls, 20, wait_ms=30_000))
    await asyncio.sleep(0.1)

    await client.set_config(f"throttle.{calls}", "1000,50")

    got = len(await asyncio.wait_for(waiting, 30))
    while got < 19:
        got += len(await client.lease(calls, 20, wait_ms=1000))
    await client.set_config(f"throttle.{calls}", "")


async def test_a_message_takes_a_token_of_every_bucket_or_of_none(client: FilaClient, calls: str) -> None:
    open_, shut = f"{calls}-open", f"{calls}-shut"
    await client.set_config(f"throttle.{open_}", "0,3")
    await client.set_config(f"throttle.{shut}", "0,0")
    await send(client, calls, 3, provider=open_, region=shut)
    await send(client, calls, 3, provider=open_)

    got = await client.lease(calls, 10, wait_ms=200)

    # The first three wait for the shut one and hold nothing of the open one meanwhile.
    assert [message.headers for message in got] == [{"provider": open_}] * 3
    for key in (open_, shut):
        await client.set_config(f"throttle.{key}", "")


async def test_a_throttled_destination_does_not_block_a_free_one_of_the_same_tenant(
    client: FilaClient, calls: str
) -> None:
    await client.set_config(f"throttle.{calls}", "0,0")
    await send(client, calls, 2000, tenant="acme", provider=calls)
    await send(client, calls, 1, tenant="acme", provider="free")

    (free,) = await client.lease(calls, 10, wait_ms=20_000)

    assert free.headers["provider"] == "free"
    await client.set_config(f"throttle.{calls}", "")


async def test_keys_nobody_configured_pass_and_duplicates_count_once(client: FilaClient, calls: str) -> None:
    await client.set_config(f"throttle.{calls}", "0,2")
    await send(client, calls, 1, provider="unknown", region="nowhere")
    await send(client, calls, 3, provider=calls, region=calls)

    got = Counter(message.headers["provider"] for message in await client.lease(calls, 10, wait_ms=200))

    assert got == {"unknown": 1, calls: 2}
    await client.set_config(f"throttle.{calls}", "")


async def test_queues_that_share_a_bucket_take_turns(client: FilaClient, queue: str) -> None:
    async def tokens_unused(number: int) -> float:
        bucket = f"{queue}-{number}"
        names = [f"{bucket}-{i}" for i in range(3)]
        await client.set_config(f"throttle.{bucket}", "60,1")
        for name in names:
            await client.create_queue(name, throttle_key_headers=["p"])
            await send(client, name, 100, p=bucket)
        got: Counter[str] = Counter()
        began_s = time.monotonic()

        async def consume(name: str) -> None:
            while (left_ms := int((began_s + 2 - time.monotonic()) * 1000)) > 0:
                got[name] += len(await client.lease(name, 1, wait_ms=left_ms))

        await asyncio.gather(*map(consume, names))
        most = 60 * (time.monotonic() - began_s) + 5
        await client.set_config(f"throttle.{bucket}", "")
        assert sum(got.values()) <= most
        turns_apart = max(got.values()) - min(got.values())
        # A consumer that asked too late missed its turn: then the sum falls short, too.
        assert turns_apart <= 4 or sum(got.values()) < 90, got
        return 120 - sum(got.values())

    await within_awaited(30, tokens_unused)


async def test_a_redelivery_pays_again(client: FilaClient, calls: str) -> None:
    await client.set_config(f"throttle.{calls}", "0,2")
    await send(client, calls, 1, provider=calls)

    (message,) = await client.lease(calls)
    await message.nack("again", delay_ms=0)
    (message,) = await client.lease(calls, wait_ms=20_000)
    await message.nack("again", delay_ms=0)

    assert await client.lease(calls, wait_ms=200) == []
    (bucket,) = (await client.get_stats(calls)).per_throttle_stats
    assert (bucket.key, bucket.tokens, bucket.waiting) == (calls, 0.0, 1)
    await client.set_config(f"throttle.{calls}", "")


async def test_levels_and_limits_are_kept_over_a_restart(start_server: StartServer) -> None:
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q", throttle_key_headers=["p"])
        began_s = time.monotonic()
        await client.set_config("throttle.slow", "0.5,10")
        await send(client, "q", 30, p="slow")
        assert len(await client.lease("q", 10)) == 10
    assert server.stop() == 0

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        # Not ten again: only what the time since has earned.
        again = len(await client.lease("q", 30))
        assert again <= 1 + 0.5 * (time.monotonic() - began_s)
        assert await client.get_config("throttle:slow:burst") == "10"


async def test_dead_letters_ignore_throttles(client: FilaClient, calls: str) -> None:
    await client.update_queue(calls, max_attempts=1)
    await client.set_config(f"throttle.{calls}", "0,1")
    await send(client, calls, 1, provider=calls)
    (message,) = await client.lease(calls)
    await message.nack("no")

    (dead,) = await client.lease(f"{calls}.dlq", wait_ms=20_000)

    assert list(dead.throttle_keys) == [calls]
    await dead.ack()
    await client.set_config(f"throttle.{calls}", "")


# --- the deadlock stories of the field ----------------------------------------------------


async def test_messages_that_wait_for_one_limit_do_not_hold_another(client: FilaClient, queue: str) -> None:
    """Story one: worker pools that took a slot of limit A and then waited for B, while others held B and
    waited for A. Here nothing is held while waiting, so two crossed limits always drain at their rates."""

    async def drained_in_s(number: int) -> float:
        name = f"{queue}-{number}"
        await client.create_queue(
            name, fairness_key_header="tenant", throttle_key_headers=["first", "second"]
        )
        a, b = f"{name}-a", f"{name}-b"
        for key in (a, b):
            await client.set_config(f"throttle.{key}", "200,1")
        await send(client, name, 60, tenant="one", first=a, second=b)
        await send(client, name, 60, tenant="two", first=b, second=a)
        await send(client, name, 60, tenant="three", first=a)
        got: Counter[str] = Counter()
        began_s = time.monotonic()

        while sum(got.values()) < 180:
            messages = await client.lease(name, 50, wait_ms=20_000)
            assert messages, f"stuck after {got}"
            got.update(message.fairness_key for message in messages)
            await client.ack_many(messages)

        took_s = time.monotonic() - began_s
        assert took_s >= 0.85
        for key in (a, b):
            await client.set_config(f"throttle.{key}", "")
        return took_s

    # 180 messages need a token of `a`, 200 a second: 0.9 s, and little more.
    await within_awaited(3, drained_in_s)


async def test_a_delayed_message_takes_its_token_only_when_it_goes(client: FilaClient, queue: str) -> None:
    """Story two: a delayed message that reserves its token early, or wakes into an empty bucket and puts
    everyone behind it to sleep again, and the others' cadence is gone."""

    async def tokens_off(number: int) -> float:
        name = f"{queue}-{number}"
        await client.create_queue(name, throttle_key_headers=["p"])
        await client.set_config(f"throttle.{name}", "20,1")
        for i in range(10):
            await client.enqueue(name, b"late", {"p": name}, delay_ms=500 + 10 * i)
        await send(client, name, 60, p=name)
        moments = await leased_for_s(client, name, 2.5)
        await client.set_config(f"throttle.{name}", "")
        too_many = len(moments) - 1 - 20 * (moments[-1] - moments[0])
        assert too_many <= 2, "never more than its rate, however slow the machine is"
        return abs(too_many)  # each a token that came and was not used

    await within_awaited(2, tokens_off)


def _bucket_row(out: str, key: str) -> list[str]:
    table = out[out.index("TOKENS") :].splitlines()
    return next(line.split()[1:] for line in table if line.startswith(key))
