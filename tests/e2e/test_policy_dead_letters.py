"""The dead-letter queue on a running server: what lands there, how it is looked at, and the way back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from fila import FilaClient, Invalid, NewMessage, QueueNotFound, SourceQueueGone
from fila.v1 import admin_pb2
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import RunningServer, StartServer
from tests.waiting import eventually, within_awaited

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]


async def kill(
    client: FilaClient, queue: str, messages: list[NewMessage | bytes], error: str = "no"
) -> list[str]:
    """Enqueue messages and fail each until it is a dead letter; return their ids."""
    await client.update_queue(queue, max_attempts=1)
    ids = [str(id_) for id_ in await client.enqueue_many(queue, messages)]
    left = len(ids)
    while left:
        leased = await client.lease(queue, 1000, wait_ms=1000)
        await client.nack_many(leased, error)
        left -= len(leased)
    return ids


async def test_a_dead_letter_says_why_it_died(client: FilaClient, fila: CommandLine, queue: str) -> None:
    await kill(client, queue, [b"payload"], "connection refused")

    peeked = await fila("queue", "peek", f"{queue}.dlq")
    assert "max_attempts" in peeked.out
    assert "connection refused" in peeked.out
    (letter,) = await client.peek(f"{queue}.dlq")
    assert letter.dead_letter is not None
    assert (letter.dead_letter.source_queue, letter.dead_letter.source_channel) == (queue, "default")
    # Peeking leases nothing.
    assert (await client.get_stats(f"{queue}.dlq")).depth == 1


async def test_a_dlq_is_consumed_like_any_queue_and_its_failures_stay_in_it(
    client: FilaClient, queue: str
) -> None:
    (id_,) = await kill(client, queue, [b"x"])

    for attempt in range(3):
        (letter,) = await client.lease(f"{queue}.dlq", wait_ms=20_000)
        assert (letter.id, letter.attempt_count) == (id_, attempt)
        assert letter.dead_letter is not None
        await letter.nack("not yet", delay_ms=0)
    async for letter in client.consume(f"{queue}.dlq"):
        await letter.ack()
        break

    assert (await client.get_stats(f"{queue}.dlq")).depth == 0


async def test_redrive_by_count_takes_the_oldest_first(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    ids = await kill(client, queue, [b"%d" % i for i in range(5)])

    ran = await fila("dlq", "redrive", f"{queue}.dlq", "--count", "2")
    assert "2 dead letters moved back" in ran.out
    back = await client.lease(queue, 10)
    assert [(message.id, message.attempt_count, message.payload) for message in back] == [
        (ids[0], 0, b"0"),
        (ids[1], 0, b"1"),
    ]
    assert all(message.dead_letter is None for message in back)
    assert [letter.id for letter in await client.peek(f"{queue}.dlq")] == ids[2:]

    assert (await fila("dlq", "redrive", f"{queue}.dlq", "-o", "json")).json["redriven"] in (3, "3")
    assert (await fila("dlq", "redrive", f"{queue}.dlq", "-o", "json")).json.get("redriven", 0) in (0, "0")


async def test_redrive_of_thousands_moves_each_once(client: FilaClient, queue: str) -> None:
    ids = await kill(client, queue, [b"x"] * 3000)

    assert await client.redrive(f"{queue}.dlq") == 3000

    got: list[str] = []
    while len(got) < 3000:
        got += [message.id for message in await client.lease(queue, 1000, wait_ms=1000)]
    assert got == ids
    assert (await client.get_stats(f"{queue}.dlq")).depth == 0


async def test_a_paced_redrive_keeps_its_pace(client: FilaClient, fila: CommandLine, queue: str) -> None:
    async def moved_within_s(number: int) -> float:
        name = f"{queue}-{number}"
        await client.create_queue(name)
        await kill(client, name, [b"x"] * 60)
        began_s = time.monotonic()
        redriving = asyncio.ensure_future(fila("dlq", "redrive", f"{name}.dlq", "--rate", "40"))
        seen = []
        while not redriving.done():
            depth = (await client.get_stats(name)).depth
            seen.append((time.monotonic() - began_s, depth))
            await asyncio.sleep(0.05)
        assert "60 dead letters" in (await redriving).out
        # Ten a page, so the sixth is due after 50 / 40 s. How soon the command itself starts and ends is no part of it.
        assert time.monotonic() - began_s >= 1.25
        # Never ahead of the pace by more than a page of ten: the first moves at once, however fast the command starts.
        assert all(depth <= 40 * at_s + 10 for at_s, depth in seen)
        first_s = next(at_s for at_s, depth in seen if depth)
        return next((at_s for at_s, depth in seen if depth == 60), seen[-1][0]) - first_s

    await within_awaited(3, moved_within_s)


async def test_a_redrive_whose_caller_goes_away_stops_at_a_page(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    await kill(client, queue, [b"x"] * 100)
    request = admin_pb2.RedriveRequest(dlq_queue=f"{queue}.dlq", rate_per_second=20)

    began_s = time.monotonic()
    redriving = server.admin.Redrive.future(request)

    async def has_ended() -> bool:
        told = [line for line in server.log if line["event"] == "dead_letters.redriven"]
        return any(line["queue"] == f"{queue}.dlq" for line in told)

    async def has_moved_some() -> bool:
        return (await client.get_stats(queue)).depth >= 4

    await eventually(has_moved_some)
    redriving.cancel()
    await eventually(has_ended)
    moved = (await client.get_stats(queue)).depth
    went_on_for_s = time.monotonic() - began_s
    await asyncio.sleep(0.5)

    assert (await client.get_stats(queue)).depth == moved
    assert 4 <= moved <= 20 * went_on_for_s + 10
    assert (await client.get_stats(f"{queue}.dlq")).depth == 100 - moved


async def test_what_fails_again_during_a_redrive_is_not_moved_twice(client: FilaClient, queue: str) -> None:
    await kill(client, queue, [b"x"] * 20)
    redriving = asyncio.ensure_future(client.redrive(f"{queue}.dlq", rate_per_second=50))
    failed = 0

    while not redriving.done() or failed < 20:
        again = await client.lease(queue, 10, wait_ms=50)
        await client.nack_many(again, "again")
        failed += len(again)

    assert await redriving == 20
    assert failed == 20
    assert (await client.get_stats(f"{queue}.dlq")).depth == 20


async def test_todays_script_routes_what_comes_back(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, fairness_key_header="tenant")
    await kill(client, queue, [NewMessage(payload=b"x", headers={"tenant": f"t{i}"}) for i in range(600)])
    script = """function on_enqueue(msg)
      return { fairness_key = "new " .. msg.headers.tenant, weight = 5, cost = 2,
               throttle_keys = { "p:" .. msg.headers.tenant } }
    end"""
    await client.update_queue(queue, on_enqueue_script=script)

    assert await client.redrive(f"{queue}.dlq") == 600

    back = await client.peek(queue, max_messages=600)
    assert {message.fairness_key for message in back} == {f"new t{i}" for i in range(600)}
    assert {(message.weight, message.cost) for message in back} == {(5, 2.0)}
    assert list(back[0].throttle_keys) == ["p:t0"]


async def test_todays_settings_route_what_comes_back(client: FilaClient, queue: str) -> None:
    await kill(client, queue, [NewMessage(payload=b"x", headers={"tenant": "acme"})])
    await client.update_queue(queue, fairness_key_header="tenant")

    await client.redrive(f"{queue}.dlq")

    (message,) = await client.peek(queue)
    assert message.fairness_key == "acme"


async def test_a_script_that_fails_leaves_redrive_to_the_settings(client: FilaClient, queue: str) -> None:
    await kill(client, queue, [NewMessage(payload=b"x", headers={"tenant": "acme"})] * 5)
    await client.update_queue(
        queue, fairness_key_header="tenant", on_enqueue_script="function on_enqueue(msg) error('x') end"
    )

    assert await client.redrive(f"{queue}.dlq") == 5

    assert {message.fairness_key for message in await client.peek(queue)} == {"acme"}


async def test_only_the_channel_that_failed_sees_it_again(client: FilaClient, queue: str) -> None:
    await client.create_channel(queue, "audit")
    await client.update_queue(queue, max_attempts=1)
    await client.enqueue(queue, b"x")
    (done,) = await client.lease(queue)
    await done.ack()
    (failed,) = await client.lease(queue, channel="audit")
    await failed.nack("audit is down")
    (letter,) = await client.peek(f"{queue}.dlq")
    assert letter.dead_letter is not None
    assert letter.dead_letter.source_channel == "audit"

    assert await client.redrive(f"{queue}.dlq") == 1

    assert await client.lease(queue, wait_ms=200) == []
    (again,) = await client.lease(queue, channel="audit", wait_ms=20_000)
    assert (again.id, again.attempt_count) == (failed.id, 0)


async def test_both_sides_of_a_redrive_survive_a_restart(start_server: StartServer) -> None:
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q")
        ids = await kill(client, "q", [b"%d" % i for i in range(10)])
        assert await client.redrive("q.dlq", count=4) == 4
    assert server.stop() == 0

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        assert [message.id for message in await client.peek("q")] == ids[:4]
        assert [letter.id for letter in await client.peek("q.dlq")] == ids[4:]
        assert await client.redrive("q.dlq") == 6


async def test_an_answered_decision_and_an_answered_redrive_outlive_a_kill(start_server: StartServer) -> None:
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        script = "function on_failure(msg) return { action = 'dlq' } end"
        await client.create_queue("q", on_failure_script=script)
        ids = [str(id_) for id_ in await client.enqueue_many("q", [b"%d" % i for i in range(50)])]
        await client.nack_many(await client.lease("q", 50), "no")
        server.process.kill()
    server.process.wait()

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        assert (await client.get_stats("q")).depth == 0
        assert [letter.id for letter in await client.peek("q.dlq", max_messages=100)] == ids
        assert await client.redrive("q.dlq", count=20) == 20
        server.process.kill()
    server.process.wait()

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        assert [message.id for message in await client.peek("q", max_messages=100)] == ids[:20]
        assert [letter.id for letter in await client.peek("q.dlq", max_messages=100)] == ids[20:]


@pytest.mark.timeout(240)  # a server for each attempt
async def test_a_server_that_stops_ends_a_paced_redrive(start_server: StartServer, tmp_path: Path) -> None:
    async def stopped_s(number: int) -> float:
        server = start_server(tmp_path / f"data-{number}")
        async with FilaClient.connect(server.addresses["grpc"], retry_for_s=0.1) as client:
            await client.create_queue("q")
            await kill(client, "q", [b"x"] * 5)
            redriving = asyncio.ensure_future(client.redrive("q.dlq", rate_per_second=0.1, timeout_s=60))

            async def has_begun() -> bool:
                return (await client.get_stats("q")).depth > 0

            await eventually(has_begun)
            began_s = time.monotonic()
            assert await asyncio.to_thread(server.stop) == 0
            took_s = time.monotonic() - began_s
            assert (await asyncio.gather(redriving, return_exceptions=True))[0] != 5
            return took_s

    await within_awaited(3, stopped_s)


# --- refusals -----------------------------------------------------------------------------


async def test_redrive_of_what_is_no_dlq_is_refused(
    client: FilaClient, fila: CommandLine, queue: str
) -> None:
    with pytest.raises(Invalid, match="dead-letter queue"):
        await client.redrive(queue)
    with pytest.raises(QueueNotFound):
        await client.redrive(f"{queue}-missing.dlq")
    ran = await fila("dlq", "redrive", queue, expect=1)
    assert "dead-letter queue" in ran.err


async def test_redrive_whose_source_is_gone_is_refused(client: FilaClient, queue: str) -> None:
    # An adopted dead-letter queue stays when its source goes.
    source = f"{queue}-x"
    await client.create_queue(f"{source}.dlq")
    await client.create_queue(source)
    await kill(client, source, [b"x"])
    await client.delete_queue(source)
    assert (await client.get_stats(f"{source}.dlq")).depth == 1

    with pytest.raises(SourceQueueGone, match="gone"):
        await client.redrive(f"{source}.dlq")

    await client.create_queue(source)
    assert await client.redrive(f"{source}.dlq") == 1


async def test_what_was_put_into_a_dlq_by_hand_is_stepped_over(client: FilaClient, queue: str) -> None:
    for _ in range(300):
        await client.enqueue(f"{queue}.dlq", b"by hand")
    ids = await kill(client, queue, [b"a", b"b"])

    assert await client.redrive(f"{queue}.dlq") == 2

    assert [message.id for message in await client.peek(queue)] == ids
    assert (await client.get_stats(f"{queue}.dlq")).depth == 300
    with pytest.raises(Exception, match="none of the 300 messages"):
        await client.redrive(f"{queue}.dlq")


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
async def test_a_pace_that_is_none_is_refused(client: FilaClient, queue: str, rate: float) -> None:
    with pytest.raises(Invalid, match="rate_per_second"):
        await client.redrive(f"{queue}.dlq", rate_per_second=rate)
