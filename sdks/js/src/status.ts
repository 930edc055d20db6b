/** From what the broker, or gRPC, answered to the error it means: one table of reasons and one of codes. */

import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import type { Metadata, ServiceError } from '@grpc/grpc-js';

import {
  AnswerLost,
  ChannelExists,
  ChannelNotFound,
  ConfigKeyNotFound,
  Conflict,
  DiskFloor,
  type ErrorFacts,
  Exists,
  FilaError,
  HooksFull,
  InternalError,
  Invalid,
  LeaseLost,
  LimitExceeded,
  LogDamaged,
  MessageNotFound,
  NotAllowed,
  NotFound,
  NotOwner,
  NotSupported,
  Overloaded,
  QueueExists,
  QueueFull,
  QueueNotFound,
  SourceQueueGone,
  type StatusName,
  Unavailable,
} from './errors.js';
import { ErrorInfoSchema, RetryInfoSchema, type Status, StatusSchema } from './gen/google/rpc_pb.js';

interface ErrorClass {
  readonly code: StatusName;
  new (message: string, facts?: ErrorFacts): FilaError;
}

const ERROR_DOMAIN = 'fila';
const DETAILS_KEY = 'grpc-status-details-bin';

/** gRPC's codes: the place in this list is the number on the wire. */
const STATUS_NAMES: readonly StatusName[] = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
];

/** */
export const ERROR_BY_REASON: ReadonlyMap<string, ErrorClass> = new Map<string, ErrorClass>([
  ['QUEUE_NOT_FOUND', QueueNotFound],
  ['CHANNEL_NOT_FOUND', ChannelNotFound],
  ['MESSAGE_NOT_FOUND', MessageNotFound],
  ['CONFIG_KEY_NOT_FOUND', ConfigKeyNotFound],
  ['NOT_FOUND', NotFound],
  ['QUEUE_EXISTS', QueueExists],
  ['CHANNEL_EXISTS', ChannelExists],
  ['EXISTS', Exists],
  ['INVALID_FIELD', Invalid],
  ['LIMIT_EXCEEDED', LimitExceeded],
  ['CONFLICT', Conflict],
  ['LEASE_LOST', LeaseLost],
  ['SOURCE_QUEUE_GONE', SourceQueueGone],
  ['LOG_DAMAGED', LogDamaged],
  ['OVERLOADED', Overloaded],
  ['QUEUE_FULL', QueueFull],
  ['HOOKS_FULL', HooksFull],
  ['DISK_FLOOR', DiskFloor],
  ['SHUTTING_DOWN', Unavailable],
  ['NOT_OWNER', NotOwner],
  ['UNIMPLEMENTED', NotSupported],
  ['INTERNAL', InternalError],
]);

/** */
export const ERROR_BY_CODE: ReadonlyMap<StatusName, ErrorClass> = new Map<StatusName, ErrorClass>([
  ['NOT_FOUND', NotFound],
  ['ALREADY_EXISTS', Exists],
  ['INVALID_ARGUMENT', Invalid],
  ['OUT_OF_RANGE', Invalid],
  ['FAILED_PRECONDITION', Conflict],
  ['ABORTED', Conflict],
  ['RESOURCE_EXHAUSTED', Overloaded],
  ['UNAVAILABLE', Unavailable],
  ['DEADLINE_EXCEEDED', AnswerLost],
  ['UNIMPLEMENTED', NotSupported],
  ['UNAUTHENTICATED', NotAllowed],
  ['PERMISSION_DENIED', NotAllowed],
  ['INTERNAL', InternalError],
  ['DATA_LOSS', InternalError],
]);

/**
 * The error that a status means. A reason this version does not know comes from a newer broker:
 * then the code still says which branch of the tree it belongs to.
 */
export function errorOf(code: number, message: string, reason: string, known: ErrorFacts): FilaError {
  const name = STATUS_NAMES[code] ?? 'UNKNOWN';
  let kind = ERROR_BY_REASON.get(reason);
  if (kind?.code !== name) kind = ERROR_BY_CODE.get(name) ?? FilaError;
  return new kind(message || `the broker answered ${name} without a text`, { ...known, code: name, reason });
}

/** The error that a failed call means, with what its ErrorInfo and RetryInfo tell. */
export function errorOfCall(failure: Error, known: ErrorFacts): FilaError {
  const { code, details, metadata } = failure as Partial<ServiceError>;
  const told: Told = { ...known, cause: failure };
  const reason = readDetails(metadata, told);
  return errorOf(code ?? UNKNOWN, details ?? failure.message, reason, told);
}

const UNKNOWN = 2;

type Told = { -readonly [Fact in keyof ErrorFacts]: ErrorFacts[Fact] };

function readDetails(metadata: Metadata | undefined, told: Told): string {
  const [encoded] = metadata?.get(DETAILS_KEY) ?? [];
  if (!(encoded instanceof Uint8Array)) return '';
  let details: Status['details'];
  try {
    details = fromBinary(StatusSchema, encoded).details;
  } catch {
    return ''; // something between us and the broker wrote them; the code and the text still hold
  }
  let reason = '';
  for (const detail of details) {
    const info = anyUnpack(detail, ErrorInfoSchema);
    if (info?.domain === ERROR_DOMAIN) {
      reason = info.reason;
      takeFacts(info.metadata, told);
    }
    const delay = anyUnpack(detail, RetryInfoSchema)?.retryDelay;
    if (delay) told.retryAfterMs = Number(delay.seconds) * 1000 + delay.nanos / 1e6;
  }
  return reason;
}

function takeFacts(facts: Record<string, string | undefined>, told: Told): void {
  const {
    queue,
    channel,
    field,
    owner,
    message_id: messageId,
    config_key: configKey,
    lease_id: leaseId,
  } = facts;
  if (queue !== undefined) told.queue = queue;
  if (channel !== undefined) told.channel = channel;
  if (field !== undefined) told.field = field;
  if (owner !== undefined) told.owner = owner;
  if (messageId !== undefined) told.messageId = messageId;
  if (configKey !== undefined) told.configKey = configKey;
  if (leaseId !== undefined) told.leaseId = BigInt(leaseId);
}

/** Whether the broker itself refused, so that nothing happened; else the transport failed. */
export function isTheBrokersWord(error: FilaError): boolean {
  return error.reason !== '';
}

const TRANSPORT_CODES: ReadonlySet<StatusName> = new Set<StatusName>([
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'CANCELLED',
  'UNKNOWN',
  'INTERNAL', // an HTTP/2 stream that was reset
]);

function isTransportFailure(error: FilaError): boolean {
  return TRANSPORT_CODES.has(error.code) && !isTheBrokersWord(error);
}

/** Of a call: turns a failure of the transport into AnswerLost. */
export function answerLostUnlessSaid(error: FilaError): FilaError {
  if (!isTransportFailure(error)) return error;
  const text = `the request may have arrived, but no answer came: ${error.message}`;
  return new AnswerLost(text, { code: error.code, cause: error });
}

/**
 * Of a stream: turns a failure of the transport into Unavailable; what was under way is for others
 * to say.
 */
export function unavailableUnlessSaid(error: FilaError): FilaError {
  if (!isTransportFailure(error)) return error;
  return new Unavailable(`the stream broke: ${error.message}`, { code: error.code, cause: error });
}
