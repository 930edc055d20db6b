// One stored message, several independent readers: each channel sees all of them.
import { FilaClient, QueueExists } from '@fila-mq/client';

const client = await FilaClient.connect(process.env.FILA_ADDR ?? 'localhost:5555');
await client.createQueue('signups', { channels: ['mail', 'audit'] }).catch((error) => {
  if (!(error instanceof QueueExists)) throw error;
});

await client.enqueueMany('signups', ['ada', 'grace', 'edsger']);

async function read(channel) {
  const names = [];
  for await (const message of client.consume('signups', { channel, stopWhenIdleMs: 500 })) {
    names.push(message.text());
    await message.ack();
  }
  return names;
}
const [mailed, audited] = await Promise.all([read('mail'), read('audit')]);
console.log('mail:', mailed.join(', '));
console.log('audit:', audited.join(', '));

// What the audit has read can be read again, for as long as another channel wants it or retention keeps it.
await client.close();
