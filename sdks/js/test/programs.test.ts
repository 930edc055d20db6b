/** What is printed works as printed, against a real broker: the README's samples, the examples, the built package. */

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { PACKAGE, type RealBroker, run, startBroker } from './real-broker.js';

let broker: RealBroker;
const folder = join(PACKAGE, 'build', 'programs');
before(async () => {
  broker = await startBroker();
  mkdirSync(folder, { recursive: true });
});
after(async () => {
  await broker.stop();
  rmSync(folder, { recursive: true });
});

async function runs(name: string, source: string, extension = 'mjs'): Promise<string> {
  const file = join(folder, `${name}.${extension}`);
  writeFileSync(file, source.replaceAll('localhost:5555', broker.address));
  const { code, printed } = await run([file]);
  assert.equal(code, 0, `${name} ended with ${code}:\n${printed}`);
  assert.doesNotMatch(printed, /Warning/, name);
  return printed;
}

test('the samples of the README run one after the other, and end by themselves', async () => {
  const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8');
  const samples = [...readme.matchAll(/^```js\n(.*?)^```/gms)].map(([, source]) => source ?? '');
  assert.ok(samples.length >= 6);
  const printed: string[] = [];
  for (const [index, sample] of samples.entries()) printed.push(await runs(`sample-${index}`, sample));
  const all = printed.join('');
  for (const part of [
    /stored as .* at offset 1\n/,
    /acme wants one coffee/,
    /1000 stored/,
    /there is no queue oders/,
  ]) {
    assert.match(all, part);
  }
});

describe('each example says what it is for', () => {
  const examples: [string, RegExp][] = [
    ['request-reply', /^Is anybody there\? Yes\.$/m],
    ['work-queue', /^505 images; the quiet tenant's last one was number \d{1,2}$/m],
    ['fan-out', /^mail: ada, grace, edsger\naudit: ada, grace, edsger$/m],
    ['dead-letters', /^charged 12\ndead letter: .*max_attempts.*no number\)\n1 redriven\ncharged 12$/m],
  ];
  for (const [name, expected] of examples) {
    test(name, async () => {
      const { code, printed } = await run([`examples/${name}.js`], { FILA_ADDR: broker.address });
      assert.equal(code, 0, printed);
      assert.match(printed, expected);
    });
  }
});

test('the package is CommonJS too, and has the same names there', async () => {
  const source = `
    const fila = require('@fila-mq/client');
    import('@fila-mq/client').then(async (esm) => {
      const names = (module) => Object.keys(module).filter((name) => !name.startsWith('__')).sort();
      require('node:assert').deepEqual(names(fila), names(esm).filter((name) => name !== 'default' && name !== 'module.exports'));
      const client = await fila.FilaClient.connect('localhost:5555');
      await client.createQueue('cjs');
      await client.enqueue('cjs', 'x');
      for await (const message of client.consume('cjs')) { await message.ack(); break; }
      await client.enqueue('nope', 'x').catch((error) => console.log(error instanceof fila.QueueNotFound));
      await client.close();
    });`;
  assert.match(await runs('common', source, 'cjs'), /^true$/m);
});

test('the built types stand by themselves, for ES modules and for CommonJS', async () => {
  const source = `
    import { FilaClient, QueueNotFound, type QueueStats } from '@fila-mq/client';
    import { linksTo } from '@fila-mq/client/opentelemetry';
    export async function program(): Promise<void> {
      const client = await FilaClient.connect(['a:1', 'b:2'], { apiKey: 'x', tls: { ca: 'pem' } });
      const stats: QueueStats = await client.getStats('q');
      for await (const message of client.consume('q')) await message.ack().catch(() => linksTo(message));
      await client.close().catch((error: unknown) => error instanceof QueueNotFound && error.queue + stats.depth);
    }`;
  const compiler = join(PACKAGE, 'node_modules', 'typescript', 'bin', 'tsc');
  const options = [
    '--ignoreConfig',
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--types',
    'node',
  ];
  for (const extension of ['mts', 'cts']) {
    const file = join(folder, `user.${extension}`);
    writeFileSync(file, source);
    const { code, printed } = await run([compiler, ...options, file]);
    assert.equal(code, 0, printed);
  }
});

test('a client that is closed with work in hand keeps nothing running', async () => {
  const source = `
    import { FilaClient } from '@fila-mq/client';
    const client = await FilaClient.connect('localhost:5555');
    await client.createQueue('hurry');
    await client.enqueueMany('hurry', Array.from({ length: 500 }, (_, i) => String(i)));
    const loop = client.consume('hurry')[Symbol.asyncIterator]();
    const { value } = await loop.next();
    const waiting = client.consume('hurry', { channel: 'default' })[Symbol.asyncIterator]();
    for (let i = 0; i < 300; i++) void client.enqueue('hurry', 'more').catch(() => {});
    void value.ack();
    await client.close();
    await loop.return();
    await waiting.return();
    const began = performance.now();
    process.on('exit', () => console.log(performance.now() - began < 1_000 ? 'at once' : 'late'));
    console.log('closed');`;
  assert.match(await runs('hurry', source), /^closed\nat once$/m);
});

test('a client that nobody closes does not keep the process running either, unless it consumes', async () => {
  const source = `
    import { FilaClient } from '@fila-mq/client';
    const client = await FilaClient.connect('localhost:5555');
    await client.listQueues();
    console.log('over');`;
  assert.match(await runs('forgetful', source), /^over$/m);
});
