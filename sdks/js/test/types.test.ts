/** What the compiler must know of the answers; that this file compiles is the test. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ConsumerInfo, KeyExplanation, QueueDescription, QueueStats } from '../src/index.js';

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

test('answers have plain types', () => {
  const depth: Same<QueueStats['depth'], number> = true;
  const quantum: Same<QueueStats['quantum'], number> = true;
  const breaker: Same<QueueStats['breakerState'], 'unspecified' | 'closed' | 'open' | 'half_open'> = true;
  const made: Same<QueueDescription['createdAt'], Date | undefined> = true;
  const state: 'throttled' extends KeyExplanation['state'] ? true : false = true;
  const weights: Same<
    NonNullable<QueueDescription['config']>['weights'],
    Readonly<Record<string, number>>
  > = true;
  const since: Same<ConsumerInfo['connectedAt'], Date | undefined> = true;
  const key: Same<QueueStats['perKeyStats'][number]['key'], string> = true;
  assert.deepEqual(
    new Set<boolean>([depth, quantum, breaker, made, state, weights, since, key]),
    new Set([true]),
  );
});
