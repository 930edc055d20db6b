package dev.fila.client;

import dev.fila.v1.EnqueueMessage;
import java.util.Map;

/**
 * Puts the trace context of a program that uses OpenTelemetry into what it enqueues; does nothing
 * for any other.
 */
final class TraceHeaders {
    private static final boolean HAS_OPENTELEMETRY = hasOpenTelemetry();

    private TraceHeaders() {}

    static EnqueueMessage in(EnqueueMessage message) {
        if (!HAS_OPENTELEMETRY) {
            return message;
        }
        Map<String, String> headers = message.getHeadersMap();
        Map<String, String> carried = Traces.inject(headers);
        return carried == headers ? message : message.toBuilder().putAllHeaders(carried).build();
    }

    private static boolean hasOpenTelemetry() {
        try {
            Class.forName("io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator");
            return true;
        } catch (ClassNotFoundException | LinkageError absent) {
            return false;
        }
    }
}
