"""An operator's hand on one fairness key: effective at once on what waits, kept over a restart."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from fila import FilaClient, NewMessage
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import StartServer

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]


async def fill(client: FilaClient, queue: str, **counts: int) -> None:
    """A queue shared by tenant, with so many messages of each."""
    await client.update_queue(queue, fairness_key_header="tenant", throttle_key_headers=["p"])
    for tenant, count in counts.items():
        await client.enqueue_many(queue, [NewMessage(payload=b"x", headers={"tenant": tenant})] * count)


async def test_a_weight_set_by_an_operator_wins_at_once(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fill(client, queue, acme=200, globex=200)
    assert await _shares(client, queue, 20) == {"acme": 10, "globex": 10}

    ran = await fila("key", "weight", queue, "acme", "4")
    assert ran.fact("weight") == "4"
    shares = await _shares(client, queue, 50)
    assert abs(shares["acme"] - 40) <= 4

    await client.update_queue(queue, weights={"acme": 2})
    assert (await client.get_stats(queue)).per_key_stats[-1].key in {"acme", "globex"}
    assert await _weight(client, queue, "acme") == 4, "an operator's word is above the table's"
    await fila("key", "weight", queue, "acme", "0")
    await client.enqueue(queue, b"x", {"tenant": "acme"})
    assert await _weight(client, queue, "acme") == 2


async def test_a_key_that_nothing_waits_under_is_paused_all_the_same_and_the_answer_says_so(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fill(client, queue, acme=3)

    mistyped = await fila("key", "pause", queue, "amce")
    meant = await fila("key", "pause", queue, "acme")

    assert mistyped.fact("paused") == meant.fact("paused") == "yes"
    assert f"Nothing of amce waits in {queue} just now" in mistyped.out
    assert "Nothing of" not in meant.out
    assert (await client.set_key_policy(queue, "amce", paused=True)).pending == 0
    assert (await client.set_key_policy(queue, "acme", paused=True)).pending == 3
    await client.enqueue(queue, b"x", {"tenant": "amce"})
    assert await client.lease(queue, 10, wait_ms=100) == [], "a policy may be ahead of its messages"


async def test_a_paused_key_waits_alone_until_it_is_resumed(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fill(client, queue, acme=5, globex=5)

    assert (await fila("key", "pause", queue, "acme")).fact("paused") == "yes"
    got = await client.lease(queue, 10, wait_ms=200)
    assert {message.fairness_key for message in got} == {"globex"}
    inspected = await fila("queue", "inspect", queue, "--wide")
    assert "yes" in inspected.out
    waiting = asyncio.ensure_future(client.lease(queue, 10, wait_ms=30_000))
    await asyncio.sleep(0.1)
    assert not waiting.done()

    assert (await fila("key", "resume", queue, "acme")).fact("paused") == "no"

    assert len(await asyncio.wait_for(waiting, 30)) == 5


async def test_a_key_paused_before_it_exists_stays_paused(client: FilaClient, queue: str) -> None:
    await client.set_key_policy(queue, "acme", paused=True)
    await fill(client, queue, acme=1)

    assert await client.lease(queue, wait_ms=200) == []


async def test_a_cap_bounds_what_is_in_flight(client: FilaClient, fila: CommandLine, queue: str) -> None:
    await fill(client, queue, acme=10, globex=3)

    assert (await fila("key", "cap", queue, "acme", "2")).fact("in flight at most") == "2"
    held = await client.lease(queue, 20, wait_ms=200)
    assert Counter(message.fairness_key for message in held) == {"acme": 2, "globex": 3}
    first = next(message for message in held if message.fairness_key == "acme")
    await first.ack()
    (next_,) = await client.lease(queue, 20, wait_ms=20_000)
    assert next_.fairness_key == "acme"

    await fila("key", "cap", queue, "acme", "0")

    assert len(await client.lease(queue, 20, wait_ms=20_000)) == 7


async def test_a_failed_message_gives_its_place_under_the_cap_back(client: FilaClient, queue: str) -> None:
    script = "function on_failure(msg) return { action = 'retry', delay_ms = 60000 } end"
    await client.update_queue(queue, on_failure_script=script)
    await client.set_key_policy(queue, "acme", max_in_flight=1)
    await fill(client, queue, acme=3)

    for _ in range(3):
        (message,) = await client.lease(queue, 5, wait_ms=20_000)
        await message.nack("no")

    assert (await client.get_stats(queue)).in_flight == 0


async def test_purge_drops_one_key_and_leaves_what_is_leased(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    await fill(client, queue, acme=5, globex=2)
    await client.update_queue(queue, weights={"acme": 100})
    (held,) = await client.lease(queue)

    ran = await fila("key", "purge", queue, "acme", "--yes")

    assert ran.out.strip() == f"{4 if held.fairness_key == 'acme' else 5} messages dropped"
    stats = await client.get_stats(queue)
    assert {key.key: key.pending_count for key in stats.per_key_stats if key.pending_count} == {
        "globex": 2 if held.fairness_key == "acme" else 1
    }
    await held.ack()


async def test_an_operators_hand_is_kept_over_a_restart(start_server: StartServer) -> None:
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q")
        await client.set_key_policy("q", "paused", paused=True)
        await client.set_key_policy("q", "capped", max_in_flight=1)
        await client.set_key_policy("q", "heavy", weight=3)
        await client.set_key_policy("q", "resumed", paused=True)
        await client.set_key_policy("q", "resumed", paused=False)
        await fill(client, "q", paused=2, capped=2, heavy=40, light=40, resumed=1)
    assert server.stop() == 0

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        got = Counter(message.fairness_key for message in await client.lease("q", 26))
        assert (got["paused"], got["capped"], got["resumed"]) == (0, 1, 1)
        assert abs(got["heavy"] - 3 * got["light"]) <= 4
        assert await _weight(client, "q", "heavy") == 3
        assert (await client.set_key_policy("q", "paused", paused=False)).paused is False
        await fill(client, "q", paused=1)
        got = Counter(message.fairness_key for message in await client.lease("q", 100))
        assert got["paused"] == 3


async def _shares(client: FilaClient, queue: str, count: int) -> Counter[str]:
    messages = await client.lease(queue, count)
    await client.ack_many(messages)
    return Counter(message.fairness_key for message in messages)


async def _weight(client: FilaClient, queue: str, key: str) -> int:
    stats = (await client.get_stats(queue)).per_key_stats
    return next(row.weight for row in stats if row.key == key)
