"""Spans and metrics of workers, for programs that use OpenTelemetry; without it every call here does nothing.

span    process QUEUE              linked to the spans that enqueued its messages, or with `trace_parent` their child
metric  fila.worker.handling       seconds from hand-out to the handler's end, by queue, handler and outcome
metric  fila.worker.settling       seconds until the broker answered, by queue and handler
metric  fila.worker.in_hand        messages being worked on, by queue and handler
metric  fila.worker.buffered       messages that wait in the client, by queue and handler
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from fila.tracing import links_to, traced
from fila.worker.plan import WorkerPlan
from fila.worker.work import WorkMessage

try:
    from opentelemetry import metrics, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
except ImportError:  # pragma: no cover - as in fila.tracing
    HAS_OPENTELEMETRY = False
else:
    HAS_OPENTELEMETRY = True


class WorkerTelemetry:
    """The instruments of one registered handler."""

    def __init__(self, plan: WorkerPlan) -> None:
        self._attributes = {
            "messaging.system": "fila",
            "messaging.destination.name": plan.queue,
            "messaging.consumer.group.name": plan.channel or "default",
            "fila.worker": plan.name,
        }
        self._queue = plan.queue
        self._is_child = plan.trace_parent
        if HAS_OPENTELEMETRY:
            meter = metrics.get_meter("fila.worker")
            self._handling = meter.create_histogram(
                "fila.worker.handling", "s", "from hand-out to the handler's end"
            )
            self._settling = meter.create_histogram("fila.worker.settling", "s", "until the broker answered")
            self._in_hand = meter.create_up_down_counter(
                "fila.worker.in_hand", "{message}", "being worked on"
            )
            self._buffered = meter.create_up_down_counter(
                "fila.worker.buffered", "{message}", "wait in the client"
            )
            self._buffered_now = 0

    @contextlib.contextmanager
    def span(self, messages: Sequence[WorkMessage]) -> Iterator[None]:
        """Be the current span while a handler runs."""
        if not HAS_OPENTELEMETRY:
            yield
            return
        attributes: dict[str, str | int] = {
            **self._attributes,
            "messaging.operation.type": "process",
            "messaging.batch.message_count": len(messages),
        }
        if len(messages) == 1:
            attributes["messaging.message.id"] = messages[0].id
        tracer = trace.get_tracer("fila.worker")
        # A span has one parent, so one of a batch has links.
        begins = (
            traced(messages[0], parent=self._is_child)
            if len(messages) == 1
            else {"links": links_to(*messages)}
        )
        with tracer.start_as_current_span(
            f"process {self._queue}", kind=SpanKind.CONSUMER, attributes=attributes, **begins
        ):
            yield

    def failed(self, error: BaseException) -> None:
        """The handler in the current span raised something that was taken care of."""
        if HAS_OPENTELEMETRY:
            span = trace.get_current_span()
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))

    def began(self, count: int, buffered: int) -> None:
        """Messages were handed out; so many wait still."""
        if HAS_OPENTELEMETRY:
            self._in_hand.add(count, self._attributes)
            self._buffered.add(buffered - self._buffered_now, self._attributes)
            self._buffered_now = buffered

    def handled(self, seconds: float, outcomes: Sequence[str]) -> None:
        """A handler ended."""
        if HAS_OPENTELEMETRY:
            self._in_hand.add(-len(outcomes), self._attributes)
            for outcome in outcomes:
                self._handling.record(seconds, {**self._attributes, "fila.outcome": outcome})

    def settled(self, seconds: float) -> None:
        """The broker answered."""
        if HAS_OPENTELEMETRY:
            self._settling.record(seconds, self._attributes)
