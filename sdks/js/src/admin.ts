/**
 * What operators do with a client: queues, channels, statistics, runtime config, dead letters, the log.
 *
 * Where there is more than one value to give back, the answer has the wire's fields (each explained in
 * `proto/fila/v1/admin.proto`), as plain values.
 */

import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';

import type {
  ChannelOption,
  CreateChannelOptions,
  ForceOption,
  KeyPolicyChange,
  ListQueuesOptions,
  PeekOptions,
  PurgeOptions,
  ReadLogOptions,
  RedriveOptions,
  SignalOption,
  UpdateQueueOptions,
} from './admin-options.js';
import {
  requireCount,
  requireMoment,
  requireRange,
  requireText,
  requireTextIfGiven,
  requireWhole,
  toUint64,
  toUint64s,
  UINT32_MAX,
} from './arguments.js';
import type { CallOptions, Connection } from './connection.js';
import type { ErrorFacts } from './errors.js';
import {
  type ChannelInfo as WireChannelInfo,
  ChannelInfoSchema,
  type ConsumerInfo as WireConsumerInfo,
  ConsumerInfoSchema,
  type ExplainKeyResponse,
  ExplainKeyResponseSchema,
  FilaAdmin,
  type GetQueueResponse,
  GetQueueResponseSchema,
  type GetStatsResponse,
  GetStatsResponseSchema,
  type QueueConfig as WireQueueConfig,
  QueueConfigSchema,
  type QueueInfo as WireQueueInfo,
  QueueInfoSchema,
  type PreviewKeyPolicyResponse,
  PreviewKeyPolicyResponseSchema,
  ReadLogRequestSchema,
  type SeekChannelResponse,
  SeekChannelResponseSchema,
  type SetKeyPolicyResponse,
  SetKeyPolicyResponseSchema,
  type SkipMessageResponse,
  SkipMessageResponseSchema,
} from './gen/fila/v1/admin_pb.js';
import { StoredMessage } from './message.js';
import { type Plain, plain } from './plain.js';
import { encodeSettings, maskOf, type QueueSettings } from './queue-settings.js';
import { readLog } from './read-log.js';
import { given, known, place, requireNames } from './request-fields.js';
import { toTimestamp } from './times.js';

/** A queue's settings, defaults filled in. */
export interface QueueConfig extends Plain<WireQueueConfig> {}
/** A queue's settings, and when it was made. */
export interface QueueDescription extends Plain<GetQueueResponse> {}
/** A queue in a list. */
export interface QueueInfo extends Plain<WireQueueInfo> {}
/** A queue in numbers. */
export interface QueueStats extends Plain<GetStatsResponse> {}
/** A channel in numbers. */
export interface ChannelInfo extends Plain<WireChannelInfo> {}
/** What an operator decided about a fairness key. */
export interface KeyPolicy extends Plain<SetKeyPolicyResponse> {}
/** What a change of a key's policy would do. */
export interface KeyPolicyPreview extends Plain<PreviewKeyPolicyResponse> {}
/** What a seek would do. */
export interface SeekPreview extends Plain<SeekChannelResponse> {}
/** What a fairness key waits for, and whether it gets its due. */
export interface KeyExplanation extends Plain<ExplainKeyResponse> {}
/** What `skipMessage` made a dead letter. */
export interface SkippedMessage extends Plain<SkipMessageResponse> {}
/** A consumer in numbers. */
export interface ConsumerInfo extends Plain<WireConsumerInfo> {}

const { method } = FilaAdmin;

/** The calls of FilaAdmin, as methods of a client. */
export abstract class AdminCalls {
  /** @internal */
  protected readonly connection: Connection;

  /** @internal */
  protected constructor(connection: Connection) {
    this.connection = connection;
  }

  /** @internal */
  protected ask<I extends DescMessage, O extends DescMessage>(
    which: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    known: ErrorFacts,
    { timeoutMs, signal, repeatable }: CallOptions = {},
  ): Promise<MessageShape<O>> {
    if (timeoutMs !== undefined) requireRange('timeoutMs', timeoutMs, 1, Infinity);
    return this.connection.call(which, create(which.input, request), known, {
      timeoutMs,
      signal,
      repeatable,
    });
  }

  // Queues.

  /** Makes a queue and its dead-letter queue `<queue>.dlq`. Rejects with QueueExists, Invalid. */
  async createQueue(queue: string, settings: QueueSettings = {}, options: SignalOption = {}): Promise<void> {
    requireText('queue', queue);
    await this.ask(method.createQueue, { name: queue, config: encodeSettings(settings) }, { queue }, options);
  }

  /** A queue's settings, defaults filled in. Rejects with QueueNotFound. */
  async getQueue(queue: string, options: SignalOption = {}): Promise<QueueDescription> {
    requireText('queue', queue);
    return plain(GetQueueResponseSchema, await this.ask(method.getQueue, { queue }, { queue }, options));
  }

  /**
   * Changes the settings given, and no other; they apply at once to what waits. Resolves with them all.
   * `retry: { baseMs: 500 }` changes the base and keeps the kind. With `expectedVersion` it is refused where
   * somebody else changed them since (Conflict); `comment` is kept with the version. Rejects with
   * QueueNotFound, Invalid.
   */
  async updateQueue(
    queue: string,
    settings: QueueSettings,
    options: UpdateQueueOptions = {},
  ): Promise<QueueConfig> {
    const { expectedVersion = 0, comment = '', signal } = options;
    requireText('queue', queue);
    requireText('comment', comment);
    const request = {
      queue,
      config: encodeSettings(settings),
      updateMask: maskOf(settings),
      expectedVersion: toUint64('expectedVersion', expectedVersion),
      comment,
    };
    // A second run would find the version that the first one made.
    const repeatable = expectedVersion === 0 ? undefined : false;
    const { config } = await this.ask(method.updateQueue, request, { queue }, { signal, repeatable });
    return plain(QueueConfigSchema, config ?? create(QueueConfigSchema));
  }

  /**
   * Deletes a queue, its own dead-letter queue, and everything in them. Rejects with QueueNotFound; with
   * Conflict while a published batch of a sink is still on its way into it, unless `force` is set.
   */
  async deleteQueue(queue: string, options: ForceOption = {}): Promise<void> {
    const { force = false } = options;
    requireText('queue', queue);
    await this.ask(method.deleteQueue, { queue, force }, { queue }, options);
  }

  /** Every queue with its depth, in flight and consumers, sorted by name, or those that options ask for. */
  async listQueues(options: SignalOption & ListQueuesOptions = {}): Promise<QueueInfo[]> {
    const { prefix = '', containing = '', pageSize = 0, pageToken = '' } = options;
    const request = { prefix, containing, pageSize, pageToken };
    const { queues } = await this.ask(method.listQueues, request, {}, options);
    return queues.map((queue) => plain(QueueInfoSchema, queue));
  }

  /**
   * A queue in numbers, over all channels or of one, with at most `maxKeys` fairness keys (default 1,000).
   * Rejects with QueueNotFound, ChannelNotFound.
   */
  async getStats(
    queue: string,
    options: ChannelOption & { readonly maxKeys?: number } = {},
  ): Promise<QueueStats> {
    const { channel = '', maxKeys = 0 } = options;
    requireNames(queue, channel);
    requireWhole('maxKeys', maxKeys, UINT32_MAX);
    const answer = await this.ask(method.getStats, { queue, channel, maxKeys }, { queue, channel }, options);
    return plain(GetStatsResponseSchema, answer);
  }

  /** Drops pending messages. Resolves with how many. Rejects with QueueNotFound, ChannelNotFound. */
  async purge(queue: string, options: PurgeOptions = {}): Promise<number> {
    const { fairnessKey, channel } = options;
    requireNames(queue, channel);
    requireTextIfGiven('fairnessKey', fairnessKey);
    const request = { queue, ...given({ fairnessKey, channel }) };
    return Number((await this.ask(method.purgeQueue, request, known(queue, channel), options)).purged);
  }

  /**
   * Looks at pending messages in offset order without leasing them. Rejects with QueueNotFound,
   * ChannelNotFound.
   */
  async peek(queue: string, options: PeekOptions = {}): Promise<StoredMessage[]> {
    const { maxMessages = 10, afterOffset = 0, fairnessKey = '', channel = '' } = options;
    requireNames(queue, channel);
    requireCount('maxMessages', maxMessages, UINT32_MAX);
    requireText('fairnessKey', fairnessKey);
    const request = {
      queue,
      channel,
      maxMessages,
      afterOffset: toUint64('afterOffset', afterOffset),
      fairnessKey,
    };
    const { messages } = await this.ask(method.peekMessages, request, known(queue, channel), options);
    return messages.map((message) => new StoredMessage(message));
  }

  /**
   * Moves dead letters back to the queue they came from, oldest first. Resolves with how many. Rejects with
   * QueueNotFound, Invalid (no dead-letter queue), SourceQueueGone.
   */
  async redrive(dlq: string, options: RedriveOptions = {}): Promise<number> {
    const { count = 0, ratePerSecond = 0, offsets = [] } = options;
    requireText('dlq', dlq);
    requireRange('ratePerSecond', ratePerSecond, 0, Infinity);
    const request = {
      dlqQueue: dlq,
      count: toUint64('count', count),
      ratePerSecond,
      offsets: toUint64s('offsets', offsets),
    };
    return Number((await this.ask(method.redrive, request, { queue: dlq }, options)).redriven);
  }

  // Channels.

  /**
   * Adds a channel. Resolves with the first offset it will see. Rejects with QueueNotFound, ChannelExists.
   */
  async createChannel(queue: string, channel: string, options: CreateChannelOptions = {}): Promise<number> {
    const { start = 'head', expiresAfterIdleMs = 0 } = options;
    requireText('channel', channel);
    requireText('queue', queue);
    const request: MessageInitShape<typeof method.createChannel.input> = {
      queue,
      channel,
      start: start === 'head' || start === 'oldest' ? { case: start, value: true } : place('start', start),
      expiresAfterIdleMs: toUint64('expiresAfterIdleMs', expiresAfterIdleMs),
    };
    return Number((await this.ask(method.createChannel, request, { queue, channel }, options)).startOffset);
  }

  /** Deletes a channel, its leases and what it had pending. Rejects with QueueNotFound, ChannelNotFound. */
  async deleteChannel(queue: string, channel: string, options: SignalOption = {}): Promise<void> {
    requireNames(queue, channel);
    await this.ask(method.deleteChannel, { queue, channel }, { queue, channel }, options);
  }

  /** A queue's channels in numbers, sorted by name. Rejects with QueueNotFound. */
  async listChannels(queue: string, options: SignalOption = {}): Promise<ChannelInfo[]> {
    requireText('queue', queue);
    const { channels } = await this.ask(method.listChannels, { queue }, { queue }, options);
    return channels.map((channel) => plain(ChannelInfoSchema, channel));
  }

  /**
   * Moves a channel to an offset or a moment; its leases end. Resolves with the offset it is at now. Rejects
   * with QueueNotFound, ChannelNotFound.
   */
  async seekChannel(queue: string, target: number | Date, options: ChannelOption = {}): Promise<number> {
    return Number((await this.#seek(queue, target, options, false)).offset);
  }

  /** What `seekChannel` would do; nothing is done. Rejects with QueueNotFound, ChannelNotFound. */
  async previewSeek(queue: string, target: number | Date, options: ChannelOption = {}): Promise<SeekPreview> {
    return plain(SeekChannelResponseSchema, await this.#seek(queue, target, options, true));
  }

  #seek(
    queue: string,
    target: number | Date,
    { channel = '', signal }: ChannelOption,
    validateOnly: boolean,
  ): Promise<SeekChannelResponse> {
    requireNames(queue, channel);
    const request = { queue, channel, target: place('target', target), validateOnly };
    return this.ask(method.seekChannel, request, known(queue, channel), { signal, repeatable: validateOnly });
  }

  /** Drops what is pending in one channel; others keep theirs. Resolves with how many messages. */
  async purgeChannel(
    queue: string,
    options: ChannelOption & { readonly fairnessKey?: string } = {},
  ): Promise<number> {
    const { channel = '', fairnessKey } = options;
    requireNames(queue, channel);
    requireTextIfGiven('fairnessKey', fairnessKey);
    const request = { queue, channel, ...given({ fairnessKey }) };
    return Number((await this.ask(method.purgeChannel, request, known(queue, channel), options)).purged);
  }

  // Runtime config.

  /**
   * Sets a runtime config value, visible to hooks when this resolves; empty deletes it. Rejects with Invalid.
   */
  async setConfig(key: string, value: string, options: SignalOption = {}): Promise<void> {
    requireText('key', key);
    requireText('value', value);
    await this.ask(method.setConfig, { key, value }, { configKey: key }, options);
  }

  /** A runtime config value. Rejects with ConfigKeyNotFound. */
  async getConfig(key: string, options: SignalOption = {}): Promise<string> {
    requireText('key', key);
    return (await this.ask(method.getConfig, { key }, { configKey: key }, options)).value;
  }

  /** The runtime config values whose key starts with `prefix`, sorted by key. */
  async listConfig(prefix = '', options: SignalOption = {}): Promise<Map<string, string>> {
    requireText('prefix', prefix);
    const { entries } = await this.ask(method.listConfig, { prefix }, {}, options);
    return new Map(entries.map(({ key, value }) => [key, value]));
  }

  // Fairness keys and consumers.

  /**
   * Weighs, pauses, resumes, caps or slows one fairness key. Resolves with its policy now. Rejects with
   * QueueNotFound, Invalid.
   */
  async setKeyPolicy(
    queue: string,
    fairnessKey: string,
    change: KeyPolicyChange,
    options: SignalOption = {},
  ): Promise<KeyPolicy> {
    requireText('queue', queue);
    const request = { queue, ...encodePolicy(fairnessKey, change) };
    return plain(
      SetKeyPolicyResponseSchema,
      await this.ask(method.setKeyPolicy, request, { queue }, options),
    );
  }

  /**
   * What `setKeyPolicy` would do in one channel: when the key's messages would go, and who would wait longer;
   * nothing is done. Rejects with QueueNotFound, ChannelNotFound, Invalid.
   */
  async previewKeyPolicy(
    queue: string,
    fairnessKey: string,
    change: KeyPolicyChange,
    options: ChannelOption = {},
  ): Promise<KeyPolicyPreview> {
    const { channel = '' } = options;
    requireNames(queue, channel);
    const request = { queue, channel, policy: encodePolicy(fairnessKey, change) };
    return plain(
      PreviewKeyPolicyResponseSchema,
      await this.ask(method.previewKeyPolicy, request, known(queue, channel), options),
    );
  }

  /**
   * What holds a fairness key's next message, and where its last hour of waiting went. Rejects with
   * QueueNotFound, ChannelNotFound.
   */
  async explainKey(queue: string, fairnessKey: string, options: ChannelOption = {}): Promise<KeyExplanation> {
    const { channel = '' } = options;
    requireNames(queue, channel);
    requireText('fairnessKey', fairnessKey);
    const request = { queue, channel, fairnessKey };
    return plain(
      ExplainKeyResponseSchema,
      await this.ask(method.explainKey, request, known(queue, channel), options),
    );
  }

  /**
   * Makes the first message of a key a dead letter, with the reason `skipped`, so that those behind it go on; given
   * `messageId`, only if it is that one. For queues whose `keyOrder` is strict. Rejects with QueueNotFound,
   * ChannelNotFound.
   */
  async skipMessage(
    queue: string,
    fairnessKey: string,
    options: ChannelOption & { readonly messageId?: string } = {},
  ): Promise<SkippedMessage> {
    const { channel = '', messageId = '' } = options;
    requireNames(queue, channel);
    requireText('fairnessKey', fairnessKey);
    const request = { queue, channel, fairnessKey, messageId };
    return plain(
      SkipMessageResponseSchema,
      await this.ask(method.skipMessage, request, known(queue, channel), options),
    );
  }

  /** Who consumes a queue, in every channel or in one, and what each holds; the oldest consumer first. */
  async listConsumers(queue: string, options: ChannelOption = {}): Promise<ConsumerInfo[]> {
    const { channel = '' } = options;
    requireNames(queue, channel);
    const { consumers } = await this.ask(
      method.listConsumers,
      { queue, channel },
      { queue, channel },
      options,
    );
    return consumers.map((consumer) => plain(ConsumerInfoSchema, consumer));
  }

  // The log.

  /**
   * Loops over retained messages in offset order, leasing nothing. A broken stream is resumed where it was.
   * Throws QueueNotFound; Unavailable when the broker stays away for `retryForMs`.
   */
  readLog(queue: string, options: ReadLogOptions = {}): AsyncIterableIterator<StoredMessage> {
    const {
      fromOffset = 0,
      toOffset = 0,
      fromTime,
      toTime,
      fairnessKey = '',
      maxBatch = 0,
      signal,
    } = options;
    requireText('queue', queue);
    requireText('fairnessKey', fairnessKey);
    requireWhole('maxBatch', maxBatch, UINT32_MAX);
    if (fromTime !== undefined) requireMoment('fromTime', fromTime);
    if (toTime !== undefined) requireMoment('toTime', toTime);
    const request = create(ReadLogRequestSchema, {
      queue,
      fromOffset: toUint64('fromOffset', fromOffset),
      toOffset: toUint64('toOffset', toOffset),
      fairnessKey,
      maxBatch,
      ...(fromTime === undefined ? {} : { fromTime: toTimestamp(fromTime) }),
      ...(toTime === undefined ? {} : { toTime: toTimestamp(toTime) }),
    });
    return readLog(this.connection, request, signal);
  }
}

function encodePolicy(fairnessKey: string, change: KeyPolicyChange) {
  const { weight, paused, maxInFlight, capByDefault, comment } = change;
  const { ratePerSecond, burst, rateByDefault, committedPerSecond, committedByDefault } = change;
  requireText('fairnessKey', fairnessKey);
  if (comment !== undefined) requireText('comment', comment);
  if (weight !== undefined) requireWhole('weight', weight, UINT32_MAX);
  if (maxInFlight !== undefined) requireWhole('maxInFlight', maxInFlight, UINT32_MAX);
  if (ratePerSecond !== undefined) requireRange('ratePerSecond', ratePerSecond, 0, Infinity);
  if (burst !== undefined) requireRange('burst', burst, 0, Infinity);
  if (committedPerSecond !== undefined) requireRange('committedPerSecond', committedPerSecond, 0, Infinity);
  const rates = { ratePerSecond, burst, rateByDefault, committedPerSecond, committedByDefault };
  return { fairnessKey, ...given({ weight, paused, maxInFlight, capByDefault, comment, ...rates }) };
}
