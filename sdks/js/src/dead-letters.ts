/** Dead letters by the handful and by the thousand: dropped, edited, moved back by the broker itself. */

import { create } from '@bufbuild/protobuf';

import type { DeadLetterFilter, OperationOptions, SignalOption } from './admin-options.js';
import {
  payloadBytes,
  requireHeaders,
  requireMoment,
  requireRange,
  requireText,
  requireTextIfGiven,
  toUint64,
  toUint64s,
} from './arguments.js';
import type { Connection } from './connection.js';
import { FilaAdmin } from './gen/fila/v1/admin_pb.js';
import {
  type DeadLetterFilter as WireFilter,
  DeadLetterFilterSchema,
  type Operation as WireOperation,
  OperationSchema,
  StartOperationRequest_Kind,
  type WatchOperationRequest,
  WatchOperationRequestSchema,
} from './gen/fila/v1/operation_pb.js';
import { ObservingCalls } from './observing.js';
import { type Plain, plain } from './plain.js';
import { given } from './request-fields.js';
import { responses } from './resumed.js';
import { toTimestamp } from './times.js';

/** A long operation on dead letters, and how it stands. */
export interface Operation extends Plain<WireOperation> {}

const { method } = FilaAdmin;

const KINDS = {
  redrive: StartOperationRequest_Kind.REDRIVE,
  delete: StartOperationRequest_Kind.DELETE,
  purge: StartOperationRequest_Kind.PURGE,
} as const;

/** The calls of FilaAdmin about dead letters. */
export abstract class DeadLetterCalls extends ObservingCalls {
  /**
   * Drops the dead letters with these offsets (1 to 1,000) for good. Resolves with how many were there.
   * Rejects with QueueNotFound, Invalid.
   */
  async dropDeadLetters(
    dlq: string,
    offsets: readonly number[],
    options: SignalOption = {},
  ): Promise<number> {
    requireText('dlq', dlq);
    const request = { dlqQueue: dlq, offsets: toUint64s('offsets', offsets) };
    return Number((await this.ask(method.dropDeadLetters, request, { queue: dlq }, options)).dropped);
  }

  /**
   * Sends a dead letter back to the queue it came from with this payload and these headers in place of its
   * own. Resolves with the new message's id. Rejects with QueueNotFound, MessageNotFound, Invalid, Conflict.
   */
  async editDeadLetter(
    dlq: string,
    offset: number,
    payload: Uint8Array | string,
    options: SignalOption & { readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<string> {
    const { headers = {} } = options;
    requireText('dlq', dlq);
    requireHeaders(headers);
    const request = {
      dlqQueue: dlq,
      offset: toUint64('offset', offset),
      payload: payloadBytes(payload),
      headers: { ...headers },
    };
    return (await this.ask(method.editDeadLetter, request, { queue: dlq }, options)).messageId;
  }

  /**
   * Starts to move dead letters back (`redrive`), to drop those that the filter means (`delete`) or all
   * (`purge`), in the broker itself: its caller may go away. Rejects with QueueNotFound, Invalid,
   * Conflict (one runs on that queue already), SourceQueueGone.
   */
  async startOperation(
    dlq: string,
    kind: 'redrive' | 'delete' | 'purge',
    options: OperationOptions = {},
  ): Promise<Operation> {
    const { filter, ratePerSecond = 0 } = options;
    requireText('dlq', dlq);
    requireText('kind', kind);
    if (!Object.hasOwn(KINDS, kind)) {
      throw new RangeError(`kind must be redrive, delete or purge, got '${kind as string}'`);
    }
    requireRange('ratePerSecond', ratePerSecond, 0, Infinity);
    const request = {
      dlqQueue: dlq,
      kind: KINDS[kind],
      ratePerSecond,
      ...(filter === undefined ? {} : { filter: encodeFilter(filter) }),
    };
    return operationOf(await this.ask(method.startOperation, request, { queue: dlq }, options));
  }

  /** The operations on a dead-letter queue, or on all, newest first; those that have ended, too. */
  async listOperations(dlq = '', options: SignalOption = {}): Promise<Operation[]> {
    requireText('dlq', dlq);
    const { operations } = await this.ask(method.listOperations, { dlqQueue: dlq }, { queue: dlq }, options);
    return operations.map((operation) => plain(OperationSchema, operation));
  }

  /** Ends an operation, and resolves with how it stands; what it did is done. Rejects with NotFound. */
  async cancelOperation(dlq: string, operationId: string, options: SignalOption = {}): Promise<Operation> {
    requireText('dlq', dlq);
    requireText('operationId', operationId);
    const request = { dlqQueue: dlq, id: operationId };
    return operationOf(await this.ask(method.cancelOperation, request, { queue: dlq }, options));
  }

  /**
   * Loops over how an operation stands: at once, then each time it has come further (at most twice a second),
   * until it has ended. A broken stream is opened again. Throws NotFound; Unavailable when the broker stays
   * away for `retryForMs`.
   */
  watchOperation(
    dlq: string,
    operationId: string,
    { signal }: SignalOption = {},
  ): AsyncIterableIterator<Operation> {
    requireText('dlq', dlq);
    requireText('operationId', operationId);
    const request = create(WatchOperationRequestSchema, { dlqQueue: dlq, id: operationId });
    return standings(this.connection, request, signal);
  }
}

async function* standings(
  connection: Connection,
  request: WatchOperationRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<Operation, void, undefined> {
  const known = { queue: request.dlqQueue };
  let state: Operation['state'] = 'running';
  const goesOn = () => state === 'running';
  const call = { connection, method: method.watchOperation, request, known, signal, goesOn };
  for await (const response of responses(call)) {
    const operation = operationOf(response);
    state = operation.state;
    yield operation;
  }
}

function operationOf({ operation }: { readonly operation?: WireOperation | undefined }): Operation {
  return plain(OperationSchema, operation ?? create(OperationSchema));
}

function encodeFilter(filter: DeadLetterFilter): WireFilter {
  const { diedFrom, diedBefore, ...texts } = filter;
  for (const [name, value] of Object.entries(texts)) requireTextIfGiven(`filter.${name}`, value);
  if (diedFrom !== undefined) requireMoment('filter.diedFrom', diedFrom);
  if (diedBefore !== undefined) requireMoment('filter.diedBefore', diedBefore);
  return create(DeadLetterFilterSchema, {
    ...given(texts),
    ...(diedFrom === undefined ? {} : { diedFrom: toTimestamp(diedFrom) }),
    ...(diedBefore === undefined ? {} : { diedBefore: toTimestamp(diedBefore) }),
  });
}
