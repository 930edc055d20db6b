"""OTLP, received by a real gRPC server that speaks it; and a collector that is not there."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from concurrent import futures
from queue import Empty, Queue
from typing import Any

import grpc
import pytest
import structlog
from opentelemetry.metrics import Observation
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc

from fila_server.telemetry.service import Telemetry
from tests.telemetry.conftest import (
    BACKUP_AGE_S,
    EDGE,
    GROUP,
    QUOTAS,
    SCHEDULES,
    TROUBLES,
    live_a_little,
    metrics_of,
)
from tests.waiting import RunningClock, within_awaited

Export = metrics_service_pb2.ExportMetricsServiceRequest


class Collector(metrics_service_pb2_grpc.MetricsServiceServicer):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.received: Queue[Export] = Queue()

    def Export(self, request, context):
        self.received.put(request)
        return metrics_service_pb2.ExportMetricsServiceResponse()


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield collector, f"http://127.0.0.1:{port}"
    server.stop(0)


async def take(received: Queue[Export]) -> Export:
    for _ in range(1000):
        try:
            return received.get_nowait()
        except Empty:
            await asyncio.sleep(0.01)
    pytest.fail("nothing was exported within ten seconds")


def by_name(export: Export) -> dict[str, Any]:
    [resource] = export.resource_metrics
    return {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}


@pytest.mark.parametrize("group", [None, GROUP])
async def test_every_metric_arrives_at_a_real_collector(
    engine, ask_of_a_long_life, hook_readings, collector, group
):
    live_a_little(engine)
    telemetry = Telemetry(
        ask_of_a_long_life,
        lambda: hook_readings,
        lambda: QUOTAS,
        lambda: TROUBLES,
        lambda: BACKUP_AGE_S,
        lambda: SCHEDULES,
        lambda: EDGE,
        (lambda: group) if group else None,
    )
    telemetry.start_export(endpoint=collector[1], service_name="fila-test", interval_ms=100)

    export = await take(collector[0].received)
    await telemetry.stop_exports()

    metrics = by_name(export)
    assert set(metrics) == {metric.name for metric in metrics_of(group)}
    for metric in metrics_of(group):
        sent = metrics[metric.name]
        assert sent.unit == metric.unit
        assert (
            sent.WhichOneof("data")
            == {"counter": "sum", "gauge": "gauge", "histogram": "histogram"}[metric.kind]
        )
        assert len(getattr(sent, sent.WhichOneof("data")).data_points) > 0
        if metric.kind == "counter":
            assert sent.sum.is_monotonic
    resource = {a.key: a.value.string_value for a in export.resource_metrics[0].resource.attributes}
    assert resource["service.name"] == "fila-test"
    assert resource["messaging.system"] == "fila"


async def test_numbers_and_histograms_arrive_as_the_core_counted_them(engine, ask, collector):
    live_a_little(engine)
    telemetry = Telemetry(ask)
    telemetry.start_export(endpoint=collector[1], service_name="fila", interval_ms=100)

    metrics = by_name(await take(collector[0].received))
    await telemetry.stop_exports()

    def of_orders(points):
        named = [({a.key: a.value.string_value for a in point.attributes}, point) for point in points]
        return next(point for names, point in named if names["messaging.destination.name"] == "orders")

    assert of_orders(metrics["fila.messages.enqueued"].sum.data_points).as_double == 8 or (
        of_orders(metrics["fila.messages.enqueued"].sum.data_points).as_int == 8
    )
    latency = of_orders(metrics["fila.delivery.latency"].histogram.data_points)
    assert (latency.count, latency.sum) == (7, 10.5)
    assert len(latency.bucket_counts) == len(latency.explicit_bounds) + 1
    assert dict(zip(latency.explicit_bounds, latency.bucket_counts, strict=False))[2.048] == 7
    assert list(latency.explicit_bounds) == sorted(set(latency.explicit_bounds))


async def test_a_look_that_takes_longer_than_an_export_may_counts_nothing_twice(
    engine, ask, collector, monkeypatch
):
    """On a machine that stood still in the middle, say: the SDK keeps what it has seen of a look that it gives up."""
    seen = []

    def observed(value: float, attributes: dict[str, str]) -> Observation:
        seen.append(value)
        if len(seen) == 30:
            time.sleep(0.15)
        return Observation(value, attributes)

    monkeypatch.setattr("fila_server.telemetry.otlp.Observation", observed)
    live_a_little(engine)
    telemetry = Telemetry(ask)
    telemetry.start_export(endpoint=collector[1], service_name="fila", interval_ms=100)

    metrics = by_name(await take(collector[0].received))
    await telemetry.stop_exports()

    assert [point.as_int for point in metrics["fila.messages.enqueued"].sum.data_points] == [8]


async def test_more_series_than_the_sdks_own_limit_arrive_unlumped(engine, ask, collector, monkeypatch):
    from fila_server.telemetry import catalog
    from fila_server.telemetry.series import Series

    many = Series(catalog.KEY_PENDING, [({"fila.fairness_key": f"k{i}"}, i) for i in range(6000)], [])
    monkeypatch.setattr("fila_server.telemetry.source.all_series", lambda *_: iter([many]))
    for bound in (
        "otlp.EXPORT_S_MAX",
        "otlp.STOP_S_MAX",
        "service.STOP_S_MAX",
    ):  # of a machine that does much else
        monkeypatch.setattr(f"fila_server.telemetry.{bound}", 30.0)
    telemetry = Telemetry(ask)
    telemetry.start_export(endpoint=collector[1], service_name="fila", interval_ms=60_000)
    await telemetry.stop_exports()  # sends once more

    first, second = await take(collector[0].received), await take(collector[0].received)
    points = [p for export in (first, second) for p in by_name(export)["fila.key.pending"].gauge.data_points]
    assert len(points) == 6000
    assert not any(a.key == "otel.metric.overflow" for p in points for a in p.attributes)


async def test_a_collector_that_is_not_there_is_reported_once_and_holds_up_nobody(engine, ask, kept_port):
    dead = f"http://{kept_port.address}"

    async def slowest_turn_s(_: int) -> float:
        telemetry = Telemetry(ask)
        with structlog.testing.capture_logs() as logs:
            telemetry.start_export(endpoint=dead, service_name="fila", interval_ms=100)
            slowest_s = 0.0
            ends_s = clock.now_s + 1.5
            while clock.now_s < ends_s:
                began_s = clock.now_s
                await asyncio.sleep(0)
                slowest_s = max(slowest_s, clock.now_s - began_s)
                await asyncio.sleep(0.001)
            began_s = clock.now_s
            await telemetry.stop_exports()
            stopped_s = clock.now_s - began_s
        assert [line["event"] for line in logs].count("telemetry.export_failed") == 1
        return max(slowest_s, stopped_s / 8)

    clock = RunningClock()
    try:
        await within_awaited(0.25, slowest_turn_s)
    finally:
        clock.stop()


async def test_a_collector_that_never_answers_does_not_hold_up_the_stop(engine, ask):
    async def stopped_s(_: int) -> float:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            telemetry = Telemetry(ask)
            telemetry.start_export(
                endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}",
                service_name="fila",
                interval_ms=60_000,
            )
            began_s = time.monotonic()
            await telemetry.stop_exports()
        return time.monotonic() - began_s

    await within_awaited(2, stopped_s)


async def test_without_an_endpoint_nothing_is_started(ask):
    telemetry = Telemetry(ask)
    telemetry.start_export(endpoint="", service_name="fila", interval_ms=100)
    await telemetry.stop_exports()
