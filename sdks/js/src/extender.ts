/**
 * Leases that shall run longer: what one turn of the event loop extends by the same time travels together.
 */

import { unlessAborted } from './clock.js';
import type { Connection } from './connection.js';
import { FilaError, InternalError } from './errors.js';
import { type ConsumeSessionResponse_Extended, FilaService } from './gen/fila/v1/service_pb.js';
import { errorOf } from './status.js';
import { toDate } from './times.js';

interface Wish {
  readonly messageId: string;
  readonly leaseId: bigint;
  readonly resolve: (expiresAt: Date) => void;
  readonly reject: (error: FilaError) => void;
}

/** Leases that are extended together. */
export interface ExtendFrame {
  readonly extendMs: number;
  readonly wishes: Wish[];
}

/** Extends the leases of one consumer, or those pulled from one queue and channel. */
export class Extender {
  readonly #connection: Connection;
  readonly #queue: string;
  readonly #channel: string;
  readonly #open = new Map<number, ExtendFrame>();
  /** Sent over the session; it answers in their order. */
  #inFlight: ExtendFrame[] = [];
  #send: ((frame: ExtendFrame) => void) | undefined;

  constructor(connection: Connection, queue: string, channel: string) {
    this.#connection = connection;
    this.#queue = queue;
    this.#channel = channel;
  }

  /** Holds a message for so long from now. Resolves with when its lease ends then, by the broker's clock. */
  extend(messageId: string, leaseId: bigint, extendMs: number, signal?: AbortSignal): Promise<Date> {
    const extended = new Promise<Date>((resolve, reject) => {
      const wish = { messageId, leaseId, resolve, reject };
      // A lease this client does not know can only be named by its message.
      if (leaseId === 0n) void this.#call(wish, extendMs);
      else this.#gather(wish, extendMs);
    });
    return unlessAborted(extended, signal);
  }

  #gather(wish: Wish, extendMs: number): void {
    const frame = this.#open.get(extendMs);
    if (frame !== undefined) {
      frame.wishes.push(wish);
      return;
    }
    this.#open.set(extendMs, { extendMs, wishes: [wish] });
    setImmediate(() => {
      const gathered = this.#open.get(extendMs) as ExtendFrame;
      this.#open.delete(extendMs);
      this.#put(gathered);
    });
  }

  #put(frame: ExtendFrame): void {
    if (this.#send !== undefined) {
      this.#inFlight.push(frame);
      this.#send(frame);
    } else {
      for (const wish of frame.wishes) void this.#call(wish, frame.extendMs);
    }
  }

  async #call({ messageId, leaseId, resolve, reject }: Wish, extendMs: number): Promise<void> {
    const [queue, channel] = [this.#queue, this.#channel];
    const known = { queue, channel: channel || 'default', messageId, leaseId };
    try {
      const answer = await this.#connection.call(
        FilaService.method.extendLease,
        {
          $typeName: 'fila.v1.ExtendLeaseRequest',
          queue,
          channel,
          messageId,
          leaseId,
          extendMs: BigInt(extendMs),
        },
        known,
      );
      resolve(toDate(answer.leaseExpiresAt));
    } catch (error) {
      reject(
        error instanceof FilaError
          ? error
          : new InternalError('extending met a mistake of the SDK', { cause: error }),
      );
    }
  }

  /** The session answered the frame that was sent first. */
  extended({ leaseExpiresAt, failures }: ConsumeSessionResponse_Extended): void {
    const frame = this.#inFlight.shift();
    if (frame === undefined) return;
    const refused = new Map(failures.map(({ leaseId, status }) => [leaseId, status]));
    for (const { messageId, leaseId, resolve, reject } of frame.wishes) {
      const status = refused.get(leaseId);
      if (status === undefined) resolve(toDate(leaseExpiresAt));
      else
        reject(
          errorOf(status.code, status.message, status.reason, { queue: this.#queue, messageId, leaseId }),
        );
    }
  }

  /** From now on frames go over a session. */
  useStream(send: (frame: ExtendFrame) => void): void {
    this.#send = send;
  }

  /**
   * The session's stream is over: what it left unanswered is asked again, by calls, and so is all that
   * follows.
   */
  useCalls(): void {
    this.#send = undefined;
    const unanswered = this.#inFlight;
    this.#inFlight = [];
    for (const frame of unanswered) this.#put(frame);
  }
}
