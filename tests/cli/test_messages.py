"""`fila enqueue`, `consume`, `redrive`: bytes in, the same bytes out."""

from __future__ import annotations

import json

from grpc import StatusCode

from fila.v1 import admin_pb2, messages_pb2, service_pb2
from tests.cli.fake_broker import FakeBroker, Refusal


def delivered(number: int, payload: bytes) -> messages_pb2.Message:
    message = messages_pb2.Message(id=f"m{number}", headers={"tenant": "acme"}, payload=payload)
    message.metadata.lease_id = 100 + number
    message.metadata.offset = number
    message.metadata.fairness_key = "acme"
    return message


def leases(*batches: list[messages_pb2.Message]):
    """Answer one Lease after the other with these batches, then with nothing."""
    left = list(batches)
    return lambda _: service_pb2.LeaseResponse(messages=left.pop(0) if left else [])


def test_enqueue_sends_payload_headers_and_options(fila, broker: FakeBroker):
    broker.answers["Enqueue"] = service_pb2.EnqueueResponse(message_id="0198", offset=7)

    ran = fila(
        "enqueue", "orders", "hello", "-H", "tenant=acme", "-H", "q=a=b", "--delay", "5s", "--ttl", "1m30s"
    )

    assert ran == (0, "0198 at offset 7\n", "")
    assert broker.request("Enqueue") == service_pb2.EnqueueRequest(
        queue="orders",
        payload=b"hello",
        headers={"tenant": "acme", "q": "a=b"},
        options=service_pb2.EnqueueOptions(delay_ms=5_000, ttl_ms=90_000),
    )


def test_enqueue_without_a_payload_reads_every_byte_of_stdin(fila, broker: FakeBroker):
    fila("enqueue", "orders", stdin=b"\x00\xffbinary\n")

    assert broker.request("Enqueue").payload == b"\x00\xffbinary\n"


def test_enqueue_lines_makes_one_message_of_each_and_reports_the_refused(fila, broker: FakeBroker):
    broker.answers["EnqueueBatch"] = service_pb2.EnqueueBatchResponse(
        results=[
            service_pb2.EnqueueResult(message_id="a", offset=4),
            service_pb2.EnqueueResult(error=messages_pb2.ItemStatus(code=3, message="payload is too long")),
            service_pb2.EnqueueResult(message_id="c", offset=5),
        ]
    )

    ran = fila("enqueue", "orders", "--lines", stdin=b"one\r\ntwo\n\n")

    assert [each.payload for each in broker.request("EnqueueBatch").messages] == [b"one", b"two", b""]
    assert ran == (
        1,
        "2 messages enqueued, offsets 4 to 5\n",
        "fila: 1 lines were refused, the first: line 2: payload is too long\n",
    )


def test_lines_are_sent_in_batches_the_broker_takes(fila, broker: FakeBroker):
    fila("enqueue", "orders", "--lines", stdin=b"x\n" * 2_500)

    sizes = [len(request.messages) for name, request in broker.asked if name == "EnqueueBatch"]
    assert sizes == [1_000, 1_000, 500]


def test_consume_prints_each_payload_and_acks_under_its_lease(fila, broker: FakeBroker):
    broker.answers["Lease"] = leases([delivered(1, b"one"), delivered(2, b"two")])

    ran = fila("consume", "orders", "--count", "2", "--channel", "audit")

    assert ran == (0, "one\ntwo\n", "")
    assert broker.request("Lease").channel == "audit"
    ack = broker.request("AckBatch")
    assert ack.channel == "audit"
    assert [(item.message_id, item.lease_id) for item in ack.items] == [("m1", 101), ("m2", 102)]


def test_consume_never_leases_more_than_it_was_told_to_print(fila, broker: FakeBroker):
    broker.answers["Lease"] = leases([delivered(1, b"one")], [delivered(2, b"two")])

    fila("consume", "orders", "--count", "2")

    assert [request.max_messages for name, request in broker.asked if name == "Lease"] == [2, 1]


def test_consume_without_ack_leaves_the_leases_alone(fila, broker: FakeBroker):
    broker.answers["Lease"] = leases([delivered(1, b"one")])

    fila("consume", "orders", "--no-ack", "--count", "1")

    assert [name for name, _ in broker.asked] == ["Lease"]


def test_consume_stops_when_nothing_came_for_as_long_as_it_should_wait(fila, broker: FakeBroker):
    ran = fila("consume", "orders", "--wait", "0")

    assert ran == (0, "", "")
    assert broker.request("Lease").wait_ms == 0


def test_consume_as_json_is_one_line_a_message_and_keeps_binary_payloads(fila, broker: FakeBroker):
    broker.answers["Lease"] = leases([delivered(1, b"one"), delivered(2, b"\xff\x00")])

    lines = [
        json.loads(line) for line in fila("consume", "orders", "--count", "2", "-o", "json").out.splitlines()
    ]

    assert [line.get("payload") for line in lines] == ["one", None]
    assert lines[1]["payload_base64"] == "/wA="
    assert lines[0]["metadata"]["lease_id"] == 101
    assert lines[0]["headers"] == {"tenant": "acme"}


def test_an_ack_that_came_too_late_is_an_error_that_names_the_remedy(fila, broker: FakeBroker):
    broker.answers["Lease"] = leases([delivered(1, b"one")])
    broker.answers["AckBatch"] = service_pb2.SettleBatchResponse(
        results=[messages_pb2.ItemStatus(code=9, message="message m1 is no longer held under lease 101")]
    )

    ran = fila("consume", "orders", "--count", "1")

    assert ran.code == 1
    assert "visibility-timeout" in ran.err
    assert ran.err.count("\n") == 1


def test_redrive_passes_count_and_pace(fila, broker: FakeBroker):
    broker.answers["Redrive"] = admin_pb2.RedriveResponse(redriven=3)

    assert fila("redrive", "orders.dlq", "--count", "5", "--rate", "2.5").out == "3 dead letters moved back\n"

    request = broker.request("Redrive")
    assert (request.dlq_queue, request.count, request.rate_per_second) == ("orders.dlq", 5, 2.5)


def test_a_missing_queue_is_exit_code_1_and_points_to_the_list(fila, broker: FakeBroker):
    broker.answers["Enqueue"] = Refusal(
        StatusCode.NOT_FOUND, "queue 'ordres' does not exist", "QUEUE_NOT_FOUND"
    )

    ran = fila("enqueue", "ordres", "x")

    assert ran.code == 1
    assert ran.err == "fila: queue 'ordres' does not exist; 'fila queue list' shows the queues there are\n"
