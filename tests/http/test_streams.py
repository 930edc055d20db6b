"""Server-sent events: what is delivered, settled by POST, resumed, and ended in words."""

from __future__ import annotations

import base64
import socket
import time

import pytest

from fila.v1 import admin_pb2, service_pb2
from tests.waiting import GIVE_UP_S, within

pytestmark = [pytest.mark.e2e, pytest.mark.needs("module:fila_server.core.runtime.engine", "module:uvicorn")]


def enqueue(server, queue, *payloads):
    for payload in payloads:
        server.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=payload))


def in_flight(server, queue):
    return server.admin.GetStats(admin_pb2.GetStatsRequest(queue=queue)).in_flight


def test_a_consumer_gets_messages_and_settles_them_by_post(gateway, server, queue):
    with gateway.follow(f"/v1/queues/{queue}/consume?maxInFlight=1") as stream:
        enqueue(server, queue, b"one", b"two")
        events = stream.events()
        first = next(events)
        settle = {"messageId": first.data["id"], "leaseId": first.data["metadata"]["leaseId"]}
        acked = gateway.post(f"/v1/queues/{queue}/ack", settle)
        second = next(events)

    assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
    assert acked.status == 200
    assert [first.name, second.name] == ["message", "message"]
    assert [base64.b64decode(each.data["payload"]) for each in (first, second)] == [b"one", b"two"]


def test_responses_of_several_messages_are_told_one_by_one(gateway, server, queue):
    enqueue(server, queue, b"1", b"2", b"3")
    with gateway.follow(f"/v1/queues/{queue}/consume?maxBatch=10") as stream:
        told = [base64.b64decode(each.data["payload"]) for each in stream.take(3)]
    assert told == [b"1", b"2", b"3"]


def test_a_consumer_that_leaves_has_its_messages_given_back(gateway, server, queue):
    server.admin.UpdateQueue(
        admin_pb2.UpdateQueueRequest(
            queue=queue,
            config=admin_pb2.QueueConfig(disconnect_grace_ms=0),
            update_mask={"paths": ["disconnect_grace_ms"]},
        )
    )
    enqueue(server, queue, b"x")
    with gateway.follow(f"/v1/queues/{queue}/consume") as stream:
        stream.take(1)
        assert in_flight(server, queue) == 1

    deadline = time.monotonic() + 30
    while in_flight(server, queue) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert in_flight(server, queue) == 0


def test_what_is_refused_at_once_has_a_status_of_its_own(gateway):
    assert gateway.get("/v1/queues/nobody-made-it/consume").refusal == (404, "QUEUE_NOT_FOUND")


def test_a_stream_that_ends_by_an_error_says_so(gateway, server, queue):
    with gateway.follow(f"/v1/queues/{queue}/consume") as stream:
        server.admin.DeleteQueue(admin_pb2.DeleteQueueRequest(queue=queue))
        (event,) = stream.events()
    assert (event.name, event.data["reason"], event.data["status"]) == ("problem", "QUEUE_NOT_FOUND", 404)


def test_a_log_is_read_to_its_end_and_resumed_after_the_last_event_seen(gateway, server, queue):
    enqueue(server, queue, b"1", b"2", b"3")
    with gateway.follow(f"/v1/queues/{queue}/log") as stream:
        *messages, end = stream.events()
    with gateway.follow(f"/v1/queues/{queue}/log", {"Last-Event-ID": messages[1].id}) as stream:
        rest = [base64.b64decode(each.data["payload"]) for each in stream.events() if each.name == "message"]

    assert [base64.b64decode(each.data["payload"]) for each in messages] == [b"1", b"2", b"3"]
    assert (end.name, stream.last_id) == ("end", "4")
    assert rest == [b"3"]


def test_events_go_on_where_the_reader_left_them(gateway, server, queue):
    path = f"/v1/events?queue={queue}&follow=true"
    with gateway.follow(path) as stream:
        (created,) = stream.take(1)
    server.admin.UpdateQueue(
        admin_pb2.UpdateQueueRequest(
            queue=queue, config=admin_pb2.QueueConfig(paused=True), update_mask={"paths": ["paused"]}
        )
    )
    with gateway.follow(path, {"Last-Event-ID": created.id}) as stream:
        (changed,) = stream.take(1)

    assert created.data["kind"] == "queue.created"
    assert changed.data["kind"] != "queue.created"
    assert int(changed.id) > int(created.id)


def test_numbers_are_watched_a_full_state_first(gateway, server, queue):
    enqueue(server, queue, b"x")
    with gateway.follow(f"/v1/stats?queues={queue}&top=5") as stream:
        (first,) = stream.take(1)
    assert (first.name, first.data["full"], first.data["sequence"]) == ("stats", True, "1")
    assert first.data["channels"][0]["state"]["ready"] == "1"


def test_one_stream_more_than_the_bound_is_refused_in_words(bounded_gateway, queue):
    gateway = bounded_gateway(streams_max=1)
    path = f"/v1/queues/{queue}/consume"
    with gateway.follow(path) as stream:
        assert stream.status == 200
        assert gateway.get(path).refusal == (503, "OVERLOADED")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with gateway.follow(path) as stream:
            if stream.status == 200:
                break
    assert stream.status == 200


def test_a_consumer_that_never_reads_is_cut_off_and_holds_nothing(bounded_gateway, server, queue):
    gateway = bounded_gateway(send_s_max=0.5, connections_max=1)
    for _ in range(40):
        server.service.Enqueue(service_pb2.EnqueueRequest(queue=queue, payload=bytes(1_000_000)))
    with socket.create_connection(("127.0.0.1", gateway.port)) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.sendall(f"GET /v1/queues/{queue}/consume HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        deadline = time.monotonic() + 30
        while not in_flight(server, queue):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        # The broker hears that the consumer is gone, so what it held is in flight no more.
        server.admin.UpdateQueue(
            admin_pb2.UpdateQueueRequest(
                queue=queue,
                config=admin_pb2.QueueConfig(disconnect_grace_ms=0),
                update_mask={"paths": ["disconnect_grace_ms"]},
            )
        )
        while in_flight(server, queue):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # Nor does it hold its place, although what was written to it was never taken.
        while gateway.get("/healthz").status != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_gateway_that_closes_ends_its_streams_in_words(bounded_gateway, queue):
    def closed_s(_: int) -> float:
        gateway = bounded_gateway()
        with gateway.follow(f"/v1/queues/{queue}/consume") as stream:
            began_s = time.monotonic()
            gateway.process.terminate()
            (event,) = stream.events()
            gateway.process.wait(GIVE_UP_S)
            took_s = time.monotonic() - began_s
        assert (event.name, event.data["status"]) == ("problem", 503)
        return took_s

    within(5, closed_s)
