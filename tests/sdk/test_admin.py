"""What operators call."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from google.rpc import code_pb2

from fila import ConfigKeyNotFound, FilaClient, NotSupported, QueueExists, QueueNotFound
from fila.admin import encode_settings, mask_of
from fila.messages import encode_options, to_timestamp
from fila.v1 import admin_pb2
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
    config = encode_settings(
        {
            "durability": "os",
            "hook_fallback": "hold",
            "weights": {"acme": 3},
            "throttle_key_headers": ["provider"],
            "retry": {"kind": "fixed", "base_ms": 1000, "jitter": 0.5},
            "retention": {"soft_period_ms": 1},
            "max_attempts": 0,
        }
    )

    assert config.durability == admin_pb2.DURABILITY_OS
    assert config.hook_fallback == admin_pb2.HOOK_FALLBACK_HOLD
    assert config.retry.kind == admin_pb2.RetryPolicy.KIND_FIXED
    assert config.HasField("max_attempts"), "0 means no cap, not the default"
    assert not encode_settings({}).HasField("max_attempts")


def test_an_unknown_setting_is_named_with_the_known_ones() -> None:
    with pytest.raises(TypeError, match=r"unknown queue setting 'colour'; known are .*max_depth"):
        encode_settings({"colour": "red"})  # type: ignore[typeddict-unknown-key]


def test_the_mask_names_exactly_what_was_given() -> None:
    mask = mask_of({"max_depth": 0, "retry": {"base_ms": 1, "jitter": 0.0}, "weights": {}})

    assert list(mask.paths) == ["max_depth", "retry.base_ms", "retry.jitter", "weights"]


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
