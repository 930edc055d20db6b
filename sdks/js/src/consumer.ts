/**
 * What `client.consume` returns: something to loop over, by one loop or by many.
 *
 * The stream is opened by the first loop and left when the last one ends, be it by `break`, by an error, or
 * by a signal. What was prefetched and not handed out goes back to the queue.
 */

import { requireWhole } from './arguments.js';
import { type Clock, onAbort } from './clock.js';
import { ClientClosed } from './errors.js';
import type { Loop } from './holding.js';
import type { Message } from './message.js';
import { WINDOW_MAX } from './prefetch.js';
import type { Session } from './session.js';

/** Most messages of one step of `batches`, unless asked otherwise. */
const BATCH_MESSAGES_MAX = 1_000;

/** What a consumer needs to know of its client and its caller. */
export interface ConsumerPlan {
  readonly openSession: () => Session;
  readonly clock: Clock;
  readonly stopWhenIdleMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * A consumer of one queue and channel. Each message goes to one of the loops over it:
 *
 * ```ts
 * for await (const message of client.consume('orders')) await message.ack();
 * ```
 */
export class Consumer implements AsyncIterable<Message> {
  readonly #plan: ConsumerPlan;
  #session: Session | undefined;
  #loops = 0;
  #closed = false;

  /** @internal */
  constructor(plan: ConsumerPlan) {
    this.#plan = plan;
  }

  /** Loops over messages, one at a time. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    return new Steps(this.#loop(1), (taken) => taken[0] as Message);
  }

  /** Loops over arrays of what has arrived: at least one message each, at most `max` (default 1,000). */
  batches({ max = BATCH_MESSAGES_MAX }: { max?: number } = {}): AsyncIterableIterator<Message[]> {
    requireWhole('max', max, WINDOW_MAX);
    if (max === 0) throw new RangeError('max must be from 1, got 0');
    return new Steps(this.#loop(max), (taken) => taken);
  }

  /**
   * Leaves for good: the loops over this consumer end. What you still hold can be settled until its lease
   * ends.
   */
  close(): void {
    this.#closed = true;
    this.#leave();
  }

  #loop(size: number): ConsumerLoop {
    return new ConsumerLoop(
      this.#plan,
      size,
      () => this.#join(),
      (session) => this.#part(session),
    );
  }

  #join(): Session {
    if (this.#closed) throw new ClientClosed('this consumer was closed; call consume() for a new one');
    this.#loops++;
    this.#session ??= this.#plan.openSession();
    return this.#session;
  }

  #part(session: Session): void {
    if (this.#session === session && --this.#loops === 0) this.#leave();
  }

  #leave(): void {
    this.#session?.leave();
    this.#session = undefined;
    this.#loops = 0;
  }
}

/** One loop over a consumer: it asks, works on what it gets, and asks again. */
class ConsumerLoop {
  readonly #plan: ConsumerPlan;
  readonly #size: number;
  readonly #join: () => Session;
  readonly #part: (session: Session) => void;
  #joined: { readonly session: Session; readonly loop: Loop } | undefined;
  #isOver = false;
  #stopWaiting: (() => void) | undefined;

  constructor(plan: ConsumerPlan, size: number, join: () => Session, part: (session: Session) => void) {
    this.#plan = plan;
    this.#size = size;
    this.#join = join;
    this.#part = part;
  }

  /** Resolves with at least one message; with undefined when there will be none. */
  async next(): Promise<Message[] | undefined> {
    if (this.#isOver) return undefined;
    try {
      this.#plan.signal?.throwIfAborted();
      const { session, loop } = (this.#joined ??= this.#begin());
      for (;;) {
        if (session.failure !== undefined) throw session.failure;
        if (this.#wasLeft() || session.leaving || session.isOver) break;
        const taken = await session.take(loop, this.#size);
        if (taken.length > 0) return taken;
        if (!(await this.#more(session))) break;
        this.#plan.signal?.throwIfAborted();
      }
    } catch (error) {
      this.end();
      throw error;
    }
    this.end();
    return undefined;
  }

  /** Somebody else may have ended the loop while it waited. */
  #wasLeft(): boolean {
    return this.#isOver;
  }

  #begin(): { session: Session; loop: Loop } {
    const session = this.#join();
    return { session, loop: session.holding.join(this.#size) };
  }

  /**
   * Waits until it is worth looking again; false when nothing arrived for as long as the caller is patient.
   */
  #more(session: Session): Promise<boolean> {
    const { clock, signal, stopWhenIdleMs } = this.#plan;
    if (session.isOver || session.leaving || session.hasWork) return Promise.resolve(true);
    return new Promise((resolve) => {
      const over = (more: boolean) => {
        ignore();
        cancelIdle?.();
        signal?.removeEventListener('abort', look);
        this.#stopWaiting = undefined;
        resolve(more);
      };
      const look = () => over(true);
      const ignore = session.holding.whenArrived(look);
      let cancelIdle: (() => void) | undefined;
      if (stopWhenIdleMs !== undefined) {
        const askedAt = clock.now();
        const stopOnceIdle = () => {
          const leftMs = stopWhenIdleMs - session.quietForMs(askedAt);
          if (leftMs > 0) cancelIdle = clock.after(leftMs, stopOnceIdle);
          else over(false);
        };
        cancelIdle = clock.after(stopWhenIdleMs, stopOnceIdle);
      }
      if (signal !== undefined) onAbort(signal, look);
      this.#stopWaiting = look;
    });
  }

  /** Leaves the loop. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWaiting?.();
    if (this.#joined === undefined) return;
    const { session, loop } = this.#joined;
    session.holding.part(loop);
    if (session.hasWork) session.holding.wake(1); // what this loop may have been woken for is another's now
    this.#part(session);
  }
}

/** A loop as `for await` takes it. */
class Steps<T> implements AsyncIterableIterator<T> {
  readonly #loop: ConsumerLoop;
  readonly #step: (taken: Message[]) => T;

  constructor(loop: ConsumerLoop, step: (taken: Message[]) => T) {
    this.#loop = loop;
    this.#step = step;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    const taken = await this.#loop.next();
    return taken === undefined ? { done: true, value: undefined } : { done: false, value: this.#step(taken) };
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#loop.end();
    return Promise.resolve({ done: true, value: undefined });
  }
}
