"""FilaAdmin over a scripted core: what is refused before it gets there, and what the core is given."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import field_mask_pb2
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st

from fila.v1 import admin_pb2, admin_pb2_grpc, operation_pb2
from fila_server import errors
from fila_server.broker.calls import Broker
from fila_server.config.schema import Limits
from fila_server.core.protocol import commands, seam_frames
from fila_server.hooks.counters import HookStatus
from fila_server.hooks.sandbox import HookLimits
from fila_server.hooks.stage import ParsedFrame
from fila_server.operations import rules as queue_rules
from fila_server.services.wire_fault import explain
from tests.edge.fake_engine import FakeAdmin, FakeEngine, ok

Config = admin_pb2.QueueConfig


@pytest.fixture
def stub(channel: aio.Channel, admin: FakeAdmin) -> Any:
    return admin_pb2_grpc.FilaAdminStub(channel)


async def _refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(aio.AioRpcError) as raised:
        await call
    return raised.value.code(), raised.value.details() or ""


async def test_the_core_is_given_a_complete_config(stub: Any, admin: FakeAdmin) -> None:
    await stub.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))

    config = admin.configs["orders"]
    assert config.visibility_timeout_ms == 30_000
    assert config.max_attempts == 20
    assert list(config.channels) == ["default"]
    assert config.dedup_window_ms == 300_000
    assert (config.retry.base_ms, config.retry.cap_ms, config.retry.jitter) == (100, 60_000, 1.0)
    assert config.retry.kind == admin_pb2.RetryPolicy.KIND_EXPONENTIAL


def test_zero_attempts_means_no_cap_and_is_not_a_default() -> None:
    assert queue_rules.complete(Config(max_attempts=0), Limits()).max_attempts == 0


def test_a_retry_policy_that_is_given_keeps_its_zero_jitter() -> None:
    retry = queue_rules.complete(Config(retry={"base_ms": 90_000}), Limits()).retry

    assert (retry.base_ms, retry.cap_ms, retry.jitter) == (90_000, 90_000, 0.0)


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "-x", "x" * 251, "orders.dlq"])
async def test_names_a_queue_may_have(stub: Any, name: str) -> None:
    assert (await stub.CreateQueue(admin_pb2.CreateQueueRequest(name=name))).queue_id == name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", "name must be 1 to 251 bytes, got 0"),
        ("x" * 252, "name must be 1 to 251 bytes, got 252"),
        (".hidden", 'name must be of A-Z a-z 0-9 . _ - and must not start with "."'),
        ("a b", "name must be of A-Z"),
        ("a/b", "name must be of A-Z"),
        ("a\n", "name must be of A-Z"),
        ("é", "name must be of A-Z"),
        ("a\x00", "name must be of A-Z"),
        ("_fila", "the broker's own"),
        ("_fila.stats", "the broker's own"),
    ],
)
async def test_names_a_queue_may_not_have(stub: Any, admin: FakeAdmin, name: str, text: str) -> None:
    code, details = await _refusal(stub.CreateQueue(admin_pb2.CreateQueueRequest(name=name)))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text in details
    assert admin.configs == {}


BAD_CONFIGS = [
    ({"key_defaults": {"rate_per_second": float("nan")}}, "rate_per_second must be 0, or from 1e-06 to 1e"),
    ({"key_defaults": {"rate_per_second": -1, "burst": 1}}, "config.key_defaults.rate_per_second must be 0"),
    ({"key_defaults": {"rate_per_second": 1, "burst": 1e300}}, "config.key_defaults.burst must be 0, or"),
    ({"key_defaults": {"burst": 5}}, "config.key_defaults.burst needs a rate: give config.key_defaults.rate"),
    (
        {"key_limit": "tenant:*"},
        "must have no *, because a fairness key goes on behind it, got 'tenant:*': give what the names begin",
    ),
    ({"key_limit": "é" * 33}, "config.key_limit must be at most 64 bytes, got 66: choose a shorter one"),
    (
        {"key_limit": "tenant:", "throttle_key_headers": [f"h{i}" for i in range(16)]},
        "config.key_limit names one limit more beside the 16 of config.throttle_key_headers, and a message",
    ),
    ({"intake": {"headers": ["x"] * 33}}, "config.intake.headers must be at most 32 names, got 33"),
    (
        {"intake": {"dedup_headers": [f"x{i}" for i in range(33)]}},
        "config.intake.dedup_headers must be at most 32",
    ),
    (
        {"intake": {"headers": ["x", "X-Event"]}},
        "config.intake.headers[1] must be a header's name in lower case",
    ),
    ({"intake": {"headers": ["x y"]}}, "config.intake.headers[0] must be a header's name in lower case"),
    ({"intake": {"dedup_headers": [""]}}, "config.intake.dedup_headers[0] must be a header's name"),
    ({"intake": {"headers": ["x", "x"]}}, "config.intake.headers[1] must be named once, got 'x' again"),
    ({"intake": {"headers": ["fila-tenant"]}}, "config.intake.headers[0] must not be 'fila-tenant'"),
    ({"intake": {"headers": ["authorization"]}}, "config.intake.headers[0] must not be 'authorization'"),
    ({"intake": {"dedup_headers": ["cookie"]}}, "config.intake.dedup_headers[0] must not be 'cookie'"),
    (
        Config(visibility_timeout_ms=999),
        "config.visibility_timeout_ms must be from 1000 to 43200000, got 999",
    ),
    (Config(visibility_timeout_ms=43_200_001), "config.visibility_timeout_ms must be from 1000"),
    (Config(durability=3), "config.durability must be one of 0, 1, 2, got 3"),  # type: ignore[arg-type]
    (Config(hook_fallback=9), "config.hook_fallback must be one of"),  # type: ignore[arg-type]
    (Config(key_order=9), "config.key_order must be one of"),  # type: ignore[arg-type]
    (Config(retry={"kind": 7}), "config.retry.kind must be one of"),
    (Config(retry={"jitter": 1.5}), "config.retry.jitter must be from 0 to 1, got 1.5"),
    (Config(retry={"jitter": float("nan")}), "config.retry.jitter must be from 0 to 1"),
    (Config(retry={"base_ms": 10, "cap_ms": 5}), "config.retry.cap_ms must be from 10"),
    (Config(retry={"base_ms": 2**63}), "config.retry.base_ms must be from 1"),
    (Config(fairness_key_header="x" * 4097), "config.fairness_key_header must be at most 4096 bytes"),
    (Config(weight_header="x" * 4097), "config.weight_header must be at most 4096 bytes"),
    (Config(cost_header="x" * 4097), "config.cost_header must be at most 4096 bytes"),
    (
        Config(throttle_key_headers=["h"] * 17),
        "config.throttle_key_headers must be at most 16 headers, got 17",
    ),
    (Config(throttle_key_headers=["h", ""]), "config.throttle_key_headers[1] must not be empty"),
    (Config(weights={"acme": 0}), 'config.weights["acme"] must be from 1 to 1000, got 0'),
    (Config(weights={"acme": 1001}), 'config.weights["acme"] must be from 1 to 1000, got 1001'),
    (Config(weights={"k" * 257: 1}), "config.weights key must be at most 256 bytes, got 257"),
    (Config(weights={"": 1}), "config.weights must not have an empty fairness key"),
    (Config(channels=["a", "a"]), 'config.channels[1] must be named once, got "a" again'),
    (Config(channels=["a b"]), "config.channels[0] must be of A-Z"),
    (
        Config(on_enqueue_script="x" * 65_537),
        "config.on_enqueue_script must be at most 65536 bytes, got 65537",
    ),
    (Config(expires_after_idle_ms=999), "config.expires_after_idle_ms must be from 1000"),
    (
        Config(retention=admin_pb2.Retention(hard_period_ms=2**63)),
        "config.retention.hard_period_ms must be from 0 to 31536000000000",
    ),
    (
        Config(retention=admin_pb2.Retention(soft_period_ms=31536000000001)),
        "config.retention.soft_period_ms must be from 0",
    ),
    (Config(disconnect_grace_ms=43_200_001), "config.disconnect_grace_ms must be from 0 to 43200000"),
    (Config(dedup_window_ms=86_400_001), "config.dedup_window_ms must be from 1 to 86400000"),
]


@pytest.mark.parametrize(("config", "text"), BAD_CONFIGS, ids=[text for _, text in BAD_CONFIGS])
async def test_a_bad_config_names_its_field_and_bound_and_stores_nothing(
    stub: Any, admin: FakeAdmin, config: Config, text: str
) -> None:
    request = admin_pb2.CreateQueueRequest(name="orders", config=config)

    code, details = await _refusal(stub.CreateQueue(request))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text in details
    assert admin.configs == {}


@pytest.mark.parametrize("field", ["on_enqueue_script", "on_failure_script"])
async def test_a_script_given_to_a_broker_without_hooks_is_unimplemented(
    stub: Any, admin: FakeAdmin, field: str
) -> None:
    request = admin_pb2.CreateQueueRequest(name="orders", config=Config(**{field: "return"}))  # type: ignore[arg-type]

    code, _ = await _refusal(stub.CreateQueue(request))

    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert admin.configs == {}


class _Compiler:
    scripted = False
    limits = HookLimits()

    def concerns(self, parsed: ParsedFrame) -> bool:
        return False

    async def route(self, parsed: ParsedFrame) -> None:
        return None

    def status(self, queue: str) -> list[HookStatus]:
        return []

    def check_scripts(self, on_enqueue_script: str, on_failure_script: str) -> None:
        if "syntax" in on_enqueue_script:
            raise errors.Invalid("config.on_enqueue_script", "does not compile")


async def test_a_script_is_compiled_before_anything_changes(
    stub: Any, admin: FakeAdmin, broker: Broker
) -> None:
    broker.use_hooks(_Compiler())
    good = admin_pb2.CreateQueueRequest(name="orders", config=Config(on_enqueue_script="fine"))
    await stub.CreateQueue(good)
    bad = admin_pb2.UpdateQueueRequest(
        queue="orders",
        config=Config(on_enqueue_script="syntax"),
        update_mask=field_mask_pb2.FieldMask(paths=["on_enqueue_script"]),
    )

    code, details = await _refusal(stub.UpdateQueue(bad))

    assert (code, details) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "config.on_enqueue_script does not compile",
    )
    assert admin.configs["orders"].on_enqueue_script == "fine"


# --- update -------------------------------------------------------------------------------


async def _updated(stub: Any, config: Config, *paths: str) -> Config:
    request = admin_pb2.UpdateQueueRequest(
        queue="orders", config=config, update_mask=field_mask_pb2.FieldMask(paths=paths)
    )
    response = await stub.UpdateQueue(request)
    assert isinstance(response.config, Config)
    return response.config


async def test_an_update_changes_only_what_its_mask_names(stub: Any) -> None:
    before = Config(max_depth=5, weights={"acme": 3}, retry={"base_ms": 7, "cap_ms": 9})
    await stub.CreateQueue(admin_pb2.CreateQueueRequest(name="orders", config=before))

    after = await _updated(stub, Config(max_depth=6, max_bytes=7, weights={"globex": 1}), "max_depth")
    assert (after.max_depth, after.max_bytes, dict(after.weights)) == (6, 0, {"acme": 3})

    after = await _updated(stub, Config(weights={"globex": 1}), "weights")
    assert dict(after.weights) == {"globex": 1}

    after = await _updated(stub, Config(retry={"cap_ms": 50}), "retry.cap_ms")
    assert (after.retry.base_ms, after.retry.cap_ms) == (7, 50)

    after = await _updated(stub, Config(throttle_key_headers=["a", "b"]), "throttle_key_headers")
    assert list(after.throttle_key_headers) == ["a", "b"]


async def test_a_named_field_that_is_left_out_goes_back_to_its_default(stub: Any) -> None:
    before = Config(max_attempts=3, max_depth=5, visibility_timeout_ms=5000)
    await stub.CreateQueue(admin_pb2.CreateQueueRequest(name="orders", config=before))

    after = await _updated(stub, Config(), "max_attempts", "max_depth", "visibility_timeout_ms", "retry")

    assert (after.max_attempts, after.max_depth, after.visibility_timeout_ms) == (20, 0, 30_000)


@pytest.mark.parametrize("path", ["max_dept", "retry.nope", "weights.acme", "max_depth.x", "", "*", "retry."])
async def test_a_path_that_is_no_field_is_named(stub: Any, path: str) -> None:
    await stub.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    request = admin_pb2.UpdateQueueRequest(queue="orders", update_mask={"paths": [path]})

    code, details = await _refusal(stub.UpdateQueue(request))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert f'update_mask names "{path}"' in details


async def test_a_queue_does_not_begin_or_cease_to_expire_later(stub: Any) -> None:
    await stub.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))
    request = admin_pb2.UpdateQueueRequest(
        queue="orders",
        config=Config(expires_after_idle_ms=60_000),
        update_mask={"paths": ["expires_after_idle_ms"]},
    )

    code, details = await _refusal(stub.UpdateQueue(request))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "config.expires_after_idle_ms is not switched on or off later" in details


async def test_an_update_needs_a_mask_an_existing_queue_and_leaves_channels_alone(stub: Any) -> None:
    request = admin_pb2.UpdateQueueRequest(queue="orders", update_mask={"paths": ["max_depth"]})
    assert await _refusal(stub.UpdateQueue(request)) == (
        grpc.StatusCode.NOT_FOUND,
        'queue "orders" does not exist; check its name, or create it',
    )
    await stub.CreateQueue(admin_pb2.CreateQueueRequest(name="orders"))

    code, details = await _refusal(stub.UpdateQueue(admin_pb2.UpdateQueueRequest(queue="orders")))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "update_mask must name at least one field" in details
    request = admin_pb2.UpdateQueueRequest(queue="orders", update_mask={"paths": ["channels"]})
    code, details = await _refusal(stub.UpdateQueue(request))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "use CreateChannel" in details


# --- the other calls ----------------------------------------------------------------------


BAD_REQUESTS = [
    ("GetQueue", admin_pb2.GetQueueRequest(), "queue must be 1 to 255 bytes"),
    ("DeleteQueue", admin_pb2.DeleteQueueRequest(queue="a b"), "queue must be of A-Z"),
    ("DeleteQueue", admin_pb2.DeleteQueueRequest(queue="_fila.x"), "queue is the broker's own"),
    ("PurgeQueue", admin_pb2.PurgeQueueRequest(queue="q", channel="a b"), "channel must be of A-Z"),
    (
        "PurgeQueue",
        admin_pb2.PurgeQueueRequest(queue="q", fairness_key="k" * 257),
        "fairness_key must be at most",
    ),
    (
        "PeekMessages",
        admin_pb2.PeekMessagesRequest(queue="q", max_messages=1001),
        "max_messages must be at most",
    ),
    ("GetStats", admin_pb2.GetStatsRequest(queue="q", max_keys=2**32 - 1), "max_keys must be at most"),
    ("SetConfig", admin_pb2.SetConfigRequest(value="v"), "key must not be empty"),
    ("SetConfig", admin_pb2.SetConfigRequest(key="k" * 301), "key must be at most 300 bytes, got 301"),
    (
        "SetConfig",
        admin_pb2.SetConfigRequest(key="k", value="é" * 32_769),
        "value must be at most 65536 bytes",
    ),
    (
        "SetConfig",
        admin_pb2.SetConfigRequest(key="k", value="v" * 65_537),
        "value must be at most 65536 bytes",
    ),
    *(
        ("SetConfig", admin_pb2.SetConfigRequest(key=key, value="1,1"), f'throttle:<key>:burst, got "{key}"')
        for key in ("throttle", "Throttle.x", "THROTTLE:x:rate", "throttles.x", "Throttles")
    ),
    *(
        ("SetConfig", admin_pb2.SetConfigRequest(key=key, value="1"), f'would change nothing, got "{key}"')
        for key in ("server.io_threads", "storage.durability", "limits.payload_bytes_max")
    ),
    ("GetConfig", admin_pb2.GetConfigRequest(), "key must not be empty"),
    ("ListConfig", admin_pb2.ListConfigRequest(prefix="k" * 301), "prefix must be at most 300 bytes"),
    ("CreateChannel", admin_pb2.CreateChannelRequest(queue="q"), "channel must be 1 to 251 bytes"),
    (
        "CreateChannel",
        admin_pb2.CreateChannelRequest(queue="q", channel="c", time={"nanos": -1}),
        "time must be",
    ),
    ("DeleteChannel", admin_pb2.DeleteChannelRequest(queue="q"), "channel must be 1 to 251 bytes"),
    ("ListChannels", admin_pb2.ListChannelsRequest(), "queue must be 1 to 255 bytes"),
    ("SeekChannel", admin_pb2.SeekChannelRequest(queue="q"), "target must be given"),
    ("SeekChannel", admin_pb2.SeekChannelRequest(queue="q", channel=".", offset=1), "channel must be of A-Z"),
    (
        "PurgeChannel",
        admin_pb2.PurgeChannelRequest(queue="q", fairness_key="k" * 257),
        "fairness_key must be",
    ),
    ("SetKeyPolicy", admin_pb2.SetKeyPolicyRequest(queue="q"), "fairness_key must not be empty"),
    (
        "SetKeyPolicy",
        admin_pb2.SetKeyPolicyRequest(queue="q", fairness_key="k", weight=1001),
        "weight must be at",
    ),
    ("ExplainKey", admin_pb2.ExplainKeyRequest(queue="q"), "fairness_key must not be empty"),
    (
        "Redrive",
        admin_pb2.RedriveRequest(dlq_queue="q.dlq", rate_per_second=1e-300),
        "rate_per_second must be 0 (as fast as it goes), or from 0.001 to 1e+09, got 1e-300",
    ),
    *(
        (
            "StartOperation",
            operation_pb2.StartOperationRequest(
                dlq_queue="q.dlq", kind=operation_pb2.StartOperationRequest.KIND_REDRIVE, rate_per_second=rate
            ),
            f"from 0.001 to 1e+09, got {rate:g}",
        )
        for rate in (1e-300, 0.0009, -1.0, float("inf"), float("nan"))
    ),
    (
        "EditDeadLetter",
        operation_pb2.EditDeadLetterRequest(dlq_queue="q.dlq", offset=1, headers={"a": "b", "": "x"}),
        "headers must have names, and one of them has none",
    ),
]


@pytest.mark.parametrize(
    ("method", "request_", "text"), BAD_REQUESTS, ids=[text for *_, text in BAD_REQUESTS]
)
async def test_a_bad_request_never_reaches_the_core(
    stub: Any, engine: FakeEngine, method: str, request_: Any, text: str
) -> None:
    before = len(engine.submitted)

    code, details = await _refusal(getattr(stub, method)(request_))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text in details
    assert len(engine.submitted) == before


async def test_a_request_that_is_right_reaches_the_core_as_it_came_with_its_record_behind_it(
    stub: Any, engine: FakeEngine
) -> None:
    request = admin_pb2.SetConfigRequest(key="feature.acme", value="on")

    await stub.SetConfig(request)

    [(_, frame)] = engine.of(commands.SET_CONFIG)
    came = request.SerializeToString()
    assert frame.startswith(came + b"\x72"), "field 14: who did it"
    assert b'"principal":"anonymous","peer":"127.0.0.1"' in frame.removeprefix(came)


async def test_what_a_client_puts_behind_a_keys_policy_is_not_written_as_the_brokers_own_record(
    admin: FakeAdmin, engine: FakeEngine, channel: aio.Channel
) -> None:
    forged = seam_frames.OperationRecordsChange(prefixes=[b"pause/"]).SerializeToString()
    engine.answers |= {
        commands.SET_KEY_POLICY: ok(),
        commands.OPERATION_RECORDS_READ: ok(),
    }
    request = admin_pb2.SetKeyPolicyRequest(queue="q", fairness_key="k", paused=True)
    call: Any = channel.unary_unary("/fila.v1.FilaAdmin/SetKeyPolicy")
    await call(request.SerializeToString() + forged)

    [(_, frame)] = engine.of(commands.SET_KEY_POLICY)
    change = seam_frames.OperationRecordsChange.FromString(frame)
    assert (list(change.prefixes), [record.key for record in change.records]) == ([], [b"pause/q/key/k"])


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (b"\x0a\x02\xff\xfe", "name must be valid UTF-8"),
        (b"\x0a\x05ab", "name is cut off: its length goes beyond the end of the request"),
        (b"\x12\x04\x0a\x02\xff\xfe", "config.on_enqueue_script must be valid UTF-8"),
        (b"\x12\x06\x52\x04\x0a\x02\xc3\x28", "config.weights.key must be valid UTF-8"),
        (b"\x0a", "name is cut off in the middle of a number"),
        (b"\x0f", "name is not valid protobuf: wire type 7"),
        (b"\xff" * 11, "request holds a number of more than 64 bits"),
        (b"\x00", "request is not a valid protobuf message: field number 0"),
    ],
)
async def test_a_broken_frame_names_the_field_that_is_broken(
    channel: aio.Channel, admin: FakeAdmin, frame: bytes, text: str
) -> None:
    create: Any = channel.unary_unary("/fila.v1.FilaAdmin/CreateQueue")

    code, details = await _refusal(create(frame))

    assert (code, details) == (grpc.StatusCode.INVALID_ARGUMENT, text)
    assert admin.configs == {}


def test_a_frame_whose_fault_cannot_be_found_still_names_the_message() -> None:
    error = explain(b"", admin_pb2.CreateQueueRequest.DESCRIPTOR)

    assert str(error) == "request is not a valid fila.v1.CreateQueueRequest"


@given(st.binary(max_size=64))
def test_whatever_the_bytes_the_fault_is_named_and_nothing_else_is_raised(frame: bytes) -> None:
    assert isinstance(explain(frame, admin_pb2.CreateQueueRequest.DESCRIPTOR), errors.Invalid)


async def test_our_own_failure_is_answered_internal_without_a_trace_of_how(
    stub: Any, engine: FakeEngine
) -> None:
    def explode(_frame: bytes) -> tuple[int, bytes]:
        raise ZeroDivisionError("secret")

    engine.answers[commands.GET_QUEUE] = explode

    code, details = await _refusal(stub.GetQueue(admin_pb2.GetQueueRequest(queue="orders")))

    assert code is grpc.StatusCode.INTERNAL
    assert "secret" not in details


async def test_keys_that_only_resemble_a_throttle_are_set_and_what_there_is_can_be_deleted(
    stub: Any, engine: FakeEngine
) -> None:
    for key, value in (
        ("throttled", "1"),
        ("throttle_default", "1"),
        ("Throttle.x", ""),
    ):
        await stub.SetConfig(admin_pb2.SetConfigRequest(key=key, value=value))

    assert len(engine.of(commands.SET_CONFIG)) == 3
