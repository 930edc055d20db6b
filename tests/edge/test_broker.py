"""The broker over a scripted core: calls, bounds, hooks, the mirror, draining."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fila.v1 import admin_pb2
from fila_server import errors
from fila_server.broker.calls import Broker
from fila_server.broker.interfaces import NoHooks
from fila_server.core.protocol import commands
from fila_server.hooks.counters import HookStatus
from fila_server.hooks.sandbox import HookLimits
from fila_server.hooks.stage import ParsedFrame
from tests.edge.fake_engine import FakeAdmin, FakeEngine, ok, refused


async def _turns(count: int = 5) -> None:
    """Let everything that is ready run."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_call_gets_the_reply_to_its_own_frame_even_out_of_order(
    engine: FakeEngine, broker: Broker
) -> None:
    first, second = broker.call(commands.ENQUEUE, b"one"), broker.call(commands.ENQUEUE, b"two")
    (token_one, frame_one), (token_two, _) = engine.of(commands.ENQUEUE)

    engine.say(token_two, commands.REPLY, b"second")
    engine.say(token_one, commands.REPLY, b"first")

    assert frame_one == b"one"
    assert (await first, await second) == (b"first", b"second")


async def test_a_refusal_of_the_core_arrives_as_its_error(engine: FakeEngine, broker: Broker) -> None:
    engine.answers[commands.ACK] = refused(errors.LeaseLost("m1", 7))

    with pytest.raises(errors.LeaseLost, match="message m1 is no longer held under lease 7") as raised:
        await broker.call(commands.ACK, b"")

    assert (raised.value.status, raised.value.reason) == (errors.FAILED_PRECONDITION, "LEASE_LOST")


async def test_a_frame_the_core_refuses_at_once_leaves_nothing_waiting(
    engine: FakeEngine, broker: Broker
) -> None:
    for _ in range(200):  # twice what may be outstanding
        engine.refuse_next.append(errors.Invalid("queue", "must not be empty"))
        with pytest.raises(errors.Invalid):
            await broker.call(commands.ENQUEUE, b"")

    engine.answers[commands.ENQUEUE] = ok(b"fine")
    assert await broker.call(commands.ENQUEUE, b"") == b"fine"


async def test_calls_beyond_the_bound_are_refused_at_once_and_accepted_again_later(
    engine: FakeEngine, broker: Broker
) -> None:
    waiting = [broker.call(commands.ENQUEUE, b"") for _ in range(100)]
    with pytest.raises(errors.Overloaded, match="100 calls are already waiting"):
        await broker.call(commands.ENQUEUE, b"")

    for token, _ in engine.of(commands.ENQUEUE):
        engine.say(token, commands.REPLY, b"done")
    assert await asyncio.gather(*waiting) == [b"done"] * 100
    engine.answers[commands.ENQUEUE] = ok(b"again")

    assert await broker.call(commands.ENQUEUE, b"") == b"again"


async def test_the_answer_to_a_caller_that_went_away_is_for_nobody(
    engine: FakeEngine, broker: Broker
) -> None:
    gone = asyncio.ensure_future(broker.call(commands.ENQUEUE, b""))
    gone.cancel()
    engine.fail(engine.of(commands.ENQUEUE)[0][0], commands.REPLY, errors.Internal("x"))
    engine.answers[commands.ACK] = ok(b"fine")

    assert await broker.call(commands.ACK, b"") == b"fine"


async def test_a_command_without_an_answer_is_offered_again_until_the_mailbox_takes_it(
    engine: FakeEngine, broker: Broker
) -> None:
    engine.refuse_next.append(errors.Overloaded("full"))

    broker.post(commands.DECIDE, 5, b"")
    broker.post(commands.OPERATION_RECORDS_CHANGE, 5, b"")  # must not overtake
    await engine.until(commands.OPERATION_RECORDS_CHANGE)

    assert [kind for kind, _, _ in engine.submitted[-2:]] == [
        commands.DECIDE,
        commands.OPERATION_RECORDS_CHANGE,
    ]


async def test_an_answer_that_cannot_be_handed_out_loses_only_itself(
    engine: FakeEngine, broker: Broker
) -> None:
    def fail(_number: int, _payload: bytes) -> None:
        raise ValueError("a mistake in the handler")

    broker.use_hooks(NoHooks(), fail)
    before, broken, behind = (broker.call(commands.ACK, b"") for _ in range(3))
    tokens = [token for token, _ in engine.of(commands.ACK)]
    engine.say(tokens[0], commands.REPLY, b"before")
    engine.say(5, commands.EVENT, b"failed")
    engine.say(tokens[1], commands.REPLY, b"\xff no ItemStatus", errors.INTERNAL)
    engine.say(tokens[2], commands.REPLY, b"behind")

    assert await before == b"before"
    assert await behind == b"behind"
    with pytest.raises(errors.Internal, match="log"):
        await broken


# --- hooks --------------------------------------------------------------------------------


class _Hooks:
    """Routes when the test says so."""

    def __init__(self, *, scripted: bool) -> None:
        self.scripted = scripted
        self.limits = HookLimits()
        self.go_on = asyncio.Event()
        self.queue = b"orders"

    def concerns(self, parsed: ParsedFrame) -> bool:
        return self.queue in parsed.queues()

    async def route(self, parsed: ParsedFrame) -> None:
        await self.go_on.wait()
        parsed.route([0], 0, 1, b"acme", 0)

    def check_scripts(self, on_enqueue_script: str, on_failure_script: str) -> None:
        return None

    def status(self, queue: str) -> list[HookStatus]:
        return []


async def test_a_staged_frame_of_a_scripted_broker_is_routed_before_it_enters_the_mailbox(
    engine: FakeEngine, broker: Broker
) -> None:
    hooks = _Hooks(scripted=True)
    broker.use_hooks(hooks)
    engine.answers[commands.STAGE] = ok(b"stored")
    checked: list[tuple[str, str]] = []

    call = asyncio.ensure_future(broker.stage(b"frame", None, lambda *names: checked.append(names)))
    await _turns()
    assert engine.of(commands.STAGE) == []
    hooks.go_on.set()

    assert await call == b"stored"
    assert engine.parsed[0].routed == [(0, b"acme")]
    assert checked == [("orders", "sink")]


@pytest.mark.parametrize(("scripted", "queue"), [(False, b"orders"), (True, b"scripted")])
async def test_a_staged_frame_of_queues_without_a_script_skips_the_stage_of_hooks(
    engine: FakeEngine, broker: Broker, scripted: bool, queue: bytes
) -> None:
    hooks = _Hooks(scripted=scripted)
    hooks.queue = queue
    broker.use_hooks(hooks)
    engine.answers[commands.STAGE] = ok(b"stored")

    assert await broker.stage(b"frame", None, lambda *_: None) == b"stored"
    assert engine.parsed[0].routed == []


async def test_a_frame_of_the_threads_is_routed_and_enters_under_their_token(
    engine: FakeEngine, broker: Broker
) -> None:
    hooks = _Hooks(scripted=True)
    hooks.go_on.set()
    broker.use_hooks(hooks)
    parsed = engine.parse(commands.ENQUEUE, b"frame")

    await broker.route(77, parsed)

    assert parsed.routed == [(0, b"acme")]
    assert engine.of(commands.ENQUEUE) == [(77, b"frame")]


async def test_events_of_the_core_reach_their_handler(engine: FakeEngine, broker: Broker) -> None:
    seen: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
    broker.use_hooks(_Hooks(scripted=False), lambda number, payload: seen.put_nowait((number, payload)))

    engine.say(41, commands.EVENT, b"failed")

    assert await seen.get() == (41, b"failed")


# --- the mirror ---------------------------------------------------------------------------


def _create(name: str, **config: Any) -> bytes:
    return admin_pb2.CreateQueueRequest(name=name, config=admin_pb2.QueueConfig(**config)).SerializeToString()


async def test_the_mirror_is_loaded_at_start(engine: FakeEngine, admin: FakeAdmin) -> None:
    admin.configs["orders"] = admin_pb2.QueueConfig(max_depth=5)
    listed = admin_pb2.ListConfigResponse(entries=[admin_pb2.ConfigEntry(key="k", value="v")])
    engine.answers[commands.LIST_CONFIG] = ok(listed.SerializeToString())
    broker = Broker(engine)

    await broker.start()

    assert broker.queue_configs["orders"].max_depth == 5
    assert broker.runtime_config == {"k": "v"}
    await broker.stop()


async def test_the_mirror_knows_before_the_caller_does(admin: FakeAdmin, broker: Broker) -> None:
    heard: list[tuple[str, bool]] = []
    broker.mirror.listen(lambda queue, config: heard.append((queue, config is not None)))

    await broker.call(commands.CREATE_QUEUE, _create("orders", max_depth=5))
    assert broker.queue_configs["orders"].max_depth == 5
    assert "orders.dlq" in broker.queue_configs

    request = admin_pb2.UpdateQueueRequest(queue="orders", config=admin_pb2.QueueConfig(max_depth=6))
    await broker.call(commands.UPDATE_QUEUE, request.SerializeToString())
    assert broker.queue_configs["orders"].max_depth == 6

    await broker.call(commands.DELETE_QUEUE, admin_pb2.DeleteQueueRequest(queue="orders").SerializeToString())
    assert broker.queue_configs == {}
    assert heard[0] == ("orders", True)
    assert heard[-2:] == [("orders", False), ("orders.dlq", False)]


async def test_a_caller_that_hangs_up_cannot_leave_the_mirror_behind(
    engine: FakeEngine, admin: FakeAdmin, broker: Broker
) -> None:
    call = asyncio.ensure_future(broker.call(commands.CREATE_QUEUE, _create("orders")))
    await engine.until(commands.CREATE_QUEUE)
    call.cancel()

    await engine.until(commands.GET_QUEUE, 2)
    await _turns(10)
    assert set(broker.queue_configs) == {"orders", "orders.dlq"}


async def test_runtime_config_is_visible_before_it_is_answered(admin: FakeAdmin, broker: Broker) -> None:
    await broker.call(commands.SET_CONFIG, admin_pb2.SetConfigRequest(key="k", value="v").SerializeToString())
    assert broker.runtime_config == {"k": "v"}

    await broker.call(commands.SET_CONFIG, admin_pb2.SetConfigRequest(key="k").SerializeToString())
    assert broker.runtime_config == {}


# --- the log ------------------------------------------------------------------------------


async def test_a_log_is_read_piece_by_piece(engine: FakeEngine, broker: Broker) -> None:
    engine.log_pieces = [b"one", b"two"]

    assert [piece async for piece in broker.read_log(b"")] == [b"one", b"two"]


async def test_reading_a_log_ends_when_the_server_drains(engine: FakeEngine) -> None:
    broker = Broker(engine)
    await broker.start()
    engine.log_pieces = [b"one", b"two"]
    reading = broker.read_log(b"")
    assert await anext(reading) == b"one"

    await broker.drain(1)

    with pytest.raises(errors.Unavailable):
        await anext(reading)
    await broker.stop()


async def test_the_store_outlives_a_read_whose_caller_went_away(engine: FakeEngine) -> None:
    broker = Broker(engine)
    await broker.start()
    engine.may_read_log.clear()
    reading = asyncio.ensure_future(anext(broker.read_log(b"")))
    await _turns()
    reading.cancel()
    stopping = asyncio.ensure_future(broker.stop())
    await asyncio.sleep(0.02)

    assert not engine.stopped
    engine.may_read_log.set()
    await stopping
    assert engine.stopped


# --- draining -----------------------------------------------------------------------------


async def test_draining_finishes_calls_and_takes_nothing_new(engine: FakeEngine) -> None:
    broker = Broker(engine)
    await broker.start()
    accepted = broker.call(commands.ENQUEUE, b"")

    draining = asyncio.ensure_future(broker.drain(5))
    await _turns()
    with pytest.raises(errors.Unavailable):
        await broker.call(commands.ENQUEUE, b"")
    assert not draining.done()
    engine.say(engine.of(commands.ENQUEUE)[0][0], commands.REPLY, b"stored")

    assert await accepted == b"stored"
    await draining
    await broker.stop()
    assert engine.stopped


async def test_who_comes_while_a_node_hands_over_is_told_where_to_go_but_no_frame_of_a_stream(
    engine: FakeEngine,
) -> None:
    broker = Broker(engine)
    await broker.start()
    await broker.drain(1, lambda: errors.NotOwner("fila-2:5555"))

    with pytest.raises(errors.NotOwner, match="fila-2:5555 serves the group"):
        await broker.call(commands.ENQUEUE, b"")
    with pytest.raises(errors.Unavailable, match="shutting down") as refused:
        await broker.route(1, engine.parse(commands.ENQUEUE, b"frame"))
    assert refused.value.reason == "SHUTTING_DOWN"
    await broker.stop()


async def test_draining_does_not_wait_for_ever(engine: FakeEngine) -> None:
    broker = Broker(engine)
    await broker.start()
    stuck = broker.call(commands.ENQUEUE, b"")

    await broker.drain(0.01)
    await broker.stop()

    with pytest.raises(errors.Unavailable):
        await stuck


async def test_the_other_forms_of_a_throttle_are_mirrored_as_the_core_has_them(
    engine: FakeEngine, broker: Broker
) -> None:
    values = {"throttle.acme": "5,9", "throttle:acme:rate": "5", "throttle:acme:burst": "9"}

    def get(frame: bytes) -> tuple[int, bytes]:
        value = values[admin_pb2.GetConfigRequest.FromString(frame).key]
        return ok(admin_pb2.GetConfigResponse(value=value).SerializeToString())(frame)

    heard: dict[str, str] = {}
    broker.mirror.listen_config(heard.__setitem__)
    engine.answers[commands.SET_CONFIG] = ok()
    engine.answers[commands.GET_CONFIG] = get

    request = admin_pb2.SetConfigRequest(key="throttle:acme:rate", value="5")
    await broker.call(commands.SET_CONFIG, request.SerializeToString())

    assert broker.runtime_config == heard == values
