"""Trace context in message headers, for programs that use OpenTelemetry: `pip install opentelemetry-api`.

    await client.enqueue("orders", headers=traced({"tenant": "acme"}), payload=b"...")

    async for message in client.consume("orders"):
        with tracer.start_as_current_span("process orders", **traced(message)):
            ...

A queue decouples in time, so a consumer's span *links* to the producer's rather than being its child. Where people want
one trace, and one waterfall, through both, `traced(message, parent=True)` makes the span a child. Only sampled traces
travel. Without OpenTelemetry installed every function here does nothing, so any library may call them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, overload

try:
    from opentelemetry import trace
    from opentelemetry.context import Context as _Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:  # pragma: no cover - the one line that differs is tested in a process of its own
    _propagator = None
else:
    _propagator = TraceContextTextMapPropagator()

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link


class HasHeaders(Protocol):
    """A Message, a StoredMessage, or whatever else has them."""

    @property
    def headers(self) -> Mapping[str, str]: ...


@overload
def traced(carries: Mapping[str, str] | None = None) -> dict[str, str]: ...


@overload
def traced(carries: HasHeaders, *, parent: bool = False) -> dict[str, Any]: ...


def traced(carries: Mapping[str, str] | HasHeaders | None = None, *, parent: bool = False) -> dict[str, Any]:
    """Of headers: return them with the current span's context, when it is sampled and they have none yet.

    Of a message: return what a span begins with that works on it, for `start_span(name, **...)`: a link to the
    producer's span; with `parent` the producer's context, so that the span is its child.
    """
    if carries is None or isinstance(carries, Mapping):
        return _with_context(carries)
    if not parent:
        return {"links": links_to(carries)}
    context = context_of(carries)
    return {} if context is None else {"context": context}


def _with_context(headers: Mapping[str, str] | None) -> dict[str, str]:
    carried = dict(headers or {})
    if _propagator is None or "traceparent" in carried:
        return carried
    if trace.get_current_span().get_span_context().trace_flags.sampled:
        _propagator.inject(carried)
    return carried


def context_of(message: HasHeaders) -> Context | None:
    """Return the producer's context, to start a span as its child; None when the message carries none."""
    if _propagator is None or "traceparent" not in message.headers:
        return None
    # Into an empty context: what this program is doing right now is not the producer's.
    context = _propagator.extract(message.headers, context=_Context())
    return context if trace.get_current_span(context).get_span_context().is_valid else None


def links_to(*messages: HasHeaders) -> list[Link]:
    """Return links to the spans that enqueued these messages; those that carry no context are left out."""
    contexts = [context for message in messages if (context := context_of(message)) is not None]
    return [trace.Link(trace.get_current_span(context).get_span_context()) for context in contexts]
