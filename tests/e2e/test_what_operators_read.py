"""What an operator is told is what is so: settings in force, dead letters by page, keys that wait or do not."""

from __future__ import annotations

import time

import grpc
import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import events_pb2, service_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def explained(server, queue: str, key: str):
    return server.admin.ExplainKey(pb.ExplainKeyRequest(queue=queue, fairness_key=key))


def enqueue(server, queue: str, count: int = 1, **headers: str) -> None:
    messages = [service_pb2.EnqueueMessage(headers=headers, payload=b"%d" % i) for i in range(count)]
    server.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=queue, messages=messages))


def lease(server, queue: str, count: int = 1):
    request = service_pb2.LeaseRequest(queue=queue, max_messages=count, wait_ms=0)
    return list(server.service.Lease(request).messages)


def bury(server, queue: str, count: int) -> None:
    """Make dead letters of `count` messages."""
    enqueue(server, queue, count)
    items = [
        service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id, dead_letter=True)
        for each in lease(server, queue, count)
    ]
    server.service.NackBatch(service_pb2.NackBatchRequest(queue=queue, items=items))


def test_settings_are_told_with_what_holds_where_nothing_was_said(server, queue):
    told = server.admin.GetQueue(pb.GetQueueRequest(queue=queue)).config
    request = pb.UpdateQueueRequest(queue=queue, config=pb.QueueConfig(max_depth=9))
    request.update_mask.paths.append("max_depth")
    updated = server.admin.UpdateQueue(request).config

    for config in (told, updated):
        assert (config.durability, config.hook_fallback) == (pb.DURABILITY_FSYNC, pb.HOOK_FALLBACK_POLICY)


def test_a_queue_that_left_its_durability_to_the_broker_follows_it_over_a_restart(start_server):
    first = start_server()
    first.admin.CreateQueue(pb.CreateQueueRequest(name="orders"))
    update = pb.UpdateQueueRequest(queue="orders", config=pb.QueueConfig(max_depth=9))
    update.update_mask.paths.append("max_depth")
    first.admin.UpdateQueue(update)
    first.stop()

    again = start_server(FILA_STORAGE__DURABILITY="os")

    assert again.admin.GetQueue(pb.GetQueueRequest(queue="orders")).config.durability == pb.DURABILITY_OS


def test_one_broker_is_a_cluster_of_one(server):
    assert server.admin.ListQueues(pb.ListQueuesRequest()).cluster_node_count == 1


def test_a_missing_queue_is_told_the_same_to_a_caller_that_meant_something_else(server):
    for call, request in (
        (server.admin.DeleteQueue, pb.DeleteQueueRequest(queue="nowhere")),
        (server.admin.GetStats, pb.GetStatsRequest(queue="nowhere")),
        (server.admin.Redrive, pb.RedriveRequest(dlq_queue="nowhere.dlq")),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            call(request)
        assert "create it first" not in refused.value.details()
        assert "UpdateQueue" not in refused.value.details()


def test_a_dead_letter_queue_made_by_hand_is_adopted_with_a_word(server):
    server.admin.CreateQueue(pb.CreateQueueRequest(name="adopting.dlq"))

    assert server.admin.CreateQueue(pb.CreateQueueRequest(name="adopting")).adopted_dlq
    assert not server.admin.CreateQueue(pb.CreateQueueRequest(name="fresh")).adopted_dlq


# --- explain ---------------------------------------------------------------------------------


def test_a_key_with_nothing_has_the_weight_its_next_message_will_have(server):
    server.admin.CreateQueue(
        pb.CreateQueueRequest(name="weighed", config=pb.QueueConfig(weights={"acme": 3}))
    )

    assert explained(server, "weighed", "acme").weight == 3
    assert explained(server, "weighed", "stranger").weight == 1


def test_a_pause_is_named_on_a_key_with_nothing_too(server, queue):
    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue=queue, fairness_key="acme", paused=True))

    assert explained(server, queue, "acme").state == pb.ExplainKeyResponse.STATE_PAUSED


def test_a_pause_is_no_throttle_in_the_hours_account(server):
    config = pb.QueueConfig(fairness_key_header="tenant")
    server.admin.CreateQueue(pb.CreateQueueRequest(name="held", config=config))
    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue="held", fairness_key="acme", paused=True))
    enqueue(server, "held", tenant="acme")

    deadline = time.monotonic() + 30
    while not (waits := explained(server, "held", "acme").waits).held_ms and time.monotonic() < deadline:
        time.sleep(0.05)

    assert waits.held_ms > 0
    assert waits.throttle_ms == 0


def test_a_keys_cap_is_told_beside_its_pause(server, queue):
    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue=queue, fairness_key="acme", max_in_flight=7))

    (key,) = server.admin.GetStats(pb.GetStatsRequest(queue=queue)).per_key_stats

    assert (key.key, key.max_in_flight) == ("acme", 7)


# --- a queue that is paused ------------------------------------------------------------------


def paused(server, queue: str, *, is_paused: bool) -> None:
    request = pb.UpdateQueueRequest(queue=queue, config=pb.QueueConfig(paused=is_paused))
    request.update_mask.paths.append("paused")
    server.admin.UpdateQueue(request)


def test_a_paused_queue_takes_messages_and_gives_none_until_it_goes_on(server, queue):
    enqueue(server, queue)
    (held,) = lease(server, queue)
    paused(server, queue, is_paused=True)
    enqueue(server, queue, 2)

    assert lease(server, queue) == []
    assert explained(server, queue, "default").state == pb.ExplainKeyResponse.STATE_PAUSED
    item = service_pb2.SettleItem(message_id=held.id, lease_id=held.metadata.lease_id)
    acked = server.service.AckBatch(service_pb2.AckBatchRequest(queue=queue, items=[item]))
    assert not acked.results[0].code

    paused(server, queue, is_paused=False)
    assert len(lease(server, queue, 2)) == 2


def test_a_waiting_pull_is_woken_when_the_queue_goes_on(server, queue):
    paused(server, queue, is_paused=True)
    enqueue(server, queue)
    request = service_pb2.LeaseRequest(queue=queue, max_messages=1, wait_ms=20_000)
    waiting = server.service.Lease.future(request)

    paused(server, queue, is_paused=False)

    assert len(waiting.result(10).messages) == 1


def test_a_pause_of_a_queue_outlives_a_restart(start_server):
    first = start_server()
    first.admin.CreateQueue(pb.CreateQueueRequest(name="orders"))
    paused(first, "orders", is_paused=True)
    enqueue(first, "orders")
    first.stop()

    again = start_server()

    assert lease(again, "orders") == []


def test_of_a_pause_that_meets_a_resumption_it_is_known_since_when_or_it_is_none(server, queue):
    """What one of two who press at once read before must not decide what is kept of the other's."""
    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue=queue, fairness_key="acme", paused=True))
    for _ in range(60):
        pressed = [
            server.admin.SetKeyPolicy.future(
                pb.SetKeyPolicyRequest(queue=queue, fairness_key="acme", paused=is_paused)
            )
            for is_paused in (True, False, True)
        ]
        for each in pressed:
            each.result(30)
        asked = events_pb2.ListKeyPoliciesRequest(queue=queue, fairness_key="acme")
        for policy in server.admin.ListKeyPolicies(asked).policies:
            assert policy.pause.HasField("since") == policy.paused


# --- dead letters by page and by name --------------------------------------------------------


def redrive(server, queue: str, **which):
    return server.admin.Redrive(pb.RedriveRequest(dlq_queue=f"{queue}.dlq", **which))


def test_a_redrive_can_be_walked_page_by_page(server, queue):
    bury(server, queue, 5)

    first = redrive(server, queue, count=2)
    rest = redrive(server, queue, count=9, after_offset=first.last_offset)

    assert (first.redriven, rest.redriven) == (2, 3)
    assert rest.last_offset > first.last_offset


def test_what_came_after_the_walk_began_is_not_moved(server, queue):
    bury(server, queue, 2)
    end = server.admin.GetStats(pb.GetStatsRequest(queue=f"{queue}.dlq")).head_offset - 1
    bury(server, queue, 1)

    assert redrive(server, queue, up_to_offset=end).redriven == 2


def test_only_the_dead_letters_that_were_named_are_moved(server, queue):
    bury(server, queue, 5)
    peeked = server.admin.PeekMessages(pb.PeekMessagesRequest(queue=f"{queue}.dlq", max_messages=10))
    offsets = [each.metadata.offset for each in peeked.messages]

    answer = redrive(server, queue, offsets=[offsets[3], offsets[1], offsets[1], 10**9])

    left = server.admin.PeekMessages(pb.PeekMessagesRequest(queue=f"{queue}.dlq", max_messages=10))
    assert answer.redriven == 2
    assert [each.metadata.offset for each in left.messages] == [offsets[0], offsets[2], offsets[4]]
    assert sorted(each.payload for each in lease(server, queue, 9)) == [b"1", b"3"]


def test_more_names_than_a_call_may_have_are_refused(server, queue):
    with pytest.raises(grpc.RpcError, match="offsets must be at most 1000, got 1001"):
        redrive(server, queue, offsets=list(range(1, 1_002)))
