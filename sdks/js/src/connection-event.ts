/** What a program may want to know of a consumer's connection. */

import type { FilaError } from './errors.js';

/** Something happened to a consumer's stream. */
export interface ConnectionEvent {
  /**
   * `lost`: the stream broke, and is being reopened. `draining`: the same, because the broker said that it is
   * stopping, or that another node of its group serves. `back`: the stream is open again.
   */
  readonly kind: 'lost' | 'draining' | 'back';
  readonly queue: string;
  readonly channel: string;
  /** Why it was lost. */
  readonly error?: FilaError;
  /** When it is back: for how many milliseconds it was gone. */
  readonly outageMs?: number;
  /** When it is back: how many messages lost their lease, of those in hand and in the buffer. */
  readonly leasesLost?: number;
}

/** Logs what happened, for programs that do not ask to be told. */
export function logged({ kind, queue, error, outageMs, leasesLost }: ConnectionEvent): void {
  const what =
    kind === 'back'
      ? `has its stream back after ${Math.round(outageMs ?? 0)} ms, ${leasesLost ?? 0} leases lost`
      : `lost its stream, reopening it: ${error?.message ?? ''}`;
  console.warn(`fila: consumer of ${queue} ${what}`);
}
