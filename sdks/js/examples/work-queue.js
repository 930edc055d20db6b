// Workers that share a queue: a tenant who sends a hundred times as much does not hold up the quiet one.
import { FilaClient, QueueExists } from '@fila-mq/client';

const client = await FilaClient.connect(process.env.FILA_ADDR ?? 'localhost:5555');
await client.createQueue('resize', { fairnessKeyHeader: 'tenant' }).catch((error) => {
  if (!(error instanceof QueueExists)) throw error;
});

function* images(tenant, count) {
  for (let i = 1; i <= count; i++) yield { payload: `${tenant} ${i}.png`, headers: { tenant } };
}
await client.enqueueMany('resize', images('noisy', 500));
await client.enqueueMany('resize', images('quiet', 5));

let done = 0;
let quietDoneAt;
const consumer = client.consume('resize', { stopWhenIdleMs: 500 });
const worker = async () => {
  for await (const message of consumer) {
    done++;
    if (message.text() === 'quiet 5.png') quietDoneAt = done;
    await message.ack();
  }
};
await Promise.all([worker(), worker(), worker()]);

console.log(`${done} images; the quiet tenant's last one was number ${quietDoneAt}`);
await client.close();
