"""What somebody who looks at a running broker asks it: who am I, which keys are there, what would a seek do."""

from __future__ import annotations

import time

import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import auth_pb2, events_pb2, service_pb2, watch_pb2
from fila.v1.auth_pb2_grpc import FilaAuthStub
from tests.waiting import within

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def enqueue(server, queue: str, count: int = 1, **headers: str) -> None:
    messages = [service_pb2.EnqueueMessage(headers=headers) for _ in range(count)]
    server.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=queue, messages=messages))


@pytest.fixture
def keyed(server, queue):
    mask = {"paths": ["fairness_key_header"]}
    config = pb.QueueConfig(fairness_key_header="tenant")
    server.admin.UpdateQueue(pb.UpdateQueueRequest(queue=queue, config=config, update_mask=mask))
    return queue


def test_without_keys_everybody_is_told_that_they_may_do_everything(server):
    told = FilaAuthStub(server.channel()).WhoAmI(auth_pb2.WhoAmIRequest())

    assert (told.principal, told.auth_enabled, told.tenant, told.key_id) == ("anonymous", False, "", "")
    assert [permission.right for permission in told.permissions] == [auth_pb2.RIGHT_ADMIN]
    assert told.peer == "127.0.0.1"


def test_keys_are_found_and_bounds_are_told(server, keyed):
    for tenant in ("acme", "acme-eu", "bravo"):
        enqueue(server, keyed, 2, tenant=tenant)

    found = server.admin.FindKeys(watch_pb2.FindKeysRequest(queue=keyed, prefix="acme", limit=1))

    # Both have two waiting, so either may come first.
    assert len(found.keys) == 1
    assert found.keys[0].fairness_key in {"acme", "acme-eu"}
    assert found.matched == 2
    with pytest.raises(Exception, match="limit must be at most 256, got 257"):
        server.admin.FindKeys(watch_pb2.FindKeysRequest(queue=keyed, limit=257))


def test_a_slowed_key_gets_its_rate_and_others_all_they_want(server, keyed):
    enqueue(server, keyed, 30, tenant="noisy")
    enqueue(server, keyed, 3, tenant="quiet")
    server.admin.SetKeyPolicy(
        pb.SetKeyPolicyRequest(queue=keyed, fairness_key="noisy", rate_per_second=20, burst=1)
    )
    began_s = time.monotonic()
    got: list[str] = []
    while len(got) < 9:
        leased = server.service.Lease(
            service_pb2.LeaseRequest(queue=keyed, max_messages=100, wait_ms=1000)
        ).messages
        got += [message.metadata.fairness_key for message in leased]

    assert got.count("quiet") == 3
    assert time.monotonic() - began_s >= 5 / 20 * 0.9, "six of the noisy one take five tokens after the first"
    (policy,) = server.admin.ListKeyPolicies(events_pb2.ListKeyPoliciesRequest(queue=keyed)).policies
    assert (policy.rate_per_second, policy.burst) == (20, 1)


def test_a_seek_that_is_only_looked_at_changes_nothing_and_is_no_event(server, queue):
    enqueue(server, queue, 5)
    server.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=2))

    told = server.admin.SeekChannel(pb.SeekChannelRequest(queue=queue, offset=4, validate_only=True))

    assert (told.offset, told.replayed, told.skipped, told.leases_revoked) == (4, 0, 3, 2)
    assert server.admin.GetStats(pb.GetStatsRequest(queue=queue)).in_flight == 2
    stream = server.admin.WatchEvents(events_pb2.WatchEventsRequest(queue=queue, kinds=["channel"]))
    assert [event for answer in stream for event in answer.events] == []


def test_the_status_tells_what_the_process_uses(server):
    told = server.admin.GetStatus(events_pb2.GetStatusRequest())

    assert 10_000_000 < told.memory_bytes < told.memory_bytes_max
    assert told.cpus >= 1
    assert server.admin.GetStatus(events_pb2.GetStatusRequest()).cpu_ms >= told.cpu_ms > 0


# --- numbers as they change, and the last hour -----------------------------------------------


def test_a_number_moves_within_two_seconds_and_equals_the_statistics(server, keyed):
    enqueue(server, keyed, 3, tenant="acme")
    stream = server.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[keyed], top=5), timeout=20)
    first = next(stream)
    assert (first.full, first.channels[0].state.ready) == (True, 3)
    assert [(key.fairness_key, key.ready) for key in first.channels[0].keys] == [("acme", 3)]

    told, names = first, ["acme"]

    def moves(number: int) -> float:
        nonlocal told
        names.insert(0, f"bravo-{number}")
        enqueue(server, keyed, 4 + number, tenant=names[0])
        enqueued_s = time.monotonic()
        while list(told.channels[0].leading) != names:
            told = next(stream)
        return time.monotonic() - enqueued_s

    within(2, moves)
    stream.cancel()

    enqueued = 3 + sum(4 + number for number in range(len(names) - 1))
    assert told.channels[0].state.ready == enqueued
    assert server.admin.GetStats(pb.GetStatsRequest(queue=keyed)).depth == enqueued
    assert told.channels[0].state.arriving_per_second > 0


def test_all_queues_are_watched_without_their_keys(server, queue):
    enqueue(server, queue, 2)
    stream = server.admin.WatchStats(watch_pb2.WatchStatsRequest(), timeout=20)
    told = next(stream)
    states = {each.state.queue: each.state for each in told.channels}
    assert states[queue].ready == 2
    assert f"{queue}.dlq" not in states, "a dead-letter queue that never held a letter"
    assert not any(each.keys for each in told.channels)
    server.admin.DeleteQueue(pb.DeleteQueueRequest(queue=queue))
    gone: set[str] = set()
    while queue not in gone:
        gone |= {each.queue for each in next(stream).gone}
    stream.cancel()


def test_what_is_wrong_with_a_watch_is_said(server, queue):
    for request, sentence in (
        (watch_pb2.WatchStatsRequest(queues=["nowhere"]), "does not exist"),
        (watch_pb2.WatchStatsRequest(queues=[queue], channel="nope"), "has no channel"),
        (watch_pb2.WatchStatsRequest(queues=[queue], top=51), "top must be at most 50, got 51"),
        (watch_pb2.WatchStatsRequest(keys=["a"]), "keys go with queues"),
        (watch_pb2.WatchStatsRequest(queues=[queue] * 21), "queues must be at most 20, got 21"),
    ):
        with pytest.raises(Exception, match=sentence):
            next(server.admin.WatchStats(request, timeout=20))


def test_the_hour_of_a_broker_that_just_started_is_one_long_gap(server, queue):
    told = server.admin.GetSeries(watch_pb2.GetSeriesRequest(queue=queue, keys=["acme"]))

    assert (len(told.points), told.step_ms) == (360, 10_000)
    assert not told.points[0].recorded
    with pytest.raises(Exception, match="does not exist"):
        server.admin.GetSeries(watch_pb2.GetSeriesRequest(queue="nowhere"))
    with pytest.raises(Exception, match='has no channel "nowhere"'):
        server.admin.GetSeries(watch_pb2.GetSeriesRequest(queue=queue, channel="nowhere"))
