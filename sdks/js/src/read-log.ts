/** The retained messages of a queue, read from its log: a stream that is resumed where it broke. */

import type { Connection } from './connection.js';
import { FilaAdmin, type ReadLogRequest } from './gen/fila/v1/admin_pb.js';
import { StoredMessage } from './message.js';
import { responses } from './resumed.js';

const method = FilaAdmin.method.readLog;

/** Loops over the messages that the request asks for. */
export async function* readLog(
  connection: Connection,
  request: ReadLogRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<StoredMessage, void, undefined> {
  const known = { queue: request.queue };
  for await (const response of responses({ connection, method, request, known, signal })) {
    // Before the messages: after a break, it goes on behind what was handed out.
    request.fromOffset = response.nextOffset;
    for (const message of response.messages) yield new StoredMessage(message);
  }
}
