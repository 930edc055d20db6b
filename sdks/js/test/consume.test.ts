import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';

import type { ConnectionEvent } from '../src/connection-event.js';
import { ClientClosed, LeaseLost, QueueNotFound, Unavailable } from '../src/errors.js';
import type { Message } from '../src/message.js';
import { connected, rejection } from './connected.js';
import { delivery } from './fake-broker.js';
import { ManualClock, turns } from './manual-clock.js';

async function take(loop: AsyncIterator<Message>): Promise<Message> {
  const step = await loop.next();
  assert.ok(step.done !== true, 'the loop has ended');
  return step.value;
}

test('a session opens with one message more than its loop works on, and says who it is', async (t) => {
  const { broker, client } = await connected(t);
  const consumer = client.consume('q', { channel: 'audit', name: 'worker 1', maxLeaseRenewalMs: 60_000 });
  void consumer[Symbol.asyncIterator]().next();
  const session = await broker.session();
  const open = await session.heard('open');
  assert.deepEqual(
    [open.queue, open.channel, open.name, open.tracksBegun, open.maxInFlight, open.maxLeaseRenewalMs],
    ['q', 'audit', 'worker 1', true, 2, 60_000n],
  );
  assert.equal(open.resume, undefined);
  consumer.close();
});

test('a message has what the broker sent', async (t) => {
  const { broker, client } = await connected(t);
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(5n, { id: 'x', payload: '{"a":1}' }));
  const message = await first;
  assert.deepEqual(
    [
      message.id,
      message.queue,
      message.channel,
      message.offset,
      message.leaseId,
      message.text(),
      message.json(),
    ],
    ['x', 'q', 'default', 5, 5n, '{"a":1}', { a: 1 }],
  );
  assert.deepEqual([message.leasedAt.getTime(), message.leaseExpiresAt.getTime()], [1_000_000, 1_030_000]);
  assert.equal(message.deadLetter, undefined);
});

test('what is settled at once needs no begun; what stays in hand is declared', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock, prefetch: 10 });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n));
  const quick = await first;
  void quick.ack();
  await session.heard('ack');
  const slow = await take(loop);
  clock.advance(2.5);
  clock.advance(2.5);
  assert.deepEqual((await session.heard('begun')).leaseIds, [slow.leaseId]);
  assert.equal(session.all('begun').length, 1);
});

test('a message that came back is declared before the program sees it', async (t) => {
  const { broker, client } = await connected(t);
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n, { redelivered: true }));
  session.settleAll();
  await (await first).ack();
  assert.deepEqual(
    session.frames.map((frame) => frame.case),
    ['open', 'begun', 'window', 'ack'],
  );
});

test('a message whose lease the broker ends tells its work, or is never handed out', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n), delivery(3n));
  const message = await first;
  assert.equal(message.signal.aborted, false);
  const told = new Promise<LeaseLost>((resolve) => {
    message.signal.addEventListener('abort', () => resolve(message.signal.reason as LeaseLost));
  });
  session.revoke('SEEK', 1n, 2n);
  const lost = await told;
  assert.ok(lost instanceof LeaseLost);
  assert.deepEqual([lost.messageId, lost.leaseId], [message.id, 1n]);
  assert.equal((await take(loop)).leaseId, 3n);
});

test('nothing is handed out once the broker was not heard from for a visibility timeout', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock, prefetch: 10 });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened({ timeoutMs: 4_000 });
  session.deliver(delivery(1n), delivery(2n));
  await first;
  clock.advance(4_000);
  const second = take(loop);
  await turns(10);
  const alive = session.all('alive').map((word) => word.sequence);
  assert.equal(alive.length, 4, 'it says that it is alive four times within a visibility timeout');
  assert.equal(await Promise.race([second.then(() => 'handed out'), turns(10).then(() => 'held')]), 'held');
  session.say({ case: 'alive', value: { sequence: alive[3] as bigint } as never });
  assert.equal((await second).leaseId, 2n);
});

test('a slow loop gives back what it can not work on, and asks for one at a time', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n));
  await first;
  clock.advance(60);
  const window = await session.heard('window');
  assert.deepEqual([window.size, window.giveBack], [1, [2n]]);
});

test('a session resumes with all it holds, and goes on by itself', async (t) => {
  const events: ConnectionEvent[] = [];
  const { broker, client } = await connected(t, {
    prefetch: 10,
    onConnection: (event) => events.push(event),
  });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened({ consumerId: 99n });
  session.deliver(delivery(1n), delivery(2n), delivery(3n));
  const inHand = await first;
  broker.kill();
  await broker.restart();
  const back = await broker.session(1);
  const open = await back.opened({ consumerId: 100n, lost: [2n] });
  assert.equal(open.resume?.consumerId, 99n);
  assert.deepEqual([...open.resume.leaseIds].sort(), [1n, 2n, 3n]);
  assert.deepEqual((await back.heard('begun')).leaseIds, [1n]);
  assert.equal((await take(loop)).leaseId, 3n, 'the lost one is not handed out');
  assert.equal(inHand.signal.aborted, false);
  back.settleAll();
  await inHand.ack();
  assert.deepEqual(
    events.map((event) => [event.kind, event.queue, event.leasesLost]),
    [
      ['lost', 'q', undefined],
      ['back', 'q', 1],
    ],
  );
});

test('an ack whose answer was lost with the stream is sent again, by a call', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const { FilaService } = await import('../src/gen/fila/v1/service_pb.js');
  broker.on(FilaService.method.ackBatch, ({ items }) => ({ results: items.map(() => ({ code: 0 })) }));
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n));
  const message = await first;
  const acked = message.ack().then();
  await session.heard('ack');
  broker.kill();
  await broker.restart();
  const open = await (await broker.session(1)).opened();
  assert.deepEqual(open.resume?.leaseIds, [1n], 'the broker must not return what is being settled');
  await acked;
});

test('where the program asks for no events, an outage is a line of console.warn', async (t) => {
  const warn = t.mock.method(console, 'warn', () => {});
  const { broker, client } = await connected(t);
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n));
  await first;
  const second = take(loop);
  broker.kill();
  await broker.restart();
  const back = await broker.session(1);
  await back.opened();
  back.deliver(delivery(2n));
  await second;
  const lines = warn.mock.calls.map((call) => String(call.arguments[0]));
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? '', /^fila: consumer of q lost its stream, reopening it: /);
  assert.match(lines[1] ?? '', /^fila: consumer of q has its stream back after \d+ ms, 0 leases lost$/);
});

test('leaving gives the buffer back at once, and closes once all in hand is settled', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const consumer = client.consume('q');
  let inHand: Message | undefined;
  const looping = (async () => {
    for await (const message of consumer) {
      inHand = message;
      break;
    }
  })();
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n), delivery(3n));
  await looping;
  const window = await session.heard('window');
  assert.deepEqual([window.size, [...window.giveBack].sort()], [0, [2n, 3n]]);
  await turns(10);
  assert.equal(session.all('close').length, 0);
  session.settleAll();
  await inHand?.ack();
  assert.equal((await session.heard('close')).release, true);
});

test('an error thrown in the loop leaves it, and stays the caller’s', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const mine = new Error('mine');
  const looping = rejection(
    (async () => {
      for await (const message of client.consume('q')) throw Object.assign(mine, { id: message.id });
    })(),
  );
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n));
  assert.equal(await looping, mine);
  assert.deepEqual((await session.heard('window')).giveBack, [2n]);
});

test('a signal ends the loop with its reason; close ends it without', async (t) => {
  const { broker, client } = await connected(t);
  const stop = new AbortController();
  const aborted = rejection(client.consume('q', { signal: stop.signal })[Symbol.asyncIterator]().next());
  await (await broker.session()).opened();
  stop.abort();
  assert.equal(((await aborted) as Error).name, 'AbortError');
  const consumer = client.consume('q');
  const ended = consumer[Symbol.asyncIterator]().next();
  await (await broker.session(1)).opened();
  consumer.close();
  assert.equal((await ended).done, true);
  assert.ok((await rejection(consumer[Symbol.asyncIterator]().next())) instanceof ClientClosed);
});

test('a loop ends when nothing came for stopWhenIdleMs', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock });
  const step = client.consume('q', { stopWhenIdleMs: 100 })[Symbol.asyncIterator]().next();
  await (await broker.session()).opened();
  await turns(10);
  clock.advance(100);
  assert.equal((await step).done, true);
});

test('time without a broker is not idle', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock });
  let ended = false;
  const step = client.consume('q', { stopWhenIdleMs: 100 })[Symbol.asyncIterator]().next();
  void step.then(() => (ended = true));
  const session = await broker.session();
  await turns(10);
  clock.advance(1000);
  await turns(10);
  assert.equal(ended, false);
  await session.opened();
  await turns(10);
  clock.advance(99);
  await turns(10);
  assert.equal(ended, false);
  clock.advance(1);
  assert.equal((await step).done, true);
});

test('what other loops got keeps a loop from being idle', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock });
  const consumer = client.consume('q', { stopWhenIdleMs: 100 });
  const [first, second] = [consumer[Symbol.asyncIterator](), consumer[Symbol.asyncIterator]()];
  const got = first.next();
  let ended = false;
  const idle = second.next();
  void idle.then(() => (ended = true));
  const session = await broker.session();
  await session.opened();
  await turns(10);
  clock.advance(60);
  session.deliver(delivery(1n));
  assert.equal((await got).done, false);
  clock.advance(60);
  await turns(10);
  assert.equal(ended, false);
  clock.advance(40);
  assert.equal((await idle).done, true);
});

test('a queue that is deleted under a consumer ends its loops with QueueNotFound', async (t) => {
  const { broker, client } = await connected(t);
  const consumer = client.consume('q');
  const loops = [consumer[Symbol.asyncIterator]().next(), consumer[Symbol.asyncIterator]().next()];
  const errors = Promise.all(loops.map(rejection));
  const session = await broker.session();
  await session.opened();
  session.fail(status.NOT_FOUND, 'QUEUE_NOT_FOUND');
  for (const error of await errors) {
    assert.ok(error instanceof QueueNotFound);
    assert.equal(error.queue, 'q');
  }
});

test('a consumer gives up after reconnectForMs', async (t) => {
  const { broker, client } = await connected(t, { reconnectForMs: 20 });
  const step = rejection(client.consume('q')[Symbol.asyncIterator]().next());
  await (await broker.session()).opened();
  broker.kill();
  assert.ok((await step) instanceof Unavailable);
});

test('a consumer has all its time to reconnect after each loss', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock, reconnectForMs: 5_000 });
  const step = take(client.consume('q')[Symbol.asyncIterator]());
  const lost = await broker.session();
  await lost.opened();
  await turns(10);
  clock.advance(60_000);
  lost.fail(status.UNAVAILABLE);
  const moving = setInterval(() => clock.advance(5), 1);
  try {
    const back = await broker.session(1);
    await back.opened();
    back.deliver(delivery(1n));
    assert.equal((await step).leaseId, 1n);
  } finally {
    clearInterval(moving);
  }
});

test('several loops share what arrives, and a batch takes all of it', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const consumer = client.consume('q');
  const [one, other] = [consumer[Symbol.asyncIterator](), consumer[Symbol.asyncIterator]()];
  const steps = [take(one), take(other)];
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n), delivery(3n), delivery(4n));
  assert.deepEqual(new Set((await Promise.all(steps)).map((message) => message.leaseId)), new Set([1n, 2n]));
  const batch = await consumer.batches({ max: 5 }).next();
  assert.equal(batch.done, false);
  assert.deepEqual(
    batch.value.map((message) => message.leaseId),
    [3n, 4n],
  );
});

test('a slow consumer does not hold up a fast one', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 1_000 });
  const slow = client.consume('slow')[Symbol.asyncIterator]();
  const first = take(slow);
  const [idle] = [await broker.session(0)];
  await idle.opened();
  idle.deliver(
    ...Array.from({ length: 1_000 }, (_, i) => delivery(BigInt(i + 1), { payload: 'x'.repeat(2_000) })),
  );
  await first;
  const fast = client.consume('fast')[Symbol.asyncIterator]();
  const next = take(fast);
  const busy = await broker.session(1);
  await busy.opened();
  busy.settleAll();
  busy.deliver(delivery(5_001n));
  await (await next).ack();
  for (let lease = 5_002n; lease < 5_100n; lease++) {
    busy.deliver(delivery(lease));
    await (await take(fast)).ack();
  }
});

test('a broker that is older than windows gets a number', async (t) => {
  const { broker, client } = await connected(t);
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  await (await broker.session()).opened({ timeoutMs: 0 });
  const again = await broker.session(1);
  assert.equal((await again.opened({ timeoutMs: 0 })).maxInFlight, 256);
  again.deliver(delivery(1n, { redelivered: true }));
  await first;
  await turns(10);
  assert.deepEqual(
    again.frames.map((frame) => frame.case),
    ['open'],
  );
});

test('close gives back what is in hand too, uncounted', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n));
  const message = await first;
  await client.close();
  assert.equal((await session.heard('close')).release, true);
  assert.ok((await rejection(loop.next())) instanceof ClientClosed);
  assert.ok((await rejection(message.ack())) instanceof ClientClosed);
});

test('a client that closes and keeps what is in hand gives back what waited', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = take(loop);
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n));
  await first;
  await client.close({ release: false });
  await session.over();
  assert.deepEqual(
    session.all('window').map((window) => [window.size, window.giveBack]),
    [[0, [2n]]],
  );
  assert.deepEqual(session.all('close'), []);
});

test('a client that closes leaves a stream that is closed already to the broker', async (t) => {
  const { broker, client } = await connected(t, { prefetch: 10 });
  const consumer = client.consume('q');
  const first = take(consumer[Symbol.asyncIterator]());
  const session = await broker.session();
  await session.opened();
  session.deliver(delivery(1n), delivery(2n));
  session.settleAll();
  await (await first).ack();
  consumer.close();
  await client.close({ release: false });
  await session.over();
  assert.deepEqual(
    session.frames.slice(-2).map((frame) => frame.case),
    ['window', 'close'],
  );
});

test('a lease or a peek of no message at all is refused, and nothing is asked', async (t) => {
  const { client } = await connected(t);
  for (const asked of [client.lease('q', { maxMessages: 0 }), client.peek('q', { maxMessages: 0 })]) {
    const refused = await rejection(asked);
    assert.ok(refused instanceof RangeError, String(refused));
    assert.match(refused.message, /maxMessages must be from 1 to 4294967295, got 0/);
  }
});
