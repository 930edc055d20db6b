/**
 * `@fila-mq/client/opentelemetry`: the trace context that a message carries, for consumers that use
 * OpenTelemetry.
 *
 * ```ts
 * for await (const message of client.consume('orders')) {
 *   await tracer.startActiveSpan('process orders', { links: linksTo(message) }, async (span) => { ... });
 * }
 * ```
 *
 * A queue decouples in time, so a consumer's span *links* to the producer's rather than being its child;
 * whoever wants one trace through both passes `contextOf(message)` as the span's context instead.
 *
 * @module opentelemetry
 */

import { type Context, type Link, propagation, ROOT_CONTEXT, trace } from '@opentelemetry/api';

/** A Message, a StoredMessage, or whatever else has headers. */
export interface HasHeaders {
  readonly headers: Readonly<Record<string, string>>;
}

/** The producer's context, to start a span as its child; undefined when the message carries none. */
export function contextOf(message: HasHeaders): Context | undefined {
  // Into an empty context: what this program is doing right now is not the producer's.
  const context = propagation.extract(ROOT_CONTEXT, message.headers);
  return trace.getSpanContext(context) === undefined ? undefined : context;
}

/** Links to the spans that enqueued these messages; those that carry no context are left out. */
export function linksTo(...messages: HasHeaders[]): Link[] {
  return messages.flatMap((message) => {
    const context = contextOf(message);
    const span = context && trace.getSpanContext(context);
    return span === undefined ? [] : [{ context: span }];
  });
}
