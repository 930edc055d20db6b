/**
 * What comes out: StoredMessage, and Message, which is leased and waits to be settled.
 *
 * The classes point into the frame that a message came in and read a field when it is asked for. The price:
 * one message kept for long keeps its whole frame (at most 4 MiB) in memory; keep a copy of its payload
 * instead.
 */

import { requireWhole } from './arguments.js';
import { LeaseLost } from './errors.js';
import type {
  Message as WireMessage,
  MessageMetadata,
  MessageTimestamps,
} from './gen/fila/v1/messages_pb.js';
import { ACK, limitedVerdict, nackVerdict, rejectVerdict, RELEASE, type Settlement } from './settlement.js';
import type { Settler } from './settler.js';
import { toDate } from './times.js';

/** Why a message is in a dead-letter queue. */
export interface DeadLetter {
  readonly sourceQueue: string;
  readonly sourceChannel: string;
  /** `max_attempts`, `on_failure`, `ttl`, `rejected` or `skipped`. */
  readonly reason: string;
  readonly lastError: string;
  /** How often a delivery of it was begun and failed. */
  readonly attempts: number;
  readonly at: Date;
}

const decoder = new TextDecoder();

/** A message as it is peeked at or read from the log: nobody's lease, nothing to settle. */
export class StoredMessage {
  readonly #wire: WireMessage;
  /** A UUIDv7 made at enqueue; retry, dead-letter and redrive keep it. */
  readonly id: string;

  /** @internal */
  constructor(wire: WireMessage) {
    this.#wire = wire;
    this.id = wire.id;
  }

  get #metadata(): MessageMetadata {
    return this.#wire.metadata as MessageMetadata;
  }

  /** @internal */
  protected get timestamps(): MessageTimestamps {
    return this.#wire.timestamps as MessageTimestamps;
  }

  /** The producer's bytes. */
  get payload(): Uint8Array {
    return this.#wire.payload;
  }

  /** The payload, read as UTF-8. */
  text(): string {
    return decoder.decode(this.#wire.payload);
  }

  /** The payload, read as JSON. Throws SyntaxError when it is none. */
  json(): unknown {
    return JSON.parse(this.text());
  }

  /** What the producer sent along. */
  get headers(): Readonly<Record<string, string>> {
    return this.#wire.headers;
  }

  /** The queue it is in. */
  get queue(): string {
    return this.#metadata.queueId;
  }

  /** The channel it was delivered in. */
  get channel(): string {
    return this.#metadata.channel;
  }

  /** Position in the queue's log, from 1. */
  get offset(): number {
    return Number(this.#metadata.offset);
  }

  /** The key it is scheduled under. */
  get fairnessKey(): string {
    return this.#metadata.fairnessKey;
  }

  /** The fairness key's relative share. */
  get weight(): number {
    return this.#metadata.weight;
  }

  /** What a delivery costs its fairness key. */
  get cost(): number {
    return this.#metadata.cost;
  }

  /** Its priority among the messages of its fairness key, 0 to 3, where 3 goes first and 1 is usual. */
  get priority(): number {
    return this.#metadata.priority ?? 1;
  }

  /** Token buckets it needs a token from. */
  get throttleKeys(): readonly string[] {
    return this.#metadata.throttleKeys;
  }

  /** Earlier deliveries in this channel that were begun and failed; 0 at the first. */
  get attemptCount(): number {
    return this.#metadata.attemptCount;
  }

  /** Somebody had begun it in this channel before, and it failed or came back. */
  get redelivered(): boolean {
    return this.#metadata.redelivered;
  }

  /** It was sent to a consumer of this channel before, and came back before anybody had begun it. */
  get cameBack(): boolean {
    return this.#metadata.cameBack;
  }

  /** When the producer's call was accepted. */
  get enqueuedAt(): Date {
    return toDate(this.timestamps.enqueuedAt);
  }

  /** When this log entry was appended. */
  get appendedAt(): Date {
    return toDate(this.timestamps.appendedAt);
  }

  /** When a delayed message becomes ready, as `peek` shows it; undefined where it is not delayed. */
  get dueAt(): Date | undefined {
    return this.timestamps.dueAt === undefined ? undefined : toDate(this.timestamps.dueAt);
  }

  /** Why it was given up; undefined outside dead-letter queues. */
  get deadLetter(): DeadLetter | undefined {
    const letter = this.#metadata.deadLetter;
    if (letter === undefined) return undefined;
    const { sourceQueue, sourceChannel, reason, lastError, attempts, at } = letter;
    return { sourceQueue, sourceChannel, reason, lastError, attempts, at: toDate(at) };
  }
}

/** What waiting for a settlement takes. */
export interface WaitOptions {
  /** Ends the waiting; what was said of the message is under way all the same. */
  readonly signal?: AbortSignal;
}

/** What a provider said that refused a call. */
export interface LimitedOptions extends WaitOptions {
  /** How long it asked to wait; at most 300,000 (5 min) count. Left out where it did not say. */
  readonly retryAfterMs?: number | undefined;
  /** One of the message's `throttleKeys`; left out it is each of them whose limit learns. */
  readonly limit?: string | undefined;
  /** What went wrong, for people. */
  readonly error?: string | undefined;
}

/** What a nack may ask for. */
export interface NackOptions extends WaitOptions {
  /** Retry after exactly so many milliseconds, instead of what the queue's policy says. */
  readonly delayMs?: number;
}

/**
 * A delivery to work on and then settle, by `ack`, `nack`, `reject` or `release`, before its lease ends.
 *
 * These are on their way when they are called; await them to know that they are durable, or to learn that
 * they were refused, with LeaseLost when the lease had ended, MessageNotFound when the message is gone,
 * Unavailable when the broker is.
 */
export class Message extends StoredMessage {
  /** This delivery's lease: a new number each time, only good for being compared and given back. */
  readonly leaseId: bigint;
  /** @internal On the client's clock. */
  heldUntil: number;
  readonly #settler: Settler;
  #loss: LeaseLost | undefined;
  #notice: AbortController | undefined;

  /** @internal */
  constructor(wire: WireMessage, settler: Settler, heldUntil: number) {
    super(wire);
    this.leaseId = wire.metadata?.leaseId ?? 0n;
    this.heldUntil = heldUntil;
    this.#settler = settler;
  }

  /** When it was delivered, by the broker's clock. */
  get leasedAt(): Date {
    return toDate(this.timestamps.leasedAt);
  }

  /** When the lease ends as it was delivered, by the broker's clock; `extend` answers the new end. */
  get leaseExpiresAt(): Date {
    return toDate(this.timestamps.leaseExpiresAt);
  }

  /**
   * Aborts, with a LeaseLost as its reason, when the broker tells that it has ended this delivery's lease: by
   * a seek or a deletion, or because it expired. A purge leaves it alone. Hand it to whatever does the work.
   */
  get signal(): AbortSignal {
    if (this.#notice === undefined) {
      this.#notice = new AbortController();
      if (this.#loss !== undefined) this.#notice.abort(this.#loss);
    }
    return this.#notice.signal;
  }

  /** @internal The broker has ended the lease. */
  lose(reason: string): void {
    const text = `the broker ended the lease of message ${this.id} (${reason}); stop working on it`;
    this.#loss = new LeaseLost(text, { reason, messageId: this.id, leaseId: this.leaseId });
    this.#notice?.abort(this.#loss);
  }

  /** The message is done. */
  ack(options: WaitOptions = {}): Settlement {
    return this.#settler.settle(this.id, this.leaseId, ACK, options.signal);
  }

  /**
   * The message failed. `error` says why, and is kept with a dead letter; the queue's policy decides what
   * follows.
   */
  nack(error = '', options: NackOptions = {}): Settlement {
    return this.#settler.settle(this.id, this.leaseId, nackVerdict(error, options.delayMs), options.signal);
  }

  /** The message can't be worked on, ever: it becomes a dead letter now, with the reason `rejected`. */
  reject(error = '', options: WaitOptions = {}): Settlement {
    return this.#settler.settle(this.id, this.leaseId, rejectVerdict(error), options.signal);
  }

  /**
   * The message did not fail, and somebody else may have it: it goes back to its place, with the attempts it
   * had.
   */
  release(options: WaitOptions = {}): Settlement {
    return this.#settler.settle(this.id, this.leaseId, RELEASE, options.signal);
  }

  /**
   * The provider behind a limit refused the call (HTTP's 429): for all workers, the limit closes for
   * `retryAfterMs` and slows down. The message did not fail: it goes back to its place, and comes when the limit
   * lets it. Where none of its limits learns, this is a nack with that delay.
   */
  limited(options: LimitedOptions = {}): Settlement {
    return this.#settler.settle(this.id, this.leaseId, limitedVerdict(options), options.signal);
  }

  /**
   * Holds the message for so many milliseconds from now, 1,000 to 43,200,000 (12 h). Resolves with when the
   * lease now ends, by the broker's clock; rejects with LeaseLost when it had ended.
   */
  extend(extendMs: number, options: WaitOptions = {}): Promise<Date> {
    requireWhole('extendMs', extendMs);
    return this.#settler.extender.extend(this.id, this.leaseId, extendMs, options.signal);
  }
}
