import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { status } from '@grpc/grpc-js';

import { addressesOf } from '../src/address.js';
import { FilaClient } from '../src/client.js';
import { NotOwner, Unavailable } from '../src/errors.js';
import { FilaAdmin } from '../src/gen/fila/v1/admin_pb.js';
import type { ClientOptions, Settings } from '../src/options.js';
import { rejection } from './connected.js';
import { delivery, failure, FakeBroker } from './fake-broker.js';

const NOBODY = '127.0.0.1:1';

/** The owner, and a node that stands by and names this address. */
async function nodes(t: TestContext): Promise<{ owner: FakeBroker; standby: FakeBroker }> {
  const [owner, standby] = [await FakeBroker.start(), await FakeBroker.start()];
  t.after(() => [owner, standby].forEach((node) => node.kill()));
  serves(owner);
  standsBy(standby, owner.address);
  return { owner, standby };
}

function serves(node: FakeBroker): void {
  node.on(FilaAdmin.method.purgeQueue, () => ({ purged: 3n }));
  node.streamFailure = undefined;
}

function standsBy(node: FakeBroker, owner: string): void {
  const refusal = failure(status.UNAVAILABLE, 'NOT_OWNER', undefined, owner === '' ? {} : { owner });
  node.on(FilaAdmin.method.purgeQueue, () => Promise.reject(refusal as Error));
  node.streamFailure = refusal;
}

async function client(t: TestContext, address: string | string[], options: ClientOptions = {}) {
  const made = await FilaClient.connect(address, { backoff: { baseMs: 1, capMs: 5 }, ...options });
  t.after(() => made.close());
  return made;
}

test('a call that a standby refuses is made at the owner that it names', async (t) => {
  const { owner, standby } = await nodes(t);
  const c = await client(t, standby.address);
  // It may not be repeated: that nothing has happened is the standby's word.
  assert.equal(await c.purge('q'), 3);
  assert.equal(await c.purge('q'), 3);
  assert.equal(standby.calls.length, 1);
  assert.equal(owner.calls.length, 2);
});

test('a standby that knows no owner is left for the next address', async (t) => {
  const { owner, standby } = await nodes(t);
  standsBy(standby, '');
  const c = await client(t, `${NOBODY}, ${standby.address},${owner.address}`);
  assert.equal(await c.purge('q'), 3);
  assert.equal(standby.calls.length, 1);
});

test('what is in flight to a node that stands by is sent to the owner', async (t) => {
  const { owner, standby } = await nodes(t);
  const c = await client(t, [standby.address, owner.address]);
  const ids = await Promise.all([1, 2, 3].map(() => c.enqueue('q', 'a'))); // without dedup keys
  assert.equal(ids.length, 3);
  assert.equal(owner.enqueued.length, 3);
  assert.equal(standby.frames.length, 1);
});

test('a consumer that comes to a standby consumes at the owner', async (t) => {
  const { owner, standby } = await nodes(t);
  const c = await client(t, standby.address);
  const got = (async () => {
    for await (const message of c.consume('q')) return Buffer.from(message.payload).toString();
    return '';
  })();
  const refused = await standby.session();
  await refused.heard('open');
  refused.fail(status.UNAVAILABLE, 'NOT_OWNER', { owner: owner.address });
  const session = await owner.session();
  session.settleAll();
  await session.opened();
  session.deliver(delivery(1n, { payload: 'a' }));
  assert.equal(await got, 'a');
});

test('a stream that ends because its node hands over is draining', async (t) => {
  const { owner, standby } = await nodes(t);
  const events: string[] = [];
  const c = await client(t, standby.address, { onConnection: (event) => events.push(event.kind) });
  const got = (async () => {
    for await (const message of c.consume('q')) return Buffer.from(message.payload).toString();
    return '';
  })();
  const left = await standby.session();
  await left.opened();
  left.fail(status.UNAVAILABLE, 'NOT_OWNER', { owner: owner.address });
  const session = await owner.session();
  session.settleAll();
  await session.opened();
  session.deliver(delivery(1n, { payload: 'a' }));
  assert.equal(await got, 'a');
  assert.deepEqual(events, ['draining', 'back']);
});

test('where the owner is gone the client comes back to the addresses that it was given', async (t) => {
  const { owner, standby } = await nodes(t);
  const c = await client(t, standby.address);
  await c.purge('q');
  serves(standby);
  owner.kill();
  while (standby.calls.length < 2) await c.purge('q').catch(() => {});
});

test('who has no patience is told where the owner is', async (t) => {
  const { owner, standby } = await nodes(t);
  const c = await client(t, standby.address, { retryForMs: 0 });
  const error = await rejection(c.purge('q'));
  assert.ok(error instanceof NotOwner);
  assert.equal(error.owner, owner.address);
  assert.equal(owner.calls.length, 0);
});

test('two nodes that name each other are asked until patience ends', async (t) => {
  const { owner, standby } = await nodes(t);
  standsBy(owner, standby.address);
  const c = await client(t, standby.address, { retryForMs: 100, backoff: { baseMs: 10, capMs: 20 } });
  assert.ok((await rejection(c.purge('q'))) instanceof Unavailable);
  const asked = owner.calls.length + standby.calls.length;
  assert.ok(asked >= 1 && asked <= 25, String(asked));
});

test('addresses in one text have commas between them', () => {
  const of = (given: string) => addressesOf(given, {} as Settings).map(({ target }) => target);
  assert.deepEqual(of('a:1, http://b:2,c:3'), ['a:1', 'b:2', 'c:3']);
  assert.throws(() => of('a:1,'), RangeError);
});
