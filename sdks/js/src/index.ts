/**
 * Fila's JavaScript SDK: a typed client for the message broker Fila.
 *
 * ```ts
 * const client = await FilaClient.connect('localhost:5555');
 * await client.enqueue('orders', 'one coffee', { headers: { tenant: 'acme' } });
 * for await (const message of client.consume('orders')) await message.ack();
 * ```
 *
 * Start reading at client.ts. An enqueue goes through producer.ts and frames.ts; a delivery through
 * consumer.ts, session.ts and holding.ts; an ack through settler.ts; every call through connection.ts; every
 * error is in errors.ts; every setting in options.ts.
 *
 * @packageDocumentation
 */

export type {
  ChannelInfo,
  ConsumerInfo,
  KeyExplanation,
  KeyPolicy,
  KeyPolicyPreview,
  QueueConfig,
  QueueDescription,
  QueueInfo,
  QueueStats,
  SeekPreview,
  SkippedMessage,
} from './admin.js';
export { AdminCalls } from './admin.js';
export { type CancelOutcome, MessageCalls, type MessageStatus, type PendingMessage } from './one-message.js';
export type * from './admin-options.js';
export type { ConsumeOptions, LeaseOptions, NackByIdOptions } from './client.js';
export { FilaClient } from './client.js';
export type { Backoff, Clock } from './clock.js';
export type { ConnectionEvent } from './connection-event.js';
export { Consumer } from './consumer.js';
export type { Messages } from './enqueue-many.js';
export * from './errors.js';
export type { AuditRecord, Identity, NewKey, NewTenantLink, Principal, TenantLink } from './keys.js';
export { KeyCalls } from './keys.js';
export type { Operation } from './dead-letters.js';
export { DeadLetterCalls } from './dead-letters.js';
export type { Limit, LimitPage, LimitState } from './limits.js';
export { LimitCalls } from './limits.js';
export type { Schedule, SchedulePage } from './schedules.js';
export { ScheduleCalls } from './schedules.js';
export type { DeadLetter, LimitedOptions, NackOptions, WaitOptions } from './message.js';
export { Message, StoredMessage } from './message.js';
export type { Enqueued, MessageOptions, NewMessage } from './new-message.js';
export type {
  BrokerEvent,
  BrokerStatus,
  DryRun,
  FoundKeys,
  Series,
  KeyPolicyState,
  LateKeys,
  QueueVersion,
  QueueVersionDescription,
  StatsChange,
} from './observing.js';
export { ObservingCalls } from './observing.js';
export type { ClientOptions, Prefetch, TlsOptions } from './options.js';
export type { Plain } from './plain.js';
export type {
  IntakeSettings,
  KeyDefaultsSettings,
  QueueSettings,
  RetentionSettings,
  RetrySettings,
} from './queue-settings.js';
export { Settlement } from './settlement.js';
export { VERSION } from './version.js';
