/**
 * Acks and nacks on their way to the broker: what is called in one turn of the event loop leaves as one
 * frame.
 *
 * ```text
 * ack, nack --> open frames ------> pump ------> transport --> answer --> the awaiting callers
 *               one a verdict   at most FRAMES_IN_FLIGHT_MAX unanswered; the rest gather
 * ```
 *
 * The transport is the consumer's own session while that stands, and AckBatch/NackBatch otherwise: so a
 * message can be settled whatever became of the stream it came by. A frame whose answer was lost is sent
 * again, which is safe: it names leases, and a lease is settled once.
 */

import type { Connection } from './connection.js';
import { ClientClosed, FilaError, InternalError } from './errors.js';
import { Extender } from './extender.js';
import { Fifo } from './fifo.js';
import type { ItemStatus } from './gen/fila/v1/messages_pb.js';
import {
  type ConsumeSessionResponse_Settled,
  FilaService,
  type SettleItem,
} from './gen/fila/v1/service_pb.js';
import { SettleFrame, Settlement, type Verdict } from './settlement.js';

/** The broker's bound on one frame. */
const FRAME_LEASES_MAX = 10_000;

/** Unanswered frames; what is settled meanwhile gathers in the next ones. */
const FRAMES_IN_FLIGHT_MAX = 4;

/**
 * As many, once FEW_LEASES or more are unanswered. The broker fills the room that a frame makes with one
 * delivery, and that is settled by one frame again: so the pieces of a window that circulate never grow by
 * themselves. With more frames in flight they are as many more and smaller, and each costs both sides a frame.
 */
const LARGE_FRAMES_IN_FLIGHT_MAX = 2;

const FEW_LEASES = 64;

/** How long closing waits for settlements that are still unanswered. */
const FLUSH_TIMEOUT_MS = 5_000;

/** Leases by message: a LeaseMemory, or what a consumer has in hand. */
export interface HeldLeases {
  readonly size: number;
  /** The lease under which the message was last delivered here, if it is still known. */
  get(messageId: string): bigint | undefined;
  /** Drops a lease that is being settled. A newer delivery of the same message stays. */
  forget(messageId: string, leaseId: bigint, settledBy: SettleFrame): void;
  /** What settles leases that were forgotten is answered. */
  answered?(frame: SettleFrame): void;
}

/** Sends a frame over a session; its answer comes by `Settler.settled`, or the stream ends. */
export type SendSettle = (frame: SettleFrame) => void;

/** Settles the deliveries of one consumer, or those pulled from one queue and channel. */
export class Settler {
  readonly extender: Extender;
  readonly #connection: Connection;
  readonly #refused: (error: FilaError) => void;
  readonly #open = new Map<string, SettleFrame>();
  readonly #ready = new Fifo<SettleFrame>();
  readonly #inFlight = new Map<bigint, SettleFrame>();
  #send: SendSettle | undefined;
  #sequence = 0n;
  #pumping: NodeJS.Immediate | undefined;
  #closed: ClientClosed | undefined;
  #whenAnswered: (() => void) | undefined;

  constructor(
    connection: Connection,
    readonly queue: string,
    readonly channel: string,
    readonly leases: HeldLeases,
    refused: (error: FilaError) => void,
  ) {
    this.#connection = connection;
    this.#refused = refused;
    this.extender = new Extender(connection, queue, channel);
  }

  /** Ends a delivery. What one turn of the event loop settles alike leaves together. */
  settle(messageId: string, leaseId: bigint, verdict: Verdict, signal?: AbortSignal): Settlement {
    const frame = this.#openFrame(verdict);
    this.leases.forget(messageId, leaseId, frame);
    return new Settlement(frame, frame.add(messageId, leaseId), signal);
  }

  #openFrame(verdict: Verdict): SettleFrame {
    let frame = this.#open.get(verdict.key);
    if (frame !== undefined && frame.leaseIds.length < FRAME_LEASES_MAX) return frame;
    if (frame !== undefined) this.#ready.push(frame);
    frame = new SettleFrame(++this.#sequence, verdict);
    if (this.#closed !== undefined) {
      frame.answer(this.#closed);
      return frame;
    }
    this.#open.delete(verdict.key); // so that the newest frame is the last to leave
    this.#open.set(verdict.key, frame);
    this.#pumpSoon();
    return frame;
  }

  // On the way out.

  #pumpSoon(): void {
    this.#pumping ??= setImmediate(() => {
      this.#pumping = undefined;
      this.#pump();
    });
  }

  #pump(): void {
    while (!this.#isFull()) {
      const frame = this.#ready.shift() ?? this.#takeOpen();
      if (frame === undefined) return;
      this.#inFlight.set(frame.sequence, frame);
      if (this.#send !== undefined) this.#send(frame);
      else void this.#settleByCall(frame);
    }
  }

  /** Whether what is settled now has to gather. */
  #isFull(): boolean {
    if (this.#inFlight.size < LARGE_FRAMES_IN_FLIGHT_MAX) return false;
    let leases = 0;
    for (const frame of this.#inFlight.values()) leases += frame.leaseIds.length;
    return leases >= FEW_LEASES || this.#inFlight.size >= FRAMES_IN_FLIGHT_MAX;
  }

  #takeOpen(): SettleFrame | undefined {
    for (const [key, frame] of this.#open) {
      this.#open.delete(key);
      return frame;
    }
    return undefined;
  }

  /** For leases whose session is gone or never was. */
  async #settleByCall(frame: SettleFrame): Promise<void> {
    try {
      this.#answered(frame, await this.#callBatch(frame));
    } catch (error) {
      const failure =
        error instanceof FilaError
          ? error
          : new InternalError('settling met a mistake of the SDK', { cause: error });
      this.#over(frame, failure);
    }
  }

  async #callBatch(frame: SettleFrame): Promise<[index: number, status: ItemStatus][]> {
    const { queue, channel } = this;
    const { kind, error, delayMs, deadLetter, release, feedback } = frame.verdict;
    const items = frame.leaseIds.map((leaseId, index): SettleItem => ({
      $typeName: 'fila.v1.SettleItem',
      messageId: frame.messageIds[index] as string,
      leaseId,
      error,
      deadLetter,
      release,
      feedback,
      ...(delayMs === undefined ? {} : { delayMs }),
    }));
    const known = { queue, channel: channel || 'default' };
    // Lease 0 settles whatever delivery is current: a second time it may be somebody else's.
    const options = { repeatable: !frame.leaseIds.includes(0n) };
    const { ackBatch, nackBatch } = FilaService.method;
    const { results } =
      kind === 'ack'
        ? await this.#connection.call(
            ackBatch,
            { $typeName: 'fila.v1.AckBatchRequest', queue, channel, items },
            known,
            options,
          )
        : await this.#connection.call(
            nackBatch,
            { $typeName: 'fila.v1.NackBatchRequest', queue, channel, items },
            known,
            options,
          );
    if (results.length !== items.length) {
      throw new InternalError(
        `${items.length} messages were settled, but ${results.length} results came back`,
      );
    }
    return [...results.entries()].filter(([, status]) => status.code !== 0);
  }

  // On the way back.

  /** A session's answer: it names leases, not positions. */
  settled({ sequence, failures }: ConsumeSessionResponse_Settled): void {
    const frame = this.#inFlight.get(sequence);
    if (frame === undefined) return;
    const refused: [number, ItemStatus][] = [];
    for (const { leaseId, status } of failures) {
      const index = frame.leaseIds.indexOf(leaseId);
      if (index >= 0 && status !== undefined) refused.push([index, status]);
    }
    this.#answered(frame, refused);
  }

  /** The frame is durable, but for what was refused. */
  #answered(frame: SettleFrame, refused: [index: number, status: ItemStatus][]): void {
    for (const [index, status] of refused) frame.fail(index, status);
    this.#over(frame);
  }

  #over(frame: SettleFrame, failure?: FilaError): void {
    if (frame.answered) return;
    this.#inFlight.delete(frame.sequence);
    this.leases.answered?.(frame);
    for (const error of frame.answer(failure)) this.#refused(error);
    if (this.#whenAnswered !== undefined && !this.hasUnanswered) this.#whenAnswered();
    this.#pumpSoon();
  }

  /** Whether anything was settled that the broker has not answered. */
  get hasUnanswered(): boolean {
    return this.#open.size > 0 || this.#ready.length > 0 || this.#inFlight.size > 0;
  }

  /** The leases that are being settled: the broker may hold them still. */
  unansweredLeases(): bigint[] {
    return [...this.#open.values(), ...this.#ready, ...this.#inFlight.values()].flatMap(
      (frame) => frame.leaseIds,
    );
  }

  // Which way.

  /** From now on frames go over a session. */
  useStream(send: SendSettle): void {
    this.#send = send;
  }

  /** The stream is over: what it left unanswered is sent again, by calls, and so is all that follows. */
  useCalls(): void {
    if (this.#send === undefined) return;
    this.#send = undefined;
    for (const frame of this.#inFlight.values()) {
      frame.repeated = true;
      this.#ready.push(frame);
    }
    this.#inFlight.clear();
    if (this.#ready.length > 0) this.#pumpSoon();
  }

  /** Waits a while for what is unanswered, then fails the rest and refuses what comes. */
  async close(): Promise<void> {
    if (this.hasUnanswered) {
      await new Promise<void>((resolve) => {
        const cancel = this.#connection.settings.clock.after(FLUSH_TIMEOUT_MS, resolve);
        this.#whenAnswered = () => {
          cancel();
          resolve();
        };
      });
    }
    this.#closed = new ClientClosed('the client was closed; the message comes back when its lease ends');
    for (const frame of [...this.#open.values(), ...this.#ready.takeAll(), ...this.#inFlight.values()]) {
      this.#over(frame, this.#closed);
    }
    this.#open.clear();
  }
}
