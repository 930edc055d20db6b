"""What a queue's settings decide without any Lua, set through the command line, seen by a consumer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fila import FilaClient, Invalid, NewMessage, Overloaded
from fila.v1 import service_pb2
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import RunningServer, StartServer
from tests.waiting import eventually, within_awaited

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]


async def test_the_common_case_needs_no_lua(client: FilaClient, fila: CommandLine) -> None:
    await fila(
        "queue", "create", "orders", "--fairness-header", "tenant", "--weight", "acme=3",
        "--throttle-header", "provider", "--retry", "exponential:1s..60s", "--max-attempts", "5",
    )  # fmt: skip

    await client.enqueue("orders", b"x", {"tenant": "acme", "provider": "stripe"})

    (message,) = await client.peek("orders")
    assert (message.fairness_key, message.weight) == ("acme", 3)
    assert list(message.throttle_keys) == ["stripe"]
    config = (await client.get_queue("orders")).config
    assert (config.max_attempts, config.retry.base_ms, config.retry.cap_ms) == (5, 1000, 60_000)
    assert config.retry.kind == "exponential"


async def test_headers_that_are_missing_or_empty_leave_the_defaults(client: FilaClient, queue: str) -> None:
    await client.update_queue(
        queue,
        fairness_key_header="tenant",
        weight_header="weight",
        cost_header="cost",
        throttle_key_headers=["provider", "region"],
    )

    await client.enqueue(queue, b"", {})
    await client.enqueue(queue, b"", {"tenant": "", "weight": "", "cost": "", "provider": ""})
    await client.enqueue(queue, b"", {"tenant": "é", "weight": "2", "cost": "0.5", "region": "eu"})

    bare, empty, full = await client.peek(queue)
    for message in (bare, empty):
        assert (message.fairness_key, message.cost, list(message.throttle_keys)) == ("default", 1.0, [])
    assert (full.fairness_key, full.weight, full.cost, list(full.throttle_keys)) == ("é", 2, 0.5, ["eu"])


@pytest.mark.parametrize(
    ("header", "weight", "clamped"),
    [("7", 7, 0), ("0", 1, 1), ("1000000000", 1000, 1), ("-3", 1, 1), ("nan", 1, 1), ("heavy", 1, 1)],
)
async def test_a_weight_header_is_clamped_and_counted(
    client: FilaClient, queue: str, header: str, weight: int, clamped: int
) -> None:
    await client.update_queue(queue, weight_header="w")

    await client.enqueue(queue, b"", {"w": header})

    stats = await client.get_stats(queue)
    assert (stats.per_key_stats[0].weight, stats.weights_clamped_total) == (weight, clamped)


async def test_the_weight_table_wins_over_headers_and_an_update_replaces_it(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fila(
        "queue", "update", queue, "--fairness-header", "t", "--weight-header", "w", "--weight", "acme=4"
    )
    await client.enqueue(queue, b"", {"t": "acme", "w": "9"})
    await client.enqueue(queue, b"", {"t": "globex", "w": "9"})
    assert await _weights(client, queue) == {"acme": 4, "globex": 9}

    await fila("queue", "update", queue, "--weight", "globex=2")

    # What waits goes by the new table at once, not with its next enqueue: also what is in it no more.
    assert await _weights(client, queue) == {"acme": 9, "globex": 2}
    await client.enqueue(queue, b"", {"t": "acme", "w": "9"})
    assert await _weights(client, queue) == {"acme": 9, "globex": 2}


async def test_shares_follow_weights_and_costs(client: FilaClient, queue: str) -> None:
    await client.update_queue(
        queue, fairness_key_header="t", weights={"big": 3, "small": 1}, cost_header="cost"
    )
    messages = [
        NewMessage(payload=b"x", headers={"t": tenant, "cost": "2" if tenant == "dear" else "1"})
        for _ in range(120)
        for tenant in ("big", "small", "dear")
    ]
    await client.enqueue_many(queue, messages)

    got = Counter(message.fairness_key for message in await client.lease(queue, 90))

    # Weights 3 : 1 : 1 of cost, and "dear" pays two a message: 60 : 20 : 10.
    assert abs(got["big"] - 60) <= 3
    assert abs(got["small"] - 20) <= 3
    assert abs(got["dear"] - 10) <= 3


# --- retries and attempts -----------------------------------------------------------------


async def test_a_fixed_retry_waits_its_time(client: FilaClient, fila: CommandLine, queue: str) -> None:
    await fila("queue", "update", queue, "--retry", "fixed:400ms,jitter=0")
    await client.update_queue(queue, max_attempts=0)
    await client.enqueue(queue, b"x")
    (message,) = await client.lease(queue, wait_ms=20_000)

    async def comes_back(number: int) -> float:
        nonlocal message
        assert message.attempt_count == number
        began_s = time.monotonic()
        await message.nack("no")
        (message,) = await client.lease(queue, wait_ms=20_000)
        took_s = time.monotonic() - began_s
        assert took_s >= 0.39
        return took_s

    await within_awaited(1.0, comes_back)
    assert message.attempt_count >= 1


async def test_an_exponential_retry_doubles_up_to_its_cap(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fila("queue", "update", queue, "--retry", "exponential:100ms..300ms,jitter=0")

    async def longest_beyond_s(_: int) -> float:
        beyond_s = []
        await client.enqueue(queue, b"x")
        # Every second failure carries its own delay, which wins: attempts 1, 3, 5, 7 back off.
        for expected_s in (0.1, 0.3, 0.3, 0.3):
            (message,) = await client.lease(queue, wait_ms=20_000)
            began_s = time.monotonic()
            await message.nack("no")
            (again,) = await client.lease(queue, wait_ms=20_000)
            beyond_s.append(time.monotonic() - began_s - expected_s)
            await again.nack("at once", delay_ms=0)
        (message,) = await client.lease(queue, wait_ms=20_000)
        await message.ack()
        assert min(beyond_s) >= -0.01
        return max(beyond_s)

    await within_awaited(0.25, longest_beyond_s)


async def test_max_attempts_one_gives_up_at_the_first_failure(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, max_attempts=1)
    await client.enqueue(queue, b"x", {"h": "v"})

    (message,) = await client.lease(queue)
    await message.nack("broken pipe")

    (dead,) = await client.peek(f"{queue}.dlq")
    assert (dead.id, dead.payload, dead.headers) == (message.id, b"x", {"h": "v"})
    letter = dead.dead_letter
    assert (letter.source_queue, letter.source_channel) == (queue, "default")
    assert (letter.reason, letter.last_error, letter.attempts) == ("max_attempts", "broken pipe", 1)
    assert (await client.get_stats(queue)).depth == 0


async def test_without_a_cap_a_message_is_never_given_up(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, max_attempts=0)
    await client.enqueue(queue, b"x")

    for attempt in range(25):
        (message,) = await client.lease(queue, wait_ms=20_000)
        assert message.attempt_count == attempt
        await message.nack("no", delay_ms=0)

    assert await client.peek(f"{queue}.dlq") == []


@pytest.mark.timeout(240)  # two servers for each attempt
async def test_a_delayed_retry_is_due_at_its_moment_over_a_restart(start_server: StartServer) -> None:
    async def beyond_s(number: int) -> float:
        queue = f"q{number}"
        server = start_server()
        async with FilaClient.connect(server.addresses["grpc"]) as client:
            await client.create_queue(queue)
            await client.enqueue(queue, b"x")
            (message,) = await client.lease(queue)
            began_s = time.monotonic()
            await message.nack("later", delay_ms=2500)
            due_s = time.monotonic() + 2.5
        assert server.stop() == 0

        server = start_server()
        async with FilaClient.connect(server.addresses["grpc"]) as client:
            await client.get_stats(queue)  # so that no connection is made in the time that is taken
            due_s = max(due_s, time.monotonic() - 0.05)  # by when somebody asks
            (message,) = await client.lease(queue, wait_ms=20_000)
            came_s = time.monotonic()
        assert came_s - began_s >= 2.45
        assert message.attempt_count == 1
        assert server.stop() == 0
        return came_s - due_s

    await within_awaited(1.0, beyond_s)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"weights": {"acme": 0}}, "weights"),
        ({"weights": {"acme": 1001}}, "weights"),
        ({"retry": {"base_ms": 5000, "cap_ms": 10}}, "cap_ms"),
        ({"retry": {"jitter": float("nan")}}, "jitter"),
        ({"retry": {"jitter": 1.5}}, "jitter"),
        ({"visibility_timeout_ms": 999}, "visibility_timeout_ms"),
        ({"visibility_timeout_ms": 12 * 3600 * 1000 + 1}, "visibility_timeout_ms"),
        ({"throttle_key_headers": [""]}, "throttle_key_headers"),
        ({"throttle_key_headers": [f"h{i}" for i in range(17)]}, "throttle_key_headers"),
        ({"fairness_key_header": "h" * 4097}, "fairness_key_header"),
    ],
)
async def test_a_bad_setting_names_its_field_and_changes_nothing(
    client: FilaClient, queue: str, settings: dict[str, Any], text: str
) -> None:
    before = (await client.get_queue(queue)).config

    with pytest.raises(Invalid, match=text):
        await client.update_queue(queue, **settings)

    assert (await client.get_queue(queue)).config == before


async def test_a_header_too_long_to_be_a_key_is_refused_and_its_neighbours_are_not(
    client: FilaClient, queue: str
) -> None:
    await client.update_queue(queue, fairness_key_header="t", throttle_key_headers=["p"])
    messages = [
        NewMessage(payload=b"x", headers=headers)
        for headers in ({"t": "ok"}, {"t": "k" * 257}, {"p": "k" * 257}, {"t": "k" * 256})
    ]

    outcomes = await asyncio.gather(
        *(client.enqueue(queue, m.payload, m.headers) for m in messages), return_exceptions=True
    )

    assert [isinstance(outcome, Invalid) for outcome in outcomes] == [False, True, True, False]
    assert (await client.get_stats(queue)).depth == 2


# --- delays and expiry --------------------------------------------------------------------


async def test_delay_and_moment_hold_a_message_back(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    async def longest_beyond_s(_: int) -> float:
        began_s = time.monotonic()
        await client.enqueue(queue, b"moment", deliver_at=datetime.now(UTC) + timedelta(milliseconds=700))
        await client.enqueue(queue, b"delay", delay_ms=300)
        await client.enqueue(queue, b"now")
        came_s: dict[bytes, float] = {}
        while len(came_s) < 3:
            for message in await client.lease(queue, 3, wait_ms=20_000):
                came_s[message.payload] = time.monotonic() - began_s
                await message.ack()
        assert came_s[b"delay"] >= 0.29
        assert came_s[b"moment"] >= 0.69
        return max(came_s[b"now"], came_s[b"delay"] - 0.3, came_s[b"moment"] - 0.7)

    await within_awaited(0.4, longest_beyond_s)


async def test_delays_survive_a_restart(start_server: StartServer) -> None:
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q")
        await client.enqueue("q", b"much later", delay_ms=3_600_000)
        due_s = time.monotonic() + 2.5
        await client.enqueue("q", b"later", delay_ms=2500)
    assert server.stop() == 0

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        assert (await client.get_stats("q")).depth == 2
        (message,) = await client.lease("q", 2, wait_ms=20_000)
        assert (message.payload, time.monotonic() >= due_s - 0.05) == (b"later", True)
        assert await client.lease("q", 2, wait_ms=50) == []


async def test_time_to_live_drops_what_nobody_leased_in_time(client: FilaClient, queue: str) -> None:
    leasing = asyncio.ensure_future(client.lease(queue, wait_ms=20_000))
    short_id = await client.enqueue(queue, b"short", ttl_ms=1500)
    (short,) = await leasing
    await client.enqueue(queue, b"held", ttl_ms=1)

    async def dropped_total() -> int:
        return (await client.get_stats(queue)).ttl_dropped_total

    assert await eventually(dropped_total) == 1
    await asyncio.sleep(max(0.0, short.enqueued_at.timestamp() + 1.6 - time.time()))

    # Leased by then, so it may finish; the other one is gone.
    assert short.id == short_id
    await short.ack()
    stats = await client.get_stats(queue)
    assert (stats.depth, stats.in_flight, stats.ttl_dropped_total) == (0, 0, 1)
    assert await client.peek(f"{queue}.dlq") == []


async def test_time_to_live_can_end_in_the_dead_letter_queue(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fila("queue", "update", queue, "--ttl-to-dlq")
    await fila("enqueue", queue, "stale", "--ttl", "100ms")

    (dead,) = await eventually(lambda: client.peek(f"{queue}.dlq"))

    assert (dead.payload, dead.dead_letter.reason, dead.dead_letter.attempts) == (b"stale", "ttl", 0)
    peeked = await fila("queue", "peek", f"{queue}.dlq")
    assert "ttl" in peeked.out


@pytest.mark.parametrize("options", [{"ttl_ms": 0}])
async def test_a_time_to_live_that_is_over_is_refused(
    client: FilaClient, queue: str, options: dict[str, Any]
) -> None:
    with pytest.raises(Invalid, match="ttl_ms"):
        await client.enqueue(queue, b"x", **options)
    assert (await client.get_stats(queue)).depth == 0


# --- dedup --------------------------------------------------------------------------------


async def test_a_dedup_key_is_forgotten_after_its_window(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fila("queue", "update", queue, "--dedup-window", "2s")
    first = await client.enqueue(queue, b"1", dedup_key="k")
    assert await client.enqueue(queue, b"2", dedup_key="k") == first

    async def is_stored_anew() -> bool:
        return await client.enqueue(queue, b"3", dedup_key="k") != first

    await eventually(is_stored_anew)
    assert [message.payload for message in await client.peek(queue)] == [b"1", b"3"]


async def test_a_dedup_key_is_remembered_over_a_restart_and_after_the_ack(start_server: StartServer) -> None:
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q")
        first = await client.enqueue("q", b"x", dedup_key="k")
        (message,) = await client.lease("q")
        await message.ack()
    assert server.stop() == 0

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        assert await client.enqueue("q", b"x", dedup_key="k") == first
        assert (await client.get_stats("q")).depth == 0
        assert await client.enqueue("q", b"x", dedup_key="other") != first


async def test_dedup_keys_have_their_length(client: FilaClient, queue: str) -> None:
    await client.enqueue(queue, b"x", dedup_key="k" * 128)
    with pytest.raises(Invalid, match="dedup_key"):
        await client.enqueue(queue, b"x", dedup_key="k" * 129)


async def test_a_full_dedup_table_refuses_only_enqueues_that_carry_a_key(start_server: StartServer) -> None:
    server = start_server(FILA_LIMITS__DEDUP_KEYS_MAX="3")
    async with FilaClient.connect(server.addresses["grpc"], retry_for_s=0.1) as client:
        await client.create_queue("q", dedup_window_ms=4000)
        first = await client.enqueue("q", b"x", dedup_key="k0")
        for i in (1, 2):
            await client.enqueue("q", b"x", dedup_key=f"k{i}")

        with pytest.raises(Overloaded, match="dedup"):
            await client.enqueue("q", b"x", dedup_key="k3")

        assert await client.enqueue("q", b"x", dedup_key="k0") == first
        await client.enqueue("q", b"x")

        async def has_room() -> bool:
            try:
                return bool(await client.enqueue("q", b"x", dedup_key="k3"))
            except Overloaded:
                return False

        await eventually(has_room)


async def test_headers_that_are_no_utf8_are_refused_and_their_neighbours_are_not(
    server: RunningServer, client: FilaClient, queue: str
) -> None:
    def message(name: bytes, value: bytes) -> bytes:
        header = b"\x0a" + bytes([len(name)]) + name + b"\x12" + bytes([len(value)]) + value
        body = b"\x12" + bytes([len(header)]) + header + b"\x1a\x01x"
        return b"\x12" + bytes([len(body)]) + body

    frame = b"\x0a" + bytes([len(queue)]) + queue.encode()
    frame += message(b"k", b"v") + message(b"k", b"\xff\xfe") + message(b"\xc3", b"v") + message(b"k", b"w")
    enqueue_batch: Any = server.channel().unary_unary("/fila.v1.FilaService/EnqueueBatch")

    results = service_pb2.EnqueueBatchResponse.FromString(enqueue_batch(frame)).results

    assert [result.error.code for result in results] == [0, 3, 3, 0]
    assert [message.headers for message in await client.peek(queue)] == [{"k": "v"}, {"k": "w"}]


async def _weights(client: FilaClient, queue: str) -> dict[str, int]:
    return {key.key: key.weight for key in (await client.get_stats(queue)).per_key_stats}
