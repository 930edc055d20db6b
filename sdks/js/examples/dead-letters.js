// A message that no worker can handle ends up beside the queue; once the worker is mended, it goes back.
import { FilaClient, QueueExists } from '@fila-mq/client';

const client = await FilaClient.connect(process.env.FILA_ADDR ?? 'localhost:5555');
await client
  .createQueue('invoices', { maxAttempts: 2, retry: { kind: 'fixed', baseMs: 10 } })
  .catch((error) => {
    if (!(error instanceof QueueExists)) throw error;
  });
await client.enqueueMany('invoices', ['{"total": 12}', '{"total": "twelve"}']);

async function work(total) {
  for await (const message of client.consume('invoices', { stopWhenIdleMs: 500 })) {
    try {
      console.log('charged', total(message.json()));
      await message.ack();
    } catch (error) {
      await message.nack(error.message);
    }
  }
}

await work((invoice) => {
  if (typeof invoice.total !== 'number') throw new Error('the total is no number');
  return invoice.total;
});
for (const letter of await client.peek('invoices.dlq')) {
  const { reason, lastError, attempts } = letter.deadLetter;
  console.log(`dead letter: ${letter.text()} (${reason} after ${attempts}: ${lastError})`);
}

console.log(await client.redrive('invoices.dlq'), 'redriven');
await work((invoice) => (invoice.total === 'twelve' ? 12 : invoice.total));
await client.close();
