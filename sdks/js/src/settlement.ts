/**
 * What `ack`, `nack`, `reject` and `release` say of a delivery, and how a program learns what became of it.
 */

import { requireText, toUint64 } from './arguments.js';
import { unlessAborted } from './clock.js';
import { type FilaError, LeaseLost, MessageNotFound } from './errors.js';
import type { ItemStatus } from './gen/fila/v1/messages_pb.js';
import { type LimitFeedback, LimitFeedback_Kind } from './gen/fila/v1/service_pb.js';
import type { LimitedOptions } from './message.js';
import { errorOf } from './status.js';

/** How a delivery ended. */
export interface Verdict {
  readonly kind: 'ack' | 'nack';
  readonly error: string;
  readonly delayMs: bigint | undefined;
  readonly deadLetter: boolean;
  readonly release: boolean;
  /** What a provider said that refused it. */
  readonly feedback: LimitFeedback[];
  /** Equal for equal verdicts. */
  readonly key: string;
}

const PLAIN = {
  error: '',
  delayMs: undefined,
  deadLetter: false,
  release: false,
  feedback: [] as LimitFeedback[],
} as const;

/** The message is done. */
export const ACK: Verdict = { ...PLAIN, kind: 'ack', key: 'ack' };

/** It did not fail: it goes back to its place, uncounted. */
export const RELEASE: Verdict = { ...PLAIN, kind: 'nack', release: true, key: 'release' };

/** The message failed; the queue's policy decides. Throws what is wrong with the arguments. */
export function nackVerdict(error: string, delayMs: number | undefined): Verdict {
  // Here, where one caller learns of it: later it would stop the frames of all.
  requireText('error', error);
  const delay = delayMs === undefined ? undefined : toUint64('delayMs', delayMs);
  return { ...PLAIN, kind: 'nack', error, delayMs: delay, key: `nack ${delay ?? ''} ${error}` };
}

/** The message is to be a dead letter now. */
export function rejectVerdict(error: string): Verdict {
  requireText('error', error);
  return { ...PLAIN, kind: 'nack', error, deadLetter: true, key: `reject ${error}` };
}

/** A limit closes for so long at most: then the provider is asked again. */
const RETRY_AFTER_MS_MAX = 300_000;

/** The provider behind a limit refused it. */
export function limitedVerdict({ retryAfterMs, limit = '', error = '' }: LimitedOptions): Verdict {
  requireText('error', error);
  requireText('limit', limit);
  if (retryAfterMs !== undefined && !(retryAfterMs >= 0)) {
    throw new RangeError(`retryAfterMs must be 0 or more milliseconds, got ${retryAfterMs}`);
  }
  const capped = Math.ceil(Math.min(retryAfterMs ?? 0, RETRY_AFTER_MS_MAX));
  const told: LimitFeedback = {
    $typeName: 'fila.v1.LimitFeedback',
    limit,
    kind: LimitFeedback_Kind.LIMITED,
    retryAfterMs: BigInt(capped),
    remaining: 0n,
    resetMs: 0n,
  };
  return {
    ...PLAIN,
    kind: 'nack',
    error,
    delayMs: retryAfterMs === undefined ? undefined : BigInt(capped),
    feedback: [told],
    key: `limited ${retryAfterMs === undefined ? '' : capped} ${JSON.stringify(limit)} ${error}`,
  };
}

interface Waiter {
  readonly index: number;
  readonly resolve: () => void;
  readonly reject: (error: FilaError) => void;
}

/** Leases that are settled alike and together. */
export class SettleFrame {
  readonly messageIds: string[] = [];
  readonly leaseIds: bigint[] = [];
  answered = false;
  /** It was sent before and the answer was lost. */
  repeated = false;
  #failure: FilaError | undefined;
  readonly #failures = new Map<number, FilaError>();
  readonly #waiters: Waiter[] = [];

  constructor(
    readonly sequence: bigint,
    readonly verdict: Verdict,
  ) {}

  add(messageId: string, leaseId: bigint): number {
    this.messageIds.push(messageId);
    return this.leaseIds.push(leaseId) - 1;
  }

  /** Notes why one item could not be settled; nothing where the status is no reason to worry. */
  fail(index: number, status: ItemStatus): void {
    const known = { messageId: this.messageIds[index] ?? '', leaseId: this.leaseIds[index] ?? 0n };
    const error = errorOf(status.code, status.message, status.reason, known);
    // The ack whose answer was lost did its work. Or its lease had ended: then the message comes again, as it may
    // at any time. To call it refused would make the program undo work of which nobody else knows.
    const isGone = error instanceof LeaseLost || error instanceof MessageNotFound;
    if (this.repeated && this.verdict.kind === 'ack' && isGone) return;
    this.#failures.set(index, error);
  }

  /** Wakes everybody who awaits this frame. Returns the refusals that nobody awaits. */
  answer(failure?: FilaError): FilaError[] {
    this.answered = true;
    this.#failure = failure;
    const unheard = new Map(
      failure === undefined ? this.#failures : this.leaseIds.map((_, index) => [index, failure]),
    );
    for (const waiter of this.#waiters) {
      this.#tell(waiter);
      unheard.delete(waiter.index);
    }
    return [...new Set(unheard.values())];
  }

  /** Calls back when the outcome of one item is known. */
  wait(waiter: Waiter): void {
    if (this.answered) this.#tell(waiter);
    else this.#waiters.push(waiter);
  }

  #tell({ index, resolve, reject }: Waiter): void {
    const failure = this.#failure ?? this.#failures.get(index);
    if (failure === undefined) resolve();
    else reject(failure);
  }
}

/**
 * What `ack`, `nack`, `reject` and `release` return. They are on their way when they are called; await this
 * to know that they are durable, or to learn that they were refused. One that nobody awaits can't become an
 * unhandled rejection: its refusal goes to the client's `onRefused`.
 */
export class Settlement implements PromiseLike<void> {
  readonly #frame: SettleFrame;
  readonly #index: number;
  readonly #signal: AbortSignal | undefined;

  /** @internal */
  constructor(frame: SettleFrame, index: number, signal?: AbortSignal) {
    this.#frame = frame;
    this.#index = index;
    this.#signal = signal;
  }

  then<Done = void, Refused = never>(
    onDone?: ((value: void) => Done | PromiseLike<Done>) | null,
    onRefused?: ((reason: unknown) => Refused | PromiseLike<Refused>) | null,
  ): Promise<Done | Refused> {
    const outcome = new Promise<void>((resolve, reject) => {
      this.#frame.wait({ index: this.#index, resolve, reject });
    });
    return unlessAborted(outcome, this.#signal).then(onDone, onRefused);
  }

  catch<Refused = never>(
    onRefused?: ((reason: unknown) => Refused | PromiseLike<Refused>) | null,
  ): Promise<void | Refused> {
    return this.then(undefined, onRefused);
  }

  finally(onSettled?: (() => void) | null): Promise<void> {
    return this.then().finally(onSettled);
  }
}
