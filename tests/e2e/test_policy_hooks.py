"""Lua on a running server: who is asked, what it decides, what happens when it breaks."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fila import FilaClient, FilaError, Invalid, NewMessage
from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.e2e.command_line import CommandLine
from tests.e2e.conftest import RunningServer, StartServer
from tests.waiting import eventually, within_awaited

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine")]

BY_TENANT = """
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant, weight = tonumber(fila.get("weight") or "1"),
           throttle_keys = { "provider:" .. (msg.headers.provider or "none") }, cost = msg.payload_size }
end
"""
BROKEN_WHEN_TOLD = """
function on_enqueue(msg)
  if fila.get(msg.queue .. ".broken") == "yes" then error("told to") end
  return { fairness_key = "by hook" }
end
"""


async def test_a_script_routes_by_headers_and_config(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, on_enqueue_script=BY_TENANT)
    await client.set_config("weight", "7")

    await client.enqueue(queue, b"12345", {"tenant": "acme", "provider": "stripe"})

    (message,) = await client.peek(queue)
    assert (message.fairness_key, message.weight, message.cost) == ("acme", 7, 5.0)
    assert list(message.throttle_keys) == ["provider:stripe"]
    await client.set_config("weight", "9")
    await client.enqueue(queue, b"1", {"tenant": "acme", "provider": "stripe"})
    (key,) = (await client.get_stats(queue)).per_key_stats
    assert (key.key, key.weight, key.pending_count) == ("acme", 9, 2)
    await client.set_config("weight", "")


async def test_what_a_script_leaves_out_the_settings_decide(client: FilaClient, queue: str) -> None:
    await client.update_queue(
        queue,
        fairness_key_header="tenant",
        cost_header="cost",
        on_enqueue_script="function on_enqueue(msg) return { weight = 3 } end",
    )

    await client.enqueue(queue, b"", {"tenant": "acme", "cost": "2.5"})

    (message,) = await client.peek(queue)
    assert (message.fairness_key, message.weight, message.cost) == ("acme", 3, 2.5)


async def test_frames_of_every_kind_pass_the_script(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    await client.update_queue(queue, on_enqueue_script=BY_TENANT)
    request = service_pb2.EnqueueBatchRequest(queue=queue)
    for i in range(100):
        request.messages.add(headers={"tenant": f"t{i % 3}"}, payload=b"x")
    frames = [service_pb2.EnqueueStreamRequest(sequence=i, batch=request) for i in range(3)]

    service = server.service
    service.EnqueueBatch(request)
    assert [answer.sequence for answer in service.EnqueueStream(iter(frames))] == [0, 1, 2]

    keys = (await client.get_stats(queue)).per_key_stats
    assert {key.key: key.pending_count for key in keys} == {"t0": 136, "t1": 132, "t2": 132}


async def test_a_push_over_redis_passes_the_script(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    import redis.asyncio

    script = (
        "function on_enqueue(msg) return { fairness_key = msg.payload_size > 2 and 'big' or 'small' } end"
    )
    await client.update_queue(queue, on_enqueue_script=script)
    host, port = server.addresses["redis"].rsplit(":", 1)
    async with redis.asyncio.Redis(host=host, port=int(port)) as connection:
        await connection.rpush(queue, b"1", b"4444")
        await connection.rpush(queue, b"333")

    assert [message.fairness_key for message in await client.peek(queue)] == ["small", "big", "big"]


async def test_a_script_that_does_not_compile_changes_nothing(client: FilaClient, queue: str) -> None:
    await client.update_queue(queue, on_enqueue_script=BY_TENANT)

    with pytest.raises(Invalid, match=r"config\.on_enqueue_script .*near 'end'"):
        await client.update_queue(queue, max_attempts=3, on_enqueue_script="function on_enqueue( end")
    with pytest.raises(Invalid, match="on_failure"):
        await client.update_queue(queue, on_failure_script="function on_enqueue(msg) end")
    with pytest.raises(Invalid, match="on_enqueue_script"):
        await client.create_queue(f"{queue}-2", on_enqueue_script="this is no Lua")

    config = (await client.get_queue(queue)).config
    assert (config.on_enqueue_script, config.max_attempts) == (BY_TENANT, 20)
    assert f"{queue}-2" not in {info.name for info in await client.list_queues()}


HOSTILE = {
    "an endless loop": "while true do end",
    "an endless loop inside pcall": "while true do pcall(function() while true do end end) end",
    "recursion": "local function f() return f() + 1 end return f()",
    "memory": "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) end",
    "a table as error": "error({})",
    "a number": "return 7",
    "a wrong type": "return { weight = {} }",
    "too many keys": "local k = {} for i = 1, 17 do k[i] = 'k' .. i end return { throttle_keys = k }",
    "an over-long key": "return { fairness_key = ('k'):rep(257) }",
    "a key that is no UTF-8": "return { fairness_key = '\\xff\\xfe' }",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_a_hook_that_fails_never_fails_the_enqueue(client: FilaClient, queue: str, body: str) -> None:
    await client.update_queue(
        queue,
        fairness_key_header="tenant",
        on_enqueue_script=f"function on_enqueue(msg) {body} end",
    )

    for _ in range(5):
        await client.enqueue(queue, b"x", {"tenant": "acme"})

    stats = await client.get_stats(queue)
    assert {key.key: key.pending_count for key in stats.per_key_stats} == {"acme": 5}
    assert (stats.hook_fallbacks, stats.hook_errors) == (5, 3), "three in a row open the circuit"
    assert stats.breaker_state == "open"


async def test_health_stays_up_and_other_queues_do_not_notice_a_broken_hook(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    await client.update_queue(queue, on_enqueue_script="function on_enqueue(msg) while true do end end")
    await client.create_queue(f"{queue}-good", on_enqueue_script=BY_TENANT)

    await asyncio.gather(*(client.enqueue(queue, b"x") for _ in range(20)))
    await client.enqueue(f"{queue}-good", b"x", {"tenant": "acme"})

    health = health_pb2_grpc.HealthStub(server.channel()).Check(health_pb2.HealthCheckRequest())
    assert health.status == health_pb2.HealthCheckResponse.SERVING
    (message,) = await client.peek(f"{queue}-good")
    assert message.fairness_key == "acme"


async def test_a_weight_out_of_bounds_is_clamped_and_counted(client: FilaClient, queue: str) -> None:
    script = "function on_enqueue(msg) return { weight = tonumber(msg.headers.w) } end"
    await client.update_queue(queue, on_enqueue_script=script)

    await client.enqueue(queue, b"", {"w": "1000000000"})
    await client.enqueue(queue, b"", {"w": "0"})

    stats = await client.get_stats(queue)
    assert (stats.weights_clamped_total, stats.per_key_stats[0].weight) == (2, 1)


# --- hold ---------------------------------------------------------------------------------


async def test_held_messages_wait_and_are_routed_when_the_script_is_repaired(
    client: FilaClient, queue: str
) -> None:
    await client.update_queue(queue, on_enqueue_script=BROKEN_WHEN_TOLD, hook_fallback="hold")
    await client.set_config(f"{queue}.broken", "yes")

    waiting = [asyncio.ensure_future(client.enqueue(queue, b"%d" % i)) for i in range(5)]
    await asyncio.sleep(0.2)
    assert not any(call.done() for call in waiting)
    assert (await client.get_stats(queue)).depth == 0
    await client.update_queue(queue, on_enqueue_script=BROKEN_WHEN_TOLD.replace('"yes"', '"very"'))

    await asyncio.wait_for(asyncio.gather(*waiting), 30)
    assert {message.fairness_key for message in await client.peek(queue)} == {"by hook"}
    await client.set_config(f"{queue}.broken", "")


async def test_a_held_message_is_routed_again_when_the_circuit_lets_a_call_through(
    start_server: StartServer,
) -> None:
    server = start_server(FILA_LUA__CIRCUIT_BREAKER_COOLDOWN_MS="300")
    async with FilaClient.connect(server.addresses["grpc"], call_timeout_s=30) as client:
        await client.create_queue("q", on_enqueue_script=BROKEN_WHEN_TOLD, hook_fallback="hold")
        await client.set_config("q.broken", "yes")
        waiting = [asyncio.ensure_future(client.enqueue("q", b"x")) for _ in range(4)]
        await asyncio.sleep(0.5)
        await client.set_config("q.broken", "")

        await asyncio.wait_for(asyncio.gather(*waiting), 30)

        assert {message.fairness_key for message in await client.peek("q")} == {"by hook"}
        stats = await client.get_stats("q")
        assert (stats.breaker_state, stats.hook_fallbacks) == ("closed", 0)


async def test_a_caller_who_gives_up_takes_the_held_message_back(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    await client.update_queue(queue, on_enqueue_script=BROKEN_WHEN_TOLD, hook_fallback="hold")
    await client.set_config(f"{queue}.broken", "yes")

    # On one connection, whose words the broker hears in their order: that the caller gave up, and then the new script.
    channel = server.channel()
    service, admin = service_pb2_grpc.FilaServiceStub(channel), admin_pb2_grpc.FilaAdminStub(channel)
    with pytest.raises(grpc.RpcError) as late:
        service.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=b"x"), timeout=0.3)
    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    admin.SetConfig(admin_pb2.SetConfigRequest(key=f"{queue}.broken", value=""))
    await client.update_queue(queue, hook_fallback="policy")

    await asyncio.sleep(0.2)
    assert (await client.get_stats(queue)).depth == 0


@pytest.mark.timeout(240)  # a server for each attempt
async def test_a_server_that_stops_does_not_wait_for_a_broken_script(
    start_server: StartServer, tmp_path: Path
) -> None:
    async def stopped_s(number: int) -> float:
        server = start_server(tmp_path / f"data-{number}")
        async with FilaClient.connect(server.addresses["grpc"], call_timeout_s=20, retry_for_s=0.1) as client:
            await client.create_queue(
                "q", on_enqueue_script="function on_enqueue(m) error('x') end", hook_fallback="hold"
            )
            on_a_stream = asyncio.ensure_future(client.enqueue("q", b"x"))
            alone = server.service.Enqueue.future(service_pb2.EnqueueRequest(queue="q"))

            async def both_wait() -> bool:
                return sum(hook.held for hook in (await client.get_stats("q")).hooks) >= 2

            await eventually(both_wait)
            began_s = time.monotonic()
            server.process.terminate()
            told = await asyncio.to_thread(alone.exception)
            assert await asyncio.to_thread(server.stop) == 0
            took_s = time.monotonic() - began_s
            assert told.code() is grpc.StatusCode.UNAVAILABLE
            with pytest.raises(FilaError):
                await on_a_stream
            return took_s

    await within_awaited(3, stopped_s)


# --- restarts -----------------------------------------------------------------------------


async def test_scripts_and_config_are_back_after_a_restart(start_server: StartServer) -> None:
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q", on_enqueue_script=BY_TENANT)
        await client.set_config("weight", "4")
    assert server.stop() == 0

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.enqueue("q", b"x", {"tenant": "acme"})
        (message,) = await client.peek("q")
        assert (message.fairness_key, message.weight) == ("acme", 4)


# --- on_failure ---------------------------------------------------------------------------

BY_ERROR = """
function on_failure(msg)
  if msg.error:find("card declined") then return { action = "dlq" } end
  if msg.headers.slow then return { action = "retry", delay_ms = 60000 } end
  if msg.error == "by policy" then return { action = "retry" } end
  if msg.error == "boom" then error("told to") end
  return { action = "retry", delay_ms = 0 }
end
"""


async def test_on_failure_decides_between_retry_and_dead_letter(client: FilaClient, queue: str) -> None:
    await client.update_queue(
        queue, on_failure_script=BY_ERROR, retry={"base_ms": 3_600_000, "kind": "fixed"}
    )
    for name in ("declined", "again", "policy", "boom"):
        await client.enqueue(queue, name.encode())
    by_payload = {message.payload: message for message in await client.lease(queue, 10)}

    await by_payload[b"declined"].nack("card declined: 51")
    await by_payload[b"again"].nack("timeout")
    await by_payload[b"policy"].nack("by policy")
    await by_payload[b"boom"].nack("boom")

    (again,) = await client.lease(queue, 10, wait_ms=20_000)
    assert (again.payload, again.attempt_count) == (b"again", 1)
    await again.ack()
    (dead,) = await client.peek(f"{queue}.dlq")
    assert dead.dead_letter is not None
    assert (dead.payload, dead.dead_letter.reason) == (b"declined", "on_failure")
    assert (dead.dead_letter.last_error, dead.dead_letter.attempts) == ("card declined: 51", 1)
    stats = await client.get_stats(queue)
    assert (stats.depth, stats.hook_errors, stats.hook_fallbacks) == (2, 1, 1)


async def test_an_expired_lease_asks_the_script_too(client: FilaClient, queue: str) -> None:
    script = (
        "function on_failure(msg) return { action = msg.error:find('visibility') and 'dlq' or 'retry' } end"
    )
    await client.update_queue(queue, on_failure_script=script, visibility_timeout_ms=1000)
    await client.enqueue(queue, b"x")
    await client.lease(queue)

    (dead,) = await _until_some(lambda: client.peek(f"{queue}.dlq"))

    assert dead.dead_letter.last_error == "visibility timeout expired"


async def test_a_thousand_failures_at_once_are_all_decided(client: FilaClient, queue: str) -> None:
    script = """function on_failure(msg)
      return { action = tonumber(msg.headers.n) % 2 == 0 and "dlq" or "retry", delay_ms = 0 }
    end"""
    await client.update_queue(queue, on_failure_script=script)
    await client.enqueue_many(queue, [NewMessage(payload=b"x", headers={"n": str(i)}) for i in range(1000)])
    held = await client.lease(queue, 1000)
    assert len(held) == 1000

    await client.nack_many(held, "all at once")

    assert (await client.get_stats(queue)).depth == 500
    assert (await client.get_stats(f"{queue}.dlq")).depth == 500


async def test_a_delay_a_script_asked_for_survives_a_restart(start_server: StartServer) -> None:
    script = "function on_failure(msg) return { action = 'retry', delay_ms = 3000 } end"
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q", on_failure_script=script)
        await client.enqueue("q", b"x")
        (message,) = await client.lease("q")
        failed_s = time.monotonic()
        await message.nack("later")
    assert server.stop() == 0

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        (message,) = await client.lease("q", wait_ms=20_000)
        assert time.monotonic() > failed_s + 2.9
        assert message.attempt_count == 1
        await message.ack()


async def test_leases_that_ended_while_the_server_was_down_ask_the_script(start_server: StartServer) -> None:
    script = "function on_failure(msg) return { action = 'dlq' } end"
    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        await client.create_queue("q", on_failure_script=script, visibility_timeout_ms=1000)
        await client.enqueue("q", b"x")
        await client.lease("q")
    assert server.stop() == 0
    await asyncio.sleep(1.2)

    server = start_server()
    async with FilaClient.connect(server.addresses["grpc"]) as client:
        (dead,) = await _until_some(lambda: client.peek("q.dlq"))
        assert (dead.dead_letter.reason, dead.dead_letter.attempts) == ("on_failure", 1)


async def test_inspect_shows_what_the_hooks_went_through(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    await client.update_queue(queue, on_enqueue_script="function on_enqueue(msg) error('x') end")
    await asyncio.gather(*(client.enqueue(queue, b"x") for _ in range(7)))

    inspected = await CommandLine(server.addresses["grpc"])("queue", "inspect", queue)

    assert (inspected.fact("hook fallbacks"), inspected.fact("hook errors")) == ("7", "3")
    assert "circuit open" in inspected.out


async def test_a_frame_of_many_queues_meets_each_ones_script(
    client: FilaClient, server: RunningServer, queue: str
) -> None:
    await client.create_queue(
        f"{queue}-a", on_enqueue_script="function on_enqueue(m) return {fairness_key='A'} end"
    )
    request = service_pb2.EnqueueBatchRequest(queue=queue)
    for i in range(30):
        request.messages.add(queue=f"{queue}-a" if i % 3 else "", payload=b"x")
    request.messages.add(queue="no such queue", payload=b"x")

    results = server.service.EnqueueBatch(request).results

    assert [result.error.code for result in results] == [0] * 30 + [3]
    keys = {message.fairness_key for message in await client.peek(f"{queue}-a", max_messages=100)}
    assert keys == {"A"}
    assert {message.fairness_key for message in await client.peek(queue, max_messages=100)} == {"default"}


async def test_max_attempts_caps_a_script_that_always_retries(client: FilaClient, queue: str) -> None:
    script = "function on_failure(msg) return { action = 'retry', delay_ms = 0 } end"
    await client.update_queue(queue, on_failure_script=script, max_attempts=2)
    await client.enqueue(queue, b"x")

    for _ in range(2):
        (message,) = await client.lease(queue, wait_ms=20_000)
        await message.nack("no")

    (dead,) = await client.peek(f"{queue}.dlq")
    assert (dead.dead_letter.reason, dead.dead_letter.attempts) == ("max_attempts", 2)


async def _until_some(look, within_s: float = 30.0):
    ends_s = time.monotonic() + within_s
    while not (found := await look()):
        assert time.monotonic() < ends_s, "nothing came"
        await asyncio.sleep(0.02)
    return found
