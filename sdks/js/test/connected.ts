/** A fake broker and a client of it, which end with the test. */

import type { TestContext } from 'node:test';

import { FilaClient } from '../src/client.js';
import type { ClientOptions } from '../src/options.js';
import { FakeBroker } from './fake-broker.js';
import { ManualClock, turns } from './manual-clock.js';

export async function connected(
  t: TestContext,
  options: ClientOptions = {},
): Promise<{ broker: FakeBroker; client: FilaClient }> {
  const broker = await FakeBroker.start();
  const client = await FilaClient.connect(broker.address, { backoff: { baseMs: 1, capMs: 5 }, ...options });
  t.after(async () => {
    broker.kill();
    let isClosed = false;
    const closed = client.close().finally(() => (isClosed = true));
    const { clock } = options;
    // Whatever close would wait for, nobody else moves the clock any more.
    while (clock instanceof ManualClock && !isClosed) {
      clock.advance(1_000);
      await turns();
    }
    await closed;
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
