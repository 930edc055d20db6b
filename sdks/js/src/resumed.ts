/** Calls that answer with a stream, followed over as many streams as it takes. */

import type { DescMessage, DescMethodServerStreaming, MessageShape } from '@bufbuild/protobuf';
import type { ClientReadableStream } from '@grpc/grpc-js';

import { backoffMs, onAbort } from './clock.js';
import type { Connection } from './connection.js';
import { type ErrorFacts, FilaError, Unavailable } from './errors.js';
import { errorOfCall, unavailableUnlessSaid } from './status.js';

/** A call that answers with a stream. */
export interface StreamedCall<I extends DescMessage, O extends DescMessage> {
  readonly connection: Connection;
  readonly method: DescMethodServerStreaming<I, O>;
  readonly request: MessageShape<I>;
  /** What it is about, for the error it may end in. */
  readonly known: ErrorFacts;
  readonly signal: AbortSignal | undefined;
  /**
   * Whether the call is not over when the broker ends a stream: it is stopping. Every end is one when left out.
   */
  readonly goesOn?: () => boolean;
}

/**
 * Loops over what a call answers. A broken stream is opened again with the request as it stands then: the
 * caller's loop moves its place on. Throws what the broker says; Unavailable when it stays away for `retryForMs`.
 */
export async function* responses<I extends DescMessage, O extends DescMessage>(
  call: StreamedCall<I, O>,
): AsyncGenerator<MessageShape<O>, void, undefined> {
  const { connection, signal } = call;
  const { clock, backoff, retryForMs } = connection.settings;
  let attempt = 0;
  let lostAt: number | undefined;
  for (;;) {
    try {
      await connection.ready(clock.now() + retryForMs, signal);
      for await (const response of overOneStream(call)) {
        attempt = 0;
        lostAt = undefined;
        yield response;
      }
      if (call.goesOn?.() !== true) return;
      throw new Unavailable('the broker ended the stream');
    } catch (failure) {
      connection.closed.throwIfAborted();
      signal?.throwIfAborted();
      if (!(failure instanceof Unavailable)) throw failure;
      connection.follow(failure);
      const waitMs = backoffMs(backoff, attempt++);
      lostAt ??= clock.now();
      if (clock.now() + waitMs > lostAt + retryForMs) throw failure;
      await connection.sleep(waitMs, signal);
    }
  }
}

/** The answers of one stream, which is cancelled however the loop over them ends. */
async function* overOneStream<I extends DescMessage, O extends DescMessage>({
  connection,
  method,
  request,
  known,
  signal,
}: StreamedCall<I, O>): AsyncGenerator<MessageShape<O>, void, undefined> {
  const stream: ClientReadableStream<MessageShape<O>> = connection.readStream(method, request);
  const abort = () => stream.cancel();
  if (signal !== undefined) onAbort(signal, abort);
  try {
    for await (const response of stream) yield response as MessageShape<O>;
  } catch (failure) {
    if (failure instanceof FilaError) throw failure;
    throw unavailableUnlessSaid(errorOfCall(failure as Error, known));
  } finally {
    signal?.removeEventListener('abort', abort);
    stream.cancel();
    stream.on('error', () => {}); // the cancellation's own
  }
}
