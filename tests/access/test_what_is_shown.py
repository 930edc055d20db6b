"""A key that only produces is shown numbers and no names; only admins are told who changed something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from fila.v1 import admin_pb2, auth_pb2, events_pb2, service_pb2, watch_pb2
from fila_server.access.table import RPCS
from tests.access.guarded_server import Client, Guarded, make_queue, refusal
from tests.access.test_table_of_rights import SERVICES, request_of

pytestmark = pytest.mark.e2e

QUEUE = "shown"
CUSTOMER = "globex"
BUCKET = "provider-of-globex"


@pytest.fixture(scope="module")
def shown(guarded: Guarded) -> Guarded:
    """A queue in which a customer's messages wait for a bucket, and an operator has slowed the customer down."""
    make_queue(guarded, QUEUE, fairness_key_header="tenant", throttle_key_headers=["throttle"])
    admin = guarded.admin
    admin.admin.SetConfig(admin_pb2.SetConfigRequest(key=f"throttle.{BUCKET}", value="0.001,1"))
    message = service_pb2.EnqueueMessage(headers={"tenant": CUSTOMER, "throttle": BUCKET})
    admin.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=QUEUE, messages=[message] * 5))
    for _ in range(2):
        admin.service.Lease(service_pb2.LeaseRequest(queue=QUEUE, max_messages=9))
    admin.admin.SetKeyPolicy(admin_pb2.SetKeyPolicyRequest(queue=QUEUE, fairness_key=CUSTOMER, weight=7))
    admin.admin.UpdateQueue(
        admin_pb2.UpdateQueueRequest(
            queue=QUEUE, config=admin_pb2.QueueConfig(max_depth=1000), update_mask={"paths": ["max_depth"]}
        )
    )
    return guarded


@pytest.fixture(scope="module")
def producer(shown: Guarded) -> Client:
    return shown.make_key("only-produces", f"produce {QUEUE}")


def first_answers(client: Client, name: str) -> list[Any]:
    service, method = name.split("/")
    try:
        answer = client.method(name)(request_of(name, RPCS[name], QUEUE), timeout=10)
        if SERVICES[service].methods_by_name[method].server_streaming:
            stream, answer = answer, next(iter(answer), None)
            stream.cancel()
    except grpc.RpcError as error:
        return [service_pb2.EnqueueMessage(headers={"refusal": error.details() or ""})]
    return [answer] if answer is not None else []


# What `produce` shows.


@pytest.mark.parametrize("name", RPCS)
def test_no_call_tells_who_produces_alone_a_customers_or_a_buckets_name(producer: Client, name: str):
    for answer in first_answers(producer, name):
        assert CUSTOMER.encode() not in answer.SerializeToString()


def test_who_produces_alone_is_told_how_full_its_queue_is(shown: Guarded, producer: Client):
    stats = producer.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE))
    watched = next(producer.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[QUEUE]), timeout=10))
    full = shown.admin.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE))

    assert CUSTOMER in [key.key for key in full.per_key_stats]
    assert [bucket.key for bucket in full.per_throttle_stats] == [BUCKET]
    assert stats.depth == full.depth > 0
    assert stats.enqueued_total == full.enqueued_total
    assert watched.channels[0].state.ready + watched.channels[0].state.delayed == full.depth
    assert (list(watched.channels[0].keys), list(watched.channels[0].leading)) == ([], [])


@pytest.mark.parametrize("key", [CUSTOMER, "nobody"])
def test_a_key_that_who_produces_alone_names_is_refused_whether_it_is_there_or_not(
    producer: Client, key: str
):
    calls = {
        "WatchStats": watch_pb2.WatchStatsRequest(queues=[QUEUE], keys=[key]),
        "GetSeries": watch_pb2.GetSeriesRequest(queue=QUEUE, keys=[key]),
        "ExplainKey": admin_pb2.ExplainKeyRequest(queue=QUEUE, fairness_key=key),
        "ListKeyPolicies": events_pb2.ListKeyPoliciesRequest(queue=QUEUE, fairness_key=key),
    }
    for method, request in calls.items():
        code, sentence, _ = refusal(lambda m=method, r=request: getattr(producer.admin, m)(r, timeout=10))
        assert (code, key in sentence) == ("PERMISSION_DENIED", False)
        assert sentence.startswith("consume or manage or view:")


def test_who_may_only_take_back_is_shown_what_any_right_shows_and_no_channel(shown: Guarded):
    client = shown.make_key("only-cancels", f"cancel {QUEUE}")
    stats = client.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE))
    (listed,) = client.admin.ListQueues(admin_pb2.ListQueuesRequest()).queues
    full = shown.admin.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE))

    assert (listed.name, stats.depth, stats.enqueued_total) == (QUEUE, full.depth, full.enqueued_total)
    assert stats.active_fairness_keys == full.active_fairness_keys > 0
    assert (len(stats.channels), len(full.channels)) == (0, 1)
    assert (list(stats.per_key_stats), list(stats.per_throttle_stats)) == ([], [])
    code, _, _ = refusal(lambda: client.admin.ListChannels(admin_pb2.ListChannelsRequest(queue=QUEUE)))
    assert code == "PERMISSION_DENIED"


@pytest.mark.parametrize("right", ["consume", "manage", "view"])
def test_the_other_rights_show_keys_and_buckets(shown: Guarded, right: str):
    client = shown.make_key(f"shown-{right}", f"{right} {QUEUE}")
    stats = client.admin.GetStats(admin_pb2.GetStatsRequest(queue=QUEUE))
    watched = next(client.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[QUEUE]), timeout=10))
    told = client.admin.ExplainKey(admin_pb2.ExplainKeyRequest(queue=QUEUE, fairness_key=CUSTOMER))

    assert CUSTOMER in [key.key for key in stats.per_key_stats]
    assert [bucket.key for bucket in stats.per_throttle_stats] == [BUCKET]
    assert CUSTOMER in watched.channels[0].leading
    assert told.blocking_bucket == BUCKET


def test_a_grant_that_is_taken_back_takes_the_names_off_a_stream_that_goes_on(shown: Guarded):
    client = shown.make_key("loses-view", f"produce {QUEUE}", f"view {QUEUE}")
    stream = client.admin.WatchStats(watch_pb2.WatchStatsRequest(queues=[QUEUE]), timeout=20)
    assert CUSTOMER in next(stream).channels[0].leading

    shown.admin.auth.RevokeGrant(
        auth_pb2.RevokeGrantRequest(
            name="loses-view", permissions=[auth_pb2.Permission(right=auth_pb2.RIGHT_VIEW, queue=QUEUE)]
        )
    )

    said = [channel for channel in next(stream).channels if channel.state.queue == QUEUE]
    assert [(list(channel.leading), list(channel.keys)) for channel in said] == [([], [])]
    stream.cancel()


# What events tell of admins.


def told(client: Client) -> Iterator[events_pb2.Event]:
    asked = events_pb2.WatchEventsRequest(queue=QUEUE)
    for answer in client.admin.WatchEvents(asked, timeout=20):
        yield from answer.events


def test_events_tell_admins_who_it_was_from_where_and_which_settings(shown: Guarded):
    found = {event.kind: event for event in told(shown.admin)}
    for kind in ("queue.created", "queue.updated", "key.policy_set"):
        assert (found[kind].principal, found[kind].peer.partition(":")[0]) == ("admin", "ipv4")
    assert "fairness_key_header" in found["queue.created"].details["settings"]
    assert found["queue.updated"].details["changed"] == "max_depth"


@pytest.mark.parametrize("right", ["consume", "manage", "view"])
def test_others_are_told_that_it_happened_and_neither_by_whom_nor_to_which_settings(
    shown: Guarded, right: str
):
    client = shown.make_key(f"hears-{right}", f"{right} {QUEUE}")
    found = {event.kind: event for event in told(client)}

    assert {"queue.created", "queue.updated", "key.policy_set"} <= found.keys()
    for event in found.values():
        assert (event.principal, event.peer) == ("", "")
        assert not {"settings", "changed"} & event.details.keys()
    assert found["key.policy_set"].details["weight"] == "7"


@pytest.mark.parametrize(
    ("grant", "why"),
    [
        (f"consume {QUEUE}:public", ""),
        (f"consume {QUEUE}", "a secret"),
        (f"view {QUEUE}", "a secret"),
        (f"manage {QUEUE}", "a secret"),
    ],
)
def test_why_settings_changed_is_told_to_those_who_may_know_of_every_channel(
    shown: Guarded, grant: str, why: str
):
    shown.admin.admin.UpdateQueue(
        admin_pb2.UpdateQueueRequest(
            queue=QUEUE,
            config=admin_pb2.QueueConfig(paused_channels=["private"]),
            update_mask={"paths": ["paused_channels"]},
            comment="a secret",
        )
    )
    client = shown.make_key(f"hears-why-{grant.translate({32: 45, 58: 45})}", grant)
    *_, event = [event for event in told(client) if event.kind == "queue.updated"]

    assert event.details.get("comment", "") == why


def test_whose_act_it_was_is_told_that_it_was(shown: Guarded):
    client = shown.make_key("acts", f"manage {QUEUE}")
    client.admin.SetKeyPolicy(admin_pb2.SetKeyPolicyRequest(queue=QUEUE, fairness_key="own", weight=3))

    (event,) = [event for event in told(client) if event.fairness_key == "own"]

    assert event.principal == "acts"
    assert event.peer
