/** Time and chance, handed in, so that a test can say what they are. */

import { setMaxListeners } from 'node:events';

/** Monotonic time, and waiting for it to pass. */
export interface Clock {
  /** Milliseconds since some fixed moment; never goes back. */
  now(): number;
  /** Calls `callback` after `ms`; returns what takes that back. */
  after(ms: number, callback: () => void): () => void;
}

/** Longest wait that a timer of Node takes; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The machine's monotonic clock. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(ms, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, ms), TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

/**
 * Calls back when the signal aborts, beside any other listener: one signal may end thousands of calls, which
 * Node would otherwise take for a leak.
 */
export function onAbort(signal: AbortSignal, aborted: (event: Event) => void): void {
  setMaxListeners(0, signal);
  signal.addEventListener('abort', aborted, { once: true });
}

/** How long to wait before attempt after attempt: doubling, capped, half of it left to chance. */
export interface Backoff {
  /** The first wait, at most. Default 50. */
  readonly baseMs?: number;
  /** No wait is longer. Default 5,000. */
  readonly capMs?: number;
  /** A number from 0 to 1, as `Math.random` gives. */
  readonly random?: () => number;
}

/**
 * The wait before retry number `attempt`, the first being 0. Half of it is left to chance: clients
 * that lost the same broker at the same moment must not come back at the same moment.
 */
export function backoffMs({ baseMs, capMs, random }: Required<Backoff>, attempt: number): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt, 32));
  return ceiling * (0.5 + 0.5 * random());
}

/** Resolves after `ms`; rejects with the reason of whichever signal aborts before. */
export function sleep(clock: Clock, ms: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const given = signals.filter((signal) => signal !== undefined);
    for (const signal of given) signal.throwIfAborted();
    const over = (end: () => void) => {
      cancel();
      for (const signal of given) signal.removeEventListener('abort', aborted);
      end();
    };
    const aborted = (event: Event) => over(() => reject((event.target as AbortSignal).reason as Error));
    const cancel = clock.after(ms, () => over(resolve));
    for (const signal of given) onAbort(signal, aborted);
  });
}

/** Settles as `promise` does, or rejects with the signal's reason when that aborts before. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason as Error);
    // First of all, so that a rejection that nobody waits for any more is heard.
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
    if (signal.aborted) aborted();
    else onAbort(signal, aborted);
  });
}
