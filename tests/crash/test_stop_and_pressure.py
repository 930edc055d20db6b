"""SIGTERM under load, restarts with everything pending, and consumers that stall, vanish or never read."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import admin_pb2, service_pb2, service_pb2_grpc
from tests.crash.check import check
from tests.crash.load import Load
from tests.crash.witness import Witness
from tests.e2e.conftest import RunningServer, StartServer, launch, wait_until_started
from tests.waiting import eventually, within_awaited

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(120)]

MIB = 1 << 20


@pytest.mark.costly("a server under full load")
async def test_sigterm_under_load_is_exit_0_in_ten_seconds_and_loses_nothing_answered(tmp_path: Path) -> None:
    load = Load(Witness(), seed=5)
    server: RunningServer | None = None
    try:
        for life in range(4):
            server = wait_until_started(launch(tmp_path / "data", tmp_path / f"server-{life}.log"))
            async with load.connected(server.addresses["grpc"]):
                if life == 0:
                    await load.new_queues()
                else:
                    await check(load)
                actors = load.start()
                await asyncio.sleep(0.8)
                asked_s = time.monotonic()
                server.process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(server.process.wait, 10) == 0
                assert time.monotonic() - asked_s < 10
                for actor in actors:
                    actor.cancel()
                await asyncio.gather(*actors)
            load.died()
        server = wait_until_started(launch(tmp_path / "data", tmp_path / "server-last.log"))
        async with load.connected(server.addresses["grpc"]):
            await check(load)
    finally:
        if server is not None:
            server.process.kill()
            server.process.wait()
    assert not load.witness.violations, load.witness.violations
    assert load.witness.counts["settled"] > 1_000


def _enqueue(server: RunningServer, queue: str, *messages: dict[str, Any]) -> list[Any]:
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=messages)
    return list(server.service.EnqueueBatch(batch, timeout=10).results)


def _lease(server: RunningServer, queue: str, count: int = 100, wait_ms: int = 0) -> list[Any]:
    request = service_pb2.LeaseRequest(queue=queue, max_messages=count, wait_ms=wait_ms)
    return list(server.service.Lease(request, timeout=20).messages)


def _settle(message: Any, **fields: Any) -> dict[str, Any]:
    return {"queue": "orders", "message_id": message.id, "lease_id": message.metadata.lease_id, **fields}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_delays_leases_pauses_attempts_and_bucket_levels_outlive_a_restart(
    start_server: StartServer, number: signal.Signals
) -> None:
    first = start_server()
    config = admin_pb2.QueueConfig(
        fairness_key_header="key", throttle_key_headers=["to"], visibility_timeout_ms=6_000
    )
    first.admin.CreateQueue(admin_pb2.CreateQueueRequest(name="orders", config=config))
    # Empty for the rest of this test: one token in a hundred seconds.
    first.admin.SetConfig(admin_pb2.SetConfigRequest(key="throttle.slow", value="0.01,2"))
    first.admin.SetKeyPolicy(
        admin_pb2.SetKeyPolicyRequest(queue="orders", fairness_key="paused", paused=True)
    )
    _enqueue(first, "orders", *[{"payload": b"slow", "headers": {"to": "slow"}}] * 3)
    _enqueue(first, "orders", {"payload": b"leased"}, {"payload": b"failed"}, {"payload": b"acked"})
    _enqueue(first, "orders", {"payload": b"paused", "headers": {"key": "paused"}})
    began_s = time.monotonic()
    _enqueue(first, "orders", {"payload": b"delayed", "options": {"delay_ms": 4_500}})
    held = {message.payload: message for message in _lease(first, "orders")}
    assert set(held) == {b"slow", b"leased", b"failed", b"acked"}
    first.service.Nack(service_pb2.NackRequest(**_settle(held[b"failed"], error="no", delay_ms=4_000)))
    first.service.Ack(service_pb2.AckRequest(**_settle(held[b"acked"])))
    first.stop(number)

    second = start_server(first.data_dir)
    try:
        second.service.Ack(
            service_pb2.AckRequest(**_settle(held[b"leased"]))
        )  # a lease is good for its new life
    except grpc.RpcError:
        assert time.monotonic() - began_s >= 6, "its lease was not over"
    # Leased, delayed, paused or throttled, all of it: nothing comes before its time, however long the start took.
    came: dict[bytes, Any] = {}
    came_s: dict[bytes, float] = {}
    while not {b"failed", b"delayed"} <= came.keys():
        for message in _lease(second, "orders", wait_ms=10_000):
            came[message.payload], came_s[message.payload] = message, time.monotonic() - began_s
    failed, delayed = came[b"failed"], came[b"delayed"]
    assert (failed.metadata.attempt_count, delayed.metadata.attempt_count) == (1, 0)
    assert came_s[b"failed"] >= 3.9
    assert came_s[b"delayed"] >= 4.4
    assert set(came) - {b"leased"} == {b"failed", b"delayed"}
    assert came_s.get(b"leased", 6.0) >= 6
    resume = admin_pb2.SetKeyPolicyRequest(queue="orders", fairness_key="paused", paused=False)
    second.admin.SetKeyPolicy(resume)
    assert b"paused" in [message.payload for message in _lease(second, "orders", wait_ms=20_000)]
    # The slow ones' leases are over in six seconds; that is a failure, and their bucket is still empty.
    leases = {m.metadata.lease_id for m in [*held.values(), failed, delayed]}
    assert len(leases) == len(held) + 2, "a lease's id came twice"
    while time.monotonic() - began_s < 7.0:
        assert not [m for m in _lease(second, "orders") if m.payload == b"slow"]
        time.sleep(0.3)
    assert second.stop() == 0


@pytest.fixture
async def service(server: RunningServer) -> AsyncIterator[Any]:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    async with aio.insecure_channel(server.addresses["grpc"], options=options) as channel:
        yield service_pb2_grpc.FilaServiceStub(channel)


def _rss_bytes(server: RunningServer) -> int:
    for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def _create(server: RunningServer, queue: str, **config: Any) -> None:
    request = admin_pb2.CreateQueueRequest(name=queue, config=admin_pb2.QueueConfig(**config))
    server.admin.CreateQueue(request, timeout=10)


async def _fill(service: Any, queue: str, frames: int, payload: bytes, each: int = 200) -> None:
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=[{"payload": payload}] * each)
    for _ in range(frames):
        results = (await service.EnqueueBatch(batch, timeout=20)).results
        assert not any(result.error.code for result in results)


async def test_consumers_that_never_read_cost_the_broker_no_memory_and_the_others_no_time(
    server: RunningServer, service: Any
) -> None:
    """Thirty of them, with credit for all of 60 MiB: what is not read stays in the store."""
    _create(server, "unread")
    await _fill(service, "unread", 20, bytes(16_000))
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [aio.insecure_channel(server.addresses["grpc"], options=options) for _ in range(30)]
    await asyncio.sleep(0.3)
    before = _rss_bytes(server)
    stalled = [
        service_pb2_grpc.FilaServiceStub(channel).Consume(
            service_pb2.ConsumeRequest(queue="unread", max_in_flight=100_000, max_batch=100)
        )
        for channel in channels
    ]
    await asyncio.sleep(1.0)

    async def others_took_s(number: int) -> float:
        queue = f"busy-{number}"
        _create(server, queue)
        await _fill(service, queue, 1, b"x")
        busy = service.Consume(service_pb2.ConsumeRequest(queue=queue, max_batch=100))
        began_s = time.monotonic()
        count = 0
        while count < 200:
            response = await asyncio.wait_for(busy.read(), 30)
            count += len(response.messages)
            acks = [
                service_pb2.AckRequest(queue=queue, message_id=message.id, lease_id=message.metadata.lease_id)
                for message in response.messages
            ]
            await asyncio.gather(*map(service.Ack, acks))
        busy.cancel()
        return time.monotonic() - began_s

    await within_awaited(3, others_took_s)
    # Two deliveries a consumer at most, of 100 messages of 16 KB, and gRPC's copies of them.
    assert _rss_bytes(server) - before < 250 * MIB
    for call in stalled:
        call.cancel()
    for channel in channels:
        await channel.close()

    async def unread_alone() -> Any:
        stats = await asyncio.to_thread(server.admin.GetStats, admin_pb2.GetStatsRequest(queue="unread"))
        return None if stats.active_consumers else stats

    stats = await eventually(unread_alone)
    assert stats.depth + stats.in_flight == 4_000


async def test_a_consumer_process_that_is_stopped_loses_its_leases_and_nothing_else(
    server: RunningServer, service: Any, tmp_path: Path
) -> None:
    """SIGSTOP: its connection stays up, nobody reads, nobody acks."""
    # Its buffers go on taking what the broker writes, so it gets its turn again and again: few at a time, soon back.
    retry = {"kind": "KIND_FIXED", "base_ms": 1, "cap_ms": 1}
    _create(server, "shared", visibility_timeout_ms=1_000, retry=retry)
    script = (
        "import sys, grpc\n"
        "from fila.v1 import service_pb2, service_pb2_grpc\n"
        "stub = service_pb2_grpc.FilaServiceStub(grpc.insecure_channel(sys.argv[1]))\n"
        "request = service_pb2.ConsumeRequest(queue='shared', max_in_flight=10)\n"
        "for message in stub.Consume(request):\n"
        "    print(message.message.id, flush=True)\n"
    )
    import sys

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, server.addresses["grpc"], stdout=asyncio.subprocess.PIPE
    )
    try:
        await _fill(service, "shared", 1, b"x", each=50)
        assert process.stdout is not None
        await asyncio.wait_for(process.stdout.readline(), 30)
        process.send_signal(signal.SIGSTOP)
        await _fill(service, "shared", 1, b"x", each=50)

        # Attempts of each message when it came here first: a lease of ours may end, too, where a machine stands still.
        seen: dict[str, int] = {}
        acked: set[str] = set()
        call = service.Consume(service_pb2.ConsumeRequest(queue="shared", max_batch=100))
        async with asyncio.timeout(40):
            while len(acked) < 100:
                messages = (await call.read()).messages
                for message in messages:
                    seen.setdefault(message.id, message.metadata.attempt_count)
                items = [{"message_id": each.id, "lease_id": each.metadata.lease_id} for each in messages]
                settled = await service.AckBatch(service_pb2.AckBatchRequest(queue="shared", items=items))
                results = zip(messages, settled.results, strict=True)
                acked |= {each.id for each, result in results if not result.code}
        assert any(seen.values()), "what the stopped one held came back as failed"
        call.cancel()
    finally:
        process.kill()
        await process.wait()


async def test_a_thousand_consumers_of_a_thousand_queues_each_get_their_own(server: RunningServer) -> None:
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [aio.insecure_channel(server.addresses["grpc"], options=options) for _ in range(10)]
    stubs: list[Any] = [service_pb2_grpc.FilaServiceStub(channel) for channel in channels]
    admin: Any = admin_pb2_grpc_stub(channels[0])
    names = [f"many-{n}" for n in range(1_000)]
    for first in range(0, 1_000, 50):
        await asyncio.gather(
            *(
                admin.CreateQueue(admin_pb2.CreateQueueRequest(name=name))
                for name in names[first : first + 50]
            )
        )
    calls = [stubs[n % 10].Consume(service_pb2.ConsumeRequest(queue=name)) for n, name in enumerate(names)]
    reads = [asyncio.ensure_future(call.read()) for call in calls]
    await asyncio.sleep(0.5)

    batch = service_pb2.EnqueueBatchRequest(
        messages=[{"queue": name, "payload": name.encode()} for name in names]
    )
    results = (await stubs[0].EnqueueBatch(batch, timeout=20)).results
    assert not any(result.error.code for result in results)
    delivered = await asyncio.wait_for(asyncio.gather(*reads), 30)

    assert [response.message.payload.decode() for response in delivered] == names
    for call in calls:
        call.cancel()
    for first in range(0, 1_000, 50):
        await asyncio.gather(
            *(
                admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=name))
                for name in names[first : first + 50]
            )
        )
    for channel in channels:
        await channel.close()


def admin_pb2_grpc_stub(channel: aio.Channel) -> Any:
    from fila.v1 import admin_pb2_grpc

    return admin_pb2_grpc.FilaAdminStub(channel)
