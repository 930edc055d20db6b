"""Admin requests that are too large or too many: refused before they cost anything, or made to take turns."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc import aio

from fila.v1 import admin_pb2, admin_pb2_grpc
from fila_server.broker.calls import Broker
from fila_server.broker.gate import Gate, GateByName
from fila_server.broker.mirror import CHANGES_AT_ONCE
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands
from fila_server.errors import LimitExceeded, Overloaded
from fila_server.operations.queues import Queues
from fila_server.operations.requests import MASK_PATHS_MAX, STATS_KEYS_MAX
from fila_server.services import admin as admin_edge
from fila_server.services.request_bounds import PARTS_MAX, PLAIN_BYTES_MAX, RequestBounds
from tests.edge.fake_engine import FakeAdmin, FakeEngine, ok

MIB = 1024 * 1024


@pytest.fixture
def stub(channel: aio.Channel, admin: FakeAdmin) -> Any:
    return admin_pb2_grpc.FilaAdminStub(channel)


async def _refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as raised:
        await call
    return raised.value.code(), raised.value.details()


def _never_parsed(_request_type: type, _frame: bytes) -> None:
    raise AssertionError("it was parsed")


TOO_LARGE = [
    ("UpdateQueue", admin_pb2.UpdateQueueRequest(queue="q", update_mask={"paths": ["a"] * MIB})),
    (
        "CreateQueue",
        admin_pb2.CreateQueueRequest(name="q", config={"weights": {str(i): 1 for i in range(PARTS_MAX + 1)}}),
    ),
    ("CreateQueue", admin_pb2.CreateQueueRequest(name="q", config={"on_enqueue_script": "-" * 20 * MIB})),
    ("CreateQueue", admin_pb2.CreateQueueRequest(name="q", config={"channels": ["c"] * (PARTS_MAX + 1) * 2})),
    ("GetQueue", admin_pb2.GetQueueRequest(queue="q" * (PLAIN_BYTES_MAX + 1))),
    ("SetConfig", admin_pb2.SetConfigRequest(key="k", value="v" * MIB)),
    ("ReadLog", admin_pb2.ReadLogRequest(queue="q", fairness_key="k" * (PLAIN_BYTES_MAX + 1))),
]


@pytest.mark.parametrize(
    ("method", "request_"), TOO_LARGE, ids=[f"{method}-{i}" for i, (method, _) in enumerate(TOO_LARGE)]
)
async def test_a_request_too_large_to_be_right_is_refused_before_it_is_parsed(
    stub: Any, method: str, request_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_edge, "parse", _never_parsed)
    call = getattr(stub, method)(request_)

    code, details = await _refusal(call.read() if method == "ReadLog" else call)

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith("request must ")


def test_the_largest_settings_a_queue_may_have_are_let_through() -> None:
    bounds = RequestBounds(Limits())
    config = admin_pb2.QueueConfig(
        weights={f"a tenant with a name of forty bytes {i:05}": 1000 for i in range(10_000)},
        channels=[f"a channel with a name of forty bytes {i:03}" for i in range(1_000)],
        on_enqueue_script="-" * 64 * 1024,
        on_failure_script="-" * 64 * 1024,
    )
    frame = admin_pb2.CreateQueueRequest(name="q", config=config).SerializeToString()

    bounds.check_bytes("CreateQueue", frame)
    bounds.check_parts("UpdateQueue", frame)
    with pytest.raises(LimitExceeded):
        bounds.check_parts("UpdateQueue", frame + frame)


@pytest.mark.parametrize(
    "broken", [b"\x12", b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0b", b"\x12\x05\x08"]
)
def test_broken_bytes_are_counted_to_their_end_and_left_to_the_parser(broken: bytes) -> None:
    RequestBounds(Limits()).check_parts("UpdateQueue", broken)


async def test_an_update_names_no_more_fields_than_there_are(stub: Any) -> None:
    paths = ["max_depth"] * (MASK_PATHS_MAX + 1)
    request = admin_pb2.UpdateQueueRequest(queue="orders", update_mask={"paths": paths})

    code, details = await _refusal(stub.UpdateQueue(request))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details == f"update_mask must name at most {MASK_PATHS_MAX} fields, got {MASK_PATHS_MAX + 1}"


async def test_statistics_list_a_bounded_number_of_keys(stub: Any, engine: FakeEngine) -> None:
    engine.answers[commands.GET_STATS] = ok()
    await stub.GetStats(admin_pb2.GetStatsRequest(queue="q", max_keys=STATS_KEYS_MAX))

    code, details = await _refusal(
        stub.GetStats(admin_pb2.GetStatsRequest(queue="q", max_keys=STATS_KEYS_MAX + 1))
    )

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details == "max_keys must be at most 10000, got 10001"


async def test_the_core_works_on_one_call_for_statistics_at_a_time(stub: Any, engine: FakeEngine) -> None:
    calls = [
        asyncio.ensure_future(_answer(stub.GetStats(admin_pb2.GetStatsRequest(queue="q")))) for _ in range(5)
    ]
    for count in range(1, 6):
        asked = await engine.until(commands.GET_STATS, count)
        assert len(asked) == count
        engine.say(asked[-1][0], commands.REPLY)
    await asyncio.gather(*calls)


async def test_changes_of_queues_take_turns(stub: Any, engine: FakeEngine, broker: Broker) -> None:
    del engine.answers[commands.CREATE_QUEUE]
    calls = [
        asyncio.ensure_future(_answer(stub.CreateQueue(admin_pb2.CreateQueueRequest(name=f"q{i}"))))
        for i in range(3 * CHANGES_AT_ONCE)
    ]
    answered = 0
    while answered < len(calls):
        asked = await engine.until(commands.CREATE_QUEUE, answered + 1)
        assert len(asked) - answered <= CHANGES_AT_ONCE
        engine.say(asked[answered][0], commands.REPLY)
        answered += 1
    await asyncio.gather(*calls)


async def test_a_gate_lets_so_many_in_at_once_and_refuses_when_too_many_wait() -> None:
    gate = Gate("calls", at_once=2, waiting_max=3)
    may_leave = asyncio.Event()
    inside = 0

    async def call() -> None:
        nonlocal inside
        async with gate:
            inside += 1
            await may_leave.wait()
            inside -= 1

    calls = [asyncio.ensure_future(call()) for _ in range(5)]
    await asyncio.sleep(0)
    assert inside == 2
    with pytest.raises(Overloaded, match="3 calls are waiting already"):
        await call()
    calls[4].cancel()
    await asyncio.sleep(0)
    calls.append(asyncio.ensure_future(call()))
    may_leave.set()
    await asyncio.wait(calls)

    assert inside == 0
    assert [task.cancelled() for task in calls] == [False] * 4 + [True, False]


async def test_a_gate_by_name_lets_nobody_wait_for_anothers_flood() -> None:
    gate = GateByName("calls", at_once=2, waiting_max=3)
    may_leave = asyncio.Event()
    entered: list[str] = []

    async def call(name: str, *, stays: bool = True) -> None:
        async with gate.of(name):
            entered.append(name)
            if stays:
                await may_leave.wait()

    flood = [asyncio.ensure_future(call("noisy")) for _ in range(4)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match="3 calls are waiting already"):
        await call("noisy")
    async with asyncio.timeout(5):
        await call("quiet", stays=False)
        await call("other", stays=False)

    assert entered == ["noisy", "quiet", "other"]
    flood[3].cancel()
    may_leave.set()
    await asyncio.wait(flood)
    assert entered.count("noisy") == 3
    assert not gate._by_name, "of a name that nobody calls by nothing is kept"


async def test_a_tenant_with_many_queues_holds_up_no_operator_and_no_other_tenant() -> None:
    asked: list[str] = []

    async def call(kind: int, frame: bytes) -> bytes:
        if kind == commands.EXPLAIN_KEY:
            asked.append(admin_pb2.ExplainKeyRequest.FromString(frame).fairness_key)
            if asked[-1] == "acme":
                await asyncio.Event().wait()
            return admin_pb2.ExplainKeyResponse(pending=7).SerializeToString()
        return admin_pb2.GetStatsResponse(depth=9).SerializeToString()

    def anything(*_: Any) -> Any:
        return True

    def of_tenant(name: str) -> Any:
        return SimpleNamespace(number=1, tenant=name)

    broker: Any = SimpleNamespace(
        call=call, hooks=SimpleNamespace(status=lambda _: []), queue_configs={"q": admin_pb2.QueueConfig()}
    )
    check: Any = SimpleNamespace(stats=anything, list_queues=anything)
    admission: Any = SimpleNamespace(sees=anything, sees_all_channels=anything, sees_messages=anything)
    queues = Queues(broker, Limits(), check, "fsync", admission)
    listing = [
        asyncio.ensure_future(queues.list_queues(admin_pb2.ListQueuesRequest(), of_tenant("acme")))
        for _ in range(8)
    ]
    await asyncio.sleep(0)
    operator: Any = SimpleNamespace(number=None, tenant="")

    async with asyncio.timeout(5):
        told = await queues.stats(admin_pb2.GetStatsRequest(queue="q"), operator)
        listed = await queues.list_queues(admin_pb2.ListQueuesRequest(), of_tenant("globex"))

    assert admin_pb2.GetStatsResponse.FromString(told).depth == 9
    assert admin_pb2.ListQueuesResponse.FromString(listed).queues[0].depth == 7
    assert asked == ["acme", "globex"], "one look of each tenant at a time"
    for each in listing:
        each.cancel()


async def _answer(call: Any) -> Any:
    return await call


async def test_refused_requests_are_let_go_of_without_waiting_for_the_collector(stub: Any) -> None:
    request = admin_pb2.SetConfigRequest(key="k", value="v" * MIB)
    await _refusal(stub.SetConfig(request))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(20):
            await _refusal(stub.SetConfig(request))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()

    assert kept < 4 * MIB
