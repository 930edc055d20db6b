//go:build go1.25

package fila

import (
	"context"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

func sampledSpan(t *testing.T, flags trace.TraceFlags) (context.Context, trace.SpanContext) {
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags})
	return trace.ContextWithSpanContext(t.Context(), span), span
}

func TestASampledContextTravelsWhenThePropagatorIsSet(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	synctest.Test(t, func(t *testing.T) {
		broker, client := startFake(t)
		ctx, span := sampledSpan(t, trace.FlagsSampled)
		headers := map[string]string{"tenant": "acme"}
		go client.Enqueue(ctx, "q", headers, nil)
		stream := <-broker.enqueues
		request := <-stream.requests
		stream.store(request)
		sent := request.GetBatch().GetMessages()[0].GetHeaders()
		if sent["tenant"] != "acme" || sent["traceparent"] == "" || len(headers) != 1 {
			t.Errorf("sent %v; the caller's headers are now %v", sent, headers)
		}
		link, ok := (&StoredMessage{Headers: sent}).TraceLink()
		if !ok || link.SpanContext.TraceID() != span.TraceID() || link.SpanContext.SpanID() != span.SpanID() {
			t.Errorf("linked to %v", link)
		}
	})
}

func TestASpanLinksToTheProducersAndIsItsChildWhereThatIsAskedFor(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	carried := &StoredMessage{Headers: map[string]string{"traceparent": "00-" + traceOf + "-b7ad6b7169203331-01"}}
	mine, own := sampledSpan(t, trace.FlagsSampled)

	ctx, option := carried.Traced(mine)
	links := spanLinks(option)
	if trace.SpanContextFromContext(ctx).TraceID() != own.TraceID() || len(links) != 1 ||
		links[0].SpanContext.TraceID().String() != traceOf {
		t.Errorf("links %v", links)
	}
	ctx, option = carried.Traced(mine, TraceParent)
	parent := trace.SpanContextFromContext(ctx)
	if parent.TraceID().String() != traceOf || !parent.IsRemote() || len(spanLinks(option)) != 0 {
		t.Errorf("parent %v", parent)
	}
	ctx, option = (&StoredMessage{}).Traced(mine, TraceParent)
	if trace.SpanContextFromContext(ctx).TraceID() != own.TraceID() || len(spanLinks(option)) != 0 {
		t.Error("a message without context took the span's own away")
	}
}

const traceOf = "0af7651916cd43dd8448eb211c80319c"

func spanLinks(option trace.SpanStartOption) []trace.Link {
	config := trace.NewSpanStartConfig(option)
	return config.Links()
}

func TestNothingTravelsWithoutASampledSpanOrAPropagatorOrOverAnother(t *testing.T) {
	sampled, _ := sampledSpan(t, trace.FlagsSampled)
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator()) // as it is when nobody sets one
	if added := tracedBy(sampled, nil); added != nil {
		t.Errorf("without a propagator: %v", added)
	}
	otel.SetTextMapPropagator(propagation.TraceContext{})
	unsampled, _ := sampledSpan(t, 0)
	if added := tracedBy(unsampled, nil); added != nil {
		t.Errorf("not sampled: %v", added)
	}
	if added := tracedBy(sampled, map[string]string{"traceparent": "the message's own"}); added != nil {
		t.Errorf("over the message's own: %v", added)
	}
	if _, ok := (&StoredMessage{}).TraceLink(); ok {
		t.Error("a message without context has a link")
	}
}
