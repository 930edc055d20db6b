package dev.fila.client;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Trace context in message headers, for programs that use OpenTelemetry and have its API on their
 * path.
 *
 * <p>{@code enqueue} does by itself what {@link #inject} does: the current span's context travels
 * when it is sampled and the headers have none yet. A queue decouples in time, so a consumer's span
 * should link to the producer's rather than be its child: {@code Traces.traced(builder, message)}.
 * Where people want one trace through both, {@code Traces.traced(builder, message, true)} makes it
 * a child.
 */
public final class Traces {
    private static final String TRACE_PARENT = "traceparent";

    private static final TextMapGetter<Map<String, String>> GETTER =
            new TextMapGetter<>() {
                @Override
                public Iterable<String> keys(Map<String, String> headers) {
                    return headers.keySet();
                }

                @Override
                public @Nullable String get(@Nullable Map<String, String> headers, String key) {
                    return headers == null ? null : headers.get(key);
                }
            };

    private Traces() {}

    /**
     * The headers with the current span's context in them, when it is sampled and they have none
     * yet.
     */
    public static Map<String, String> inject(Map<String, String> headers) {
        if (headers.containsKey(TRACE_PARENT) || !Span.current().getSpanContext().isSampled()) {
            return headers;
        }
        Map<String, String> carried = new HashMap<>(headers);
        W3CTraceContextPropagator.getInstance().inject(Context.current(), carried, Map::put);
        return carried;
    }

    /**
     * Adds a link to the span that enqueued the message, if it carries one; returns the builder.
     */
    public static SpanBuilder traced(SpanBuilder span, StoredMessage message) {
        return traced(span, message, false);
    }

    /**
     * Makes the span that works on a message, with {@code parent}, a child of the one that enqueued
     * it, and otherwise links to that; nothing, if the message carries none. Returns the builder.
     */
    public static SpanBuilder traced(SpanBuilder span, StoredMessage message, boolean parent) {
        if (parent) {
            contextOf(message).ifPresent(span::setParent);
        } else {
            linkTo(message).ifPresent(span::addLink);
        }
        return span;
    }

    /**
     * The producer's context, to start a span as its child; empty when the message carries none.
     */
    public static Optional<Context> contextOf(StoredMessage message) {
        // Into an empty context: what this program is doing right now is not the producer's.
        Context context =
                W3CTraceContextPropagator.getInstance()
                        .extract(Context.root(), message.headers(), GETTER);
        return Span.fromContext(context).getSpanContext().isValid()
                ? Optional.of(context)
                : Optional.empty();
    }

    /**
     * The span that enqueued the message, to link to: {@code spanBuilder.addLink(...)}. Empty when
     * it carries none.
     */
    public static Optional<SpanContext> linkTo(StoredMessage message) {
        return contextOf(message).map(context -> Span.fromContext(context).getSpanContext());
    }
}
