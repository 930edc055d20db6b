/** What operators look at: the broker's state, keys in numbers, what happens, settings over time. */

import { create } from '@bufbuild/protobuf';

import type {
  ChannelOption,
  SeriesOptions,
  LateOptions,
  PageOptions,
  SignalOption,
  StatusOptions,
  WatchEventsOptions,
  WatchStatsOptions,
} from './admin-options.js';
import { requireText, requireTexts, requireWhole, toUint64, UINT32_MAX } from './arguments.js';
import type { Connection } from './connection.js';
import {
  type DryRunPolicyResponse,
  DryRunPolicyResponseSchema,
  FilaAdmin,
  type GetQueueVersionResponse,
  GetQueueVersionResponseSchema,
} from './gen/fila/v1/admin_pb.js';
import {
  type Event as WireEvent,
  EventSchema,
  type GetStatusResponse,
  GetStatusResponseSchema,
  type KeyPolicy as WireKeyPolicy,
  KeyPolicySchema,
  type ListLateResponse,
  ListLateResponseSchema,
  type WatchEventsRequest,
  WatchEventsRequestSchema,
} from './gen/fila/v1/events_pb.js';
import { type QueueVersion as WireQueueVersion, QueueVersionSchema } from './gen/fila/v1/version_pb.js';
import {
  type FindKeysResponse,
  FindKeysResponseSchema,
  type GetSeriesResponse,
  GetSeriesResponseSchema,
  WatchStatsRequest_Order,
  type WatchStatsRequest,
  WatchStatsRequestSchema,
  type WatchStatsResponse,
  WatchStatsResponseSchema,
} from './gen/fila/v1/watch_pb.js';
import { MessageCalls } from './one-message.js';
import { type Plain, plain } from './plain.js';
import { encodeSettings, maskOf, type QueueSettings } from './queue-settings.js';
import { given, known, requireNames } from './request-fields.js';
import { responses } from './resumed.js';

/** How the broker is. */
export interface BrokerStatus extends Plain<GetStatusResponse> {}
/** Fairness keys that wait, the one that waits longest first. */
export interface LateKeys extends Plain<ListLateResponse> {}
/** What an operator set for one fairness key, and how it stands. */
export interface KeyPolicyState extends Plain<WireKeyPolicy> {}
/** Fairness keys that begin alike. */
export interface FoundKeys extends Plain<FindKeysResponse> {}
/** The last hour of a channel and of some of its keys. */
export interface Series extends Plain<GetSeriesResponse> {}
/** What changed in the queues that are watched. */
export interface StatsChange extends Plain<WatchStatsResponse> {}
/** Something that happened. */
export interface BrokerEvent extends Plain<WireEvent> {}
/** One version of a queue's settings: who changed what, when, and why. */
export interface QueueVersion extends Plain<WireQueueVersion> {}
/** One version, with its settings. */
export interface QueueVersionDescription extends Plain<GetQueueVersionResponse> {}
/** What would become of messages and dead letters. */
export interface DryRun extends Plain<DryRunPolicyResponse> {}

const { method } = FilaAdmin;

/** The calls of FilaAdmin that only look. */
export abstract class ObservingCalls extends MessageCalls {
  /**
   * What is wrong, and how the broker is: version, disk, connections, damage. Who is no admin is told the version,
   * the disk and whether it is stopping, and troubles of its queues.
   */
  async getStatus(options: StatusOptions = {}): Promise<BrokerStatus> {
    const { queue = '', fairnessKey = '', maxTroubles = 0 } = options;
    requireText('queue', queue);
    requireText('fairnessKey', fairnessKey);
    requireWhole('maxTroubles', maxTroubles, UINT32_MAX);
    const asked = { queue, fairnessKey, maxTroubles };
    return plain(GetStatusResponseSchema, await this.ask(method.getStatus, asked, {}, options));
  }

  /**
   * Ranks the fairness keys of one queue, or of all, by how long their next message has been waiting, with
   * the cause. Rejects with QueueNotFound.
   */
  async listLate(options: LateOptions = {}): Promise<LateKeys> {
    const { queue = '', maxKeys = 0 } = options;
    requireText('queue', queue);
    requireWhole('maxKeys', maxKeys, UINT32_MAX);
    return plain(
      ListLateResponseSchema,
      await this.ask(method.listLate, { queue, maxKeys }, { queue }, options),
    );
  }

  /**
   * What was set for single keys of a queue, or for the one named, also when that is nothing. Rejects with
   * QueueNotFound.
   */
  async listKeyPolicies(
    queue: string,
    options: SignalOption & { readonly fairnessKey?: string } = {},
  ): Promise<KeyPolicyState[]> {
    const { fairnessKey = '' } = options;
    requireText('queue', queue);
    requireText('fairnessKey', fairnessKey);
    const { policies } = await this.ask(method.listKeyPolicies, { queue, fairnessKey }, { queue }, options);
    return policies.map((policy) => plain(KeyPolicySchema, policy));
  }

  /**
   * Finds a queue's fairness keys that begin so, those with most pending first; at most `limit` (default 20,
   * up to 256). Rejects with QueueNotFound, ChannelNotFound.
   */
  async findKeys(
    queue: string,
    prefix = '',
    options: ChannelOption & { readonly limit?: number } = {},
  ): Promise<FoundKeys> {
    const { channel = '', limit = 0 } = options;
    requireNames(queue, channel);
    requireText('prefix', prefix);
    requireWhole('limit', limit, UINT32_MAX);
    const request = { queue, channel, prefix, limit };
    return plain(
      FindKeysResponseSchema,
      await this.ask(method.findKeys, request, known(queue, channel), options),
    );
  }

  /**
   * Looks back at the last hour of a channel and of some of its keys, in points of ten seconds. Rejects with
   * QueueNotFound, ChannelNotFound, Invalid.
   */
  async getSeries(queue: string, options: SeriesOptions = {}): Promise<Series> {
    const { channel = '', keys = [] } = options;
    requireNames(queue, channel);
    requireTexts('keys', keys);
    const request = { queue, channel, keys: [...keys] };
    return plain(
      GetSeriesResponseSchema,
      await this.ask(method.getSeries, request, known(queue, channel), options),
    );
  }

  /**
   * Loops over what changes in queues and their leading keys: everything at first, then about once a second
   * what changed. A broken stream is opened again, and begins with everything. Throws QueueNotFound,
   * ChannelNotFound, Invalid; Unavailable when the broker stays away for `retryForMs`.
   */
  watchStats(options: WatchStatsOptions = {}): AsyncIterableIterator<StatsChange> {
    const { queues = [], channel = '', order = 'backlog', top, keys = [], signal } = options;
    requireTexts('queues', queues);
    requireText('channel', channel);
    requireTexts('keys', keys);
    if (top !== undefined) requireWhole('top', top, UINT32_MAX);
    const request = create(WatchStatsRequestSchema, {
      queues: [...queues],
      channel,
      order: orderOf(order),
      keys: [...keys],
      ...given({ top }),
    });
    return changes(this.connection, request, signal);
  }

  /**
   * Loops over what happened, oldest first; with `follow` also over what happens from then on. A broken stream
   * is resumed where it was. Throws QueueNotFound, NotAllowed; Unavailable when the broker stays away for
   * `retryForMs`.
   */
  watchEvents(options: WatchEventsOptions = {}): AsyncIterableIterator<BrokerEvent> {
    const { queue = '', kinds = [], fairnessKey = '', afterPosition = 0, follow = false, signal } = options;
    requireText('queue', queue);
    requireTexts('kinds', kinds);
    requireText('fairnessKey', fairnessKey);
    const request = create(WatchEventsRequestSchema, {
      queue,
      kinds: [...kinds],
      fairnessKey,
      afterPosition: toUint64('afterPosition', afterPosition),
      follow,
    });
    return happened(this.connection, request, signal);
  }

  // Settings over time.

  /**
   * The versions of a queue's settings, newest first; the last 100 are kept. Rejects with QueueNotFound.
   */
  async listQueueVersions(queue: string, options: PageOptions = {}): Promise<QueueVersion[]> {
    const { before = 0, limit = 0 } = options;
    requireText('queue', queue);
    requireWhole('limit', limit, UINT32_MAX);
    const request = { queue, before: toUint64('before', before), limit };
    const { versions } = await this.ask(method.listQueueVersions, request, { queue }, options);
    return versions.map((version) => plain(QueueVersionSchema, version));
  }

  /** One version of a queue's settings, the newest for 0. Rejects with QueueNotFound, NotFound. */
  async getQueueVersion(
    queue: string,
    number = 0,
    options: SignalOption = {},
  ): Promise<QueueVersionDescription> {
    requireText('queue', queue);
    const request = { queue, number: toUint64('number', number) };
    return plain(
      GetQueueVersionResponseSchema,
      await this.ask(method.getQueueVersion, request, { queue }, options),
    );
  }

  /**
   * How these settings would route a queue's newest messages and judge its newest dead letters: the `last` of
   * each (default 100, at most 1,000). Nothing is changed. Rejects with QueueNotFound, Invalid.
   */
  async dryRunPolicy(
    queue: string,
    settings: QueueSettings,
    options: SignalOption & { readonly last?: number } = {},
  ): Promise<DryRun> {
    const { last = 0 } = options;
    requireText('queue', queue);
    requireWhole('last', last, UINT32_MAX);
    const request = { queue, config: encodeSettings(settings), updateMask: maskOf(settings), last };
    return plain(
      DryRunPolicyResponseSchema,
      await this.ask(method.dryRunPolicy, request, { queue }, options),
    );
  }
}

async function* changes(
  connection: Connection,
  request: WatchStatsRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<StatsChange, void, undefined> {
  const about = known(request.queues.join(', '), request.channel);
  const call = { connection, method: method.watchStats, request, known: about, signal, goesOn: () => true };
  for await (const change of responses(call)) yield plain(WatchStatsResponseSchema, change);
}

async function* happened(
  connection: Connection,
  request: WatchEventsRequest,
  signal: AbortSignal | undefined,
): AsyncGenerator<BrokerEvent, void, undefined> {
  const about = { queue: request.queue };
  const goesOn = () => request.follow;
  const call = { connection, method: method.watchEvents, request, known: about, signal, goesOn };
  for await (const response of responses(call)) {
    request.afterPosition = response.nextPosition;
    for (const event of response.events) yield plain(EventSchema, event);
  }
}

function orderOf(order: unknown): WatchStatsRequest_Order {
  requireText('order', order);
  const words = ['backlog', 'late', 'arriving', 'served', 'off_share'];
  if (!words.includes(order)) {
    throw new RangeError(`order must be one of ${words.join(', ')}, got '${order}'`);
  }
  return WatchStatsRequest_Order[order.toUpperCase() as keyof typeof WatchStatsRequest_Order];
}
