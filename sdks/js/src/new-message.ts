/** A message on its way in: what a program gives, and what the wire takes. */

import {
  payloadBytes,
  requireHeaders,
  requireMoment,
  requireText,
  toUint64,
  wrongType,
} from './arguments.js';
import {
  type EnqueueMessage,
  type EnqueueOptions,
  EnqueueOptions_OnDuplicate as OnDuplicate,
} from './gen/fila/v1/service_pb.js';
import { toTimestamp } from './times.js';
import { traced } from './tracing.js';

/** What `enqueue` may be told about a message besides its payload. */
export interface MessageOptions {
  /**
   * What travels along; the broker's policies and scripts read it. At most 64, keys and values at most 4 KiB
   * each.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /** Not ready before this many milliseconds from now. Not together with `deliverAt`. */
  readonly delayMs?: number;
  /** Not ready before this moment. */
  readonly deliverAt?: Date;
  /** Dropped when nobody has leased it within this many milliseconds. */
  readonly ttlMs?: number;
  /**
   * A second enqueue with this key within the queue's window answers the first one's id. At most 128 bytes.
   */
  readonly dedupKey?: string;
  /**
   * The latest wins: an earlier message with this `dedupKey` that is not delivered yet gives way to this one. If it
   * is leased, this one waits until that lease ends.
   */
  readonly replace?: boolean;
  /** With `replace`: the delay ends at the latest so many milliseconds after the first of them was accepted. */
  readonly maxWaitMs?: number;
  /** Its fairness key, where the queue has `allowProducerRouting`; else its headers and the queue decide. */
  readonly fairnessKey?: string;
  /** The weight of that key, 1 to 1000, in the same way. */
  readonly weight?: number;
  /** What a delivery costs its key, 0.001 to 1,000,000, in the same way. */
  readonly cost?: number;
  /** 0 to 3 among the messages of its fairness key, where 3 goes first and 1 is usual; else the queue decides. */
  readonly priority?: number;
}

/** A message for `enqueueMany`. */
export interface NewMessage extends MessageOptions {
  /** The content; text is sent as UTF-8. Default: empty. */
  readonly payload?: Uint8Array | string;
}

/** What became of an enqueued message. */
export interface Enqueued {
  /** The message's id: a UUIDv7, kept for as long as the message lives. */
  readonly id: string;
  /** Its position in the queue's log, from 1. */
  readonly offset: number;
}

const NO_HEADERS = Object.freeze({});

/** The message as the wire has it. Throws TypeError or RangeError, naming what is wrong. */
export function encodeMessage(
  payload: Uint8Array | string | undefined,
  given: MessageOptions,
): EnqueueMessage {
  if (given.headers !== undefined) requireHeaders(given.headers);
  const headers = traced(given.headers);
  const options = encodeOptions(given);
  return {
    $typeName: 'fila.v1.EnqueueMessage',
    queue: '',
    // A copy: the caller may change its own before this is sent.
    headers: headers === undefined ? NO_HEADERS : { ...headers },
    payload: payload === undefined ? EMPTY : payloadBytes(payload),
    ...(options === undefined ? {} : { options }),
  };
}

const EMPTY = new Uint8Array();

/** As `encodeMessage`, of what `enqueueMany` takes. */
export function encodeItem(item: NewMessage | Uint8Array | string): EnqueueMessage {
  if (typeof item === 'string' || item instanceof Uint8Array) return encodeMessage(item, {});
  if (!isObject(item)) throw wrongType('a message', 'an object, a Uint8Array or a string', item);
  return encodeMessage(item.payload, item);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function encodeOptions(given: MessageOptions): EnqueueOptions | undefined {
  const {
    delayMs,
    deliverAt,
    ttlMs,
    dedupKey,
    replace = false,
    maxWaitMs,
    fairnessKey,
    weight,
    cost,
    priority,
  } = given;
  const asked = [delayMs, deliverAt, ttlMs, maxWaitMs, dedupKey, fairnessKey, weight, cost, priority];
  if (asked.every((each) => each === undefined) && !replace) return undefined;
  if (deliverAt !== undefined) requireMoment('deliverAt', deliverAt);
  if (dedupKey !== undefined) requireText('dedupKey', dedupKey);
  if (fairnessKey !== undefined) requireText('fairnessKey', fairnessKey);
  return {
    $typeName: 'fila.v1.EnqueueOptions',
    delayMs: delayMs === undefined ? 0n : toUint64('delayMs', delayMs),
    dedupKey: dedupKey ?? '',
    onDuplicate: replace ? OnDuplicate.REPLACE : OnDuplicate.UNSPECIFIED,
    maxWaitMs: maxWaitMs === undefined ? 0n : toUint64('maxWaitMs', maxWaitMs),
    fairnessKey: fairnessKey ?? '',
    weight: weight === undefined ? 0 : Number(toUint64('weight', weight)),
    cost: cost ?? 0,
    ...(deliverAt === undefined ? {} : { deliverAt: toTimestamp(deliverAt) }),
    ...(ttlMs === undefined ? {} : { ttlMs: toUint64('ttlMs', ttlMs) }),
    ...(priority === undefined ? {} : { priority: Number(toUint64('priority', priority)) }),
  };
}

/** Whether sending the message twice stores it once. One that replaces others could replace a newer one. */
export function mayRepeat(options: EnqueueOptions | undefined): boolean {
  return Boolean(options?.dedupKey) && options?.onDuplicate !== OnDuplicate.REPLACE;
}

/** Protobuf's own bytes around a message's fields, and around each header. */
const OVERHEAD_BYTES = 16;

/** About how many bytes the message takes in a frame; never less. */
export function sizeOf(message: EnqueueMessage): number {
  let bytes = OVERHEAD_BYTES + message.payload.length + message.queue.length;
  for (const key in message.headers) {
    bytes += OVERHEAD_BYTES + Buffer.byteLength(key) + Buffer.byteLength(message.headers[key] as string);
  }
  if (message.options !== undefined)
    bytes += 4 * OVERHEAD_BYTES + Buffer.byteLength(message.options.dedupKey + message.options.fairnessKey);
  return bytes;
}
