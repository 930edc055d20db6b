/**
 * Messages that travel to the broker together, and where the answer for each of them goes.
 *
 * Two kinds, of one shape: what single `enqueue` calls gathered, each with a promise of its own, and a slice
 * of one `enqueueMany`, with one list of results for all.
 */

import { FilaError } from './errors.js';
import type { EnqueueMessage, EnqueueStreamRequest } from './gen/fila/v1/service_pb.js';
import type { Enqueued } from './new-message.js';

export type Outcome = Enqueued | FilaError;

/** What the producer knows of messages that travel together. */
export abstract class Frame {
  readonly messages: EnqueueMessage[] = [];
  bytes = 0;
  sentAt = 0;
  /** How often its messages were sent before. */
  tries = 0;

  constructor(
    /** The queue of every message that names none itself. */
    readonly queue: string,
    /** When its first message was given, on the client's clock. */
    readonly firstAt: number,
  ) {}

  get length(): number {
    return this.messages.length;
  }

  queueOf(index: number): string {
    return this.messages[index]?.queue || this.queue;
  }

  request(sequence: number): EnqueueStreamRequest {
    return {
      $typeName: 'fila.v1.EnqueueStreamRequest',
      sequence: BigInt(sequence),
      batch: { $typeName: 'fila.v1.EnqueueBatchRequest', queue: this.queue, messages: this.messages },
    };
  }

  /** Message `index` was stored, or refused, or its answer is lost. */
  abstract resolve(index: number, outcome: Outcome): void;

  /** Returns a frame of only these messages, to send them again. */
  abstract part(indexes: readonly number[]): Frame;

  resolveAll(outcome: Outcome): void {
    for (let index = 0; index < this.length; index++) this.resolve(index, outcome);
  }

  protected copyInto<F extends Frame>(part: F, indexes: readonly number[]): F {
    for (const index of indexes) part.messages.push(this.messages[index] as EnqueueMessage);
    part.tries = this.tries + 1;
    return part;
  }
}

/** The two ends of a promise. */
export interface Caller {
  readonly resolve: (enqueued: Enqueued) => void;
  readonly reject: (error: Error) => void;
}

/** Messages of single calls. */
export class GatheredFrame extends Frame {
  #callers: Caller[] = [];

  add(message: EnqueueMessage, bytes: number, caller: Caller): void {
    this.messages.push(message);
    this.#callers.push(caller);
    this.bytes += bytes;
  }

  /** Takes a message out again; false when its caller has none here. */
  withdraw(caller: Caller, bytes: number): boolean {
    const index = this.#callers.indexOf(caller);
    if (index < 0) return false;
    this.#callers.splice(index, 1);
    this.messages.splice(index, 1);
    this.bytes -= bytes;
    return true;
  }

  resolve(index: number, outcome: Outcome): void {
    const caller = this.#callers[index];
    if (outcome instanceof FilaError) caller?.reject(outcome);
    else caller?.resolve(outcome);
  }

  part(indexes: readonly number[]): GatheredFrame {
    const part = this.copyInto(new GatheredFrame(this.queue, this.firstAt), indexes);
    part.#callers = indexes.map((index) => this.#callers[index] as Caller);
    return part;
  }
}

/** Messages of one `enqueueMany`. Filled first, then given places in the list of results. */
export class SliceFrame extends Frame {
  /** Resolves when every message has its outcome; never rejects. */
  readonly done: Promise<void>;
  #results: (Outcome | undefined)[] = [];
  #places: readonly number[] = [];
  #left: { unresolved: number; readonly finish: () => void };

  constructor(queue: string, firstAt: number, whole?: SliceFrame) {
    super(queue, firstAt);
    let finish = () => {};
    this.done = whole?.done ?? new Promise((resolve) => (finish = resolve));
    this.#left = whole === undefined ? { unresolved: 0, finish } : whole.#left; // the parts share it
    if (whole !== undefined) this.#results = whole.#results;
  }

  add(message: EnqueueMessage, bytes: number): void {
    this.messages.push(message);
    this.bytes += bytes;
  }

  /** Appends a place in `results` for each message. */
  takePlaces(results: (Outcome | undefined)[]): void {
    const from = results.length;
    this.#results = results;
    this.#places = this.messages.map((_, index) => from + index);
    this.#left.unresolved = this.length;
    results.length += this.length; // a place each, without an outcome yet
  }

  resolve(index: number, outcome: Outcome): void {
    this.#results[this.#places[index] as number] = outcome;
    if (--this.#left.unresolved === 0) this.#left.finish();
  }

  part(indexes: readonly number[]): SliceFrame {
    const part = this.copyInto(new SliceFrame(this.queue, this.firstAt, this), indexes);
    part.#places = indexes.map((index) => this.#places[index] as number);
    return part;
  }
}
