/** What the requests of operators have in common. */

import type { Timestamp } from '@bufbuild/protobuf/wkt';

import { requireMoment, requireText, requireTextIfGiven, toUint64 } from './arguments.js';
import type { ErrorFacts } from './errors.js';
import { toTimestamp } from './times.js';

export function requireNames(queue: unknown, channel: unknown): void {
  requireText('queue', queue);
  requireTextIfGiven('channel', channel);
}

/** What a call is about, for the error it may end in. */
export function known(queue: string, channel: string | undefined): ErrorFacts {
  return { queue, channel: channel || 'default' };
}

/** Leaves out what was not given: the wire tells "not given" from "empty". */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

type Place = { case: 'offset'; value: bigint } | { case: 'time'; value: Timestamp };

/** An offset or a moment, as the wire tells one from the other. */
export function place(name: string, target: number | Date): Place {
  if (typeof target === 'number') return { case: 'offset', value: toUint64(name, target) };
  requireMoment(name, target);
  return { case: 'time', value: toTimestamp(target) };
}
