/**
 * Which calls of the wire may be repeated when an answer was lost.
 *
 * Repeating is a promise about meaning, not about transport: reading twice is harmless, and setting the same
 * value twice leaves the same state. Enqueueing twice makes two messages, purging twice may drop what came in
 * between, a second seek would take back the leases given since the first, and deleting twice may delete what
 * somebody made anew. Those are repeated only when it is certain that the first attempt never reached the
 * broker.
 */

import type { DescMessage, DescMethod, MessageShape } from '@bufbuild/protobuf';
import { fromBinary, toBinary } from '@bufbuild/protobuf';

import { FilaAdmin } from './gen/fila/v1/admin_pb.js';
import { FilaAuth } from './gen/fila/v1/auth_pb.js';
import { FilaService } from './gen/fila/v1/service_pb.js';

const service = FilaService.method;
const admin = FilaAdmin.method;
const auth = FilaAuth.method;

const REPEATABLE: ReadonlySet<DescMethod> = new Set<DescMethod>([
  // A pull whose answer is lost leaves its messages leased until they expire; pulling again is right.
  service.lease,
  // Settling names leases, so a repetition can never settle somebody else's delivery.
  service.ackBatch,
  service.nackBatch,
  service.extendLease,
  admin.getQueue,
  admin.updateQueue,
  admin.listQueues,
  admin.peekMessages,
  admin.listPending,
  admin.getStats,
  admin.setConfig,
  admin.getConfig,
  admin.listConfig,
  admin.listChannels,
  admin.readLog,
  admin.setKeyPolicy,
  admin.explainKey,
  admin.getMessage,
  admin.listConsumers,
  admin.getStatus,
  admin.getClusterStatus,
  admin.watchEvents,
  admin.listLate,
  admin.listKeyPolicies,
  admin.findKeys,
  admin.watchStats,
  admin.getSeries,
  admin.listQueueVersions,
  admin.getQueueVersion,
  admin.watchOperation,
  admin.listOperations,
  admin.cancelOperation,
  admin.dryRunPolicy,
  admin.updateSchedule,
  admin.pauseSchedule,
  admin.getSchedule,
  admin.listSchedules,
  admin.setLimit,
  admin.listLimits,
  admin.previewKeyPolicy,
  // They are named by offsets that are never given again.
  admin.dropDeadLetters,
  auth.whoAmI,
  auth.grant,
  auth.getPrincipal,
  auth.listPrincipals,
  auth.setQuotas,
  auth.listAudit,
  auth.listTenantLinks,
]);

/** Whether a second run after a lost answer leaves the same state and gives as good an answer. */
export function isRepeatable(method: DescMethod): boolean {
  return REPEATABLE.has(method);
}

/** A method as gRPC's client takes it. */
export interface Encoded<I, O> {
  readonly path: string;
  readonly serialize: (request: I) => Buffer;
  readonly deserialize: (bytes: Buffer) => O;
}

const encodedByMethod = new Map<DescMethod, Encoded<never, unknown>>();

/** The method's path, and its messages' way to bytes and back. */
export function encodedMethod<I extends DescMessage, O extends DescMessage>(
  method: DescMethod & { input: I; output: O },
): Encoded<MessageShape<I>, MessageShape<O>> {
  let encoded = encodedByMethod.get(method);
  if (encoded === undefined) {
    encoded = {
      path: `/${method.parent.typeName}/${method.name}`,
      serialize: (request: MessageShape<I>) => {
        const bytes = toBinary(method.input, request);
        return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      },
      deserialize: (bytes) => fromBinary(method.output, bytes),
    };
    encodedByMethod.set(method, encoded);
  }
  return encoded as Encoded<MessageShape<I>, MessageShape<O>>;
}
