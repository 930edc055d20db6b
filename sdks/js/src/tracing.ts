/**
 * Trace context in message headers, for programs that have OpenTelemetry set up; nothing otherwise.
 *
 * The producer's half is here and works by itself: what is enqueued inside a sampled span carries its
 * context. The consumer's half is opentelemetry.ts, for a program to call.
 */

type Api = typeof import('@opentelemetry/api');

let api: Api | undefined;

/** Looks whether OpenTelemetry is installed. */
export async function lookForTracing(): Promise<void> {
  try {
    api ??= await import('@opentelemetry/api');
  } catch {
    // Not installed: there is nothing to carry.
  }
}

const SAMPLED = 1;

/** Returns the headers with the current span's context in them, when it is sampled and they have none yet. */
export function traced(
  headers: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> | undefined {
  const span = api?.trace.getActiveSpan()?.spanContext();
  if (api === undefined || span === undefined || (span.traceFlags & SAMPLED) === 0) return headers;
  if (headers !== undefined && 'traceparent' in headers) return headers;
  const carried = { ...headers };
  api.propagation.inject(api.context.active(), carried);
  return carried;
}
