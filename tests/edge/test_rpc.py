"""The gRPC edge as clients meet it, over a scripted core: statuses, streams, cancellation, generic clients."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fila.v1 import service_pb2, service_pb2_grpc
from fila_server import commands, errors
from fila_server.broker.calls import Broker
from fila_server.config.schema import Address, Config, Server
from fila_server.edges.grpc.server import RpcServer
from fila_server.edges.grpc.service import ENQUEUE_STREAM_FRAMES_MAX
from fila_server.edges.grpc.services import SERVICES
from tests.doors import PLAIN, open_door
from tests.edge.fake_engine import FakeEngine, ok, refused

UNARY = {
    "Enqueue": commands.ENQUEUE,
    "EnqueueBatch": commands.ENQUEUE_BATCH,
    "Ack": commands.ACK,
    "Nack": commands.NACK,
    "AckBatch": commands.ACK_BATCH,
    "NackBatch": commands.NACK_BATCH,
    "ExtendLease": commands.EXTEND_LEASE,
    "Lease": commands.LEASE,
}


@pytest.fixture
def stub(channel: aio.Channel) -> Any:
    return service_pb2_grpc.FilaServiceStub(channel)


def _raw(channel: aio.Channel, method: str) -> Any:
    """A call without any serializer: the bytes are the test's."""
    return channel.unary_unary(f"/fila.v1.FilaService/{method}")


def _details(error: aio.AioRpcError) -> status_pb2.Status:
    metadata = dict(error.trailing_metadata())
    return status_pb2.Status.FromString(metadata["grpc-status-details-bin"])


@pytest.mark.parametrize(("method", "kind"), UNARY.items())
async def test_bytes_go_in_as_they_came_and_come_back_as_they_were_made(
    engine: FakeEngine, channel: aio.Channel, method: str, kind: int
) -> None:
    engine.answers[kind] = ok(b"\x00reply")

    assert await _raw(channel, method)(b"\xff\x00garbage") == b"\x00reply"
    assert [frame for _, frame in engine.of(kind)] == [b"\xff\x00garbage"]


@pytest.mark.parametrize("method", UNARY)
async def test_a_refusal_carries_code_text_and_reason(
    engine: FakeEngine, channel: aio.Channel, method: str
) -> None:
    engine.answers[UNARY[method]] = refused(errors.QueueNotFound("orders"))

    with pytest.raises(aio.AioRpcError) as raised:
        await _raw(channel, method)(b"")

    assert raised.value.code() is grpc.StatusCode.NOT_FOUND
    assert raised.value.details() == 'queue "orders" does not exist; check its name, or create it'
    info = error_details_pb2.ErrorInfo()
    assert _details(raised.value).details[0].Unpack(info)
    assert info.reason == "QUEUE_NOT_FOUND"


async def test_a_full_broker_says_when_to_come_back(engine: FakeEngine, channel: aio.Channel) -> None:
    engine.refuse_next.append(errors.Overloaded("10000 commands are already waiting"))

    with pytest.raises(aio.AioRpcError) as raised:
        await _raw(channel, "Enqueue")(b"")

    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = error_details_pb2.RetryInfo()
    assert _details(raised.value).details[1].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 100


async def test_our_own_failure_is_answered_internal_without_a_trace_of_how(
    engine: FakeEngine, channel: aio.Channel
) -> None:
    def explode(_frame: bytes) -> tuple[int, bytes]:
        raise ZeroDivisionError("secret")

    engine.answers[commands.ENQUEUE] = explode

    with pytest.raises(aio.AioRpcError) as raised:
        await _raw(channel, "Enqueue")(b"")

    assert raised.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in str(raised.value)


async def test_a_pull_whose_deadline_passes_is_taken_back_out(
    engine: FakeEngine, channel: aio.Channel
) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await _raw(channel, "Lease")(b"", timeout=0.05)

    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    [(token, _)] = await engine.until(commands.CANCEL)
    assert token == engine.of(commands.LEASE)[0][0]


# --- consume ------------------------------------------------------------------------------


async def test_consume_writes_what_the_core_delivers_and_reports_it_written(
    engine: FakeEngine, stub: Any
) -> None:
    engine.answers[commands.CONSUME_OPEN] = ok()
    response = service_pb2.ConsumeResponse()
    response.message.id = "m1"
    call = stub.Consume(service_pb2.ConsumeRequest(queue="orders"))
    [(token, frame)] = await engine.until(commands.CONSUME_OPEN)
    engine.say(token, commands.DELIVERY, response.SerializeToString())

    assert (await call.read()).message.id == "m1"
    assert await engine.until(commands.WRITTEN) == [(token, b"")]
    assert service_pb2.ConsumeRequest.FromString(frame).queue == "orders"

    call.cancel()
    assert await engine.until(commands.CONSUMER_CLOSE) == [(token, b"")]


async def test_a_consumer_is_told_why_its_stream_ended(engine: FakeEngine, stub: Any) -> None:
    engine.answers[commands.CONSUME_OPEN] = ok()
    call = stub.Consume(service_pb2.ConsumeRequest(queue="orders"))
    [(token, _)] = await engine.until(commands.CONSUME_OPEN)
    engine.fail(token, commands.END, errors.QueueNotFound("orders"))

    with pytest.raises(aio.AioRpcError) as raised:
        await call.read()
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_consumer_that_does_not_read_leaves_its_deliveries_unwritten(
    engine: FakeEngine, stub: Any
) -> None:
    engine.answers[commands.CONSUME_OPEN] = ok()
    call = stub.Consume(service_pb2.ConsumeRequest(queue="orders"))
    [(token, _)] = await engine.until(commands.CONSUME_OPEN)
    large = service_pb2.ConsumeResponse()
    large.message.payload = bytes(3 << 20)
    for _ in range(30):
        engine.say(token, commands.DELIVERY, large.SerializeToString())
    await asyncio.sleep(0.3)

    # The sockets' buffers hold some; the rest waits for a reader and stays unwritten.
    assert len(engine.of(commands.WRITTEN)) < 25
    call.cancel()
    await engine.until(commands.CONSUMER_CLOSE)


# --- sessions -----------------------------------------------------------------------------


def _opened() -> bytes:
    response = service_pb2.ConsumeSessionResponse()
    response.opened.consumer_id = 9
    return response.SerializeToString()


async def test_a_session_is_opened_first_and_later_frames_keep_their_order(
    engine: FakeEngine, stub: Any
) -> None:
    engine.answers[commands.SESSION_OPEN] = ok(_opened())
    call = stub.ConsumeSession()
    await call.write(service_pb2.ConsumeSessionRequest(open={"queue": "orders"}))
    assert (await call.read()).opened.consumer_id == 9

    for sequence in range(20):
        await call.write(service_pb2.ConsumeSessionRequest(ack={"sequence": sequence, "lease_ids": [1]}))
    frames = await engine.until(commands.SESSION, 20)

    sequences = [service_pb2.ConsumeSessionRequest.FromString(frame).ack.sequence for _, frame in frames]
    assert sequences == list(range(20))
    call.cancel()
    await engine.until(commands.CONSUMER_CLOSE)


async def test_a_session_that_half_closes_gets_the_answers_still_due(engine: FakeEngine, stub: Any) -> None:
    engine.answers[commands.SESSION_OPEN] = ok(_opened())
    call = stub.ConsumeSession()
    await call.write(service_pb2.ConsumeSessionRequest(open={"queue": "orders"}))
    await call.write(service_pb2.ConsumeSessionRequest(ack={"sequence": 4, "lease_ids": [1]}))
    await call.done_writing()
    await engine.until(commands.SESSION)
    [(token, word)] = await engine.until(commands.CONSUMER_CLOSE)
    settled = service_pb2.ConsumeSessionResponse(settled={"sequence": 4})
    engine.say(token, commands.FRAME, settled.SerializeToString())
    engine.say(token, commands.END)

    assert word == b"half-closed"
    assert [response.WhichOneof("response") async for response in call] == ["opened", "settled"]
    assert await call.code() is grpc.StatusCode.OK


async def test_a_session_without_a_first_frame_is_told_what_was_missing(stub: Any) -> None:
    call = stub.ConsumeSession()
    await call.done_writing()

    with pytest.raises(aio.AioRpcError, match="open must be the first frame of a session") as raised:
        await call.read()
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_garbage_in_a_session_ends_it_with_the_reason(engine: FakeEngine, stub: Any) -> None:
    engine.answers[commands.SESSION_OPEN] = ok(_opened())
    call = stub.ConsumeSession()
    await call.write(service_pb2.ConsumeSessionRequest(open={"queue": "orders"}))
    await call.read()
    engine.refuse_next.append(errors.Invalid("lease_ids", "is cut off"))
    await call.write(service_pb2.ConsumeSessionRequest(credit=1))

    with pytest.raises(aio.AioRpcError, match="lease_ids is cut off") as raised:
        await call.read()
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


# --- enqueue stream -----------------------------------------------------------------------


def _batch(sequence: int) -> service_pb2.EnqueueStreamRequest:
    return service_pb2.EnqueueStreamRequest(sequence=sequence)


def _results(sequence: int) -> bytes:
    return service_pb2.EnqueueStreamResponse(sequence=sequence).SerializeToString()


async def test_answers_of_an_enqueue_stream_keep_the_order_of_its_frames(
    engine: FakeEngine, stub: Any
) -> None:
    call = stub.EnqueueStream()
    for sequence in range(3):
        await call.write(_batch(sequence))
    await call.done_writing()
    frames = await engine.until(commands.ENQUEUE_STREAM, 3)

    for token, frame in reversed(frames):
        sequence = service_pb2.EnqueueStreamRequest.FromString(frame).sequence
        engine.say(token, commands.REPLY, _results(sequence))

    assert [response.sequence async for response in call] == [0, 1, 2]


async def test_an_enqueue_stream_is_read_no_further_than_its_bound(engine: FakeEngine, stub: Any) -> None:
    call = stub.EnqueueStream()

    async def flood() -> None:
        for sequence in range(500):
            await call.write(_batch(sequence))

    flooding = asyncio.ensure_future(flood())
    await engine.until(commands.ENQUEUE_STREAM, ENQUEUE_STREAM_FRAMES_MAX)
    await asyncio.sleep(0.1)
    # One more answer is in the writer's hands, and one more frame in the reader's.
    assert len(engine.of(commands.ENQUEUE_STREAM)) <= ENQUEUE_STREAM_FRAMES_MAX + 2

    engine.answers[commands.ENQUEUE_STREAM] = ok(_results(7))
    for token, _ in engine.of(commands.ENQUEUE_STREAM):
        engine.say(token, commands.REPLY, _results(7))
    await flooding
    await engine.until(commands.ENQUEUE_STREAM, 500)
    call.cancel()


async def test_a_full_mailbox_slows_an_enqueue_stream_and_loses_nothing(
    engine: FakeEngine, stub: Any
) -> None:
    engine.answers[commands.ENQUEUE_STREAM] = ok(_results(1))
    engine.refuse_next += [errors.Overloaded("full")] * 3
    call = stub.EnqueueStream()
    await call.write(_batch(1))

    assert (await call.read()).sequence == 1
    call.cancel()


async def test_garbage_on_an_enqueue_stream_ends_it_after_the_answers_before_it(
    engine: FakeEngine, stub: Any
) -> None:
    engine.answers[commands.ENQUEUE_STREAM] = ok(_results(1))
    call = stub.EnqueueStream()
    await call.write(_batch(1))
    assert (await call.read()).sequence == 1
    engine.refuse_next.append(errors.Invalid("batch", "is cut off"))
    await call.write(_batch(2))

    with pytest.raises(aio.AioRpcError, match="batch is cut off") as raised:
        await call.read()
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_producer_that_vanishes_leaves_nothing_behind(
    engine: FakeEngine, broker: Broker, stub: Any
) -> None:
    of_the_server = set(broker._closers)
    call = stub.EnqueueStream()
    await call.write(_batch(1))
    [(token, _)] = await engine.until(commands.ENQUEUE_STREAM)
    assert broker._closers > of_the_server
    call.cancel()
    async with asyncio.timeout(30):
        while broker._closers != of_the_server:  # noqa: ASYNC110 - until the server has heard of it
            await asyncio.sleep(0.001)
    engine.fail(token, commands.REPLY, errors.Internal("nobody reads this"))
    engine.answers[commands.ENQUEUE] = ok(b"")

    await stub.Enqueue(service_pb2.EnqueueRequest())
    assert not broker._waiters
    assert broker._closers == of_the_server


async def test_an_idle_enqueue_stream_is_told_that_the_server_goes(
    engine: FakeEngine, broker: Broker, stub: Any
) -> None:
    engine.answers[commands.ENQUEUE_STREAM] = ok(_results(1))
    call = stub.EnqueueStream()
    await call.write(_batch(1))
    await call.read()

    await broker.drain(1)

    with pytest.raises(aio.AioRpcError, match="shutting down") as raised:
        await call.read()
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


# --- the server ---------------------------------------------------------------------------


async def test_health_answers_for_the_server_and_for_each_service(channel: aio.Channel) -> None:
    health: Any = health_pb2_grpc.HealthStub(channel)

    for name in ("", *SERVICES):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_port_that_somebody_else_holds_is_an_error(engine: FakeEngine, broker: Broker) -> None:
    first = RpcServer(broker, Config(server=Server(listen_addr=Address("127.0.0.1:0"))), open_door(), PLAIN)
    first.bind()
    address = f"127.0.0.1:{first.port}"
    second = RpcServer(broker, Config(server=Server(listen_addr=Address(address))), open_door(), PLAIN)

    expected = f"cannot listen on {address}: address already in use. .* change server.listen_addr"
    with pytest.raises(errors.PortTaken, match=expected):
        second.bind()
    await first.stop(0)


async def test_an_unknown_method_is_unimplemented(channel: aio.Channel) -> None:
    with pytest.raises(aio.AioRpcError) as raised:
        await _raw(channel, "Nope")(b"")
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_host_that_is_not_ours_is_an_error(broker: Broker) -> None:
    server = RpcServer(broker, Config(server=Server(listen_addr=Address("192.0.2.1:1"))), open_door(), PLAIN)

    with pytest.raises(errors.PortTaken, match="cannot assign requested address"):
        server.bind()
