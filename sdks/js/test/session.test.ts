import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';

import type { Connection } from '../src/connection.js';
import type { ConsumeSessionRequest } from '../src/gen/fila/v1/service_pb.js';
import { settingsOf } from '../src/options.js';
import { Session } from '../src/session.js';
import { delivery } from './fake-broker.js';
import { ManualClock, turns } from './manual-clock.js';

/** A stream whose writes are finished when the test says so. */
class HeldStream extends EventEmitter {
  readonly words: string[] = [];
  readonly finish: (() => void)[] = [];

  write({ request }: ConsumeSessionRequest, finished = () => {}): void {
    this.words.push(request.case ?? '');
    this.finish.push(finished);
  }

  say(name: string, value: object): void {
    this.emit('data', { response: { case: name, value } });
  }

  cancel(): void {
    this.emit('error', new Error('cancelled'));
  }
}

async function opened() {
  const stream = new HeldStream();
  const settings = settingsOf({ clock: new ManualClock() });
  const connection = {
    settings,
    ready: () => Promise.resolve(),
    sleep: () => new Promise(() => {}),
    openStream: () => stream,
  };
  const plan = { queue: 'q', channel: '', prefetch: 10, name: '', maxLeaseRenewalMs: undefined };
  const listener = { refused: () => {}, connection: () => {} };
  const session = new Session(connection as unknown as Connection, plan, listener);
  const loop = session.holding.join(1);
  await turns();
  const times = { visibilityTimeoutMs: 30_000n, disconnectGraceMs: 5_000n, maxLeaseRenewalMs: 600_000n };
  stream.say('opened', { consumerId: 1n, lostLeaseIds: [], ...times });
  return { session, stream, loop };
}

test('a message that came back is handed out only once the word of it is written', async () => {
  const { session, stream, loop } = await opened();
  stream.say('delivery', { messages: [delivery(1n, { redelivered: true })] });
  const taken = session.take(loop, 1);
  await turns();
  assert.deepEqual(stream.words, ['open', 'begun']);
  assert.equal(await Promise.race([taken.then(() => 'handed out'), turns().then(() => 'held')]), 'held');
  stream.finish[1]?.();
  assert.deepEqual(
    (await taken).map((message) => message.leaseId),
    [1n],
  );
});

test('when that word is lost with its stream the message is not handed out, and stays first', async () => {
  const { session, stream, loop } = await opened();
  stream.say('delivery', { messages: [delivery(1n, { redelivered: true }), delivery(2n)] });
  const taken = session.take(loop, 1);
  await turns();
  stream.emit('error', new Error('reset'));
  assert.deepEqual(await taken, []);
  assert.deepEqual(session.holding.leasesHeld(), [1n, 2n]);
  assert.equal(session.holding.size, 0);
});

test('a first delivery is handed out at once', async () => {
  const { session, stream, loop } = await opened();
  stream.say('delivery', { messages: [delivery(1n)] });
  assert.equal((await session.take(loop, 1)).length, 1);
  assert.deepEqual(stream.words, ['open']);
});
