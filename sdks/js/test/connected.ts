/** A fake broker and a client of it, which end with the test. */

import type { TestContext } from 'node:test';

import { FilaClient } from '../src/client.js';
import type { ClientOptions } from '../src/options.js';
import { FakeBroker } from './fake-broker.js';
import { ManualClock } from './manual-clock.js';

export async function connected(
  t: TestContext,
  options: ClientOptions = {},
): Promise<{ broker: FakeBroker; client: FilaClient }> {
  const broker = await FakeBroker.start();
  const client = await FilaClient.connect(broker.address, { backoff: { baseMs: 1, capMs: 5 }, ...options });
  t.after(async () => {
    broker.kill();
    const closing = client.close();
    const { clock } = options;
    // Whatever close would wait for, nobody else moves the clock any more.
    const moving = clock instanceof ManualClock ? setInterval(() => clock.advance(1_000), 1) : undefined;
    await closing;
    clearInterval(moving);
  });
  return { broker, client };
}

/** What a promise rejects with. */
export async function rejection(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not reject');
}
