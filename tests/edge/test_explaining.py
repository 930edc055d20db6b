"""What ExplainKey adds to the core's answer: who was served meanwhile and since when, and what a tenant is not told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import events_pb2
from fila_server.broker.speed import CHANNELS_MAX, KEYS_LISTED_MAX, LOOKS, Speeds
from fila_server.core.protocol import seam_frames
from fila_server.errors import PermissionDenied
from fila_server.operations.explain import ask_forecast, explained, hide_others, situation_of
from fila_server.operations.requests import check_own_key
from fila_server.operations.waiting_longest import WaitingLongest
from fila_server.telemetry.snapshot import Channel, Key, Queue, QueueCounts, Snapshot

NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)


def blank(kind: Any, **given: Any) -> Any:
    return kind(**(dict.fromkeys(kind.__struct_fields__, 0) | given))


def channel(served: int, name: bytes = b"default") -> Channel:
    found: Channel = blank(Channel, name=name, served=served, delivered=served // 1000, waited_ms=NOTHING)
    return found


def key(name: bytes, served: float) -> Key:
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, served, 0.0)
    found: Key = blank(Key, queue=b"orders", channel=b"default", fairness_key=name, totals=sums)
    return found


def snapshot(served: int = 0, enqueued: int = 0, keys: Any = (), queues: int = 1) -> Snapshot:
    counts = blank(QueueCounts, enqueued=enqueued)
    names = [b"orders", *(b"q%d" % number for number in range(queues - 1))]
    listed = [blank(Queue, name=name, counts=counts, channels=[channel(served)]) for name in names]
    found: Snapshot = blank(Snapshot, queues=listed, keys=list(keys))
    return found


def reply(**told: Any) -> bytes:
    answered = seam_frames.Explained()
    answered.forecast.consumers.count = 2
    answered.forecast.consumers.window = 10
    answered.forecast.consumers.held = 10
    return pb.ExplainKeyResponse(**told).SerializeToString() + bytes(answered.SerializeToString())


REQUEST = pb.ExplainKeyRequest(queue="orders", fairness_key="acme")


# --- what is remembered ----------------------------------------------------------------------


def test_looks_are_kept_for_some_minutes_and_no_longer():
    speeds = Speeds()
    for at in range(LOOKS + 20):
        speeds.look(snapshot(served=1000 * at), 2.0 * at)

    looks = speeds.of_channel("orders", "default")
    assert len(looks) == LOOKS
    assert looks[-1].at_s - looks[0].at_s == 2.0 * (LOOKS - 1)


def test_a_queue_made_again_under_its_name_begins_anew():
    speeds = Speeds()
    for served in (5_000, 9_000, 1_000):
        speeds.look(snapshot(served=served), float(served))

    assert [look.served for look in speeds.of_channel("orders", "default")] == [1_000]


def test_a_channel_that_has_nothing_to_do_is_one_look():
    speeds = Speeds()
    for at in range(LOOKS):
        speeds.look(snapshot(served=7_000), 2.0 * at)

    assert len(speeds.of_channel("orders", "default")) == 1


def test_a_stillness_nobody_looked_at_counts_as_time_in_which_nothing_was_served():
    speeds = Speeds()
    for at in range(5):
        speeds.look(snapshot(served=1_000 * at), 2.0 * at)
    for at in range(5, 20):
        speeds.still(2.0 * at)

    looks = speeds.of_channel("orders", "default")
    assert [(look.at_s, look.served) for look in looks[-2:]] == [(8.0, 4_000), (38.0, 4_000)]
    speeds.look(snapshot(served=6_000), 40.0)
    looks = speeds.of_channel("orders", "default")
    assert [(look.at_s, look.served) for look in looks[-2:]] == [(38.0, 4_000), (40.0, 6_000)]


def test_what_was_served_before_a_long_stillness_says_nothing_any_more():
    speeds = Speeds()
    for at in range(5):
        speeds.look(snapshot(served=1_000 * at), 2.0 * at)
    speeds.still(1_000.0)

    assert [look.at_s for look in speeds.of_channel("orders", "default")] == [8.0, 1_000.0]


def test_channels_are_bounded_and_those_that_are_gone_are_forgotten():
    speeds = Speeds()
    speeds.look(snapshot(queues=CHANNELS_MAX + 9), 0.0)
    assert not speeds.of_channel(f"q{CHANNELS_MAX + 7}", "default")
    assert speeds.of_channel("q5", "default")

    speeds.look(snapshot(), 2.0)
    assert not speeds.of_channel("q5", "default")


def test_what_keys_were_served_counts_from_the_look_before_the_moment():
    speeds = Speeds()
    for at_s, acme, noisy in ((0.0, 0, 0), (10.0, 1_000, 5_000), (20.0, 1_000, 9_000), (30.0, 1_000, 12_000)):
        speeds.look(snapshot(keys=[key(b"acme", acme), key(b"noisy", noisy)]), at_s)

    assert speeds.served_since("orders", "default", 15.0) == (10.0, {b"noisy": 7_000})
    assert speeds.served_since("orders", "default", -5.0) == (0.0, {b"acme": 1_000, b"noisy": 12_000})
    assert speeds.served_since("orders", "other", 15.0)[1] == {}


def test_a_key_that_is_listed_only_of_late_is_left_out_where_it_may_have_been_crowded_out():
    full = [key(b"k%d" % number, 1.0) for number in range(KEYS_LISTED_MAX)]
    speeds = Speeds()
    speeds.look(snapshot(keys=full), 0.0)
    speeds.look(snapshot(keys=[key(b"late", 900_000)]), 10.0)

    assert speeds.served_since("orders", "default", 5.0)[1] == {}


# --- the answer ------------------------------------------------------------------------------


def test_who_was_served_while_it_waited_is_told_with_parts_that_make_one():
    speeds = Speeds()
    many = [key(b"k%02d" % number, 0) for number in range(13)]
    speeds.look(snapshot(keys=many), 0.0)
    speeds.look(snapshot(keys=[key(b"k%02d" % number, 1_000.0 * (1 + number)) for number in range(13)]), 10.0)

    told = explained(reply(pending=5, oldest_age_ms=9_000), REQUEST, speeds, 10.0).served_meanwhile

    assert [each.fairness_key for each in told.keys] == [f"k{number:02}" for number in range(12, 2, -1)]
    assert sum(each.share for each in told.keys) + told.others_share == pytest.approx(1.0)
    assert told.keys[0].cost == 13.0


def test_consumers_and_forecasts_are_there_and_nothing_of_the_seam_is_left():
    told = explained(reply(pending=0), REQUEST, Speeds(), 1.0)

    assert (told.consumers.count, told.consumers.held, told.consumers.window) == (2, 10, 10)
    assert told.head_forecast.unknown == events_pb2.Forecast.UNKNOWN_NOTHING_PENDING
    assert not told.HasField("served_meanwhile")
    assert pb.ExplainKeyResponse.FromString(told.SerializeToString()).ByteSize() == told.ByteSize()
    assert not seam_frames.Explained.FromString(told.SerializeToString()).HasField("forecast")


def test_a_question_says_which_key_and_that_the_outlook_is_wanted():
    asked = seam_frames.ExplainKey.FromString(ask_forecast("orders", "audit", "acmé"))

    assert (asked.queue, asked.channel, asked.fairness_key.decode()) == (b"orders", b"audit", "acmé")
    assert asked.with_forecast
    assert situation_of(reply()).room == 0


def test_a_tenant_is_told_nothing_of_others():
    told = pb.ExplainKeyResponse(
        share=0.5, due_share=0.5, blocking_bucket="b", pending=3, learned_per_second=4.0
    )
    told.refused_at.seconds = 1_700_000_000
    told.served_meanwhile.keys.add(fairness_key="rival")
    told.consumers.count = 7
    told.nobody_consumes = True
    told.head_forecast.latest_ms = 9

    hide_others(told)

    left = {field.name for field, _ in told.ListFields()}
    assert left == {"pending", "head_forecast"}
    with pytest.raises(PermissionDenied, match='bound to tenant "acme"'):
        check_own_key(SimpleNamespace(tenant="acme"), "rival")  # type: ignore[arg-type]


# --- who is late -----------------------------------------------------------------------------


async def test_keys_that_wait_are_counted_in_the_channels_one_may_know_of():
    counts = {b"default": 40, b"audit": 2}

    async def call(_kind: int, frame: bytes) -> bytes:
        only = seam_frames.WaitingLongestPage.FromString(frame).channel
        waiting = [{"channel": name, "count": count} for name, count in counts.items() if only in (b"", name)]
        return bytes(seam_frames.WaitingLongestKeys(waiting=waiting).SerializeToString())

    broker: Any = SimpleNamespace(queue_configs={"orders": None}, call=call)

    waiting = WaitingLongest(broker)
    everything = await waiting.list(events_pb2.ListLateRequest())
    some = await waiting.list(events_pb2.ListLateRequest(), lambda _queue, channel: channel in ("", "audit"))

    assert (everything.waiting_keys, some.waiting_keys) == (42, 2)


async def test_dead_letters_are_late_only_where_they_are_asked_for():
    asked: list[bytes] = []

    async def call(_kind: int, frame: bytes) -> bytes:
        asked.append(seam_frames.WaitingLongestPage.FromString(frame).queue)
        return bytes(seam_frames.WaitingLongestKeys().SerializeToString())

    # A queue that only ends like one of dead letters is one like any other.
    broker: Any = SimpleNamespace(
        queue_configs={"orders": None, "orders.dlq": None, "lone.dlq": None}, call=call
    )

    await WaitingLongest(broker).list(events_pb2.ListLateRequest())
    assert asked == [b"lone.dlq", b"orders"]
    await WaitingLongest(broker).list(events_pb2.ListLateRequest(queue="orders.dlq"))
    assert asked[-1] == b"orders.dlq"
