"""Producer's span to message to consumer's span, with OpenTelemetry's SDK and without it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from fila.tracing import context_of, links_to, traced

tracer = TracerProvider().get_tracer("test")


@dataclass
class Carried:
    headers: dict[str, str] = field(default_factory=dict)


def test_a_consumers_span_links_to_the_producers():
    with tracer.start_as_current_span("enqueue") as producer:
        headers = traced({"tenant": "acme"})

    consumer = tracer.start_span("process", links=links_to(Carried(headers), Carried()))

    assert headers["tenant"] == "acme"
    assert isinstance(consumer, ReadableSpan)
    [link] = consumer.links
    assert link.context.span_id == producer.get_span_context().span_id
    assert consumer.get_span_context().trace_id != link.context.trace_id


def test_a_span_links_unless_it_is_asked_to_be_a_child():
    with tracer.start_as_current_span("enqueue") as producer:
        message = Carried(traced())
    produced = producer.get_span_context()

    linked = tracer.start_span("process", **traced(message))
    child = tracer.start_span("process", **traced(message, parent=True))

    assert isinstance(linked, ReadableSpan)
    assert isinstance(child, ReadableSpan)
    assert (linked.parent, [link.context.span_id for link in linked.links]) == (None, [produced.span_id])
    assert (child.parent.span_id, child.context.trace_id) == (produced.span_id, produced.trace_id)
    assert not child.links
    with tracer.start_as_current_span("something else") as other:
        alone = tracer.start_span("process", **traced(Carried(), parent=True))
    assert isinstance(alone, ReadableSpan)
    assert alone.parent.span_id == other.get_span_context().span_id


def test_an_unsampled_span_does_not_travel():
    with TracerProvider(sampler=ALWAYS_OFF).get_tracer("off").start_as_current_span("enqueue"):
        assert traced({"a": "b"}) == {"a": "b"}


def test_headers_that_have_a_context_keep_it():
    own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with tracer.start_as_current_span("enqueue"):
        assert traced({"traceparent": own}) == {"traceparent": own}


def test_outside_of_any_span_nothing_is_added():
    assert traced() == {}


def test_a_context_that_is_nonsense_is_none():
    assert context_of(Carried({"traceparent": "nonsense"})) is None
    assert links_to(Carried({"traceparent": "nonsense"})) == []


def test_what_the_consumer_does_meanwhile_is_not_taken_for_the_producers():
    with tracer.start_as_current_span("something else"):
        assert links_to(Carried()) == []
        assert context_of(Carried({"traceparent": "nonsense"})) is None


def test_without_opentelemetry_everything_does_nothing():
    program = """
import sys
sys.modules["opentelemetry"] = None
from fila.tracing import context_of, links_to, traced
class M: headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
assert traced({"a": "b"}) == {"a": "b"}
assert context_of(M()) is None
assert links_to(M()) == []
assert traced(M(), parent=True) == {}
"""
    subprocess.run([sys.executable, "-c", program], check=True)
