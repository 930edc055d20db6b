import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test, type TestContext } from 'node:test';
import { status } from '@grpc/grpc-js';

import { type FilaError, LeaseLost, MessageNotFound, SomeFailed } from '../src/errors.js';
import { FilaService } from '../src/gen/fila/v1/service_pb.js';
import type { Message } from '../src/message.js';
import type { ClientOptions } from '../src/options.js';
import { toTimestamp } from '../src/times.js';
import { connected, rejection } from './connected.js';
import { delivery, failure, refusal } from './fake-broker.js';
import { turns } from './manual-clock.js';

/** A client that has `count` messages of one session in hand. */
async function inHand(t: TestContext, count: number, options: ClientOptions = {}) {
  const { broker, client } = await connected(t, { prefetch: 10, ...options });
  const loop = client.consume('q')[Symbol.asyncIterator]();
  const first = loop.next();
  const session = await broker.session();
  await session.opened();
  session.deliver(...Array.from({ length: count }, (_, i) => delivery(BigInt(i + 1))));
  const messages: Message[] = [(await first).value as Message];
  while (messages.length < count) messages.push((await loop.next()).value as Message);
  return { broker, client, session, messages };
}

test('what one turn settles alike leaves as one frame', async (t) => {
  const { session, messages } = await inHand(t, 4);
  const [a, b, c, d] = messages as [Message, Message, Message, Message];
  const settled = [a.ack(), b.ack(), c.nack('too hot', { delayMs: 50 }), d.nack('too hot', { delayMs: 50 })];
  session.settleAll();
  await Promise.all(settled);
  assert.deepEqual(
    session.all('ack').map((word) => word.leaseIds),
    [[1n, 2n]],
  );
  const [nack] = session.all('nack');
  assert.deepEqual([nack?.leaseIds, nack?.error, nack?.delayMs], [[3n, 4n], 'too hot', 50n]);
});

test('reject makes a dead letter, release counts nothing', async (t) => {
  const { session, messages } = await inHand(t, 2);
  session.settleAll();
  await messages[0]?.reject('unreadable');
  await messages[1]?.release();
  assert.deepEqual(
    session.all('nack').map((word) => [word.leaseIds[0], word.error, word.deadLetter, word.release]),
    [
      [1n, 'unreadable', true, false],
      [2n, '', false, true],
    ],
  );
});

test("a provider's refusal travels with its nack", async (t) => {
  const { session, messages } = await inHand(t, 2);
  session.settleAll();
  await messages[0]?.limited({ retryAfterMs: 3_600_000, limit: 'openai', error: '429' });
  await messages[1]?.limited();
  assert.deepEqual(
    session
      .all('nack')
      .map(({ error, delayMs, feedback }) => [error, delayMs, feedback[0]?.limit, feedback[0]?.retryAfterMs]),
    [
      ['429', 300_000n, 'openai', 300_000n],
      ['', undefined, '', 0n],
    ],
  );
  assert.throws(() => messages[0]?.limited({ retryAfterMs: Number.NaN }), RangeError);
});

test('a second ack of one delivery is refused with LeaseLost', async (t) => {
  const { session, messages } = await inHand(t, 1);
  const [message] = messages as [Message];
  const first = message.ack().then();
  session.settle((await session.heard('ack')).sequence);
  await first;
  const second = rejection(message.ack());
  session.settle((await session.heard('ack', 1)).sequence, { 1: 'LEASE_LOST' });
  const error = await second;
  assert.ok(error instanceof LeaseLost);
  assert.deepEqual([error.messageId, error.leaseId], [message.id, 1n]);
});

test('a refusal that nobody awaits is told, and is no unhandled rejection', async (t) => {
  const told: FilaError[] = [];
  const { session, messages } = await inHand(t, 1, { onRefused: (error) => told.push(error) });
  void messages[0]?.ack();
  session.settle((await session.heard('ack')).sequence, { 1: 'LEASE_LOST' });
  while (told.length === 0) await turns();
  assert.ok(told[0] instanceof LeaseLost);
});

test('a callback that throws is the program’s own uncaught exception, and the client goes on', async (t) => {
  const mine = new Error('mine');
  const onRefused = () => {
    throw mine;
  };
  const { session, messages } = await inHand(t, 2, { onRefused });
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  const thrown = once(process, 'uncaughtException');
  void messages[0]?.ack();
  session.settle((await session.heard('ack')).sequence, { 1: 'LEASE_LOST' });
  assert.equal((await thrown)[0], mine);
  for (const listener of listeners) process.on('uncaughtException', listener);
  const second = messages[1]?.ack().then();
  session.settle((await session.heard('ack', 1)).sequence);
  await second;
});

test('waiting for an ack can be aborted; it is under way all the same', async (t) => {
  const { client, session, messages } = await inHand(t, 1);
  const stop = new AbortController();
  const waiting = rejection(messages[0]?.ack({ signal: stop.signal }) as PromiseLike<void>);
  stop.abort();
  assert.equal(((await waiting) as Error).name, 'AbortError');
  session.settle((await session.heard('ack')).sequence);
  await client.close();
});

test('settling by id names the lease it was delivered under', async (t) => {
  const { client, session, messages } = await inHand(t, 3);
  session.settleAll();
  const [a, b, c] = messages as [Message, Message, Message];
  await Promise.all([client.ack('q', a.id), client.nack('q', b.id, 'no'), client.release('q', c.id)]);
  assert.deepEqual(session.all('ack')[0]?.leaseIds, [1n]);
  assert.deepEqual(
    session.all('nack').map((word) => word.leaseIds),
    [[2n], [3n]],
  );
});

test('what this client does not hold is settled by a call, under whatever lease is current', async (t) => {
  const { broker, client } = await connected(t);
  broker.on(FilaService.method.ackBatch, ({ items }) => ({
    results: items.map(() => refusal(status.NOT_FOUND, 'MESSAGE_NOT_FOUND')),
  }));
  const error = await rejection(client.ack('q', 'unknown', { channel: 'audit' }));
  assert.ok(error instanceof MessageNotFound);
  assert.equal(error.messageId, 'unknown');
  const request = broker.calls[0]?.request as unknown as { items: { leaseId: bigint }[]; channel: string };
  assert.deepEqual([request.items[0]?.leaseId, request.channel], [0n, 'audit']);
});

test('pulled messages are acked by one call, and SomeFailed tells which were refused', async (t) => {
  const { broker, client } = await connected(t);
  broker.on(FilaService.method.lease, () => ({ messages: [delivery(1n), delivery(2n)] }));
  broker.on(FilaService.method.ackBatch, ({ items }) => ({
    results: items.map(({ leaseId }) =>
      leaseId === 2n ? refusal(status.FAILED_PRECONDITION, 'LEASE_LOST') : { code: 0 },
    ),
  }));
  const error = await rejection(client.ackMany(await client.lease('q', { maxMessages: 2 })));
  assert.ok(error instanceof SomeFailed);
  assert.deepEqual([...error.failures.keys()], [1]);
  assert.equal(broker.calls.filter((call) => call.name === 'AckBatch').length, 1);
});

test('extending goes over the session, together, and answers the new end or the refusal', async (t) => {
  const { session, messages } = await inHand(t, 2);
  const [a, b] = messages as [Message, Message];
  const extended = a.extend(60_000);
  const refusedOne = rejection(b.extend(60_000));
  const word = await session.heard('extend');
  assert.deepEqual([word.leaseIds, word.extendMs], [[1n, 2n], 60_000n]);
  session.say({
    case: 'extended',
    value: {
      $typeName: 'fila.v1.ConsumeSessionResponse.Extended',
      leaseIds: [1n],
      leaseExpiresAt: toTimestamp(new Date(5_000)),
      failures: [
        {
          $typeName: 'fila.v1.ConsumeSessionResponse.Failure',
          leaseId: 2n,
          status: refusal(status.FAILED_PRECONDITION, 'LEASE_LOST'),
        },
      ],
    },
  });
  assert.equal((await extended).getTime(), 5_000);
  assert.ok((await refusedOne) instanceof LeaseLost);
});

test('an extend whose session broke is asked again by a call', async (t) => {
  const { broker, session, messages } = await inHand(t, 1);
  broker.on(FilaService.method.extendLease, () => ({ leaseExpiresAt: toTimestamp(new Date(7_000)) }));
  const extended = messages[0]?.extend(5_000);
  await session.heard('extend');
  session.fail(status.UNAVAILABLE, 'SHUTTING_DOWN');
  assert.equal((await extended)?.getTime(), 7_000);
});

for (const [code, reason] of [
  [status.NOT_FOUND, 'MESSAGE_NOT_FOUND'],
  [status.FAILED_PRECONDITION, 'LEASE_LOST'],
] as const) {
  test(`an ack whose session broke is asked again by a call; ${reason} says that it did its work`, async (t) => {
    const { broker, session, messages } = await inHand(t, 1);
    broker.on(FilaService.method.ackBatch, ({ items }) => ({
      results: items.map(() => refusal(code, reason)),
    }));
    const acked = messages[0]?.ack().then();
    await session.heard('ack');
    session.fail(status.UNAVAILABLE, 'SHUTTING_DOWN');
    await acked;
  });
}

test('a call that settles is repeated when its answer is lost', async (t) => {
  const { broker, client } = await connected(t);
  broker.on(FilaService.method.lease, () => ({ messages: [delivery(1n)] }));
  let tries = 0;
  broker.on(FilaService.method.ackBatch, ({ items }) => {
    if (++tries === 1) throw failure(status.UNAVAILABLE, '') as Error;
    return { results: items.map(() => ({ code: 0 })) };
  });
  const [message] = await client.lease('q');
  await message?.ack();
  assert.equal(tries, 2);
});
