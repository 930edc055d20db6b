/** A clock that a test moves. */

import type { Clock } from '../src/clock.js';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export class ManualClock implements Clock {
  #now = 1_000;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves on at once, as time does while a process stands still, and then calls what is due. */
  stall(ms: number): void {
    this.#now += ms;
    this.advance(0);
  }

  /** Moves on, and calls what is due, in its order. */
  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at);
      const [next] = due;
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = until;
  }
}

/** Lets everything happen that needs no further time and no network. */
export function turns(count = 3): Promise<void> {
  return new Promise((resolve) => {
    const again = (left: number) => (left === 0 ? resolve() : setImmediate(() => again(left - 1)));
    again(count);
  });
}
