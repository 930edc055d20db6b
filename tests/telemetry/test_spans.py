"""Spans from the core to a collector: kept in memory, over OTLP, and from a real server."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent import futures
from queue import Empty, Queue
from typing import Any

import grpc
import pytest
import structlog
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from fila import FilaClient
from fila.v1 import admin_pb2 as admin
from fila.v1 import service_pb2 as service
from fila_server.config.sections import Telemetry as Settings
from fila_server.core.threads.spans import SpanTap
from fila_server.telemetry.service import Telemetry
from fila_server.telemetry.spans import Row, SpanExport
from tests.core.driven_engine import DrivenEngine
from tests.e2e.conftest import start_server  # noqa: F401 - a fixture

TRACE, PARENT = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
TRACEPARENT = f"00-{TRACE:032x}-{PARENT:016x}-01"
Export = trace_service_pb2.ExportTraceServiceRequest


class FakeTap:
    """Rows that wait to be taken."""

    def __init__(self, count: int = 0) -> None:
        self.rows = [row(offset=i) for i in range(count)]
        self.dropped = 0

    def take(self, most: int) -> Sequence[tuple[int | str, ...]]:
        taken, self.rows = self.rows[:most], self.rows[most:]
        return taken


def row(**changes: Any) -> Row:
    plain = Row(
        *(4, 9, TRACE, PARENT, 1_000, 2_000, uuid.UUID(int=7).int, 5, 11, 3, 0),
        *("orders", "default", "acme", ""),
    )
    return plain._replace(**changes)


def exported(*rows: Row) -> tuple[ReadableSpan, ...]:
    tap, memory = FakeTap(), InMemorySpanExporter()
    tap.rows = list(rows)
    SpanExport(tap, memory, service_name="fila").send()
    return memory.get_finished_spans()


def test_a_span_is_its_producers_child_and_links_to_it():
    (span,) = exported(row())

    assert span.name == "settle orders"
    assert (span.context.trace_id, span.parent.span_id, span.parent.trace_id) == (TRACE, PARENT, TRACE)
    assert span.parent.is_remote
    assert [link.context.span_id for link in span.links] == [PARENT]
    assert span.context.span_id not in (0, PARENT)
    assert (span.start_time, span.end_time) == (1_000, 2_000)
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes) == {
        "messaging.system": "fila",
        "messaging.operation.name": "settle",
        "messaging.destination.name": "orders",
        "messaging.consumer.group.name": "default",
        "messaging.message.id": str(uuid.UUID(int=7)),
        "fila.outcome": "acked",
        "fila.attempts": 0,
        "fila.offset": 5,
        "fila.fairness_key": "acme",
        "fila.lease_id": 11,
        "fila.consumer": 3,
    }


def test_failures_have_an_errors_status_and_refusals_their_reason():
    refused, nacked, expired = exported(
        row(operation=1, outcome=3, why="QUEUE_FULL", message_id=0, channel="", lease_id=0, consumer=0),
        row(outcome=10, why="upstream is down"),
        row(outcome=11),
    )

    assert refused.kind is SpanKind.SERVER
    assert refused.attributes["error.type"] == "QUEUE_FULL"
    assert "messaging.message.id" not in refused.attributes
    assert (nacked.status.status_code, nacked.status.description) == (StatusCode.ERROR, "upstream is down")
    assert nacked.attributes["error.type"] == "nacked"
    assert expired.status.description == "expired"


def test_a_round_sends_its_share_and_leaves_the_rest():
    tap, memory = FakeTap(3000), InMemorySpanExporter()
    SpanExport(tap, memory, service_name="fila").send()

    assert len(memory.get_finished_spans()) == 1024
    assert len(tap.rows) == 3000 - 1024


class Failing(SpanExporter):
    """Fails while it is told to."""

    def __init__(self) -> None:
        self.fails = True
        self.calls = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.calls += 1
        return SpanExportResult.FAILURE if self.fails else SpanExportResult.SUCCESS


def test_a_collector_that_fails_is_asked_once_a_round_and_told_of_once():
    tap, failing = FakeTap(3000), Failing()
    export = SpanExport(tap, failing, service_name="fila", endpoint="http://c:1")
    with structlog.testing.capture_logs() as logs:
        export.send()
        export.send()
        assert failing.calls == 2
        failing.fails = False
        export.send()

    assert [line["event"] for line in logs] == ["telemetry.spans_failed", "telemetry.spans_resumed"]


def test_what_was_lost_is_told_at_the_end():
    tap, failing = FakeTap(5), Failing()
    tap.dropped = 7
    export = SpanExport(tap, failing, service_name="fila", round_s=60)
    stopped = threading.Event()
    with structlog.testing.capture_logs() as logs:
        export.start()
        export.stop(stopped.set)
        assert stopped.wait(10)

    (line,) = [line for line in logs if line["event"] == "telemetry.spans_dropped"]
    assert line["spans"] == 12


@pytest.mark.parametrize(("sample", "most"), [(1, 2**64 - 1), (2, 2**63 - 1), (1000, 2**64 // 1000 - 1)])
def test_one_trace_in_so_many_is_chosen_by_its_id(sample, most):
    settings = Settings(trace_sample=sample, otlp_endpoint="http://c:1")
    assert settings.engine_settings() == {"telemetry.trace_low_max": most}
    assert Settings(otlp_endpoint="http://c:1").engine_settings() == {}


# --- a real receiver -----------------------------------------------------------------------------


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.received: Queue[Export] = Queue()

    def Export(self, request, context):
        self.received.put(request)
        return trace_service_pb2.ExportTraceServiceResponse()


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield collector, f"http://127.0.0.1:{port}"
    server.stop(0)


async def take_spans(collector: Collector, count: int) -> list[Any]:
    """The first so many spans that come, whatever requests they come in."""
    found: list[Any] = []
    for _ in range(1500):
        try:
            export = collector.received.get_nowait()
        except Empty:
            await asyncio.sleep(0.01)
            continue
        for resource in export.resource_spans:
            names = {a.key: a.value.string_value for a in resource.resource.attributes}
            assert names["messaging.system"] == "fila"
            found += [span for scope in resource.scope_spans for span in scope.spans]
        if len(found) >= count:
            return found
    pytest.fail(f"{len(found)} of {count} spans came within 15 seconds")


def test_the_cores_rows_are_what_the_exporter_reads():
    engine = DrivenEngine({"telemetry.trace_low_max": 2**64 - 1})
    engine.create_queue("orders")
    engine.enqueue("orders", headers={"traceparent": TRACEPARENT})
    engine.ack("orders", engine.lease("orders"))
    memory = InMemorySpanExporter()
    SpanExport(engine.core.spans, memory, service_name="fila").send()
    engine.remove()

    found = memory.get_finished_spans()
    assert [span.name for span in found] == ["enqueue orders", "deliver orders", "settle orders"]
    assert all(span.start_time <= span.end_time for span in found)


async def test_they_arrive_over_otlp(collector, ask):
    tap = SpanTap(2**64 - 1)
    telemetry = Telemetry(ask)
    telemetry.start_spans(tap, endpoint=collector[1], service_name="fila-test")
    await telemetry.stop_exports()
    assert collector[0].received.empty()  # nothing happened

    export = SpanExport(FakeTap(3), _exporter_to(collector[1]), service_name="fila-test")
    export.send()
    found = await take_spans(collector[0], 3)

    assert {(span.trace_id, span.parent_span_id) for span in found} == {
        (TRACE.to_bytes(16), PARENT.to_bytes(8))
    }
    assert [link.span_id for span in found for link in span.links] == [PARENT.to_bytes(8)] * 3


def _exporter_to(endpoint: str) -> SpanExporter:
    from fila_server.telemetry.spans import exporter_to

    return exporter_to(endpoint)


@pytest.mark.e2e
async def test_a_real_server_tells_a_messages_whole_way(start_server, collector):  # noqa: F811
    received, endpoint = collector
    server = await asyncio.to_thread(
        start_server, FILA_TELEMETRY__OTLP_ENDPOINT=endpoint, FILA_TELEMETRY__TRACE_SAMPLE="1"
    )
    script = 'function on_enqueue(msg) return { fairness_key = "acme" } end'
    server.admin.CreateQueue(
        admin.CreateQueueRequest(name="orders", config=admin.QueueConfig(on_enqueue_script=script))
    )
    client = await FilaClient.connect(server.addresses["grpc"])
    await client.enqueue("orders", headers={"traceparent": TRACEPARENT}, payload=b"x")
    await client.enqueue("orders", payload=b"untraced")
    async for message in client.consume("orders"):
        await client.ack("orders", message.id)
        if message.payload == b"untraced":
            break
    await client.close()
    # A unary call of any gRPC client: the context comes in its metadata.
    request = service.EnqueueRequest(queue="orders", payload=b"x")
    await asyncio.to_thread(server.service.Enqueue, request, metadata=[("traceparent", TRACEPARENT)])

    found = await take_spans(received, 6)

    names = [span.name for span in found]
    assert sorted(names) == sorted(
        [*["enqueue orders", "policy orders"] * 2, "deliver orders", "settle orders"]
    )
    assert {span.trace_id for span in found} == {TRACE.to_bytes(16)}
    by_name = {span.name: {a.key: a.value for a in span.attributes} for span in found}
    assert by_name["policy orders"]["fila.outcome"].string_value == "script"
    assert by_name["settle orders"]["fila.outcome"].string_value == "acked"
    assert by_name["settle orders"]["fila.fairness_key"].string_value == "acme"
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in found)
    policy = next(span for span in found if span.name == "policy orders")
    assert policy.end_time_unix_nano > policy.start_time_unix_nano


@pytest.mark.e2e
def test_a_server_that_makes_no_spans_has_no_tap_and_says_where_they_would_go(start_server):  # noqa: F811
    with pytest.raises(pytest.fail.Exception, match=r"telemetry\.trace_sample: spans are sent to"):
        start_server(FILA_TELEMETRY__TRACE_SAMPLE="1")
