"""What operators call."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.rpc import code_pb2

from fila import (
    ConfigKeyNotFound,
    FilaClient,
    NotSupported,
    QueueExists,
    QueueNotFound,
    answers,
    dead_letters,
    explanation,
    observations,
    principals,
    tried,
    watched,
    whereabouts,
)
from fila.answers import RetryPolicy
from fila.messages import encode_options
from fila.moments import to_timestamp
from fila.settings import QueueSettings, encode_settings, mask_of, resolve
from fila.v1 import admin_pb2, auth_pb2, events_pb2, operation_pb2, version_pb2, watch_pb2
from tests.sdk.fake_broker import FakeBroker, Refusal


async def test_a_queue_is_made_read_changed_and_deleted(client: FilaClient) -> None:
    await client.create_queue("bills", fairness_key_header="tenant", max_attempts=0)
    with pytest.raises(QueueExists) as failed:
        await client.create_queue("bills")
    assert failed.value.queue == "bills"

    changed = await client.update_queue("bills", retry={"base_ms": 500})
    assert (changed.retry.base_ms, changed.fairness_key_header) == (500, "tenant")
    assert (await client.get_queue("bills")).config == changed

    assert [info.name for info in await client.list_queues()] == ["bills", "orders"]
    await client.delete_queue("bills")
    assert [info.name for info in await client.list_queues()] == ["orders"]


async def test_a_queue_is_looked_into_and_emptied(client: FilaClient) -> None:
    await client.enqueue_many("orders", [b"a", b"b", b"c"])

    assert (await client.get_stats("orders")).depth == 3
    first, second = await client.peek("orders", max_messages=2)
    assert [first.payload, second.payload] == [b"a", b"b"]
    assert [m.payload for m in await client.peek("orders", after_offset=2)] == [b"c"]
    assert await client.purge("orders") == 3
    assert await client.peek("orders") == []


async def test_statistics_of_a_missing_queue_name_it(client: FilaClient) -> None:
    with pytest.raises(QueueNotFound) as failed:
        await client.get_stats("order")

    assert failed.value.queue == "order"


async def test_runtime_config_is_set_read_and_listed(client: FilaClient) -> None:
    await client.set_config("throttle.stripe", "100,10")
    await client.set_config("other", "1")

    assert await client.get_config("throttle.stripe") == "100,10"
    assert await client.list_config("throttle.") == {"throttle.stripe": "100,10"}
    with pytest.raises(ConfigKeyNotFound) as failed:
        await client.get_config("missing")
    assert failed.value.config_key == "missing"


async def test_the_log_is_read_by_range_and_resumed_where_it_broke(
    broker: FakeBroker, client: FilaClient
) -> None:
    await client.enqueue_many("orders", [b"%d" % i for i in range(1, 7)])
    broker.refusals.append(Refusal(code_pb2.UNAVAILABLE, "SHUTTING_DOWN", "stopping"))

    read = [message.payload async for message in client.read_log("orders", from_offset=2, to_offset=6)]

    assert read == [b"2", b"3", b"4", b"5"]
    assert broker.calls[-2:] == ["ReadLog 2", "ReadLog 3"]


async def test_reading_is_repeated_when_its_answer_was_lost(broker: FakeBroker, client: FilaClient) -> None:
    broker.refusals.append(Refusal(code_pb2.UNAVAILABLE, "", "no reason: the transport's word"))

    assert [info.name for info in await client.list_queues()] == ["orders"]
    assert broker.calls == ["ListQueues", "ListQueues"]


async def test_what_a_broker_does_not_do_is_told_apart(client: FilaClient) -> None:
    with pytest.raises(NotSupported):
        await client.create_channel("orders", "audit")


async def test_calls_fail_after_close(broker: FakeBroker) -> None:
    client = await FilaClient.connect(broker.address)
    await asyncio.gather(client.close(), client.close())
    await client.close()

    with pytest.raises(Exception, match="this client was closed"):
        await client.list_queues()


def test_settings_become_the_wires() -> None:
    settings: QueueSettings = {
        "durability": "os",
        "hook_fallback": "hold",
        "key_order": "strict",
        "key_limit": "tenant:",
        "weights": {"acme": 3},
        "throttle_key_headers": ["provider"],
        "retry": {"kind": "fixed", "base_ms": 1000, "jitter": 0.5},
        "retention": {"soft_period_ms": 1},
        "max_attempts": 0,
    }
    config = encode_settings(resolve(settings))

    assert config.durability == admin_pb2.DURABILITY_OS
    assert config.hook_fallback == admin_pb2.HOOK_FALLBACK_HOLD
    assert config.key_order == admin_pb2.KEY_ORDER_STRICT
    assert config.key_limit == "tenant:"
    assert config.retry.kind == admin_pb2.RetryPolicy.KIND_FIXED
    assert config.HasField("max_attempts"), "0 means no cap, not the default"
    assert not encode_settings({}).HasField("max_attempts")


def test_an_unknown_setting_is_named_with_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"unknown queue setting 'colour'; known are .*max_depth"):
        resolve({"colour": "red"})  # type: ignore[typeddict-unknown-key]


def test_the_mask_names_exactly_what_was_given() -> None:
    mask = mask_of({"max_depth": 0, "retry": {"base_ms": 1, "jitter": 0.0}, "weights": {}})

    assert list(mask.paths) == ["max_depth", "retry.base_ms", "retry.jitter", "weights"]


def test_durations_sizes_and_policies_may_be_written_as_people_do() -> None:
    resolved = resolve(
        {
            "visibility_timeout_ms": "1m30s",
            "max_bytes": "16mb",
            "retention": {"soft_period_ms": "7d", "hard_bytes": "1gb"},
            "retry": "exponential:1s..60s,jitter=0.5",
            "disconnect_grace_ms": "0",
        }
    )

    assert resolved == {
        "visibility_timeout_ms": 90_000,
        "max_bytes": 16 << 20,
        "retention": {"soft_period_ms": 604_800_000, "hard_bytes": 1 << 30},
        "retry": {"kind": "KIND_EXPONENTIAL", "base_ms": 1000, "cap_ms": 60_000, "jitter": 0.5},
        "disconnect_grace_ms": 0,
    }
    assert list(mask_of(resolve({"retry": "fixed:5s"})).paths) == ["retry.kind", "retry.base_ms"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retry": {"kind": "foo"}}, "retry.kind must be 'exponential' or 'fixed', got 'foo'"),
        ({"durability": "sync"}, "durability must be 'fsync' or 'os', got 'sync'"),
        ({"hook_fallback": None}, "hook_fallback must be 'policy' or 'hold', got None"),
        (
            {"retry": "sometimes"},
            "retry: 'sometimes' is no retry policy; write exponential:1s..60s or fixed:5s",
        ),
        ({"retry": "fixed:0"}, "retry: must be longer than 0"),
        ({"retry": "fixed:5s,jitter=2"}, "retry: jitter must be from 0 to 1, not '2'"),
        ({"retry": 5}, "retry must be a mapping, got 5"),
        ({"retry": {"foo": 1}}, "unknown part of retry 'foo'; known are base_ms, cap_ms, jitter, kind"),
        (
            {"visibility_timeout_ms": "soon"},
            "visibility_timeout_ms: 'soon' is no duration; write it like 500ms",
        ),
        (
            {"retention": {"soft_bytes": "lots"}},
            "retention.soft_bytes: 'lots' is no size; write it like 64kb",
        ),
        ({"max_depth": -1}, "max_depth must be from 0 to"),
        ({"weights": {"acme": "3"}}, r"weights\['acme'\] must be int, got str"),
        ({"channels": "audit"}, "channels must be a sequence, got 'audit'"),
    ],
)
async def test_a_wrong_setting_is_told_by_its_name(client: FilaClient, settings: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        await client.create_queue("bills", **settings)
    with pytest.raises((TypeError, ValueError), match=said):
        await client.update_queue("orders", **settings)


async def test_what_exists_may_be_made_again_when_that_is_all_right(client: FilaClient) -> None:
    await client.create_queue("bills", max_attempts=3)

    await client.create_queue("bills", exist_ok=True, max_attempts=5)

    assert (await client.get_queue("bills")).config.max_attempts == 3, "it stays as it is"


async def test_answers_show_every_field_also_zeros(client: FilaClient) -> None:
    await client.create_queue("bills", max_attempts=0, durability="os", retry="fixed:5s")

    config = (await client.get_queue("bills")).config

    assert "max_attempts=0" in repr(config)
    assert (config.durability, config.hook_fallback, config.retention) == ("os", "", None)
    assert config.retry == RetryPolicy(kind="fixed", base_ms=5000)
    stats = await client.get_stats("orders")
    assert (stats.depth, stats.per_key_stats, stats.breaker_state) == (0, [], "")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (answers.QueueConfig, admin_pb2.QueueConfig),
        (answers.RetryPolicy, admin_pb2.RetryPolicy),
        (answers.Retention, admin_pb2.Retention),
        (principals.Intake, admin_pb2.Intake),
        (answers.QueueDetails, admin_pb2.GetQueueResponse),
        (answers.QueueVersion, version_pb2.QueueVersion),
        (answers.QueueVersionDetails, admin_pb2.GetQueueVersionResponse),
        (dead_letters.Operation, operation_pb2.Operation),
        (tried.DryRun, admin_pb2.DryRunPolicyResponse),
        (tried.DryRunMessage, admin_pb2.DryRunMessage),
        (tried.DryRunRouting, admin_pb2.DryRunRouting),
        (tried.DryRunDeadLetter, admin_pb2.DryRunDeadLetter),
        (dead_letters.OperationRequest, operation_pb2.StartOperationRequest),
        (dead_letters.DeadLetterFilter, operation_pb2.DeadLetterFilter),
        (answers.QueueInfo, admin_pb2.QueueInfo),
        (answers.ChannelInfo, admin_pb2.ChannelInfo),
        (answers.FairnessKeyStats, admin_pb2.PerFairnessKeyStats),
        (answers.ThrottleKeyStats, admin_pb2.PerThrottleKeyStats),
        (answers.Stats, admin_pb2.GetStatsResponse),
        (answers.HookStats, admin_pb2.HookStats),
        (answers.KeyPolicy, admin_pb2.SetKeyPolicyResponse),
        (explanation.WaitCauses, watch_pb2.WaitCauses),
        (explanation.KeyExplanation, admin_pb2.ExplainKeyResponse),
        (explanation.ServedMeanwhile, events_pb2.ServedMeanwhile),
        (explanation.ServedKey, events_pb2.ServedKey),
        (explanation.ChannelConsumers, events_pb2.ChannelConsumers),
        (explanation.Forecast, events_pb2.Forecast),
        (explanation.KeyPolicyPreview, admin_pb2.PreviewKeyPolicyResponse),
        (explanation.ForecastChange, admin_pb2.ForecastChange),
        (explanation.KeyLoss, admin_pb2.KeyLoss),
        (answers.ConsumerInfo, admin_pb2.ConsumerInfo),
        (answers.KeyState, watch_pb2.KeyState),
        (watched.QueueState, watch_pb2.QueueState),
        (watched.WatchedChannel, watch_pb2.WatchedChannel),
        (watched.GoneChannel, watch_pb2.GoneChannel),
        (watched.StatsChange, watch_pb2.WatchStatsResponse),
        (watched.SeriesPoint, watch_pb2.SeriesPoint),
        (watched.KeySeriesPoint, watch_pb2.KeySeriesPoint),
        (watched.KeySeries, watch_pb2.KeySeries),
        (watched.Series, watch_pb2.GetSeriesResponse),
        (answers.FoundKeys, watch_pb2.FindKeysResponse),
        (whereabouts.PendingMessage, admin_pb2.PendingMessage),
        (answers.SeekPreview, admin_pb2.SeekChannelResponse),
        (principals.Identity, auth_pb2.WhoAmIResponse),
        (principals.Principal, auth_pb2.Principal),
        (principals.Permission, auth_pb2.Permission),
        (principals.KeyInfo, auth_pb2.KeyInfo),
        (principals.Quotas, auth_pb2.Quotas),
        (principals.AuditRecord, auth_pb2.AuditRecord),
        (principals.TenantLink, auth_pb2.TenantLink),
        (principals.NewTenantLink, auth_pb2.CreateTenantLinkResponse),
        (observations.BrokerStatus, events_pb2.GetStatusResponse),
        (observations.LateKey, events_pb2.LateKey),
        (observations.LateKeys, events_pb2.ListLateResponse),
        (observations.KeyPolicyState, events_pb2.KeyPolicy),
        (observations.Event, events_pb2.Event),
    ],
)
def test_an_answer_has_all_that_the_wire_has(kind: Any, message: Any) -> None:
    ours = {part.name for part in dataclasses.fields(kind)}

    assert set(message.DESCRIPTOR.fields_by_name) <= ours


def test_an_answer_reads_words_moments_and_what_is_missing() -> None:
    told = admin_pb2.ExplainKeyResponse(state=admin_pb2.ExplainKeyResponse.STATE_NOT_ITS_TURN, share=0.5)
    told.until.FromSeconds(1_000)

    explained = answers.answer(explanation.KeyExplanation, told)

    assert (explained.state, explained.share, explained.waits) == ("not_its_turn", 0.5, None)
    assert explained.until == datetime.fromtimestamp(1_000, UTC)


def test_enqueue_options_are_left_out_when_nothing_is_asked_for() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC) + timedelta(milliseconds=5)

    assert encode_options(None, None, None, None) is None
    asked = encode_options(None, moment, 0, None)
    assert asked is not None
    assert asked.HasField("ttl_ms"), "0 is for the broker to refuse"
    assert asked.deliver_at.ToDatetime(tzinfo=UTC) == moment


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="a moment needs a time zone"):
        to_timestamp(datetime(2030, 1, 1))  # noqa: DTZ001
