"""Consumers that are many, slow, gone, or done: on a real server, through a real client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import admin_pb2, admin_pb2_grpc, service_pb2, service_pb2_grpc
from tests.e2e.conftest import RunningServer, StartServer
from tests.waiting import eventually

pytestmark = pytest.mark.e2e

Session = service_pb2.ConsumeSessionRequest


@pytest.fixture
async def service(server: RunningServer) -> AsyncIterator[Any]:
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
    async with aio.insecure_channel(server.addresses["grpc"], options=options) as channel:
        yield service_pb2_grpc.FilaServiceStub(channel)


async def _enqueue(service: Any, queue: str, count: int, payload: bytes = b"x") -> None:
    frame = min(count, 1_000)  # under 16 MiB with the payloads used here
    messages = [service_pb2.EnqueueMessage(payload=payload)] * frame
    batch = service_pb2.EnqueueBatchRequest(queue=queue, messages=messages)
    for _ in range(count // frame):
        results = (await service.EnqueueBatch(batch, timeout=20)).results
        assert not any(result.error.code for result in results)


async def _next(call: Any) -> Any:
    response = await asyncio.wait_for(call.read(), 30)
    assert response is not aio.EOF
    return response


async def _depth(server: RunningServer, queue: str) -> tuple[int, int]:
    stats = await asyncio.to_thread(server.admin.GetStats, admin_pb2.GetStatsRequest(queue=queue))
    return stats.depth, stats.in_flight


async def test_a_stream_holds_no_more_than_it_asked_for(
    server: RunningServer, service: Any, queue: str
) -> None:
    await _enqueue(service, queue, 20)
    call = service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=5))
    delivered = [(await _next(call)).message for _ in range(5)]

    assert await _depth(server, queue) == (15, 5)
    ack = service_pb2.AckRequest(
        queue=queue, message_id=delivered[0].id, lease_id=delivered[0].metadata.lease_id
    )
    await service.Ack(ack)

    assert (await _next(call)).message.metadata.offset == 6
    call.cancel()


async def test_max_batch_puts_many_messages_into_one_response(service: Any, queue: str) -> None:
    await _enqueue(service, queue, 50)
    call = service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=100, max_batch=100))
    offsets: list[int] = []
    responses = 0
    while len(offsets) < 50:
        response = await _next(call)
        responses += 1
        assert not response.HasField("message")
        offsets += [message.metadata.offset for message in response.messages]

    assert offsets == list(range(1, 51))
    assert responses < 50
    call.cancel()


async def test_a_stalled_consumer_does_not_keep_the_others_waiting(
    server: RunningServer, service: Any, queue: str
) -> None:
    stalled = service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=100_000, max_batch=100))
    await _enqueue(service, queue, 2_000, bytes(10_000))
    await asyncio.sleep(0.5)  # the stalled one takes what its buffers hold, and never reads

    busy = service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=10))
    message = (await _next(busy)).message

    assert message.payload == bytes(10_000)
    busy.cancel()
    stalled.cancel()


async def test_what_was_never_written_is_pending_again_when_its_stream_ends(
    server: RunningServer, service: Any, queue: str
) -> None:
    await _enqueue(service, queue, 2_000, bytes(10_000))
    call = service.Consume(service_pb2.ConsumeRequest(queue=queue, max_in_flight=2_000, max_batch=20))
    await _next(call)
    await asyncio.sleep(0.3)
    call.cancel()

    async def depth_when_some_are_back() -> int:
        return (await _depth(server, queue))[0]

    await eventually(depth_when_some_are_back)
    assert sum(await _depth(server, queue)) == 2_000
    pulled = (await service.Lease(service_pb2.LeaseRequest(queue=queue))).messages[0]
    assert pulled.metadata.attempt_count == 0


async def test_deleting_a_queue_tells_its_consumers(server: RunningServer, service: Any, queue: str) -> None:
    call = service.Consume(service_pb2.ConsumeRequest(queue=queue))
    pull = asyncio.ensure_future(service.Lease(service_pb2.LeaseRequest(queue=queue, wait_ms=30_000)))
    await asyncio.sleep(0.2)

    await asyncio.to_thread(server.admin.DeleteQueue, admin_pb2.DeleteQueueRequest(queue=queue))

    with pytest.raises(aio.AioRpcError) as stream_ended:
        await _next(call)
    with pytest.raises(aio.AioRpcError) as pull_ended:
        await pull
    assert stream_ended.value.code() is grpc.StatusCode.NOT_FOUND
    assert pull_ended.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_pull_waits_for_a_message_and_not_longer_than_asked(service: Any, queue: str) -> None:
    empty = await service.Lease(service_pb2.LeaseRequest(queue=queue, wait_ms=50))
    assert list(empty.messages) == []

    pull = asyncio.ensure_future(service.Lease(service_pb2.LeaseRequest(queue=queue, wait_ms=20_000)))
    await asyncio.sleep(0.1)
    await _enqueue(service, queue, 1)

    assert len((await asyncio.wait_for(pull, 30)).messages) == 1


async def test_a_pull_that_was_given_up_takes_no_message_with_it(
    server: RunningServer, service: Any, queue: str
) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await service.Lease(service_pb2.LeaseRequest(queue=queue, wait_ms=30_000), timeout=0.2)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.sleep(0.1)
    await _enqueue(service, queue, 1)

    async def nobody_has_it() -> bool:
        return await _depth(server, queue) == (1, 0)

    await eventually(nobody_has_it, give_up_s=10.0)  # long before a lease of it would end by itself


# --- sessions -----------------------------------------------------------------------------


async def _open(service: Any, queue: str, **fields: int) -> Any:
    call = service.ConsumeSession()
    await call.write(Session(open={"queue": queue, **fields}))
    assert (await _next(call)).opened.consumer_id
    return call


async def _deliveries(call: Any, count: int) -> list[Any]:
    messages: list[Any] = []
    while len(messages) < count:
        messages += (await _next(call)).delivery.messages
    return messages


async def test_a_session_settles_by_lease_and_is_told_when_it_is_durable(
    server: RunningServer, service: Any, queue: str
) -> None:
    await _enqueue(service, queue, 10)
    call = await _open(service, queue, max_in_flight=100)
    leases = [message.metadata.lease_id for message in await _deliveries(call, 10)]

    await call.write(Session(ack={"sequence": 7, "lease_ids": [*leases[:9], 2**40]}))
    settled = (await _next(call)).settled

    assert settled.sequence == 7
    assert [failure.lease_id for failure in settled.failures] == [2**40]
    assert await _depth(server, queue) == (0, 1)
    call.cancel()


async def test_a_session_that_half_closes_still_hears_what_became_of_its_acks(
    service: Any, queue: str
) -> None:
    await _enqueue(service, queue, 5)
    call = await _open(service, queue)
    leases = [message.metadata.lease_id for message in await _deliveries(call, 5)]
    await call.write(Session(ack={"sequence": 1, "lease_ids": leases}))
    await call.done_writing()

    assert (await _next(call)).settled.sequence == 1
    assert await asyncio.wait_for(call.read(), 30) is aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_a_session_closed_with_release_gives_everything_back_at_once(
    server: RunningServer, service: Any, queue: str
) -> None:
    await _enqueue(service, queue, 5)
    call = await _open(service, queue)
    await _deliveries(call, 5)
    await call.write(Session(close={"release": True}))
    assert await asyncio.wait_for(call.read(), 30) is aio.EOF

    assert await _depth(server, queue) == (5, 0)
    [first] = (await service.Lease(service_pb2.LeaseRequest(queue=queue))).messages
    assert (first.metadata.offset, first.metadata.attempt_count) == (1, 0)


async def test_a_session_that_just_vanishes_keeps_its_leases_for_the_grace(
    server: RunningServer, service: Any, queue: str
) -> None:
    await _enqueue(service, queue, 5)
    call = await _open(service, queue)
    await _deliveries(call, 5)
    # What the client has read and the server not yet counted as sent would go back: so one frame more first.
    await call.write(Session(extend={"lease_ids": [2**40], "extend_ms": 1_000}))
    await asyncio.wait_for(call.read(), 30)
    call.cancel()
    await asyncio.sleep(0.2)

    assert await _depth(server, queue) == (0, 5)
    async with asyncio.timeout(30):
        while await _depth(server, queue) != (5, 0):  # noqa: ASYNC110 - what the broker does is not ours to signal
            await asyncio.sleep(0.1)


async def test_credit_bounds_what_a_session_is_sent(server: RunningServer, service: Any, queue: str) -> None:
    await _enqueue(service, queue, 20)
    call = await _open(service, queue, max_in_flight=100, initial_credit=3)
    assert [message.metadata.offset for message in await _deliveries(call, 3)] == [1, 2, 3]
    assert await _depth(server, queue) == (17, 3)

    await call.write(Session(credit=4))

    assert [message.metadata.offset for message in await _deliveries(call, 4)] == [4, 5, 6, 7]
    call.cancel()


@pytest.mark.slow
async def test_a_thousand_consumers_share_a_queue(server: RunningServer, queue: str) -> None:
    channels = [
        aio.insecure_channel(server.addresses["grpc"], options=[("grpc.use_local_subchannel_pool", 1)])
        for _ in range(10)
    ]
    stubs: list[Any] = [service_pb2_grpc.FilaServiceStub(channel) for channel in channels]
    request = service_pb2.ConsumeRequest(queue=queue, max_in_flight=1)
    calls = [stubs[i % 10].Consume(request) for i in range(1_000)]
    reads = [asyncio.ensure_future(call.read()) for call in calls]
    async with asyncio.timeout(40):
        while True:
            stats = await asyncio.to_thread(server.admin.GetStats, admin_pb2.GetStatsRequest(queue=queue))
            if stats.active_consumers == 1_000:
                break
            await asyncio.sleep(0.05)

    await _enqueue(stubs[0], queue, 1_000)
    delivered = await asyncio.wait_for(asyncio.gather(*reads), 40)

    assert {response.message.metadata.offset for response in delivered} == set(range(1, 1_001))
    for call in calls:
        call.cancel()
    async with asyncio.timeout(30):
        while stats.active_consumers:
            await asyncio.sleep(0.05)
            stats = await asyncio.to_thread(server.admin.GetStats, admin_pb2.GetStatsRequest(queue=queue))
    for channel in channels:
        await channel.close()


async def test_a_silent_session_ends_although_other_threads_have_lost_their_connections(
    start_server: StartServer,
) -> None:
    server = start_server(FILA_SERVER__IO_THREADS="3")
    host, _, port = server.addresses["grpc"].rpartition(":")
    for left in [socket.create_connection((host, int(port))) for _ in range(3)]:
        left.close()
    config = admin_pb2.QueueConfig(visibility_timeout_ms=1_000)
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with aio.insecure_channel(server.addresses["grpc"], options=options) as channel:
        create = admin_pb2_grpc.FilaAdminStub(channel).CreateQueue
        await create(admin_pb2.CreateQueueRequest(name="q", config=config))
        call = await _open(service_pb2_grpc.FilaServiceStub(channel), "q", tracks_begun=True)

        with pytest.raises(aio.AioRpcError, match="the session said nothing for the queue's visibility"):
            await _next(call)
