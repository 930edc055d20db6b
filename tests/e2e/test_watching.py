"""What somebody who looks at a running broker asks it: who am I, which keys are there, what would a seek do."""

from __future__ import annotations

import time

import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import auth_pb2, events_pb2, service_pb2, watch_pb2
from fila.v1.auth_pb2_grpc import FilaAuthStub

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

    assert ([key.fairness_key for key in found.keys], found.matched) == (["acme"], 2)
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
