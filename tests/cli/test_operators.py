"""`fila config`, `channel`, `key`, `explain`, `top`: the operator's half."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fila.v1 import admin_pb2, events_pb2, sink_pb2, watch_pb2
from tests.cli.fake_broker import FakeBroker, assert_golden


def test_config_list_is_sorted_as_the_broker_sorted_it(fila, broker: FakeBroker):
    broker.answers["ListConfig"] = admin_pb2.ListConfigResponse(
        entries=[
            admin_pb2.ConfigEntry(key="throttle.a", value="10,20"),
            admin_pb2.ConfigEntry(key="x", value=""),
        ],
        total_count=2,
    )

    assert_golden("config_list.txt", fila("config", "list", "--prefix", "t").out)
    assert broker.request("ListConfig").prefix == "t"


def test_config_get_prints_the_bare_value_for_scripts(fila, broker: FakeBroker):
    broker.answers["GetConfig"] = admin_pb2.GetConfigResponse(value="10,20")

    assert fila("config", "get", "throttle.a").out == "10,20\n"


def test_config_set_with_an_empty_value_says_that_it_deleted(fila, broker: FakeBroker):
    assert fila("config", "set", "tiers", "").out == "tiers deleted\n"
    assert broker.request("SetConfig").value == ""


@pytest.mark.parametrize(
    ("start", "field", "value"),
    [("head", "head", True), ("oldest", "oldest", True), ("1500", "offset", 1500)],
)
def test_a_channel_starts_where_it_was_told_to(fila, broker: FakeBroker, start, field, value):
    broker.answers["CreateChannel"] = admin_pb2.CreateChannelResponse(start_offset=12)

    ran = fila("channel", "create", "orders", "audit", "--from", start)

    request = broker.request("CreateChannel")
    assert request.WhichOneof("start") == field
    assert getattr(request, field) == value
    assert ran.out == "channel audit of orders created, from offset 12 on\n"


def test_a_channel_can_be_moved_to_a_moment(fila, broker: FakeBroker):
    broker.answers["SeekChannel"] = admin_pb2.SeekChannelResponse(offset=88)

    ran = fila("channel", "seek", "orders", "audit", "--to", "2026-11-20T14:00:00Z")

    moment = broker.request("SeekChannel").time.ToDatetime(UTC)
    assert moment == datetime(2026, 11, 20, 14, tzinfo=UTC)
    assert ran.out == "channel audit of orders is at offset 88\n"


def _forecast(likely_ms: int) -> events_pb2.Forecast:
    return events_pb2.Forecast(earliest_ms=likely_ms // 2, likely_ms=likely_ms, latest_ms=likely_ms * 2)


@pytest.mark.parametrize(
    "line",
    [
        ("key", "show", "orders", ""),
        ("key", "pause", "orders", ""),
        ("key", "purge", "orders", "", "--yes"),
        ("key", "skip", "orders", ""),
        ("queue", "purge", "orders", "--key", "", "--yes"),
        ("queue", "peek", "orders", "--key", ""),
        ("dlq", "delete", "orders.dlq", "--key", "", "--yes"),
        ("message", "list", "orders", "--key", ""),
        ("enqueue", "orders", "hello", "--key", ""),
        ("history", "tail", "--key", ""),
    ],
)
def test_a_key_without_a_name_is_refused_and_nothing_is_asked(fila, broker: FakeBroker, line):
    ran = fila(*line)

    assert (ran.code, broker.asked) == (2, [])
    assert "a fairness key has one character at least" in ran.err


def test_a_change_of_a_key_is_shown_before_it_is_made(fila, broker: FakeBroker):
    change = admin_pb2.ForecastChange(before=_forecast(60_000), after=_forecast(20_000))
    lost = admin_pb2.ForecastChange(before=_forecast(30_000), after=_forecast(50_000))
    broker.answers["PreviewKeyPolicy"] = admin_pb2.PreviewKeyPolicyResponse(
        head=admin_pb2.ForecastChange(before=_forecast(4_000), after=_forecast(4_000)),
        tail=change,
        losing=[admin_pb2.KeyLoss(fairness_key="bravo", pending=200, tail=lost)],
        pending=500,
        weight_before=1,
        weight_after=3,
    )

    ran = fila("key", "preview", "orders", "acme", "--weight", "3", "--channel", "audit")

    asked = broker.request("PreviewKeyPolicy")
    assert (asked.queue, asked.channel, asked.policy.fairness_key) == ("orders", "audit", "acme")
    assert asked.policy.weight == 3
    assert not asked.policy.HasField("paused")
    assert not asked.policy.HasField("rate_per_second")
    assert_golden("key_preview.txt", ran.out)
    assert not [name for name, _ in broker.asked if name == "SetKeyPolicy"]


def test_a_preview_of_no_change_is_refused(fila):
    ran = fila("key", "preview", "orders", "acme")

    assert ran.code == 2
    assert "name a change" in ran.err


def replaying(*offsets: int) -> Callable[[Any], admin_pb2.ListChannelsResponse]:
    """Answers, one after the other, of a channel that brings 400 messages back."""
    told = iter(offsets)

    def answer(_request: Any) -> admin_pb2.ListChannelsResponse:
        info = admin_pb2.ChannelInfo(name="audit", head_offset=488, replay_offset=next(told))
        return admin_pb2.ListChannelsResponse(channels=[admin_pb2.ChannelInfo(name="default"), info])

    return answer


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """How long a terminal's command waited between two looks."""
    waited: list[float] = []
    monkeypatch.setattr("fila_cli.waiting._at_a_terminal", lambda: True)
    monkeypatch.setattr("fila_cli.waiting.sleep", waited.append)
    return waited


def test_a_long_seek_is_followed_until_all_is_back(fila, broker: FakeBroker, pauses):
    broker.answers["SeekChannel"] = admin_pb2.SeekChannelResponse(offset=88)
    broker.answers["ListChannels"] = replaying(88, 188, 388, 0)

    ran = fila("channel", "seek", "orders", "audit", "--to", "88")

    assert ran.code == 0
    assert ran.out == "channel audit of orders is at offset 88\n"
    assert len(pauses) == 3


def test_ctrl_c_says_how_far_a_seek_has_come_and_that_the_broker_goes_on(
    fila, broker: FakeBroker, pauses, monkeypatch
):
    def stop(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fila_cli.waiting.sleep", stop)
    broker.answers["SeekChannel"] = admin_pb2.SeekChannelResponse(offset=88)
    broker.answers["ListChannels"] = replaying(188)

    ran = fila("channel", "seek", "orders", "audit", "--to", "88")

    assert ran.code == 130
    assert "stopped: 100 of 400 messages can be delivered again; the broker brings back the rest" in ran.err


@pytest.mark.parametrize("offset", [str(2**64), "9" * 5000])
def test_an_offset_that_is_none_is_refused_with_the_largest(fila, offset: str):
    ran = fila("channel", "seek", "q", "default", "--to", offset)
    assert ran.code == 2
    assert f"is no offset; they go up to {2**64 - 1}" in ran.err


def test_a_seek_in_a_script_does_not_wait(fila, broker: FakeBroker):
    broker.answers["SeekChannel"] = admin_pb2.SeekChannelResponse(offset=88)

    assert fila("channel", "seek", "orders", "audit", "--to", "88").code == 0

    assert "ListChannels" not in {name for name, _ in broker.asked}


def test_channel_list_shows_how_far_each_has_come(fila, broker: FakeBroker):
    broker.answers["ListChannels"] = admin_pb2.ListChannelsResponse(
        channels=[
            admin_pb2.ChannelInfo(name="default", depth=5, in_flight=1, tail_offset=95, head_offset=101)
        ]
    )

    assert_golden("channel_list.txt", fila("channel", "list", "orders").out)


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (("weight", "orders", "acme", "5"), "weight", 5),
        (("pause", "orders", "acme"), "paused", True),
        (("resume", "orders", "acme"), "paused", False),
        (("cap", "orders", "acme", "10"), "max_in_flight", 10),
    ],
)
def test_a_key_command_changes_one_thing_and_leaves_the_rest(
    fila, broker: FakeBroker, arguments, field, value
):
    broker.answers["SetKeyPolicy"] = admin_pb2.SetKeyPolicyResponse(weight=5)

    assert fila("key", *arguments).code == 0

    request = broker.request("SetKeyPolicy")
    assert (request.queue, request.fairness_key) == ("orders", "acme")
    assert [name for name in ("weight", "paused", "max_in_flight") if request.HasField(name)] == [field]
    assert getattr(request, field) == value


@pytest.mark.parametrize(
    ("line", "method"),
    [(("key", "pause", "orders", "acme"), "SetKeyPolicy"), (("queue", "pause", "orders"), "UpdateQueue")],
)
def test_a_pause_is_given_its_reason(fila, broker: FakeBroker, line: tuple[str, ...], method: str):
    assert fila(*line, "--reason", "their webhook answers 500").code == 0
    assert broker.request(method).comment == "their webhook answers 500"


PAUSE = events_pb2.Pause(by="alice", comment="down\x1b[2J", since={"seconds": 1_700_000_000})
SAID = r"by alice since 2023-11-1\d \d\d:\d3:20[+-]\d\d:\d\d: down\\x1b\[2J"


def test_since_when_by_whom_and_why_it_is_paused_is_shown(fila, broker: FakeBroker):
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(state="STATE_PAUSED", pause=PAUSE)
    policy = events_pb2.KeyPolicy(fairness_key="acme", paused=True, pause=PAUSE)
    broker.answers["ListKeyPolicies"] = events_pb2.ListKeyPoliciesResponse(policies=[policy])
    broker.answers["GetQueue"] = admin_pb2.GetQueueResponse(
        config=admin_pb2.QueueConfig(paused=True), pause=PAUSE
    )

    for line, before in (
        (("explain", "orders", "acme"), "paused "),
        (("key", "show", "orders", "acme"), "yes, "),
        (("queue", "inspect", "orders", "--settings"), "yes, "),
    ):
        assert re.search(before + SAID, " ".join(fila(*line).out.split())), line


def test_explain_says_which_bucket_and_where_the_hour_went(fila, broker: FakeBroker):
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(
        state="STATE_THROTTLED",
        blocking_bucket="provider:stripe",
        share=0.12,
        due_share=0.25,
        waits=watch_pb2.WaitCauses(share_ms=30_000, throttle_ms=90_000),
        pending=40,
        oldest_age_ms=125_500,
        weight=3,
        consumers=events_pb2.ChannelConsumers(count=2, window=20, begun=1),
    )

    assert_golden("explain.txt", fila("explain", "orders", "acme").out)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("LIMIT_PART_RATE", "throttled by tenant:acme"),
        ("LIMIT_PART_SLOTS", "throttled by tenant:acme, whose slots are all taken"),
        ("LIMIT_PART_BUDGET", "throttled by tenant:acme, whose budget for this period is spent"),
    ],
)
def test_explain_says_which_part_of_a_limit_holds_the_key(fila, broker: FakeBroker, part: Any, words: str):
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(
        state="STATE_THROTTLED", blocking_bucket="tenant:acme", blocking_part=part, pending=1, weight=1
    )

    told = fila("explain", "orders", "acme").out

    assert [line.split(maxsplit=2)[2] for line in told.splitlines() if "waits because" in line] == [words]


def test_an_explanation_without_shares_tells_none(fila, broker: FakeBroker):
    # As a tenant's key is answered: its own numbers, and nothing that others make up.
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(
        state="STATE_NO_CONSUMER", pending=1, weight=1
    )

    told = fila("explain", "orders", "acme").out
    assert "pending        1\n" in told
    assert "share" not in told
    assert "%" not in told


def test_explain_late_and_a_message_tell_nobody_from_busy_in_the_same_words(fila, broker: FakeBroker):
    nobody, busy = "nobody consumes this channel", "its consumers hold as many messages as they may"
    for count, why in ((0, nobody), (2, busy)):
        waits: dict[str, Any] = {"nobody_consumes": not count}
        key = events_pb2.LateKey(queue="orders", fairness_key="acme", cause="CAUSE_NO_CONSUMER", **waits)
        state = watch_pb2.KeyState(fairness_key="acme", state="STATE_NO_CONSUMER", ready=1, **waits)
        whole = watch_pb2.QueueState(queue="orders", channel="default", ready=1)
        channel = watch_pb2.WatchedChannel(state=whole, keys=[state], leading=["acme"])
        broker.answers |= {
            "ListLate": events_pb2.ListLateResponse(keys=[key]),
            "FindKeys": watch_pb2.FindKeysResponse(keys=[state], matched=1),
            "WatchStats": [watch_pb2.WatchStatsResponse(full=True, channels=[channel])],
            "ExplainKey": admin_pb2.ExplainKeyResponse(
                state="STATE_NO_CONSUMER", consumers=events_pb2.ChannelConsumers(count=count), **waits
            ),
        }
        assert fila("late").out.rstrip().endswith(why)
        assert f"waits because  {why}\n" in fila("explain", "orders", "acme").out
        for told in (fila("key", "find", "orders"), fila("watch", "orders", "--once")):
            assert told.out.rstrip().endswith(why)
    broker.answers["GetMessage"] = admin_pb2.GetMessageResponse(
        state="STATE_WAITING", cause="STATE_NO_CONSUMER", nobody_consumes=True
    )
    assert f"waiting: {nobody}" in fila("message", "show", "orders", "m").out


def test_a_tenant_that_watches_its_key_is_not_told_who_consumes(fila, broker: FakeBroker):
    state = watch_pb2.KeyState(fairness_key="acme", state="STATE_NO_CONSUMER", ready=1)
    place = watch_pb2.QueueState(queue="orders", channel="default")
    channel = watch_pb2.WatchedChannel(state=place, keys=[state])
    broker.answers["WatchStats"] = [watch_pb2.WatchStatsResponse(full=True, channels=[channel])]

    assert fila("watch", "orders", "--once").out.rstrip().endswith("nobody with room consumes this channel")


def test_an_interval_that_reads_the_same_at_both_ends_is_one_moment(fila, broker: FakeBroker):
    answer = admin_pb2.ExplainKeyResponse(
        state="STATE_THROTTLED", pending=2, consumers=events_pb2.ChannelConsumers()
    )
    answer.head_forecast.CopyFrom(events_pb2.Forecast(earliest_ms=5_100, likely_ms=5_200, latest_ms=5_300))
    broker.answers["ExplainKey"] = answer

    assert "next one goes  in 5s\n" in fila("explain", "orders", "acme").out


def test_explain_says_who_is_served_who_consumes_and_when_it_goes(fila, broker: FakeBroker):
    answer = admin_pb2.ExplainKeyResponse(state="STATE_NO_CONSUMER", pending=40, weight=1)
    answer.consumers.CopyFrom(events_pb2.ChannelConsumers(count=5, window=25, held=25, begun=4))
    answer.served_meanwhile.others_share = 0.25
    answer.served_meanwhile.since.FromSeconds(1)
    answer.served_meanwhile.keys.add(fairness_key="noisy", share=0.75)
    answer.head_forecast.CopyFrom(events_pb2.Forecast(latest_ms=400))
    answer.tail_forecast.CopyFrom(events_pb2.Forecast(earliest_ms=14_000, likely_ms=22_000, latest_ms=27_000))
    broker.answers["ExplainKey"] = answer

    out = fila("explain", "orders", "acme").out

    for line in (
        "waits because     its consumers hold as many messages as they may",
        "next one goes     within a second",
        "last one goes     in 14s to 27s, most likely 22s",
        "served meanwhile  noisy 75%, others 25%",
        "consumers         5, all full: 25 of 25 held, 4 begun",
    ):
        assert line in out


@pytest.mark.parametrize(
    ("at_quota", "why", "who"),
    [
        (0, "its consumers hold as many messages as they may", "3, all full: 6 of 30 held, 1 begun"),
        (
            1,
            "its consumers hold as many messages as they may",
            "3, all full, 1 at their name's quota of messages in flight: 6 of 30 held, 1 begun",
        ),
        (
            3,
            "its consumers' names have as many messages in flight as their quotas allow",
            "3, all full, 3 at their name's quota of messages in flight: 6 of 30 held, 1 begun",
        ),
    ],
)
def test_explain_says_that_it_is_the_quota_which_fills_the_consumers(
    fila, broker: FakeBroker, at_quota: int, why: str, who: str
):
    answer = admin_pb2.ExplainKeyResponse(state="STATE_NO_CONSUMER", pending=40, weight=1)
    answer.consumers.CopyFrom(
        events_pb2.ChannelConsumers(count=3, window=30, held=6, begun=1, at_quota=at_quota)
    )
    broker.answers["ExplainKey"] = answer

    out = fila("explain", "orders", "acme").out

    assert f"waits because  {why}\n" in out
    assert f"consumers      {who}\n" in out


def test_explain_says_why_nobody_knows_when_it_goes(fila, broker: FakeBroker):
    answer = admin_pb2.ExplainKeyResponse(
        state="STATE_PAUSED", pending=40, consumers=events_pb2.ChannelConsumers()
    )
    answer.head_forecast.unknown = events_pb2.Forecast.UNKNOWN_PAUSED
    answer.tail_forecast.unknown = events_pb2.Forecast.UNKNOWN_PAUSED
    broker.answers["ExplainKey"] = answer

    assert "next one goes  not before it is resumed\n" in fila("explain", "orders", "acme").out


@pytest.mark.parametrize("is_known", [True, False])
def test_explain_says_from_when_a_spent_budget_lets_it_go_and_nothing_of_a_slot(
    fila, broker: FakeBroker, is_known: bool
):
    answer = admin_pb2.ExplainKeyResponse(state="STATE_THROTTLED", pending=1, blocking_bucket="acme")
    answer.head_forecast.unknown = events_pb2.Forecast.UNKNOWN_NO_TOKENS
    if is_known:
        answer.until.FromJsonString("2099-01-01T00:00:00Z")
    broker.answers["ExplainKey"] = answer

    told = " ".join(fila("explain", "orders", "acme").out.split())

    assert ("next one goes not before 2099-01-01T00:00:00Z (in " in told) == is_known
    assert ("next one goes when its limit lets it: nobody can say" in told) != is_known


def test_top_once_turns_counters_into_rates(fila, broker: FakeBroker):
    looks = iter([0, 0])
    broker.answers["ListQueues"] = lambda _: admin_pb2.ListQueuesResponse(
        queues=[
            admin_pb2.QueueInfo(
                name="orders",
                depth=5,
                active_consumers=1,
                active_fairness_keys=2,
                oldest_age_ms=1_500,
                enqueued_total=next(looks),
            )
        ]
    )

    assert_golden("top.txt", fila("top", "--once", "--interval", "1ms").out)


def test_consumers_are_listed_with_what_lies_with_them(fila, broker: FakeBroker):
    broker.answers["ListConsumers"] = admin_pb2.ListConsumersResponse(
        consumers=[
            admin_pb2.ConsumerInfo(
                consumer_id=7,
                name="worker-1",
                peer="ipv4:10.0.0.7:5021",
                channel="default",
                held=9,
                begun=4,
                returned_total=2,
                handling_time_us=12_345,
                window=9,
                tracks_begun=True,
            ),
            admin_pb2.ConsumerInfo(consumer_id=9, channel="audit", held=1, begun=1, window=32, away=True),
        ]
    )

    assert_golden("consumer_list.txt", fila("consumer", "list", "orders", "--channel", "audit").out)
    assert broker.request("ListConsumers").channel == "audit"


def test_sinks_are_listed_over_all_pages(fila, broker: FakeBroker):
    published = sink_pb2.SinkInfo(
        sink_id="spark-a",
        epoch=3,
        run_id="r",
        next_batch=12,
        attempts=2,
        staged_messages=4_000,
        staged_bytes=4_200_000,
        publishing=sink_pb2.PublishingBatch(batch=12, messages=4_000, moved=1_500),
    )
    published.used_at.FromJsonString("2026-03-02T14:00:00Z")
    fresh = sink_pb2.SinkInfo(sink_id="spark-b", epoch=1)
    fresh.used_at.FromJsonString("2026-03-02T14:05:00Z")
    totals: dict[str, Any] = {"staged_bytes": 4_200_000, "staged_bytes_max": 1 << 30}
    broker.answers["ListSinks"] = lambda request: (
        sink_pb2.ListSinksResponse(sinks=[fresh], **totals)
        if request.after
        else sink_pb2.ListSinksResponse(sinks=[published], next_after="spark-a", **totals)
    )

    assert_golden("sink_list.txt", fila("sink", "list", "--prefix", "spark-").out)
    assert [request.prefix for name, request in broker.asked if name == "ListSinks"] == ["spark-"] * 2


def test_a_message_that_keeps_returning_is_explained(fila, broker: FakeBroker):
    broker.answers["ExplainKey"] = admin_pb2.ExplainKeyResponse(returning_offset=88, returning_count=127)

    assert "offset 88, 127+ times, never begun" in fila("explain", "orders", "acme").out


def test_a_channel_can_be_made_to_expire(fila, broker: FakeBroker):
    fila("channel", "create", "orders", "debug", "--expires-after-idle", "10m")

    assert broker.request("CreateChannel").expires_after_idle_ms == 600_000
