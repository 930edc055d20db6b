"""Telemetry of the real server: its page, its export, a collector that is not there, explain, trace context."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import time
import urllib.request

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila.v1 import sink_pb2, sink_pb2_grpc
from fila_server.telemetry.catalog import METRICS
from tests import forked_python
from tests.e2e.conftest import start_server  # noqa: F401 - a fixture
from tests.grpc_edge.raw_http2 import DATA, END_STREAM, RawClient, frame, message
from tests.telemetry.test_otlp import by_name, collector, take  # noqa: F401 - a fixture
from tests.waiting import until, within

pytestmark = pytest.mark.e2e

INITIAL_WINDOW_SIZE = 4
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def server(start_server):  # noqa: F811
    server = start_server(FILA_METRICS__LISTEN_ADDR="127.0.0.1:0")
    config = admin.QueueConfig(fairness_key_header="tenant")
    server.admin.CreateQueue(admin.CreateQueueRequest(name="orders", config=config))
    return server


def page_of(server) -> dict[str, float]:
    address = server.event("server.started")["metrics"]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in families
        for sample in family.samples
    }


def enqueue(server, count: int = 1, metadata=None, **headers: str) -> None:
    stub = server.service
    for _ in range(count):
        request = service.EnqueueRequest(queue="orders", payload=b"x", headers=headers)
        stub.Enqueue(request, metadata=metadata, timeout=10)


def test_the_page_tells_what_clients_did(server):
    enqueue(server, 5, tenant="acme")
    leased = server.service.Lease(service.LeaseRequest(queue="orders", max_messages=2), timeout=10).messages
    server.service.Ack(service.AckRequest(queue="orders", message_id=leased[0].id), timeout=10)

    page = page_of(server)

    queue = "('messaging_destination_name', 'orders')"
    assert page[f"fila_messages_enqueued_total[{queue}]"] == 5
    assert page[f"fila_messages_delivered_total[{queue}]"] == 2
    assert page[f"fila_messages_acked_total[{queue}]"] == 1
    assert page[f"fila_queue_depth[{queue}]"] == 3
    assert page["fila_commit_sync_duration_seconds_count[]"] >= 5
    assert page["fila_commit_sync_duration_seconds_sum[]"] > 0
    assert page["fila_storage_disk_free_bytes[]"] > 0


def test_the_page_tells_what_clients_hold_and_up_to_which_bound(start_server):  # noqa: F811
    bounds = {"FILA_LIMITS__DEDUP_KEYS_MAX": "2", "FILA_LIMITS__UNWRITTEN_BYTES_MAX": str(16 << 20)}
    server = start_server(FILA_METRICS__LISTEN_ADDR="127.0.0.1:0", **bounds)
    server.admin.CreateQueue(admin.CreateQueueRequest(name="orders"))
    for number in range(3):
        options = service.EnqueueOptions(dedup_key=str(number))
        with contextlib.suppress(grpc.RpcError):  # the third is one too many
            server.service.Enqueue(service.EnqueueRequest(queue="orders", payload=b"x", options=options))

    server.service.Enqueue(service.EnqueueRequest(queue="orders", payload=bytes(1 << 20)))
    before = page_of(server)
    with RawClient(server.addresses["grpc"], {INITIAL_WINDOW_SIZE: 0}) as hoarder:
        asked = service.LeaseRequest(queue="orders", max_messages=3)
        hoarder.begin(1, "/fila.v1.FilaService/Lease")
        hoarder.send(frame(DATA, END_STREAM, 1, message(asked.SerializeToString())))
        until(lambda: page_of(server)["fila_answers_unread_bytes[]"] > 0)
        page = page_of(server)

    assert page["fila_connections[]"] == before["fila_connections[]"] + 1
    assert 1 << 20 < page["fila_answers_unread_bytes[]"] < 2 << 20
    assert page["fila_answers_unread_max_bytes[]"] == 16 << 20
    assert (page["fila_dedup_keys[]"], page["fila_dedup_keys_max[]"]) == (2, 2)


def test_the_page_tells_what_sinks_hold_and_publish(server):
    sink = sink_pb2_grpc.FilaSinkStub(server.channel())
    epoch = sink.OpenSink(sink_pb2.OpenSinkRequest(sink_id="s", run_id="r"), timeout=10).epoch
    messages = [service.EnqueueMessage(payload=b"x" * 1000)] * 3
    staged = sink.Stage(
        sink_pb2.StageRequest(queue="orders", messages=messages, sink_id="s", epoch=epoch), timeout=10
    )
    page = page_of(server)
    assert page["fila_sinks[]"] == 1
    assert 3000 < page["fila_sinks_staged_bytes[]"] < page["fila_sinks_staged_max_bytes[]"]
    assert page["fila_sinks_batches_total[]"] == 0

    attempt = sink_pb2.StagedAttempt(messages=3, checksum=staged.checksum)
    sink.Publish(sink_pb2.PublishRequest(sink_id="s", epoch=epoch, attempts=[attempt]), timeout=10)
    page = page_of(server)
    assert (page["fila_sinks_batches_total[]"], page["fila_sinks_messages_total[]"]) == (1, 3)
    assert (page["fila_sinks_staged_bytes[]"], page["fila_sinks_lost_total[]"]) == (0, 0)


def test_a_calls_trace_context_arrives_with_its_message(server):
    enqueue(server, metadata=(("traceparent", TRACEPARENT), ("tracestate", "vendor=1")), tenant="acme")
    enqueue(server, metadata=(("traceparent", TRACEPARENT[:-1] + "0"),))

    leased = server.service.Lease(service.LeaseRequest(queue="orders", max_messages=2), timeout=10).messages

    headers = [dict(message.headers) for message in leased]
    assert {"tenant": "acme", "traceparent": TRACEPARENT, "tracestate": "vendor=1"} in headers
    assert {} in headers


def test_explain_answers_through_the_command_line(server):
    enqueue(server, 3, tenant="acme")
    time.sleep(0.3)  # a wait that is worth remembering

    command = [
        forked_python.program(),
        "-c",
        "from fila_cli.main import main; main()",
        "explain",
        "orders",
        "acme",
    ]
    command += ["--addr", server.addresses["grpc"], "-o", "json"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)

    answer = json.loads(done.stdout)
    assert answer["state"] == "STATE_NO_CONSUMER"
    assert int(answer["waits"]["no_consumer_ms"]) >= 900


async def test_a_collector_gets_every_metric_that_has_points(start_server, collector):  # noqa: F811
    received, endpoint = collector
    server = await asyncio.to_thread(
        start_server, FILA_TELEMETRY__OTLP_ENDPOINT=endpoint, FILA_TELEMETRY__METRICS_INTERVAL_MS="200"
    )
    server.admin.CreateQueue(admin.CreateQueueRequest(name="orders"))
    for _ in range(20):
        metrics = by_name(await take(received.received))
        if "fila.queue.depth" in metrics:
            break

    assert set(metrics) <= {metric.name for metric in METRICS}
    assert {"fila.queue.depth", "fila.commit.sync_duration", "fila.storage.hot"} <= set(metrics)


@pytest.mark.timeout(240)  # a server for each attempt
def test_a_server_whose_collector_is_gone_serves_and_stops_as_ever(start_server, tmp_path):  # noqa: F811
    def longest_s(number: int) -> float:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            server = start_server(
                tmp_path / f"data-{number}",
                FILA_TELEMETRY__OTLP_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}",
                FILA_TELEMETRY__METRICS_INTERVAL_MS="100",
            )
            server.admin.CreateQueue(admin.CreateQueueRequest(name="orders"))
            began_s = time.monotonic()
            enqueue(server, 50)
            served_s = time.monotonic()
            assert server.stop() == 0
            return max(served_s - began_s, time.monotonic() - served_s)

    within(5, longest_s)


def test_a_port_for_metrics_that_somebody_holds_stops_the_start(start_server, tmp_path):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(pytest.fail.Exception, match=r"metrics\.listen_addr"):
            start_server(FILA_METRICS__LISTEN_ADDR=address)


def test_bad_calls_are_counted_by_reason(server):
    with pytest.raises(grpc.RpcError):
        server.service.Enqueue(service.EnqueueRequest(queue="nowhere"), timeout=10)
    with pytest.raises(grpc.RpcError):
        server.service.Enqueue(service.EnqueueRequest(queue="or ders"), timeout=10)

    page = page_of(server)

    assert page["fila_messages_refused_total[('error_type', 'QUEUE_NOT_FOUND')]"] == 1
    refused = {
        name: value for name, value in page.items() if "refused_total" in name and "error_type" in name
    }
    assert sum(refused.values()) == 2, refused
