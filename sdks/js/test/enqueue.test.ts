import assert from 'node:assert/strict';
import { test } from 'node:test';
import { status } from '@grpc/grpc-js';

import {
  AnswerLost,
  ClientClosed,
  InternalError,
  LimitExceeded,
  Overloaded,
  QueueFull,
  QueueNotFound,
  SomeFailed,
} from '../src/errors.js';
import { FilaService } from '../src/gen/fila/v1/service_pb.js';
import { connected, rejection } from './connected.js';
import { failure, refused } from './fake-broker.js';
import { ManualClock, turns } from './manual-clock.js';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

test('an enqueue alone is sent at once, and answers with its id and offset', async (t) => {
  const { broker, client } = await connected(t);
  const stored = await client.enqueue('q', 'one', { headers: { tenant: 'acme' } });
  assert.deepEqual(stored, { id: 'id-1', offset: 1 });
  const [frame] = broker.frames;
  assert.equal(frame?.batch?.queue, 'q');
  assert.equal(text(frame.batch.messages[0]?.payload ?? new Uint8Array()), 'one');
  assert.deepEqual(frame.batch.messages[0]?.headers, { tenant: 'acme' });
});

test('what one turn enqueues travels in one frame, in its order', async (t) => {
  const { broker, client } = await connected(t);
  await Promise.all([client.enqueue('q', 'a'), client.enqueue('q', 'b'), client.enqueue('other', 'c')]);
  assert.equal(broker.frames.length, 1);
  const messages = broker.frames[0]?.batch?.messages ?? [];
  assert.deepEqual(
    messages.map((message) => [message.queue, text(message.payload)]),
    [
      ['', 'a'],
      ['', 'b'],
      ['other', 'c'],
    ],
  );
});

test('while a frame is unanswered the next ones gather, for at most lingerMs', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock, lingerMs: 5 });
  const answers: (() => void)[] = [];
  broker.onFrame = (_, answer) => answers.push(answer);
  const first = client.enqueue('q', 'first');
  await broker.frame(0);
  const second = client.enqueue('q', 'second');
  await turns();
  const third = client.enqueue('q', 'third');
  await turns();
  assert.equal(broker.frames.length, 1);
  clock.advance(5);
  assert.equal((await broker.frame(1)).batch?.messages.length, 2);
  for (const answer of answers) answer();
  await Promise.all([first, second, third]);
});

test('a second frame leaves once it holds as much as the first, 32 at least; a third waits', async (t) => {
  const { broker, client } = await connected(t, { clock: new ManualClock() });
  const answers: (() => void)[] = [];
  broker.onFrame = (_, answer) => answers.push(answer);
  const enqueued = [client.enqueue('q', 'first')];
  const more = (count: number) => {
    for (let i = 0; i < count; i++) enqueued.push(client.enqueue('q', `${i}`));
    return turns();
  };
  await broker.frame(0);
  await more(31);
  assert.equal(broker.frames.length, 1);
  await more(1);
  assert.equal((await broker.frame(1)).batch?.messages.length, 32);
  await more(64);
  assert.equal(broker.frames.length, 2);
  broker.onFrame = (_, answer) => answer();
  for (const answer of answers) answer();
  await Promise.all(enqueued);
  assert.equal(broker.frames[2]?.batch?.messages.length, 64);
});

test('one signal may end any number of calls, of which nobody is warned', async (t) => {
  const warned: string[] = [];
  const note = ({ message }: Error) => warned.push(message);
  process.on('warning', note);
  const { client } = await connected(t);
  const stop = new AbortController();
  await Promise.all(
    Array.from({ length: 50 }, (_, i) => client.enqueue('q', `${i}`, { signal: stop.signal })),
  );
  await turns();
  process.off('warning', note);
  assert.deepEqual(warned, []);
});

test('a full frame leaves at once', async (t) => {
  const { broker, client } = await connected(t, { frameMessagesMax: 2 });
  await Promise.all(Array.from({ length: 5 }, (_, i) => client.enqueue('q', `${i}`)));
  assert.deepEqual(
    broker.frames.map((frame) => frame.batch?.messages.length),
    [2, 2, 1],
  );
});

test('without batching each enqueue is a call of its own', async (t) => {
  const { broker, client } = await connected(t, { batching: false });
  broker.on(FilaService.method.enqueue, () => ({ messageId: 'x', offset: 4n }));
  assert.deepEqual(await client.enqueue('q', 'one', { delayMs: 5 }), { id: 'x', offset: 4 });
  assert.equal(broker.frames.length, 0);
});

test('ten thousand concurrent enqueues hold at most the frames in flight beyond what may wait', async (t) => {
  const { broker, client } = await connected(t, { waitingBytesMax: 64 << 10, framesInFlightMax: 4 });
  const answers: (() => void)[] = [];
  broker.onFrame = (_, answer) => answers.push(answer);
  const payload = Buffer.alloc(1000);
  const calls = Promise.all(Array.from({ length: 10_000 }, () => client.enqueue('q', payload)));
  await broker.frame(3);
  await turns(20);
  assert.equal(broker.frames.length, 4);
  assert.ok(broker.frames.every((frame) => (frame.batch?.messages.length ?? 0) <= 200));
  broker.onFrame = (_, answer) => answer();
  for (const answer of answers) answer();
  const stored = await calls;
  assert.equal(new Set(stored.map(({ id }) => id)).size, 10_000);
});

test('a queue that is not there is named, and its neighbours are stored', async (t) => {
  const { broker, client } = await connected(t);
  broker.onFrame = (frame, answer) => {
    const messages = frame.batch?.messages ?? [];
    answer(
      messages.map((m) =>
        m.queue === 'nope' ? refused(status.NOT_FOUND, 'QUEUE_NOT_FOUND') : broker.stored(),
      ),
    );
  };
  const good = client.enqueue('q', 'good');
  const error = await rejection(client.enqueue('nope', 'bad'));
  assert.ok(error instanceof QueueNotFound);
  assert.deepEqual([error.queue, error.code, error.reason], ['nope', 'NOT_FOUND', 'QUEUE_NOT_FOUND']);
  assert.equal((await good).id, 'id-1');
});

test('an oversized payload is refused with the bound', async (t) => {
  const { broker, client } = await connected(t);
  broker.onFrame = (_, answer) => answer([refused(status.INVALID_ARGUMENT, 'LIMIT_EXCEEDED')]);
  const error = await rejection(client.enqueue('q', Buffer.alloc(2 << 20)));
  assert.ok(error instanceof LimitExceeded);
});

test('an answer that is lost is not asked for again, and says so', async (t) => {
  const { broker, client } = await connected(t);
  broker.onFrame = () => broker.kill();
  const error = await rejection(client.enqueue('q', 'once'));
  assert.ok(error instanceof AnswerLost);
  await broker.restart();
  broker.onFrame = (_, answer) => answer();
  await client.enqueue('q', 'again');
  assert.deepEqual(
    broker.enqueued.map((message) => text(message.payload)),
    ['again'],
  );
});

test('with a dedup key it is sent again, with the same key', async (t) => {
  const { broker, client } = await connected(t);
  broker.onFrame = () => broker.kill();
  const stored = client.enqueue('q', 'once', { dedupKey: 'k' });
  await broker.frame(0);
  broker.onFrame = (_, answer) => answer();
  await broker.restart();
  assert.equal((await stored).id, 'id-1');
  assert.deepEqual(
    broker.frames.map((frame) => frame.batch?.messages[0]?.options?.dedupKey),
    ['k', 'k'],
  );
});

test('what was not sent when the stream broke goes over the next one, and nothing answered is lost', async (t) => {
  const { broker, client } = await connected(t, { framesInFlightMax: 1, frameMessagesMax: 1 });
  const answers: (() => void)[] = [];
  broker.onFrame = (_, answer) => answers.push(answer);
  const first = rejection(client.enqueue('q', 'in flight'));
  const second = client.enqueue('q', 'unsent');
  await broker.frame(0);
  broker.kill();
  assert.ok((await first) instanceof AnswerLost);
  broker.onFrame = (_, answer) => answer();
  await broker.restart();
  await second;
  assert.deepEqual(
    broker.enqueued.map((message) => text(message.payload)),
    ['unsent'],
  );
});

test('a frame that stays unanswered for callTimeoutMs counts as lost', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock, callTimeoutMs: 500 });
  broker.onFrame = () => {};
  const lost = rejection(client.enqueue('q', 'x'));
  await broker.frame(0);
  clock.advance(500);
  assert.ok((await lost) instanceof AnswerLost);
});

test('an overloaded broker is felt at once, or waited out', async (t) => {
  const clock = new ManualClock();
  const { broker, client } = await connected(t, { clock, waitWhenOverloadedMs: 1_000 });
  broker.onFrame = (_, answer) => answer([refused(status.RESOURCE_EXHAUSTED, 'QUEUE_FULL')]);
  const stored = client.enqueue('q', 'patient');
  await broker.frame(0);
  broker.onFrame = (_, answer) => answer();
  await turns();
  const again = broker.frame(1);
  const moving = setInterval(() => clock.advance(10), 1);
  await again;
  clearInterval(moving);
  assert.equal((await stored).id, 'id-1');

  const { broker: other, client: impatient } = await connected(t);
  other.onFrame = (_, answer) => answer([refused(status.RESOURCE_EXHAUSTED, 'QUEUE_FULL')]);
  const error = await rejection(impatient.enqueue('q', 'x'));
  assert.ok(error instanceof QueueFull && error instanceof Overloaded);
});

test('a call tells after how long to try again', async (t) => {
  const { broker, client } = await connected(t, { batching: false });
  broker.on(FilaService.method.enqueue, () => {
    throw failure(status.RESOURCE_EXHAUSTED, 'OVERLOADED', 250) as Error;
  });
  const error = await rejection(client.enqueue('q', 'x'));
  assert.ok(error instanceof Overloaded);
  assert.equal(error.retryAfterMs, 250);
});

test('a broker that answers too few results is not believed', async (t) => {
  const { broker, client } = await connected(t);
  broker.onFrame = (_, answer) => answer([]);
  assert.ok((await rejection(client.enqueue('q', 'x'))) instanceof InternalError);
});

test('enqueueMany reads a generator as fast as it is answered, and keeps the order', async (t) => {
  const { broker, client } = await connected(t, { frameMessagesMax: 10, framesInFlightMax: 2 });
  const answers: (() => void)[] = [];
  broker.onFrame = (_, answer) => answers.push(answer);
  let read = 0;
  function* many() {
    for (; read < 100; read++) yield `${read}`;
  }
  const stored = client.enqueueMany('q', many());
  await broker.frame(1);
  await turns(20);
  assert.ok(read <= 40, `${read} were read while two frames were unanswered`);
  broker.onFrame = (_, answer) => answer();
  for (const answer of answers) answer();
  assert.equal((await stored).length, 100);
  assert.deepEqual(
    broker.enqueued.map((message) => text(message.payload)),
    Array.from({ length: 100 }, (_, i) => `${i}`),
  );
});

test('enqueueMany does not let what comes slowly wait for a full frame', async (t) => {
  const { broker, client } = await connected(t);
  let proceed = () => {};
  async function* slow() {
    yield 'first';
    await new Promise<void>((resolve) => (proceed = resolve));
    yield 'second';
  }
  const stored = client.enqueueMany('q', slow());
  await broker.frame(0);
  proceed();
  assert.equal((await stored).length, 2);
});

test('enqueueMany tells what became of each message', async (t) => {
  const { broker, client } = await connected(t);
  broker.onFrame = (_, answer) =>
    answer([broker.stored(), refused(status.INVALID_ARGUMENT, 'INVALID_FIELD'), broker.stored()]);
  const error = await rejection(client.enqueueMany('q', ['a', { payload: 'b' }, Buffer.from('c')]));
  assert.ok(error instanceof SomeFailed);
  assert.equal(error.results.length, 3);
  assert.deepEqual([...error.failures.keys()], [1]);
});

test('what a generator throws reaches the caller, and a wrong message is named by its place', async (t) => {
  const { client } = await connected(t);
  const mine = new Error('mine');
  function* broken() {
    yield 'fine';
    throw mine;
  }
  assert.equal(await rejection(client.enqueueMany('q', broken())), mine);
  const wrong = await rejection(client.enqueueMany('q', ['fine', 5 as never]));
  assert.ok(wrong instanceof TypeError);
  assert.match(wrong.message, /^messages\[1\]: a message must be/);
});

test('an aborted enqueue that waits is taken back; one that was sent is let go', async (t) => {
  const { broker, client } = await connected(t, { framesInFlightMax: 1 });
  const answers: (() => void)[] = [];
  broker.onFrame = (_, answer) => answers.push(answer);
  const sent = new AbortController();
  const waiting = new AbortController();
  const first = rejection(client.enqueue('q', 'sent', { signal: sent.signal }));
  await broker.frame(0);
  const second = rejection(client.enqueue('q', 'waiting', { signal: waiting.signal }));
  await turns();
  sent.abort();
  waiting.abort(new Error('changed my mind'));
  assert.equal(((await first) as Error).name, 'AbortError');
  assert.equal(((await second) as Error).message, 'changed my mind');
  broker.onFrame = (_, answer) => answer();
  for (const answer of answers) answer();
  await client.enqueue('q', 'last');
  assert.deepEqual(
    broker.enqueued.map((message) => text(message.payload)),
    ['sent', 'last'],
  );
});

test('close waits for what is under way, and a closed client says so', async (t) => {
  const { broker, client } = await connected(t);
  const answers: (() => void)[] = [];
  broker.onFrame = (_, answer) => answers.push(answer);
  const stored = client.enqueue('q', 'x');
  await broker.frame(0);
  const closing = client.close();
  await turns();
  answers[0]?.();
  await closing;
  assert.equal((await stored).id, 'id-1');
  const loop = client.consume('q')[Symbol.asyncIterator]();
  for (const late of [
    client.enqueue('q', 'x'),
    client.enqueueMany('q', ['x']),
    client.listQueues(),
    client.lease('q'),
    loop.next(),
  ]) {
    const error = await rejection(late);
    assert.ok(error instanceof ClientClosed || error instanceof SomeFailed, String(error));
  }
  await client.close();
});
