/**
 * What a session says on its stream. Without one, and on a broken one, a word is dropped: what is still true
 * is said anew on the next.
 */

import type { ClientDuplexStream } from '@grpc/grpc-js';

import type { ExtendFrame } from './extender.js';
import {
  type ConsumeSessionRequest,
  type ConsumeSessionRequest_Open,
  type ConsumeSessionResponse,
  type Settle,
} from './gen/fila/v1/service_pb.js';
import type { SettleFrame } from './settlement.js';

/** The broker's bound on one frame. */
export const FRAME_LEASES_MAX = 10_000;

/** A stream of ConsumeSession. */
export type Stream = ClientDuplexStream<ConsumeSessionRequest, ConsumeSessionResponse>;

/** The words of a session, on whichever stream is open. */
export class SessionWords {
  #stream: Stream | undefined;
  readonly #unwritten = new Set<(written: boolean) => void>();

  /** From now on the words go here. */
  attach(stream: Stream): void {
    this.#stream = stream;
  }

  /** Whether this is the stream. */
  isOn(stream: Stream): boolean {
    return this.#stream === stream;
  }

  /** The stream is over. */
  detach(): void {
    this.#stream = undefined;
    for (const written of [...this.#unwritten]) written(false);
  }

  open(value: ConsumeSessionRequest_Open): void {
    this.#say({ case: 'open', value });
  }

  /** Resolves when it is written; with false when it is lost with its stream. */
  async begun(leaseIds: readonly bigint[]): Promise<boolean> {
    const parts = inParts(leaseIds).map((part) => {
      const value = { $typeName: 'fila.v1.ConsumeSessionRequest.Begun', leaseIds: part } as const;
      return this.#written({ case: 'begun', value });
    });
    return (await Promise.all(parts)).every(Boolean);
  }

  /** As `begun`. */
  async window(size: number, leaseIds: readonly bigint[]): Promise<boolean> {
    const parts = (leaseIds.length === 0 ? [[]] : inParts(leaseIds)).map((giveBack) => {
      const value = { $typeName: 'fila.v1.ConsumeSessionRequest.Window', size, giveBack } as const;
      return this.#written({ case: 'window', value });
    });
    return (await Promise.all(parts)).every(Boolean);
  }

  alive(sequence: bigint, handlingUs: number): void {
    const handlingTimeUs = BigInt(handlingUs);
    this.#say({
      case: 'alive',
      value: { $typeName: 'fila.v1.ConsumeSessionRequest.Alive', sequence, handlingTimeUs },
    });
  }

  settle({ sequence, leaseIds, verdict }: SettleFrame): void {
    const { kind, error, delayMs, deadLetter, release, feedback } = verdict;
    const value: Settle = {
      $typeName: 'fila.v1.Settle',
      sequence,
      leaseIds,
      error,
      deadLetter,
      release,
      feedback,
      ...(delayMs === undefined ? {} : { delayMs }),
    };
    this.#say({ case: kind, value });
  }

  extend({ extendMs, wishes }: ExtendFrame): void {
    const leaseIds = wishes.map((wish) => wish.leaseId);
    const value = {
      $typeName: 'fila.v1.ConsumeSessionRequest.Extend',
      leaseIds,
      extendMs: BigInt(extendMs),
    } as const;
    this.#say({ case: 'extend', value });
  }

  close(release: boolean): void {
    this.#say({ case: 'close', value: { $typeName: 'fila.v1.ConsumeSessionRequest.Close', release } });
  }

  #say(request: ConsumeSessionRequest['request']): void {
    this.#stream?.write({ $typeName: 'fila.v1.ConsumeSessionRequest', request });
  }

  #written(request: ConsumeSessionRequest['request']): Promise<boolean> {
    const stream = this.#stream;
    if (stream === undefined) return Promise.resolve(false);
    return new Promise((resolve) => {
      const written = (isWritten: boolean) => {
        this.#unwritten.delete(written);
        resolve(isWritten);
      };
      this.#unwritten.add(written);
      stream.write({ $typeName: 'fila.v1.ConsumeSessionRequest', request }, () =>
        written(this.#stream === stream),
      );
    });
  }
}

function inParts(leaseIds: readonly bigint[]): bigint[][] {
  const parts: bigint[][] = [];
  for (let at = 0; at < leaseIds.length; at += FRAME_LEASES_MAX)
    parts.push(leaseIds.slice(at, at + FRAME_LEASES_MAX));
  return parts;
}
