"""`fila queue`: what is sent for what was typed, and what people read back."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import StatusCode

from fila.v1 import admin_pb2, messages_pb2
from fila_cli.session import Stopped
from fila_cli.waiting import wait_for
from tests.cli.fake_broker import FakeBroker, Refusal, assert_golden

STARTED = Timestamp()
STARTED.FromDatetime(datetime(2026, 3, 2, 8, tzinfo=UTC))
STATS = admin_pb2.GetStatsResponse(
    depth=123,
    in_flight=4,
    active_fairness_keys=2,
    active_consumers=1,
    quantum=1000,
    oldest_age_ms=65_250,
    enqueued_total=1_000,
    totals_since=STARTED,
    per_key_stats=[
        admin_pb2.PerFairnessKeyStats(
            key="acme", pending_count=120, current_deficit=-250, weight=3, in_flight=4
        ),
        admin_pb2.PerFairnessKeyStats(key="globex", pending_count=3, weight=1, paused=True),
    ],
    per_throttle_stats=[
        admin_pb2.PerThrottleKeyStats(key="provider:stripe", tokens=0.3333333, rate_per_second=100, burst=200)
    ],
)


def test_create_sends_every_setting_that_was_given_and_nothing_else(fila, broker: FakeBroker, tmp_path):
    script = tmp_path / "route.lua"
    script.write_text("function on_enqueue(msg) return {} end\n")

    ran = fila(
        "queue", "create", "orders",
        "--fairness-header", "tenant", "--weight", "acme=3", "--weight", "a=b=2", "--throttle-header", "provider",
        "--retry", "exponential:1s..60s", "--max-attempts", "5", "--visibility-timeout", "30s",
        "--on-enqueue", f"@{script}", "--durability", "os", "--channel", "a", "--hard-retention", "24h",
    )  # fmt: skip

    assert ran == (0, "queue orders created\n", "")
    request = broker.request("CreateQueue")
    assert request == admin_pb2.CreateQueueRequest(
        name="orders",
        config=admin_pb2.QueueConfig(
            fairness_key_header="tenant",
            weights={"acme": 3, "a=b": 2},
            throttle_key_headers=["provider"],
            retry=admin_pb2.RetryPolicy(kind="KIND_EXPONENTIAL", base_ms=1_000, cap_ms=60_000),
            max_attempts=5,
            visibility_timeout_ms=30_000,
            on_enqueue_script=script.read_text(),
            durability="DURABILITY_OS",
            channels=["a"],
            retention=admin_pb2.Retention(hard_period_ms=86_400_000),
        ),
    )


def test_update_names_in_its_mask_what_was_typed_and_what_was_reset(fila, broker: FakeBroker):
    ran = fila(
        "queue", "update", "orders", "--max-attempts", "0", "--soft-retention", "1h", "--reset", "on-failure"
    )

    assert ran.code == 0
    request = broker.request("UpdateQueue")
    assert list(request.update_mask.paths) == [
        "max_attempts",
        "retention.soft_period_ms",
        "on_failure_script",
    ]
    assert request.config.HasField("max_attempts")
    assert request.config.retention.soft_period_ms == 3_600_000


def test_update_without_a_setting_is_bad_usage_and_asks_the_broker_nothing(fila, broker: FakeBroker):
    ran = fila("queue", "update", "orders")

    assert ran.code == 2
    assert "nothing to change" in ran.err
    assert broker.asked == []


def test_list_shows_dead_letter_queues_too(fila, broker: FakeBroker):
    broker.answers["ListQueues"] = admin_pb2.ListQueuesResponse(
        queues=[
            admin_pb2.QueueInfo(
                name="orders",
                depth=12_345,
                in_flight=7,
                active_consumers=2,
                oldest_age_ms=125_000,
                totals_since=STARTED,
            ),
            admin_pb2.QueueInfo(name="orders.dlq", depth=3),
        ]
    )

    assert_golden("queue_list.txt", fila("queue", "list").out)
    assert_golden("queue_list.json", fila("queue", "list", "-o", "json").out)
    assert_golden("queue_list.yaml", fila("--output", "yaml", "queue", "list").out)


@pytest.mark.parametrize("form", ["table", "json"])
@pytest.mark.parametrize("command", [("queue", "list"), ("top", "--once", "--interval", "1ms")])
def test_a_dead_letter_queue_without_a_letter_is_listed_on_demand(fila, broker: FakeBroker, command, form):
    broker.answers["ListQueues"] = lambda _: admin_pb2.ListQueuesResponse(
        queues=[
            admin_pb2.QueueInfo(name="calls"),
            admin_pb2.QueueInfo(name="calls.dlq"),
            admin_pb2.QueueInfo(name="orders.dlq", in_flight=1),
        ]
    )

    told = fila("-o", form, *command).out
    assert "calls" in told
    assert "orders.dlq" in told
    assert "calls.dlq" not in told
    assert "calls.dlq" in fila("-o", form, *command, "--all").out


def test_totals_say_since_when_they_count(fila, broker: FakeBroker):
    info = admin_pb2.QueueInfo(
        name="orders", enqueued_total=9, acked_total=5, dead_lettered_total=2, totals_since=STARTED
    )
    broker.answers["ListQueues"] = lambda _: admin_pb2.ListQueuesResponse(queues=[info])
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(
        quantum=1000, dead_lettered_total=2, totals_since=STARTED
    )

    assert "totals since          2026-03-02T08:00:00Z\n" in fila("queue", "inspect", "orders").out
    [listed] = json.loads(fila("queue", "list", "-o", "json").out)["queues"]
    assert listed["totals_since"] == "2026-03-02T08:00:00Z"
    [row] = json.loads(fila("top", "--once", "--interval", "1ms", "-o", "json").out)["queues"]
    assert (row["enqueued_total"], row["acked_total"], row["dead_lettered_total"]) == (9, 5, 2)
    assert row["totals_since"] == "2026-03-02T08:00:00Z"


def test_inspect_lists_keys_by_backlog_and_the_buckets_that_hold_them(fila, broker: FakeBroker):
    broker.answers["GetStats"] = STATS

    assert_golden("queue_inspect.txt", fila("queue", "inspect", "orders").out)
    assert_golden("queue_inspect_wide.txt", fila("queue", "inspect", "orders", "--wide").out)


def test_inspect_shows_trouble_unasked(fila, broker: FakeBroker):
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(
        quantum=1000,
        hook_fallbacks=17,
        hard_dropped=3,
        breaker_state="BREAKER_STATE_OPEN",
        totals_since=STARTED,
    )

    assert_golden("queue_inspect_trouble.txt", fila("queue", "inspect", "orders").out)


@pytest.mark.parametrize("flags", [(), ("--wide",)])
def test_inspect_tells_a_tenants_own_numbers_and_no_zeros_for_what_it_may_not_know(
    fila, broker: FakeBroker, flags
):
    broker.answers["GetStats"] = admin_pb2.GetStatsResponse(
        depth=7,
        in_flight=2,
        oldest_age_ms=65_250,
        replication_count=1,
        per_key_stats=[
            admin_pb2.PerFairnessKeyStats(
                key="acme", pending_count=7, weight=3, in_flight=2, oldest_age_ms=65_250, paused=True
            )
        ],
    )

    assert_golden("queue_inspect_tenant.txt", fila("queue", "inspect", "orders", *flags).out)


def test_inspect_settings_speaks_the_words_of_create(fila, broker: FakeBroker):
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(
        queue="orders",
        config=admin_pb2.QueueConfig(
            fairness_key_header="tenant",
            weights={"globex": 2, "acme": 3},
            retry=admin_pb2.RetryPolicy(kind="KIND_EXPONENTIAL", base_ms=100, cap_ms=60_000, jitter=1),
            visibility_timeout_ms=90_000,
            max_attempts=0,
            dedup_window_ms=300_000,
            max_bytes=16 * 2**20,
            on_enqueue_script="function on_enqueue(msg)\nend\n",
        ),
    )

    assert_golden("queue_settings.txt", fila("queue", "inspect", "orders", "--settings").out)


def test_peek_at_dead_letters_says_why_they_are_there(fila, broker: FakeBroker):
    dead = messages_pb2.Message(id="01a", payload=b"line one\nline two" + b"x" * 80)
    dead.metadata.offset = 12
    dead.metadata.fairness_key = "acme"
    dead.metadata.dead_letter.reason = "max_attempts"
    dead.metadata.dead_letter.last_error = "card declined"
    dead.metadata.dead_letter.attempts = 5
    broker.answers["PeekMessages"] = admin_pb2.PeekMessagesResponse(messages=[dead])

    assert_golden("queue_peek_dlq.txt", fila("queue", "peek", "orders.dlq", "--count", "20").out)
    assert broker.request("PeekMessages").max_messages == 20


def test_a_long_purge_says_how_far_it_has_come_and_ctrl_c_that_the_broker_goes_on(monkeypatch):
    class Purging:
        def result(self, timeout: float | None = None) -> None:
            assert timeout
            if next(waits):
                raise grpc.FutureTimeoutError
            raise KeyboardInterrupt

    waits, lefts = iter([True, True, False]), iter([100, 70, 40])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)

    with pytest.raises(Stopped, match="60 of 100 messages so far; what the broker has begun it finishes"):
        wait_for(Purging(), "message", lambda: next(lefts))


def test_purge_of_one_key_leaves_the_channel_open(fila, broker: FakeBroker):
    broker.answers["PurgeQueue"] = admin_pb2.PurgeQueueResponse(purged=9)

    assert fila("queue", "purge", "orders", "--key", "noisy", "--yes").out == "9 messages dropped\n"

    request = broker.request("PurgeQueue")
    assert request.fairness_key == "noisy"
    assert not request.HasField("channel")


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--visibility-timeout", "30"),
        ("--visibility-timeout", "1 fortnight"),
        ("--visibility-timeout", "0"),
        ("--visibility-timeout", "0s"),
        ("--dedup-window", "0"),
        ("--weight", "acme"),
        ("--weight", "acme=0"),
        ("--weight", "acme=1001"),
        ("--retry", "linear:1s"),
        ("--retry", "fixed:1s..2s"),
        ("--retry", "fixed:0s"),
        ("--retry", "exponential:1s..0s"),
        ("--retry", "exponential:1s..60s,jitter=2"),
        ("--max-bytes", "16 parsecs"),
        ("--on-enqueue", "@/no/such/file.lua"),
        ("--on-enqueue", "route.lua"),
    ],
)
def test_a_setting_that_cannot_be_read_is_one_line_with_an_example(fila, broker: FakeBroker, flag, value):
    ran = fila("queue", "create", "orders", flag, value)

    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert flag in ran.err
    assert broker.asked == []


def test_an_existing_queue_is_exit_code_1_and_says_what_to_do(fila, broker: FakeBroker):
    broker.answers["CreateQueue"] = Refusal(StatusCode.ALREADY_EXISTS, "queue orders exists", "QUEUE_EXISTS")

    ran = fila("queue", "create", "orders")

    assert ran.code == 1
    assert ran.err == (
        "fila: queue orders exists; change it with 'fila queue update', choose another name, "
        "or say --if-not-exists\n"
    )


def test_a_dry_run_lists_twenty_routings_and_says_how_many_more(fila, broker: FakeBroker):
    messages = [admin_pb2.DryRunMessage(offset=offset) for offset in range(1, 98)]
    broker.answers["DryRunPolicy"] = admin_pb2.DryRunPolicyResponse(messages=messages, retained=103)

    lines = fila("queue", "dry-run", "orders", "--fairness-header", "tenant").out.splitlines()

    assert lines[20].split()[0] == "20"
    assert lines[22] == "77 more are left out; -o json has all"
