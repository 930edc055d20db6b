/** The retained messages of a queue, read from its log: a stream that is resumed where it broke. */

import type { ClientReadableStream } from '@grpc/grpc-js';

import { backoffMs, onAbort } from './clock.js';
import type { Connection } from './connection.js';
import { FilaError, Unavailable } from './errors.js';
import { FilaAdmin, type ReadLogRequest, type ReadLogResponse } from './gen/fila/v1/admin_pb.js';
import { StoredMessage } from './message.js';
import { errorOfCall, unavailableUnlessSaid } from './status.js';

/** Loops over the messages that the request asks for. */
export async function* readLog(
  connection: Connection,
  request: ReadLogRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<StoredMessage, void, undefined> {
  const { clock, backoff, retryForMs } = connection.settings;
  let attempt = 0;
  let lostAt: number | undefined;
  for (;;) {
    try {
      await connection.ready(clock.now() + retryForMs, signal);
      for await (const response of responses(connection, request, signal)) {
        attempt = 0;
        lostAt = undefined;
        // Before the messages: after a break, it goes on behind what was handed out.
        request.fromOffset = response.nextOffset;
        for (const message of response.messages) yield new StoredMessage(message);
      }
      return;
    } catch (failure) {
      connection.closed.throwIfAborted();
      signal?.throwIfAborted();
      if (!(failure instanceof Unavailable)) throw failure;
      const waitMs = backoffMs(backoff, attempt++);
      lostAt ??= clock.now();
      if (clock.now() + waitMs > lostAt + retryForMs) throw failure;
      await connection.sleep(waitMs, signal);
    }
  }
}

/** The answers of one stream, which is cancelled however the loop over them ends. */
async function* responses(
  connection: Connection,
  request: ReadLogRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<ReadLogResponse, void, undefined> {
  const stream: ClientReadableStream<ReadLogResponse> = connection.readStream(
    FilaAdmin.method.readLog,
    request,
  );
  const abort = () => stream.cancel();
  if (signal !== undefined) onAbort(signal, abort);
  try {
    for await (const response of stream) yield response as ReadLogResponse;
  } catch (failure) {
    if (failure instanceof FilaError) throw failure;
    throw unavailableUnlessSaid(errorOfCall(failure as Error, { queue: request.queue }));
  } finally {
    signal?.removeEventListener('abort', abort);
    stream.cancel();
    stream.on('error', () => {}); // the cancellation's own
  }
}
