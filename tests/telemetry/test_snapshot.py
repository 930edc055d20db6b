"""What the core tells telemetry, against what was done to it."""

from __future__ import annotations

import pytest

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.core.protocol import commands
from fila_server.hooks import counters as hook_counters
from fila_server.telemetry import catalog as c
from fila_server.telemetry import series
from fila_server.telemetry.series import OtherKeys, all_series
from fila_server.telemetry.snapshot import SNAPSHOT_VERSION, Snapshot, text_of
from tests.telemetry.conftest import (
    BACKUP_AGE_S,
    EDGE,
    GROUP,
    QUOTAS,
    SCHEDULES,
    TROUBLES,
    live_a_little,
    metrics_of,
    of_a_long_life,
    snapshot_of,
)


def queue_of(snapshot: Snapshot, name: bytes = b"orders"):
    return next(queue for queue in snapshot.queues if queue.name == name)


def test_a_queues_numbers_are_what_happened_to_it(engine):
    live_a_little(engine)

    snapshot = snapshot_of(engine)

    assert snapshot.version == SNAPSHOT_VERSION
    assert snapshot.queue_count == 2
    queue = queue_of(snapshot)
    assert queue.counts.enqueued == 8
    assert (queue.counts.leased, queue.counts.delivered) == (7, 7)
    assert queue.counts.acked == 4
    assert queue.counts.nacked == 1
    assert (queue.depth, queue.in_flight) == (2, 2)
    assert sum(queue.latency) == 7
    # 1500 ms have eleven bits.
    assert queue.latency[11] == 7
    assert queue.latency_ms == 7 * 1500
    [channel] = queue.channels
    assert (channel.name, channel.ready, channel.delayed, channel.in_flight) == (b"default", 1, 1, 2)
    assert (channel.leased, channel.delivered) == (7, 7)
    assert channel.active_keys == 1
    assert channel.served == 7000
    assert channel.rounds > 0
    assert dict(snapshot.refused) == {b"QUEUE_NOT_FOUND": 1}


def test_sums_are_of_all_queues_and_letters_apart(engine):
    live_a_little(engine)
    engine.create_queue("mail", channels=["audit"])
    engine.enqueue("mail")
    engine.enqueue("mail")
    sums = snapshot_of(engine).sums

    queues = [queue_of(snapshot_of(engine), name) for name in (b"orders", b"mail")]
    assert sums.queues == 2
    assert sums.waiting == 2 + 2, "a message that waits in two channels is one"
    assert sums.in_flight == sum(channel.in_flight for queue in queues for channel in queue.channels)
    assert sums.enqueued == 8 + 2
    assert sums.acked == 4
    assert sums.oldest_ms == max(channel.oldest_ms for queue in queues for channel in queue.channels)
    assert sums.dead_letters == 0


def test_keys_tell_what_they_got_and_what_they_waited_for(engine):
    live_a_little(engine)
    engine.sleep(1000)

    keys = {key.fairness_key: key for key in snapshot_of(engine).keys}

    assert keys[b"acme"].delivered == 4
    assert keys[b"globex"].delivered == 3
    assert keys[b"acme"].served == 4000
    # Four were ready for 1.5 s without a consumer, the nacked one for another second; one is delayed all the time.
    assert keys[b"acme"].totals[:4] == (4 * 1500 + 1000, 0, 0, 1500 + 1000)


def test_a_bucket_tells_its_level_and_who_passed(engine):
    live_a_little(engine)
    engine.sleep(500)

    [bucket] = snapshot_of(engine).limits

    assert bucket.throttle_key == b"mail"
    assert (bucket.rate, bucket.burst) == (1, 1)
    assert bucket.passed == 1
    assert bucket.tokens == pytest.approx(0.5)


def test_a_fair_channel_shows_ratios_of_one(engine):
    for _ in range(100):
        for tenant in ("acme", "globex"):
            engine.enqueue("orders", headers={"tenant": tenant})
    for _ in range(20):
        engine.sleep(10)
        engine.ack("orders", engine.lease("orders", most=4))

    ratios = {key.fairness_key: key.share_ratio for key in snapshot_of(engine).keys}

    assert ratios == {b"acme": pytest.approx(1, abs=0.1), b"globex": pytest.approx(1, abs=0.1)}


def test_a_throttled_key_beside_a_free_one_shows_a_low_ratio(engine):
    engine.set_config("throttle.mail", "10,1")
    for _ in range(200):
        engine.enqueue("orders", headers={"tenant": "held", "provider": "mail"})
        engine.enqueue("orders", headers={"tenant": "free"})
    for _ in range(30):
        engine.sleep(10)
        engine.ack("orders", engine.lease("orders", most=6))

    ratios = {key.fairness_key: key.share_ratio for key in snapshot_of(engine).keys}

    assert ratios[b"held"] < 0.3
    assert ratios[b"free"] == pytest.approx(1, abs=0.2)


def test_batches_are_counted_by_how_many_were_stored_together(engine):
    items = [service.EnqueueMessage(payload=b"x") for _ in range(100)]
    batch = service.EnqueueBatchRequest(queue="orders", messages=items)
    engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)

    snapshot = snapshot_of(engine)

    assert snapshot.batch_messages == 100
    assert snapshot.batch[7] == 1


def test_only_the_busiest_thousand_keys_are_told(engine):
    engine.create_queue("many", fairness_key_header="tenant")
    items = [service.EnqueueMessage(headers={"tenant": f"k{i}"}) for i in range(1500)]
    items += [service.EnqueueMessage(headers={"tenant": f"k{i}"}) for i in range(10)]
    batch = service.EnqueueBatchRequest(queue="many", messages=items)
    engine.call(commands.ENQUEUE_BATCH, batch, service.EnqueueBatchResponse)
    engine.sleep(200)
    while leased := engine.lease("many", most=1000):
        engine.ack("many", leased)

    keys = snapshot_of(engine).keys

    assert len(keys) == 1000
    assert {key.fairness_key for key in keys[:10]} == {b"k%d" % i for i in range(10)}


def test_a_key_that_never_waits_is_remembered_once_it_comes_often(engine):
    for _ in range(200):
        engine.enqueue("orders", headers={"tenant": "quick"})
        engine.ack("orders", engine.lease("orders"))
        engine.sleep(1)

    [key] = snapshot_of(engine).keys

    assert 100 <= key.delivered <= 200
    assert key.share_ratio == pytest.approx(1)


# --- the keys without a series -----------------------------------------------------------------


def with_keys(snapshot: Snapshot, names: set[bytes]) -> Snapshot:
    listed = [key for key in snapshot.keys if key.fairness_key in names]
    return Snapshot(
        **{name: getattr(snapshot, name) for name in snapshot.__struct_fields__} | {"keys": listed}
    )


def deliver(engine, tenant: str, count: int) -> Snapshot:
    for _ in range(count):
        engine.enqueue("orders", headers={"tenant": tenant})
    engine.sleep(200)  # long enough to be remembered
    engine.ack("orders", engine.lease("orders"))
    return snapshot_of(engine)


def test_what_is_not_listed_is_counted_as_other(engine):
    others = OtherKeys()
    where = (b"orders", b"default")

    first = others.read(with_keys(deliver(engine, "small", 3), {b"busy"}))[where][0]
    second = others.read(with_keys(deliver(engine, "busy", 5), {b"busy"}))[where][0]
    third = others.read(with_keys(deliver(engine, "busy", 7), {b"busy"}))[where][0]
    fourth = others.read(with_keys(deliver(engine, "small", 2), {b"busy"}))[where][0]

    # A key's first appearance counts its last interval as other still: rates are right from then on.
    assert (first, second, third, fourth) == (3, 8, 8, 10)


def test_other_never_goes_down_when_a_key_becomes_one_of_the_busiest(engine):
    others = OtherKeys()
    where = (b"orders", b"default")
    seen = []
    for listed in (set(), {b"a"}, {b"b"}, {b"a", b"b"}, set()):
        deliver(engine, "a", 4)
        seen.append(others.read(with_keys(deliver(engine, "b", 2), listed))[where][0])

    assert seen == sorted(seen)


def test_a_queue_that_is_made_anew_counts_from_zero_again(engine):
    others = OtherKeys()
    deliver(engine, "small", 5)
    first = others.read(with_keys(snapshot_of(engine), set()))[b"orders", b"default"][0]
    engine.call(commands.DELETE_QUEUE, admin.DeleteQueueRequest(queue="orders"), admin.DeleteQueueResponse)
    engine.create_queue("orders", fairness_key_header="tenant")

    again = others.read(with_keys(deliver(engine, "small", 2), set()))[b"orders", b"default"][0]

    assert (first, again) == (5, 7)


def test_what_is_longer_than_the_last_bucket_is_counted_beyond_it(engine):
    engine.enqueue("orders")
    engine.sleep(3 * 3600_000)
    engine.lease("orders")

    told = {entry.metric: entry for entry in all_series(snapshot_of(engine), OtherKeys(), [])}
    latency = next(h for attributes, h in told[c.LATENCY].histograms if attributes[c.QUEUE] == "orders")

    assert latency.observed == latency.counts[-1] == 1
    assert latency.total == 3 * 3600


# --- the catalog -------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [None, GROUP])
def test_every_metric_of_the_catalog_has_a_series_and_no_series_is_without_one(engine, hook_readings, group):
    live_a_little(engine)
    snapshot = of_a_long_life(snapshot_of(engine))

    told = [
        entry.metric
        for entry in all_series(
            snapshot, OtherKeys(), hook_readings, QUOTAS, TROUBLES, BACKUP_AGE_S, SCHEDULES, EDGE, group
        )
    ]

    assert sorted(m.name for m in told) == sorted(m.name for m in metrics_of(group))
    assert len({m.prometheus_name for m in c.METRICS}) == len(c.METRICS)


@pytest.mark.parametrize("group", [None, GROUP])
def test_every_point_has_the_attributes_the_catalog_says(engine, hook_readings, group):
    live_a_little(engine)
    snapshot = of_a_long_life(snapshot_of(engine))

    for entry in all_series(
        snapshot, OtherKeys(), hook_readings, QUOTAS, TROUBLES, BACKUP_AGE_S, SCHEDULES, EDGE, group
    ):
        points = [attributes for attributes, _ in [*entry.points, *entry.histograms]]
        assert points, entry.metric.name
        assert all(tuple(attributes) == entry.metric.attributes for attributes in points), entry.metric.name
        assert (entry.metric.kind == "histogram") == bool(entry.histograms)


def test_telemetry_and_hooks_agree_on_the_duration_buckets():
    assert series.HOOK_BOUNDS_NS == hook_counters.DURATION_BOUNDS_NS


def test_names_that_are_no_text_stay_apart():
    assert text_of(b"acme") == "acme"
    assert text_of(b"\xff") != text_of(b"\xfe")
