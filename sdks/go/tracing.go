package fila

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Trace context travels in message headers when the program has given OpenTelemetry a propagator
// (otel.SetTextMapPropagator) and the calling span is sampled. Without either nothing is added.

// traceHeaders are headers to send besides the message's own, which stay as they are.
type traceHeaders []traceHeader

type traceHeader struct{ key, value string }

// tracedBy returns what the context's span adds to a message that does not carry a context yet.
func tracedBy(ctx context.Context, headers map[string]string) traceHeaders {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return nil
	}
	carrier := &headerCarrier{own: headers}
	otel.GetTextMapPropagator().Inject(ctx, carrier)
	return carrier.added
}

type headerCarrier struct {
	own   map[string]string
	added traceHeaders
}

func (c *headerCarrier) Get(key string) string { return c.own[key] }

func (c *headerCarrier) Set(key, value string) {
	if _, carried := c.own[key]; !carried {
		c.added = append(c.added, traceHeader{key, value})
	}
}

func (c *headerCarrier) Keys() []string { return nil }

// TraceContext returns ctx with the producer's span context, to start the consumer's span as its child.
func (m *StoredMessage) TraceContext(ctx context.Context) context.Context {
	return otel.GetTextMapPropagator().Extract(ctx, propagation.MapCarrier(m.Headers))
}

// A TracedOption says how a consumer's span belongs to the producer's.
type TracedOption bool

// TraceParent makes the consumer's span a child of the producer's, in one trace.
const TraceParent TracedOption = true

// Traced returns what a span begins with that works on the message: a link to the producer's span, and with
// [TraceParent] a context that makes it its child.
//
//	ctx, producer := m.Traced(ctx)
//	ctx, span := tracer.Start(ctx, "process orders", producer)
func (m *StoredMessage) Traced(ctx context.Context, opts ...TracedOption) (context.Context, trace.SpanStartOption) {
	link, carried := m.TraceLink()
	switch {
	case !carried:
		return ctx, trace.WithLinks()
	case len(opts) > 0 && bool(opts[len(opts)-1]):
		return m.TraceContext(ctx), trace.WithLinks()
	default:
		return ctx, trace.WithLinks(link)
	}
}

// TraceLink returns a link to the span that enqueued the message, and whether the message carries one. A
// queue decouples in time, so a consumer's span usually links to the producer's rather than being its child.
func (m *StoredMessage) TraceLink() (trace.Link, bool) {
	// Into an empty context: what this program is doing right now is not the producer's.
	span := trace.SpanContextFromContext(m.TraceContext(context.Background()))
	return trace.Link{SpanContext: span}, span.IsValid()
}
