"""Spans of the broker to an OTLP collector, from a thread of their own that nobody waits for.

    core (history/traces) ──► ring, bounded ──► once a second: Row ──► ReadableSpan ──► exporter ──► collector

Every span is a child of the span that enqueued the message, whose context came in the message's `traceparent`, and
links to it, since a message that waited for hours is looked for from either end. Nothing is tried again: while a
collector does not answer the ring fills up, and what has no place in it is counted and dropped.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import structlog
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from fila_server.telemetry.collector import connection_to, resource_of
from fila_server.version import version

log = structlog.get_logger("fila_server.telemetry")

SCOPE = "fila_server"
ROUND_S = 1.0
SPANS_A_REQUEST_MAX = 512
"""So that a request stays far below gRPC's 4 MiB, and the interpreter is not kept for long."""
REQUESTS_A_ROUND_MAX = 2
DROPPED_REPORTED_EVERY = 60
"""Rounds. How many were dropped meanwhile goes to the log in one line."""

# The numbers of SpanKind and SpanOutcome in core/threads/spans.pxd.
OPERATIONS = ("", "enqueue", "policy", "deliver", "settle")
OUTCOMES = (
    *("", "stored", "duplicate", "refused", "script", "policy", "retry", "dead_letter", "sent"),
    *("acked", "nacked", "expired", "returned"),
)
_FAILED = {"refused", "nacked", "expired"}
_CALLED = OPERATIONS.index("enqueue")


class Row(NamedTuple):
    """A span as SpanTap.take gives it. Times are nanoseconds since 1970."""

    operation: int
    outcome: int
    trace_id: int
    parent_id: int
    begins_ns: int
    ends_ns: int
    message_id: int
    """0 where the message was refused."""
    offset: int
    lease_id: int
    """0 where it is not leased."""
    consumer: int
    """0 for a Lease call."""
    attempts: int
    queue: str
    channel: str
    fairness_key: str
    why: str


class Tap(Protocol):
    """The core's end (core/threads/spans.pyi)."""

    @property
    def dropped(self) -> int: ...
    def take(self, most: int) -> Sequence[tuple[int | str, ...]]: ...


def exporter_to(endpoint: str) -> SpanExporter:
    """Return the exporter of a collector that speaks OTLP over gRPC."""
    return OTLPSpanExporter(**connection_to(endpoint))


class SpanExport:
    """Owns the thread and the exporter."""

    def __init__(
        self,
        tap: Tap,
        exporter: SpanExporter,
        *,
        service_name: str,
        endpoint: str = "",
        round_s: float = ROUND_S,
    ) -> None:
        self._tap = tap
        self._exporter = exporter
        self._endpoint = endpoint
        self._round_s = round_s
        self._resource = resource_of(service_name)
        self._scope = InstrumentationScope(SCOPE, version())
        self._ids = RandomIdGenerator()
        self._stopping = threading.Event()
        self._done: Callable[[], object] = lambda: None
        self._failing = False
        self._dropped_reported = 0
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, done: Callable[[], object]) -> None:
        """Send what there is once more, and call `done` from the thread that did."""
        self._done = done
        self._stopping.set()

    def _run(self) -> None:
        rounds = 0
        try:
            while not self._stopping.wait(self._round_s):
                self._send_or_lose()
                rounds += 1
                if rounds % DROPPED_REPORTED_EVERY == 0:
                    self._report_dropped()
            self._send_or_lose()
            self._report_dropped()
            self._exporter.shutdown()
        finally:
            self._done()

    def _send_or_lose(self) -> None:
        """An exporter that raises loses the spans of this round; those of the next are sent."""
        try:
            self.send()
        except Exception:
            log.exception("telemetry.spans_failed", endpoint=self._endpoint, detail="those of now are lost")

    def send(self) -> None:
        """Send what is in the ring, up to a round's share."""
        for _ in range(REQUESTS_A_ROUND_MAX):
            rows = self._tap.take(SPANS_A_REQUEST_MAX)
            if not rows:
                return
            spans = [self._span(Row(*row)) for row in rows]  # type: ignore[arg-type]
            self._reported(len(spans), self._exporter.export(spans))
            if self._failing or len(rows) < SPANS_A_REQUEST_MAX:
                return

    def _reported(self, count: int, result: SpanExportResult) -> None:
        failed = result is not SpanExportResult.SUCCESS
        if failed:
            self._lost += count
        if failed == self._failing:
            return
        self._failing = failed
        if failed:
            log.warning("telemetry.spans_failed", endpoint=self._endpoint, detail="those of now are lost")
        else:
            log.info("telemetry.spans_resumed", endpoint=self._endpoint)

    def _report_dropped(self) -> None:
        dropped = self._tap.dropped + self._lost
        if dropped > self._dropped_reported:
            log.warning(
                "telemetry.spans_dropped",
                spans=dropped - self._dropped_reported,
                detail="more than can be sent, or the collector does not take them; set telemetry.trace_sample higher",
            )
            self._dropped_reported = dropped

    def _span(self, row: Row) -> ReadableSpan:
        producer = _context(row.trace_id, row.parent_id, is_remote=True)
        operation, outcome = OPERATIONS[row.operation], OUTCOMES[row.outcome]
        status = Status(StatusCode.ERROR, row.why or outcome) if outcome in _FAILED else Status()
        return ReadableSpan(
            f"{operation} {row.queue}",
            context=_context(row.trace_id, self._ids.generate_span_id(), is_remote=False),
            parent=producer,
            resource=self._resource,
            attributes=_attributes(row, operation, outcome),
            links=[Link(producer)],
            kind=SpanKind.SERVER if row.operation == _CALLED else SpanKind.INTERNAL,
            status=status,
            start_time=row.begins_ns,
            end_time=row.ends_ns,
            instrumentation_scope=self._scope,
        )


def _context(trace_id: int, span_id: int, *, is_remote: bool) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _attributes(row: Row, operation: str, outcome: str) -> dict[str, str | int]:
    """What is known of the message; names as the metrics have them."""
    found: dict[str, str | int] = {
        "messaging.system": "fila",
        "messaging.operation.name": operation,
        "messaging.destination.name": row.queue,
        "fila.outcome": outcome,
        "fila.attempts": row.attempts,
    }
    if row.message_id:
        found["messaging.message.id"] = str(uuid.UUID(int=row.message_id))
        found["fila.offset"] = row.offset
        found["fila.fairness_key"] = row.fairness_key
    if row.channel:
        found["messaging.consumer.group.name"] = row.channel
    if row.lease_id:
        found["fila.lease_id"] = row.lease_id
    if row.consumer:
        found["fila.consumer"] = row.consumer
    if outcome in _FAILED:
        found["error.type"] = row.why if outcome == "refused" else outcome
    return found
