/**
 * `@fila-mq/client/opentelemetry`: the trace context that a message carries, for consumers that use
 * OpenTelemetry.
 *
 * ```ts
 * for await (const message of client.consume('orders')) {
 *   await tracer.startActiveSpan('process orders', ...traced(message), async (span) => { ... });
 * }
 * ```
 *
 * A queue decouples in time, so a consumer's span *links* to the producer's rather than being its child. Where
 * people want one trace through both, `traced(message, { parent: true })` makes it a child.
 *
 * @module opentelemetry
 */

import {
  type Context,
  context,
  type Link,
  propagation,
  ROOT_CONTEXT,
  type SpanOptions,
  trace,
} from '@opentelemetry/api';

/** A Message, a StoredMessage, or whatever else has headers. */
export interface HasHeaders {
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What a span begins with that works on the message, for `tracer.startActiveSpan(name, ...traced(message), work)`: a link
 * to the producer's span; with `parent` the producer's context, so that the span is its child, in one trace.
 */
export function traced(
  message: HasHeaders,
  { parent = false }: { readonly parent?: boolean } = {},
): [SpanOptions, Context] {
  if (!parent) return [{ links: linksTo(message) }, context.active()];
  return [{}, contextOf(message) ?? context.active()];
}

/** The producer's context, to start a span as its child; undefined when the message carries none. */
export function contextOf(message: HasHeaders): Context | undefined {
  // Into an empty context: what this program is doing right now is not the producer's.
  const producers = propagation.extract(ROOT_CONTEXT, message.headers);
  return trace.getSpanContext(producers) === undefined ? undefined : producers;
}

/** Links to the spans that enqueued these messages; those that carry no context are left out. */
export function linksTo(...messages: HasHeaders[]): Link[] {
  return messages.flatMap((message) => {
    const producers = contextOf(message);
    const span = producers && trace.getSpanContext(producers);
    return span === undefined ? [] : [{ context: span }];
  });
}
