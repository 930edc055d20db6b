"""Long operations on dead letters over a scripted core: what they did is counted and recorded, however they end."""

from __future__ import annotations

import asyncio

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from fila.v1 import admin_pb2
from fila.v1 import operation_pb2 as pb
from fila.v1.messages_pb2 import Message
from fila_server import errors
from fila_server.access.admission import Caller
from fila_server.broker.calls import Broker
from fila_server.core.protocol import commands, seam_frames
from fila_server.hooks.packed import KeyLimits
from fila_server.operations.dead_letter_operations import DeadLetterOperations, means
from fila_server.operations.redrive import PAGE_MESSAGES_MAX
from tests.edge.fake_engine import Answer, FakeEngine, item_status, ok, refused

DLQ = "orders.dlq"
ANYBODY = Caller(number=None, name="", key_id="", tenant="", is_admin=True, peer="127.0.0.1")
State = pb.Operation
REDRIVE = pb.StartOperationRequest.KIND_REDRIVE
DELETE = pb.StartOperationRequest.KIND_DELETE


class Core:
    """A dead-letter queue of so many, in a core that moves or drops what it is asked to."""

    def __init__(self, engine: FakeEngine, broker: Broker, count: int) -> None:
        self._engine = engine
        self._left = list(range(1, count + 1))
        self._count = count
        broker.queue_configs |= {"orders": admin_pb2.QueueConfig(), DLQ: admin_pb2.QueueConfig()}
        engine.answers |= {
            commands.GET_STATS: self._stats,
            commands.PEEK_MESSAGES: self._peek,
            commands.REDRIVE_MOVE: self.move,
            commands.OPERATION_RECORDS_CHANGE: ok(),
            commands.OPERATION_RECORDS_READ: ok(),
        }

    @property
    def recorded(self) -> tuple[pb.Operation.State, int]:
        """How an operation stood, and what it had done, as a restart would find it."""
        change = seam_frames.OperationRecordsChange.FromString(
            self._engine.of(commands.OPERATION_RECORDS_CHANGE)[-1][1]
        )
        operation = pb.Operation.FromString(change.records[0].value)
        return operation.state, operation.done

    def _stats(self, _: bytes) -> tuple[int, bytes]:
        stats = admin_pb2.GetStatsResponse(depth=len(self._left), head_offset=self._count + 1)
        return errors.OK, stats.SerializeToString()

    def _peek(self, frame: bytes) -> tuple[int, bytes]:
        asked = admin_pb2.PeekMessagesRequest.FromString(frame)
        page = admin_pb2.PeekMessagesResponse()
        for offset in [each for each in self._left if each > asked.after_offset][: asked.max_messages]:
            page.messages.add(id=str(offset), metadata={"offset": offset})
        return errors.OK, page.SerializeToString()

    def move(self, frame: bytes) -> tuple[int, bytes]:
        asked = seam_frames.RedrivePage.FromString(frame)
        named = {routing.offset for routing in asked.routings}
        moved = named & set(self._left)
        self._left = [offset for offset in self._left if offset not in named]
        page = seam_frames.RedrivenPage(moved=len(moved), last_offset=max(named))
        return errors.OK, page.SerializeToString()


def asked(rate: float = 0.0, kind: pb.StartOperationRequest.Kind = REDRIVE) -> pb.StartOperationRequest:
    return pb.StartOperationRequest(dlq_queue=DLQ, kind=kind, rate_per_second=rate)


@pytest.fixture
def operations(broker: Broker) -> DeadLetterOperations:
    limits = KeyLimits(fairness_key_bytes=256, throttle_key_bytes=256, throttle_keys=16)
    return DeadLetterOperations(broker, limits, now_s=lambda: 100.0)


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_before_a_long_pause_what_was_done_is_recorded(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 3)

    await operations.start(asked(rate=0.001), ANYBODY)
    await engine.until(commands.OPERATION_RECORDS_CHANGE, 2)

    assert core.recorded == (State.STATE_RUNNING, 1)
    await broker.drain(1)


async def test_a_server_that_drains_waits_for_the_record_of_what_was_done(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 3)
    await operations.start(asked(rate=0.001), ANYBODY)
    await engine.until(commands.OPERATION_RECORDS_CHANGE, 2)

    await broker.drain(1)

    assert core.recorded == (State.STATE_STOPPED, 1)


@pytest.mark.parametrize("kind", [REDRIVE, DELETE])
async def test_the_page_at_hand_is_counted_when_the_server_drains(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations, kind: pb.StartOperationRequest.Kind
) -> None:
    core = Core(engine, broker, PAGE_MESSAGES_MAX + 1)
    del engine.answers[commands.REDRIVE_MOVE]
    await operations.start(asked(kind=kind), ANYBODY)
    [(token, frame)] = await engine.until(commands.REDRIVE_MOVE)

    draining = asyncio.ensure_future(broker.drain(5))
    await _turns()
    engine.say(token, commands.REPLY, core.move(frame)[1])
    await draining

    assert core.recorded == (State.STATE_STOPPED, PAGE_MESSAGES_MAX)


async def test_the_page_at_hand_is_counted_when_somebody_cancels(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, PAGE_MESSAGES_MAX + 1)
    del engine.answers[commands.REDRIVE_MOVE]
    operation = await operations.start(asked(), ANYBODY)
    [(token, frame)] = await engine.until(commands.REDRIVE_MOVE)

    cancelling = asyncio.ensure_future(operations.cancel(DLQ, operation.id))
    await _turns()
    engine.say(token, commands.REPLY, core.move(frame)[1])
    told = await cancelling

    assert (told.state, told.done, told.looked_at) == (State.STATE_CANCELLED, 256, 256)
    assert core.recorded == (State.STATE_CANCELLED, 256)


async def test_nobody_waits_for_a_pace_behind_the_last_dead_letter(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 1)

    await operations.start(asked(rate=0.001), ANYBODY)
    await engine.until(commands.OPERATION_RECORDS_CHANGE, 2)

    assert core.recorded == (State.STATE_DONE, 1)


async def test_an_operation_whose_record_was_refused_does_not_count_as_running(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 3)
    engine.answers[commands.OPERATION_RECORDS_CHANGE] = refused(errors.Overloaded("full", retry_after_ms=1))
    with pytest.raises(errors.Overloaded):
        await operations.start(asked(), ANYBODY)
    engine.answers[commands.OPERATION_RECORDS_CHANGE] = ok()

    operation = await operations.start(asked(), ANYBODY)
    await _turns()

    assert [each.id for each in await operations.listed(DLQ, lambda _: True)] == [operation.id]
    await broker.drain(1)
    assert core.recorded == (State.STATE_DONE, 3)


def busy_at(*numbers: int) -> Answer:
    """Records of these numbers meet a core that takes nothing more."""
    records = 0
    error = errors.Overloaded("full", retry_after_ms=1)

    def answer(frame: bytes) -> tuple[int, bytes]:
        nonlocal records
        records += 1
        return (error.status, item_status(error)) if records in numbers else ok()(frame)

    return answer


async def test_a_busy_moment_ends_no_operation(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 3)
    engine.answers[commands.OPERATION_RECORDS_CHANGE] = busy_at(2)

    operation = await operations.start(asked(rate=0.001), ANYBODY)
    await engine.until(commands.OPERATION_RECORDS_CHANGE, 2)
    await _turns()

    assert (operation.state, operation.done) == (State.STATE_RUNNING, 1)
    await broker.drain(1)
    assert core.recorded == (State.STATE_STOPPED, 1)


async def test_how_an_operation_ended_is_recorded_after_a_busy_moment(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 3)
    engine.answers[commands.OPERATION_RECORDS_CHANGE] = busy_at(2, 3)

    await operations.start(asked(), ANYBODY)
    await engine.until(commands.OPERATION_RECORDS_CHANGE, 4)

    assert core.recorded == (State.STATE_DONE, 3)


async def test_who_cancels_twice_cuts_no_page(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 3)
    del engine.answers[commands.REDRIVE_MOVE]
    operation = await operations.start(asked(), ANYBODY)
    await engine.until(commands.REDRIVE_MOVE, 1)

    cancels = [asyncio.ensure_future(operations.cancel(DLQ, operation.id)) for _ in range(3)]
    await _turns()
    [(token, frame)] = engine.of(commands.REDRIVE_MOVE)
    status, payload = core.move(frame)
    engine.say(token, commands.REPLY, payload, status)
    await asyncio.gather(*cancels)

    assert (operation.state, operation.done) == (State.STATE_CANCELLED, 3)


async def test_who_watches_is_told_of_an_end_that_came_while_it_read(
    engine: FakeEngine, broker: Broker, operations: DeadLetterOperations
) -> None:
    core = Core(engine, broker, 3)
    del engine.answers[commands.REDRIVE_MOVE]
    operation = await operations.start(asked(), ANYBODY)
    [(token, frame)] = await engine.until(commands.REDRIVE_MOVE)
    watching = operations.watch(DLQ, operation.id)
    first = pb.WatchOperationResponse.FromString(await anext(watching))

    engine.say(token, commands.REPLY, core.move(frame)[1])
    await engine.until(commands.OPERATION_RECORDS_CHANGE, 2)
    await _turns()
    second = pb.WatchOperationResponse.FromString(await anext(watching))

    assert [each.operation.state for each in (first, second)] == [State.STATE_RUNNING, State.STATE_DONE]
    assert second.operation.done == 3
    with pytest.raises(StopAsyncIteration):
        await anext(watching)


def test_what_was_put_there_by_hand_counts_from_then_and_not_from_1970():
    by_hand = Message(id="a", metadata={"offset": 1}, timestamps={"appended_at": Timestamp(seconds=5_000)})
    letter = Message(
        id="b",
        metadata={"offset": 2, "dead_letter": {"at": Timestamp(seconds=3_000)}},
        timestamps={"appended_at": Timestamp(seconds=9_000)},
    )

    def meant(wanted: pb.DeadLetterFilter) -> list[str]:
        return [each.id for each in (by_hand, letter) if means(wanted, each)]

    assert meant(pb.DeadLetterFilter(died_before=Timestamp(seconds=4_000))) == ["b"]
    assert meant(pb.DeadLetterFilter(died_before=Timestamp(seconds=6_000))) == ["a", "b"]
    assert meant(pb.DeadLetterFilter(died_from=Timestamp(seconds=4_000))) == ["a"]
