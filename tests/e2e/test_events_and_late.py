"""A running broker tells what happens in it, who waits longest, and how it is."""

from __future__ import annotations

import time
import urllib.error
import urllib.request

import pytest

from fila.v1 import admin_pb2 as pb
from fila.v1 import events_pb2 as ev
from fila.v1 import service_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def happened(server, **request):
    stream = server.admin.WatchEvents(ev.WatchEventsRequest(**request))
    return [event for answer in stream for event in answer.events]


def enqueue(server, queue: str, count: int = 1, **headers: str) -> None:
    messages = [service_pb2.EnqueueMessage(headers=headers) for _ in range(count)]
    server.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue=queue, messages=messages))


def test_what_operators_do_is_told_with_who_did_it_and_stands_in_the_log(server, queue):
    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue=queue, fairness_key="acme", paused=True))
    server.admin.PurgeQueue(pb.PurgeQueueRequest(queue=queue))
    server.admin.CreateChannel(pb.CreateChannelRequest(queue=queue, channel="audit"))
    server.admin.DeleteQueue(pb.DeleteQueueRequest(queue=queue))

    kinds = [event.kind for event in happened(server, queue=queue)]
    paused = happened(server, queue=queue, kinds=["key"])[0]

    assert kinds == ["queue.created", "key.policy_set", "queue.purged", "channel.created", "queue.deleted"]
    assert (paused.fairness_key, paused.details["paused"]) == ("acme", "true")
    assert paused.peer.startswith("ipv4:127.0.0.1:")
    lines = [line for line in server.log if line.get("queue") == queue]
    assert [line["event"] for line in lines] == kinds


def test_a_follower_hears_of_a_consumer_that_comes_and_goes(server, queue):
    stream = server.admin.WatchEvents(ev.WatchEventsRequest(queue=queue, kinds=["consumer"], follow=True))
    told = (event for answer in stream for event in answer.events)
    consuming = server.service.Consume(service_pb2.ConsumeRequest(queue=queue))

    assert next(told).kind == "consumer.joined"
    consuming.cancel()
    assert next(told).kind == "consumer.left"
    stream.cancel()


def test_dead_letters_are_told_as_one_with_their_number(server, queue):
    enqueue(server, queue, 5)
    leased = server.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=5)).messages
    items = [
        service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id, dead_letter=True)
        for each in leased
    ]
    server.service.NackBatch(service_pb2.NackBatchRequest(queue=queue, items=items))

    deadline = time.monotonic() + 15
    while not (told := happened(server, queue=queue, kinds=["dead_letters"])) and time.monotonic() < deadline:
        time.sleep(0.1)

    assert sum(event.count for event in told) == 5


def test_positions_grow_over_a_restart(start_server):
    first = start_server()
    last = happened(first)[-1].position
    first.stop()

    again = start_server()

    assert happened(again)[0].position > last
    assert [event.kind for event in happened(again, kinds=["server"])] == ["server.started"]


# --- hooks -----------------------------------------------------------------------------------


def test_why_a_script_fails_is_told_with_its_line_and_its_message(server):
    script = 'function on_enqueue(m)\n  error("no tier")\nend'
    server.admin.CreateQueue(
        pb.CreateQueueRequest(name="failing", config=pb.QueueConfig(on_enqueue_script=script))
    )
    enqueue(server, "failing", 1, tenant="acme")

    (hook,) = server.admin.GetStats(pb.GetStatsRequest(queue="failing")).hooks
    assert (hook.hook, hook.errors, hook.fallbacks) == ("on_enqueue", 1, 1)
    assert hook.last_error.startswith("on_enqueue:2: no tier")
    assert hook.last_error_headers == {"tenant": "acme"}
    assert hook.HasField("last_error_at")
    assert [event.kind for event in happened(server, queue="failing", kinds=["hook"])] == ["hook.failed"]


def test_a_new_script_goes_on_counting_and_keeps_the_last_error(server):
    config = pb.QueueConfig(on_enqueue_script='function on_enqueue(m) error("one") end')
    server.admin.CreateQueue(pb.CreateQueueRequest(name="mended", config=config))
    enqueue(server, "mended", 4)
    update = pb.UpdateQueueRequest(
        queue="mended", config=pb.QueueConfig(on_enqueue_script="function on_enqueue(m) return {} end")
    )
    update.update_mask.paths.append("on_enqueue_script")
    server.admin.UpdateQueue(update)
    enqueue(server, "mended")

    (hook,) = server.admin.GetStats(pb.GetStatsRequest(queue="mended")).hooks

    assert hook.errors == 3  # then the circuit was open
    assert "one" in hook.last_error
    assert hook.breaker_state == pb.BREAKER_STATE_CLOSED


# --- late ------------------------------------------------------------------------------------


def test_keys_are_ranked_by_how_long_they_wait_with_their_cause(server):
    for queue in ("late-one", "late-two"):
        config = pb.QueueConfig(fairness_key_header="tenant")
        server.admin.CreateQueue(pb.CreateQueueRequest(name=queue, config=config))
    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue="late-two", fairness_key="held", paused=True))
    enqueue(server, "late-one", tenant="first")
    time.sleep(0.1)
    enqueue(server, "late-two", tenant="held")

    listed = server.admin.ListLate(ev.ListLateRequest(max_keys=1_000))
    found = {(key.queue, key.fairness_key): key for key in listed.keys if key.queue.startswith("late-")}

    assert list(found) == [("late-one", "first"), ("late-two", "held")]
    assert found["late-one", "first"].cause == ev.LateKey.CAUSE_NO_CONSUMER
    assert found["late-two", "held"].cause == ev.LateKey.CAUSE_PAUSED
    assert found["late-one", "first"].waiting_ms >= found["late-two", "held"].waiting_ms + 50
    only = server.admin.ListLate(ev.ListLateRequest(queue="late-two"))
    assert ([key.fairness_key for key in only.keys], only.waiting_keys) == (["held"], 1)


def test_a_queue_of_more_keys_than_one_part_holds_is_walked_to_its_end(server):
    config = pb.QueueConfig(fairness_key_header="tenant")
    server.admin.CreateQueue(pb.CreateQueueRequest(name="many", config=config))
    for part in range(5):
        messages = [
            service_pb2.EnqueueMessage(headers={"tenant": f"k{part * 10_000 + i}"}) for i in range(10_000)
        ]
        server.service.EnqueueBatch(service_pb2.EnqueueBatchRequest(queue="many", messages=messages))

    listed = server.admin.ListLate(ev.ListLateRequest(queue="many", max_keys=1_000))

    assert listed.waiting_keys == 50_000
    assert len({key.fairness_key for key in listed.keys}) == 1_000
    server.admin.DeleteQueue(pb.DeleteQueueRequest(queue="many"))


# --- when it will go -------------------------------------------------------------------------


def explained(server, queue, key):
    return server.admin.ExplainKey(pb.ExplainKeyRequest(queue=queue, fairness_key=key))


def test_a_key_that_nobody_consumes_has_no_forecast_and_a_paused_one_says_so(server):
    config = pb.QueueConfig(fairness_key_header="tenant")
    server.admin.CreateQueue(pb.CreateQueueRequest(name="waiting", config=config))
    enqueue(server, "waiting", 3, tenant="acme")

    told = explained(server, "waiting", "acme")
    assert told.head_forecast.unknown == ev.Forecast.UNKNOWN_NO_CONSUMER
    assert (told.consumers.count, told.consumers.held) == (0, 0)

    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue="waiting", fairness_key="acme", paused=True))
    assert explained(server, "waiting", "acme").tail_forecast.unknown == ev.Forecast.UNKNOWN_PAUSED


def test_a_channel_that_was_watched_for_some_seconds_says_when_its_messages_go(server):
    """Pulls some messages ten times a second, until the broker has looked often enough."""
    config = pb.QueueConfig(fairness_key_header="tenant")
    server.admin.CreateQueue(pb.CreateQueueRequest(name="served", config=config))
    enqueue(server, "served", 3_000, tenant="acme")
    enqueue(server, "served", 3_000, tenant="noisy")
    deadline_s = time.monotonic() + 60
    told = explained(server, "served", "acme")
    while told.tail_forecast.unknown or not told.served_meanwhile.keys:
        assert time.monotonic() < deadline_s, told
        server.service.Lease(service_pb2.LeaseRequest(queue="served", max_messages=4))
        time.sleep(0.1)
        told = explained(server, "served", "acme")

    tail = told.tail_forecast
    assert 0 < tail.earliest_ms <= tail.likely_ms <= tail.latest_ms
    assert told.head_forecast.latest_ms < tail.latest_ms
    assert {key.fairness_key for key in told.served_meanwhile.keys} == {"acme", "noisy"}
    assert told.served_meanwhile.HasField("since")


# --- policies of keys ------------------------------------------------------------------------


def test_what_was_set_for_keys_can_be_read(server, queue):
    def listed(**request):
        return list(server.admin.ListKeyPolicies(ev.ListKeyPoliciesRequest(queue=queue, **request)).policies)

    assert listed() == []
    server.admin.SetKeyPolicy(pb.SetKeyPolicyRequest(queue=queue, fairness_key="b", weight=5))
    server.admin.SetKeyPolicy(
        pb.SetKeyPolicyRequest(queue=queue, fairness_key="a", paused=True, max_in_flight=2)
    )

    first, second = listed()
    assert (first.fairness_key, first.paused, first.max_in_flight, first.weight) == ("a", True, 2, 0)
    assert (second.fairness_key, second.weight, second.effective_weight) == ("b", 5, 5)
    (unset,) = listed(fairness_key="nobody")
    assert (unset.fairness_key, unset.paused, unset.weight) == ("nobody", False, 0)


# --- dead letters ----------------------------------------------------------------------------


def test_dead_letters_that_were_named_are_dropped_and_no_others(server, queue):
    enqueue(server, queue, 4)
    leased = server.service.Lease(service_pb2.LeaseRequest(queue=queue, max_messages=4)).messages
    items = [
        service_pb2.SettleItem(message_id=each.id, lease_id=each.metadata.lease_id, dead_letter=True)
        for each in leased
    ]
    server.service.NackBatch(service_pb2.NackBatchRequest(queue=queue, items=items))
    peek = pb.PeekMessagesRequest(queue=f"{queue}.dlq", max_messages=10)
    offsets = [each.metadata.offset for each in server.admin.PeekMessages(peek).messages]

    request = ev.DropDeadLettersRequest(dlq_queue=f"{queue}.dlq", offsets=[offsets[2], offsets[0], 10**9])
    assert server.admin.DropDeadLetters(request).dropped == 2

    left = [each.metadata.offset for each in server.admin.PeekMessages(peek).messages]
    assert left == [offsets[1], offsets[3]]


# --- how it is -------------------------------------------------------------------------------


def test_status_says_what_runs_where_and_since_when(server):
    status = server.admin.GetStatus(ev.GetStatusRequest())

    assert status.version
    assert status.commit
    assert status.data_dir == str(server.data_dir)
    assert status.disk_level == ev.DISK_LEVEL_OK
    assert 0 <= time.time() - status.started_at.seconds < 3_600
    assert status.lost_ranges == 0
    assert not status.draining


def test_the_metrics_port_says_alive_ready_and_what_was_built(start_server):
    server = start_server(FILA_METRICS__LISTEN_ADDR="127.0.0.1:0")
    address = server.event("server.started")["metrics"]

    def page(path: str):
        with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
            return answer.read().decode()

    assert page("/healthz") == "alive\n"
    assert page("/readyz") == "ready\n"
    assert "fila_build_info{version=" in page("/metrics")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        page("/nothing")
