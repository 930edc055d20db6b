// A question over one queue, its answer over a queue of the asker's own.
import { randomUUID } from 'node:crypto';

import { FilaClient, QueueExists } from '@fila-mq/client';

const client = await FilaClient.connect(process.env.FILA_ADDR ?? 'localhost:5555');
await client.createQueue('requests').catch((error) => {
  if (!(error instanceof QueueExists)) throw error;
});

// The answerer.
const answering = client.consume('requests');
const answerer = (async () => {
  for await (const request of answering) {
    const { reply_to: replyTo, correlation_id: correlation } = request.headers;
    await client.enqueue(replyTo, `${request.text()}? Yes.`, { headers: { correlation_id: correlation } });
    await request.ack();
  }
})();

// The asker.
const replyQueue = `replies.${randomUUID()}`;
// It goes by itself, should this program die before it deletes it.
await client.createQueue(replyQueue, { expiresAfterIdleMs: 60_000 });
const correlation = randomUUID();
const headers = { reply_to: replyQueue, correlation_id: correlation };
await client.enqueue('requests', 'Is anybody there', { headers });

for await (const reply of client.consume(replyQueue, { signal: AbortSignal.timeout(10_000) })) {
  await reply.ack();
  if (reply.headers.correlation_id !== correlation) continue; // the answer to an older question
  console.log(reply.text());
  break;
}
await client.deleteQueue(replyQueue);

answering.close();
await answerer;
await client.close();
