"""Metrics to an OTLP collector, from a thread of the OpenTelemetry SDK that the broker never waits for.

    every metrics_interval_ms   reader ── one snapshot ── observable instruments ──► exporter ──► collector
                                                          histograms, ready-made ──┘

OpenTelemetry has no observable histogram, so histogram points are put in front of the exporter, in a scope of their
own name (under a repeated one the encoder would drop them). Nothing is retried and nothing is queued: everything is
cumulative, so the next export says what a lost one would have said.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import structlog
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    HistogramDataPoint,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
    ScopeMetrics,
)
from opentelemetry.sdk.metrics.export import Histogram as HistogramData
from opentelemetry.sdk.metrics.export import Metric as MetricData
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from fila_server.telemetry.catalog import METRICS, Metric
from fila_server.telemetry.collector import EXPORT_S_MAX, connection_to, resource_of
from fila_server.telemetry.series import Series

log = structlog.get_logger("fila_server.telemetry")

SCOPE = "fila_server"
HISTOGRAM_SCOPE = "fila_server.histograms"
POINTS_A_REQUEST_MAX = 5_000
"""So that a request stays far below gRPC's 4 MiB."""
SERIES_A_METRIC_MAX = 50_000
"""Above what series.py can give; the SDK's own limit would lump honest series together."""
STOP_S_MAX = 2.0
LOOK_S_MAX = 3600.0
"""How long the SDK may take to ask all instruments. It keeps what it has seen of a look that it gives up, and would
count that once more with the next."""
SWITCH_INTERVAL_S = 0.0005
"""How long the export thread may keep the interpreter from the loop's; Python's default is 5 ms."""

ReadSeries = Callable[[], list[Series]]


class _Exporter(MetricExporter):
    """Adds the histograms to what the instruments gave, and reports once when the collector goes or comes back."""

    def __init__(
        self, inner: MetricExporter, histograms: Callable[[], list[Series]], endpoint: str, timeout_ms: float
    ) -> None:
        super().__init__()
        self._inner = inner
        self._timeout_ms = timeout_ms
        self._histograms = histograms
        self._endpoint = endpoint
        self._started_ns = time.time_ns()
        self._failing = False

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any
    ) -> MetricExportResult:
        self._add_histograms(metrics_data)
        result = self._inner.export(metrics_data, min(timeout_millis, self._timeout_ms), **kwargs)
        failed = result is not MetricExportResult.SUCCESS
        if failed != self._failing:
            self._failing = failed
            if failed:
                log.warning(
                    "telemetry.export_failed", endpoint=self._endpoint, detail="tried again each interval"
                )
            else:
                log.info("telemetry.export_resumed", endpoint=self._endpoint)
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._inner.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._inner.shutdown(timeout_millis, **kwargs)

    def _add_histograms(self, metrics_data: MetricsData) -> None:
        now_ns = time.time_ns()
        metrics = [self._histogram(series, now_ns) for series in self._histograms()]
        if metrics and metrics_data.resource_metrics:
            scope = ScopeMetrics(InstrumentationScope(HISTOGRAM_SCOPE), metrics, schema_url="")
            # A list in fact, a Sequence by its type.
            metrics_data.resource_metrics[0].scope_metrics.append(scope)  # type: ignore[attr-defined]

    def _histogram(self, series: Series, now_ns: int) -> MetricData:
        points = [
            HistogramDataPoint(
                attributes=attributes,
                start_time_unix_nano=self._started_ns,
                time_unix_nano=now_ns,
                count=histogram.observed,
                sum=histogram.total,
                bucket_counts=histogram.counts,
                explicit_bounds=histogram.bounds,
                min=float("inf"),
                max=float("-inf"),
            )
            for attributes, histogram in series.histograms
        ]
        metric = series.metric
        data = HistogramData(points, AggregationTemporality.CUMULATIVE)
        return MetricData(metric.name, metric.description, metric.unit, data)


class OtlpExport:
    """Owns the SDK's provider and its thread."""

    def __init__(self, read: ReadSeries, *, endpoint: str, service_name: str, interval_ms: int) -> None:
        self._read = read
        self._points: dict[str, Series] = {}
        inner = OTLPMetricExporter(
            **connection_to(endpoint, interval_ms / 1000), max_export_batch_size=POINTS_A_REQUEST_MAX
        )
        reader = PeriodicExportingMetricReader(
            _Exporter(inner, self._histograms, endpoint, min(interval_ms, EXPORT_S_MAX * 1000)),
            export_interval_millis=interval_ms,
            export_timeout_millis=LOOK_S_MAX * 1000,
            cardinality_limits={ObservableCounter: SERIES_A_METRIC_MAX, ObservableGauge: SERIES_A_METRIC_MAX},
        )
        self._provider = MeterProvider([reader], resource_of(service_name), shutdown_on_exit=False)
        self._make_instruments()
        self._switch_interval_s = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_INTERVAL_S, self._switch_interval_s))

    def stop(self, done: Callable[[], object]) -> None:
        """Send what there is once more, in a thread nobody has to wait for, and call `done` from there."""
        sys.setswitchinterval(self._switch_interval_s)

        def shut_down() -> None:
            self._provider.shutdown(timeout_millis=STOP_S_MAX * 1000)
            done()

        threading.Thread(target=shut_down, name="telemetry-stop", daemon=True).start()

    def _refresh(self) -> None:
        self._points = {series.metric.name: series for series in self._read()}

    def _histograms(self) -> list[Series]:
        return [series for series in self._points.values() if series.histograms]

    def _make_instruments(self) -> None:
        """Instruments are asked in the order they were made, so the first one's callback takes the snapshot."""
        meter = self._provider.get_meter(SCOPE)
        instruments = [metric for metric in METRICS if metric.kind != "histogram"]
        for i, metric in enumerate(instruments):
            make: Callable[..., object] = (
                meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
            )
            make(metric.name, [self._callback(metric, first=i == 0)], metric.unit, metric.description)

    def _callback(self, metric: Metric, *, first: bool) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            if first:
                self._refresh()
            series = self._points.get(metric.name)
            return [Observation(value, attributes) for attributes, value in series.points] if series else []

        return observe
