"""Enqueues: what travels together, what is repeated, and what a caller learns when it fails."""

from __future__ import annotations

import asyncio
import gc
import pickle
import warnings
from collections.abc import Iterator
from contextlib import suppress

import grpc
import pytest
from google.rpc.code_pb2 import UNAUTHENTICATED, UNAVAILABLE

from fila import (
    AnswerLost,
    ClientClosed,
    FilaClient,
    LimitExceeded,
    MessageId,
    NewMessage,
    NotAllowed,
    Overloaded,
    QueueNotFound,
    SomeFailed,
    Unavailable,
)
from tests.sdk.conftest import QUICK_BACKOFF, ManualClock, until
from tests.sdk.fake_broker import EXHAUSTED, FakeBroker, Refusal

STOPPING = Refusal(UNAVAILABLE, "SHUTTING_DOWN", "the server is shutting down; connect again in a moment")


async def test_calls_of_one_moment_travel_as_one_frame(broker: FakeBroker, client: FilaClient) -> None:
    ids = await asyncio.gather(*(client.enqueue("orders", b"%d" % i) for i in range(50)))

    assert broker.enqueue_frames == [50]
    assert [message_id.offset for message_id in ids] == list(range(1, 51))


async def test_while_a_frame_is_unanswered_later_calls_gather_in_the_next(broker: FakeBroker) -> None:
    clock = ManualClock()  # stands still, so nothing lingers long enough
    async with FilaClient.connect(broker.address, clock=clock) as client:
        broker.answering.clear()
        calls = [asyncio.create_task(client.enqueue("orders", b"first"))]
        await until(lambda: broker.enqueue_frames)
        for _ in range(10):
            calls.append(asyncio.create_task(client.enqueue("orders", b"later")))
            await asyncio.sleep(0)
        assert broker.enqueue_frames == [1]

        broker.answering.set()
        await asyncio.gather(*calls)

    assert broker.enqueue_frames == [1, 10]


async def test_a_second_frame_leaves_once_it_holds_as_much_as_the_first_and_a_third_waits(
    broker: FakeBroker,
) -> None:
    clock = ManualClock()
    async with FilaClient.connect(broker.address, clock=clock) as client:
        broker.answering.clear()
        calls = [asyncio.create_task(client.enqueue("orders", b"first"))]
        await until(lambda: broker.enqueue_frames)

        async def more(count: int) -> None:
            calls.extend(asyncio.create_task(client.enqueue("orders", b"later")) for _ in range(count))
            for _ in range(10):
                await asyncio.sleep(0)

        await more(31)
        await more(1)
        await more(64)
        broker.answering.set()
        await asyncio.gather(*calls)

    assert broker.enqueue_frames == [1, 32, 64]


async def test_a_call_waits_for_company_no_longer_than_the_linger(broker: FakeBroker) -> None:
    clock = ManualClock()
    async with FilaClient.connect(broker.address, clock=clock, linger_ms=5) as client:
        broker.answering.clear()
        first = asyncio.create_task(client.enqueue("orders", b"first"))
        await until(lambda: broker.enqueue_frames)
        second = asyncio.create_task(client.enqueue("orders", b"second"))
        await asyncio.sleep(0)

        clock.advance(0.006)
        await asyncio.sleep(0.02)  # the loop's own timer, which looks at the clock above
        broker.answering.set()
        await asyncio.gather(first, second)

    assert broker.enqueue_frames == [1, 1]


async def test_a_full_frame_does_not_wait(broker: FakeBroker) -> None:
    async with FilaClient.connect(broker.address, clock=ManualClock(), frame_messages_max=10) as client:
        broker.answering.clear()
        calls = [asyncio.create_task(client.enqueue("orders", b"x")) for _ in range(25)]
        await until(lambda: len(broker.enqueue_frames) == 1)
        broker.answering.set()
        await asyncio.gather(*calls)

    assert broker.enqueue_frames == [10, 10, 5]


async def test_without_batching_each_call_is_a_call(broker: FakeBroker) -> None:
    async with FilaClient.connect(broker.address, batching=False) as client:
        ids = await asyncio.gather(*(client.enqueue("orders", b"x") for _ in range(3)))

    assert broker.calls == ["Enqueue"] * 3
    assert sorted(message_id.offset for message_id in ids) == [1, 2, 3]


async def test_a_huge_message_is_refused_alone_and_leaves_the_stream_to_the_others(
    broker: FakeBroker, client: FilaClient
) -> None:
    huge = b"x" * ((8 << 20) + 1)
    await client.enqueue("orders", b"small")
    with pytest.raises(LimitExceeded):
        await client.enqueue("orders", huge)
    with pytest.raises(SomeFailed) as some:
        await client.enqueue_many("orders", [b"a", huge, b"b"])

    assert {index: type(error) for index, error in some.value.failures.items()} == {1: LimitExceeded}
    assert broker.calls.count("Enqueue") == 2
    assert sum(broker.enqueue_frames) == 3  # small, a, b


async def test_one_bad_message_does_not_fail_its_neighbours(broker: FakeBroker, client: FilaClient) -> None:
    good, missing, large = await asyncio.gather(
        client.enqueue("orders", b"good"),
        client.enqueue("order", b"typo"),
        client.enqueue("orders", b"x" * (1 << 20) + b"x"),
        return_exceptions=True,
    )

    assert isinstance(good, MessageId)
    assert isinstance(missing, QueueNotFound)
    assert missing.queue == "order"
    assert isinstance(large, LimitExceeded)


async def test_an_enqueue_whose_answer_is_lost_is_not_repeated(
    broker: FakeBroker, client: FilaClient
) -> None:
    broker.answering.clear()
    call = asyncio.create_task(client.enqueue("orders", b"once"))
    await until(lambda: broker.enqueue_frames)

    broker.break_connections()
    with pytest.raises(AnswerLost, match="may have been stored"):
        await call

    broker.answering.set()
    # On a busy machine gRPC may hand this one to the connection that is just breaking.
    with suppress(AnswerLost):
        await client.enqueue("orders", b"next")
    await client.enqueue("orders", b"last")
    stored = [message.payload for message in broker.queues["orders"].log]
    assert stored in ([b"once", b"next", b"last"], [b"once", b"last"])


async def test_what_a_stopping_broker_has_not_taken_is_sent_again_and_stored_once(
    broker: FakeBroker, client: FilaClient
) -> None:
    await client.enqueue("orders", b"before")
    broker.farewells.append(STOPPING)
    calls = [client.enqueue("orders", payload) for payload in (b"a", b"b")]

    assert [each.offset for each in await asyncio.gather(*calls)] == [2, 3]
    assert [message.payload for message in broker.queues["orders"].log] == [b"before", b"a", b"b"]
    assert broker.enqueue_frames == [1, 2]


async def test_of_several_frames_that_a_stopping_broker_left_unanswered_only_the_last_is_sent_again(
    broker: FakeBroker,
) -> None:
    async with FilaClient.connect(
        broker.address, frame_messages_max=1, retry_for_s=30.0, call_timeout_s=30.0, backoff=QUICK_BACKOFF
    ) as client:
        broker.answering.clear()
        payloads = (b"taken", b"not taken")
        calls = [asyncio.create_task(client.enqueue("orders", payload)) for payload in payloads]
        await asyncio.sleep(0)
        producer = client._producer
        assert producer is not None
        await until(lambda: broker.enqueue_frames and len(producer._in_flight) == 2)
        broker.farewells.append(STOPPING)
        broker.answering.set()

        with pytest.raises(AnswerLost, match="shutting down"):
            await calls[0]
        await calls[1]

    assert [message.payload for message in broker.queues["orders"].log] == [b"taken", b"not taken"]


async def test_an_impatient_client_learns_that_a_stopping_broker_did_not_take_its_message(
    broker: FakeBroker,
) -> None:
    clock = ManualClock()
    async with FilaClient.connect(broker.address, retry_for_s=5.0, clock=clock) as client:
        await client.enqueue("orders", b"before")
        broker.farewells.append(STOPPING)
        call = asyncio.create_task(client.enqueue("orders", b"x"))
        await asyncio.sleep(0)
        clock.advance(6.0)

        with pytest.raises(Unavailable, match="shutting down") as failed:
            await call

    assert not isinstance(failed.value, AnswerLost), "it was certainly not stored"


async def test_an_enqueue_with_a_dedup_key_is_repeated_and_stored_once(
    broker: FakeBroker, client: FilaClient
) -> None:
    broker.answering.clear()
    call = asyncio.create_task(client.enqueue("orders", b"once", dedup_key="k1"))
    await until(lambda: broker.enqueue_frames)

    broker.break_connections()
    await until(lambda: len(broker.enqueue_frames) == 2)
    broker.answering.set()

    assert (await call).offset == 1
    assert len(broker.queues["orders"].log) == 1


async def test_what_was_not_sent_when_the_stream_broke_goes_over_the_next(broker: FakeBroker) -> None:
    broker.answering.clear()
    # One frame at a time, so that no pause between two lines here lets the second go out over the stream that breaks.
    async with FilaClient.connect(
        broker.address, frames_in_flight_max=1, retry_for_s=30.0, call_timeout_s=30.0, backoff=QUICK_BACKOFF
    ) as client:
        sent = asyncio.create_task(client.enqueue("orders", b"sent"))
        await until(lambda: broker.enqueue_frames)
        waiting = asyncio.create_task(client.enqueue("orders", b"waiting"))
        await asyncio.sleep(0)

        broker.break_connections()
        broker.answering.set()

        with pytest.raises(AnswerLost):
            await sent
        assert await waiting


async def noticed(client: FilaClient) -> None:
    """Wait until the client has noticed that its broker is away: before, a frame may be lost on its way, and that is
    another answer. With grpcio 1.50, once in some hundred times, a client that writes nothing does not see its
    connection end; so it asks something."""
    asking = asyncio.create_task(client.get_stats("orders"))
    state = client._connection._places.here.channel.get_state
    await until(lambda: state() is not grpc.ChannelConnectivity.READY)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_an_enqueue_waits_for_a_broker_that_is_away(broker: FakeBroker, client: FilaClient) -> None:
    await client.enqueue("orders", b"before")
    await broker.stop()
    await noticed(client)
    await until(lambda: client._producer is not None and client._producer._stream is None)
    call = asyncio.create_task(client.enqueue("orders", b"meanwhile"))
    await asyncio.sleep(0.02)
    assert not call.done()

    await broker.start()

    assert (await call).offset == 2


@pytest.mark.parametrize("batching", [True, False])
async def test_a_broker_that_stays_away_makes_an_enqueue_unavailable(
    broker: FakeBroker, batching: bool
) -> None:
    async with FilaClient.connect(
        broker.address, retry_for_s=0.05, backoff=QUICK_BACKOFF, batching=batching
    ) as client:
        await broker.stop()
        await noticed(client)

        with pytest.raises(Unavailable, match="no Fila broker answers at") as failed:
            await client.enqueue("orders", b"x")

        await broker.start()
    assert not isinstance(failed.value, AnswerLost), "it was certainly not sent"


async def test_a_broker_that_does_not_answer_loses_the_answer(broker: FakeBroker) -> None:
    async with FilaClient.connect(broker.address, call_timeout_s=0.5, backoff=QUICK_BACKOFF) as client:
        broker.answering.clear()
        with pytest.raises(AnswerLost):
            await client.enqueue("orders", b"x")
        broker.answering.set()

        assert (await client.enqueue("orders", b"y")).offset == 2


async def test_overload_is_told_at_once_with_what_the_broker_suggests(broker: FakeBroker) -> None:
    broker.refusals.append(Refusal(EXHAUSTED, "OVERLOADED", "the mailbox is full", retry_after_ms=250))
    async with FilaClient.connect(broker.address, batching=False) as client:
        with pytest.raises(Overloaded) as failed:
            await client.enqueue("orders", b"x")

    assert failed.value.retry_after_s == 0.25


async def test_with_patience_an_overloaded_broker_is_tried_again_when_it_suggests(broker: FakeBroker) -> None:
    clock = ManualClock()
    for _ in range(2):
        broker.refusals.append(Refusal(EXHAUSTED, "OVERLOADED", "full", retry_after_ms=250))
    async with FilaClient.connect(
        broker.address, batching=False, wait_when_overloaded_s=10, clock=clock, backoff=QUICK_BACKOFF
    ) as client:
        await client.enqueue("orders", b"x")

    assert len(clock.slept_s) == 2
    assert all(0.25 <= slept_s < 0.28 for slept_s in clock.slept_s), "as told, and a little by chance"


async def test_with_patience_a_refused_message_of_a_frame_is_sent_again_alone(broker: FakeBroker) -> None:
    broker.refusals.append(Refusal(EXHAUSTED, "QUEUE_FULL", "orders is full"))
    async with FilaClient.connect(broker.address, wait_when_overloaded_s=5, backoff=QUICK_BACKOFF) as client:
        refused, taken = await asyncio.gather(client.enqueue("orders", b"a"), client.enqueue("orders", b"b"))

    assert broker.enqueue_frames == [2, 1]
    assert (refused.offset, taken.offset) == (2, 1)


async def test_enqueue_waits_while_too_much_is_unsent(broker: FakeBroker) -> None:
    async with FilaClient.connect(
        broker.address, waiting_bytes_max=1000, frames_in_flight_max=1, frame_messages_max=1
    ) as client:
        broker.answering.clear()
        calls = [asyncio.create_task(client.enqueue("orders", b"x" * 400)) for _ in range(6)]
        await until(lambda: broker.enqueue_frames)
        await asyncio.sleep(0.01)
        assert client._producer is not None
        assert client._producer._waiting_bytes < 1500

        broker.answering.set()
        assert len(await asyncio.gather(*calls)) == 6


async def test_many_go_in_large_frames_and_come_back_in_order(broker: FakeBroker, client: FilaClient) -> None:
    def messages() -> Iterator[NewMessage | bytes]:
        for i in range(450):
            yield NewMessage(payload=b"%d" % i, headers={"tenant": "acme"})
        yield b"plain"

    ids = await client.enqueue_many("orders", messages())

    assert broker.enqueue_frames == [200, 200, 51]
    assert [message_id.offset for message_id in ids] == list(range(1, 452))
    assert broker.queues["orders"].log[0].headers == {"tenant": "acme"}


async def test_many_with_a_bad_one_tell_what_became_of_each(broker: FakeBroker, client: FilaClient) -> None:
    with pytest.raises(SomeFailed, match="1 of 3 failed; the first: payload must") as failed:
        await client.enqueue_many("orders", [b"a", b"x" * ((1 << 20) + 1), b"b"])

    first, bad, last = failed.value.results
    assert (first.offset, last.offset) == (1, 2)
    assert isinstance(bad, LimitExceeded)
    assert failed.value.failures == {1: bad}


async def test_many_whose_answers_are_lost_say_so_each_unless_they_have_a_dedup_key(
    broker: FakeBroker, client: FilaClient
) -> None:
    broker.answering.clear()
    call = asyncio.create_task(
        client.enqueue_many("orders", [b"a", NewMessage(payload=b"b", dedup_key="b"), b"c"])
    )
    await until(lambda: broker.enqueue_frames)

    broker.break_connections()
    await until(lambda: len(broker.enqueue_frames) == 2)
    broker.answering.set()

    with pytest.raises(SomeFailed) as failed:
        await call
    assert [type(result) for result in failed.value.results] == [AnswerLost, MessageId, AnswerLost]
    assert len(broker.queues["orders"].log) == 3


async def test_a_stream_that_is_refused_while_it_is_written_to_says_why(broker: FakeBroker) -> None:
    broker.stream_refusal = Refusal(UNAUTHENTICATED, "UNAUTHENTICATED", "no key, no enqueue")
    async with FilaClient.connect(
        broker.address, frame_messages_max=1, frames_in_flight_max=200, backoff=QUICK_BACKOFF
    ) as client:
        with pytest.raises(SomeFailed) as failed:
            await client.enqueue_many("orders", [b"x" * 2000] * 200)

    failures = failed.value.failures.values()
    assert {(type(each), str(each)) for each in failures} == {(NotAllowed, "no key, no enqueue")}


async def test_a_cancelled_call_does_not_disturb_the_others(broker: FakeBroker, client: FilaClient) -> None:
    broker.answering.clear()
    calls = [asyncio.create_task(client.enqueue("orders", b"x")) for _ in range(3)]
    await until(lambda: broker.enqueue_frames)

    calls[1].cancel()
    broker.answering.set()

    assert (await calls[0]).offset == 1
    assert (await calls[2]).offset == 3


async def test_closing_sends_what_waits(broker: FakeBroker) -> None:
    client = await FilaClient.connect(broker.address)
    call = asyncio.create_task(client.enqueue("orders", b"x"))
    await asyncio.sleep(0)

    await client.close()

    assert (await call).offset == 1
    with pytest.raises(ClientClosed):
        await client.enqueue("orders", b"y")


async def test_a_producer_that_is_idle_does_not_reconnect(broker: FakeBroker, client: FilaClient) -> None:
    await client.enqueue("orders", b"x")

    broker.break_connections()
    await until(lambda: not broker.sessions)
    await asyncio.sleep(0.03)

    assert broker.calls == ["EnqueueStream"]


def test_a_message_id_is_a_string_that_knows_its_offset() -> None:
    message_id = MessageId("0190-abc", 7)

    assert message_id == "0190-abc"
    assert pickle.loads(pickle.dumps(message_id)).offset == 7


@pytest.mark.parametrize("under_way", [500, 5_000])
def test_a_client_that_is_dropped_with_enqueues_under_way_warns_how_many(
    broker_thread: FakeBroker, under_way: int
) -> None:
    async def leave_early() -> None:
        client = await FilaClient.connect(broker_thread.address)
        calls = [asyncio.create_task(client.enqueue("orders", b"%d" % i)) for i in range(under_way)]
        await asyncio.sleep(0)
        assert not any(call.done() for call in calls)

    def drop() -> None:
        asyncio.run(leave_early())
        gc.collect()

    with pytest.warns(ResourceWarning, match=f"dropped with {under_way} enqueues unanswered"):
        drop()


def test_a_client_that_was_closed_or_had_nothing_under_way_is_dropped_without_a_word(
    broker_thread: FakeBroker,
) -> None:
    async def finish() -> None:
        client = await FilaClient.connect(broker_thread.address)
        await client.enqueue("orders", b"answered")
        async with FilaClient.connect(broker_thread.address) as other:
            await other.enqueue("orders", b"answered")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(finish())
        gc.collect()

    assert not [warning for warning in warned if "enqueues unanswered" in str(warning.message)]
