import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';

import type { Connection } from '../src/connection.js';
import type { ConnectionEvent } from '../src/connection-event.js';
import type { ConsumeSessionRequest, ConsumeSessionRequest_Open } from '../src/gen/fila/v1/service_pb.js';
import { settingsOf } from '../src/options.js';
import { Session } from '../src/session.js';
import { delivery } from './fake-broker.js';
import { ManualClock, turns } from './manual-clock.js';

/** A stream whose writes are finished when the test says so. */
class HeldStream extends EventEmitter {
  readonly words: string[] = [];
  readonly finish: (() => void)[] = [];
  openFrame: ConsumeSessionRequest_Open | undefined;

  write({ request }: ConsumeSessionRequest, finished = () => {}): void {
    if (request.case === 'open') this.openFrame = request.value;
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

for (const marks of [{ redelivered: true }, { cameBack: true }]) {
  test(`a message with ${JSON.stringify(marks)} is handed out only once the word of it is written`, async () => {
    const { session, stream, loop } = await opened();
    stream.say('delivery', { messages: [delivery(1n, marks)] });
    const taken = session.take(loop, 1);
    await turns();
    assert.deepEqual(stream.words, ['open', 'begun']);
    assert.equal(await Promise.race([taken.then(() => 'handed out'), turns().then(() => 'held')]), 'held');
    stream.finish[1]?.();
    assert.deepEqual(
      (await taken).map((message) => [message.leaseId, message.redelivered, message.cameBack]),
      [[1n, marks.redelivered ?? false, marks.cameBack ?? false]],
    );
  });
}

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

/** Opens a session whose streams are all kept. */
async function reopening(prefetch: number | 'auto') {
  const streams: HeldStream[] = [];
  const connection = {
    settings: settingsOf({ clock: new ManualClock() }),
    ready: () => Promise.resolve(),
    follow: () => {},
    sleep: () => Promise.resolve(),
    call: () => new Promise(() => {}),
    openStream: () => {
      const stream = new HeldStream();
      streams.push(stream);
      return stream;
    },
  };
  const plan = { queue: 'q', channel: '', prefetch, name: '', maxLeaseRenewalMs: undefined };
  const events: ConnectionEvent[] = [];
  const listener = { refused: () => {}, connection: (event: ConnectionEvent) => void events.push(event) };
  const session = new Session(connection as unknown as Connection, plan, listener);
  const loop = session.holding.join(1);
  await turns();
  return { session, loop, streams, events };
}

test('a broker that knows no windows is asked again for one of 256', async () => {
  const { session, loop, streams } = await reopening('auto');
  const first = streams[0] as HeldStream;
  first.say('opened', { consumerId: 1n, lostLeaseIds: [], visibilityTimeoutMs: 0n });
  await turns();
  assert.deepEqual(first.words, ['open', 'close']);
  first.emit('end');
  await turns();
  const second = streams[1] as HeldStream;
  assert.equal(second.openFrame?.maxInFlight, 256);
  second.say('opened', { consumerId: 2n, lostLeaseIds: [], visibilityTimeoutMs: 0n });
  second.say('delivery', { messages: [delivery(1n, { redelivered: true })] });
  assert.equal((await session.take(loop, 1)).length, 1);
  assert.deepEqual(second.words, ['open']); // nothing of what such a broker does not know
});

test('a resume names no more leases than it may, and those of unanswered acks last', async () => {
  const { session, loop, streams } = await reopening(10_000);
  const times = { visibilityTimeoutMs: 30_000n, disconnectGraceMs: 5_000n, maxLeaseRenewalMs: 600_000n };
  streams[0]?.say('opened', { consumerId: 1n, lostLeaseIds: [], ...times });
  const messages = Array.from({ length: 10_000 }, (_, i) => delivery(BigInt(i + 1)));
  streams[0]?.say('delivery', { messages });
  const [acked] = await session.take(loop, 1);
  void acked?.ack();
  await turns();
  streams[0]?.say('delivery', { messages: [delivery(10_001n)] }); // the ack made room for it
  streams[0]?.emit('error', new Error('reset'));
  await turns();
  const named = streams[1]?.openFrame?.resume?.leaseIds;
  assert.equal(named?.length, 10_000);
  assert.ok(!named.includes(1n));
});

test('what is back tells how many messages lost their leases, and not how many the broker names', async () => {
  const { session, loop, streams, events } = await reopening(10);
  const times = { visibilityTimeoutMs: 30_000n, disconnectGraceMs: 5_000n, maxLeaseRenewalMs: 600_000n };
  streams[0]?.say('opened', { consumerId: 1n, lostLeaseIds: [], ...times });
  streams[0]?.say('delivery', { messages: [delivery(1n), delivery(2n), delivery(3n)] });
  const [, acked] = await session.take(loop, 2);
  void acked?.ack();
  await turns();
  streams[0]?.emit('error', new Error('reset'));
  await turns();
  // 1 is in hand and 3 in the buffer; 2 is being settled, and 99 was settled long ago.
  streams[1]?.say('opened', { consumerId: 1n, lostLeaseIds: [1n, 2n, 3n, 99n], ...times });
  assert.deepEqual(
    events.map(({ kind, leasesLost }) => [kind, leasesLost]),
    [
      ['lost', undefined],
      ['back', 2],
    ],
  );
});

test('a first delivery is handed out at once', async () => {
  const { session, stream, loop } = await opened();
  stream.say('delivery', { messages: [delivery(1n)] });
  assert.equal((await session.take(loop, 1)).length, 1);
  assert.deepEqual(stream.words, ['open']);
});
