/** A queue's settings on their way in: what a program gives, and the message and mask that the wire takes. */

import type { DescEnum, DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import { create, ScalarType } from '@bufbuild/protobuf';
import { type FieldMask, FieldMaskSchema } from '@bufbuild/protobuf/wkt';

import { requireRange, requireText, requireWhole, toUint64, UINT32_MAX, wrongType } from './arguments.js';
import { type QueueConfig as WireConfig, QueueConfigSchema } from './gen/fila/v1/admin_pb.js';
import { isWide } from './plain.js';

/** How long a failed message waits before it is ready again. */
export interface RetrySettings {
  readonly kind?: 'exponential' | 'fixed';
  /** The first delay; 0 for the default, 100. */
  readonly baseMs?: number;
  /** The longest delay; 0 for the default, 60,000 or `baseMs`, whichever is longer. */
  readonly capMs?: number;
  /** The part of the delay that is random, 0 to 1. */
  readonly jitter?: number;
}

/** How long messages are kept: soft, done ones too; hard, no others either. */
export interface RetentionSettings {
  readonly softPeriodMs?: number;
  readonly softBytes?: number;
  readonly hardPeriodMs?: number;
  readonly hardBytes?: number;
}

/** What messages keep of an HTTP sender's headers, where the gateway stores a body as it is. */
export interface IntakeSettings {
  /** Headers that become the message's, at most 32 in lower case. */
  readonly headers?: readonly string[];
  /** The first of them that the sender gives is the dedup key; at most 32 in lower case. */
  readonly dedupHeaders?: readonly string[];
}

/** What each fairness key may have for which no operator set anything else. */
export interface KeyDefaultsSettings {
  /** Most messages of a key delivered a second, over all channels; 0 for no rate. */
  readonly ratePerSecond?: number;
  /** How many of a key may be delivered at once after a pause, at least 1; 0 for one second's worth. */
  readonly burst?: number;
  /** Most messages of a key leased at once in a channel; 0 for no cap. */
  readonly maxInFlight?: number;
  /** Messages of a key that go, a second, before those of keys that are not within theirs; 0 for none. */
  readonly committedPerSecond?: number;
}

/** A queue's settings; what is left out has its default (create) or stays (update). */
export interface QueueSettings {
  /** Lua source that defines `on_enqueue(msg)`. */
  readonly onEnqueueScript?: string;
  /** Lua source that defines `on_failure(msg, attempts)`. */
  readonly onFailureScript?: string;
  /** How long a delivery is leased: 1,000 to 43,200,000; 0 for the default, 30,000. */
  readonly visibilityTimeoutMs?: number;
  /** Failures after which a message becomes a dead letter; default 20, 0 for no cap. */
  readonly maxAttempts?: number;
  /** When calls are answered: after the fsync, or after the write to the operating system. */
  readonly durability?: 'fsync' | 'os';
  /** Most pending and leased messages; 0 for no bound. */
  readonly maxDepth?: number;
  /** Most stored bytes; 0 for no bound. */
  readonly maxBytes?: number;
  /** The header whose value is the fairness key. */
  readonly fairnessKeyHeader?: string;
  /** `strict`: of each fairness key one message at a time, in order; a failed one keeps its place. */
  readonly keyOrder?: 'relaxed' | 'strict';
  /** The header whose value is the weight of the fairness key. */
  readonly weightHeader?: string;
  /** Weight by fairness key, 1 to 1000. */
  readonly weights?: Readonly<Record<string, number>>;
  /** The header whose value is the cost. */
  readonly costHeader?: string;
  /** The header whose value is the priority among the messages of a fairness key, 0 to 3. Not with a strict order. */
  readonly priorityHeader?: string;
  /** Headers whose values are the throttle keys. */
  readonly throttleKeyHeaders?: readonly string[];
  readonly retry?: RetrySettings;
  /** What happens when `on_enqueue` fails. */
  readonly hookFallback?: 'policy' | 'hold';
  readonly retention?: RetentionSettings;
  /** Channels to make with the queue; only when it is created. */
  readonly channels?: readonly string[];
  /** How long a dedup key is remembered, at most 86,400,000; 0 for the default, 300,000. */
  readonly dedupWindowMs?: number;
  /** Messages whose time to live is over become dead letters instead of being dropped. */
  readonly ttlToDlq?: boolean;
  /** Deliver nothing until this is false again; enqueues, acks and what is leased already go on. */
  readonly paused?: boolean;
  /** Channels that deliver nothing until they are named here no more; the others go on. */
  readonly pausedChannels?: readonly string[];
  /**
   * How long a consumer with a broken connection may come back to what it held; default 5,000, 0 for not at
   * all.
   */
  readonly disconnectGraceMs?: number;
  /**
   * Delete the queue after this long without a stream, pull, lease or enqueue: at least 1,000; 0 for never.
   */
  readonly expiresAfterIdleMs?: number;
  readonly intake?: IntakeSettings;
  /** What holds for every fairness key, new ones included, until an operator sets something else for it. */
  readonly keyDefaults?: KeyDefaultsSettings;
  /**
   * With a message's fairness key behind it, the name of a limit that the message needs, too: `tenant:`. At most
   * 64 bytes, without `*`; empty for none.
   */
  readonly keyLimit?: string;
  /** Producers may say a message's fairness key, weight and cost when they enqueue it. */
  readonly allowProducerRouting?: boolean;
}

/** The settings as the wire has them. Throws TypeError or RangeError, naming what is wrong. */
export function encodeSettings(settings: QueueSettings): WireConfig {
  return encode(QueueConfigSchema, settings, '');
}

/** The mask of exactly the settings given; of a nested one, the parts given. */
export function maskOf(settings: QueueSettings): FieldMask {
  const paths: string[] = [];
  for (const [name, value] of given(settings)) {
    const field = fieldOf(QueueConfigSchema, name) as DescField;
    if (field.fieldKind !== 'message') {
      paths.push(field.name);
      continue;
    }
    const parts = given(value as object);
    paths.push(...parts.map(([part]) => `${field.name}.${fieldOf(field.message, part)?.name ?? part}`));
  }
  return create(FieldMaskSchema, { paths });
}

function fieldOf(schema: DescMessage, name: string): DescField | undefined {
  return schema.fields.find((field) => field.localName === name);
}

function given(settings: object): [string, unknown][] {
  return Object.entries(settings).filter(([, value]) => value !== undefined);
}

function encode<D extends DescMessage>(schema: D, settings: object, before: string): MessageShape<D> {
  if (!isObject(settings)) throw wrongType(before || 'settings', 'an object', settings);
  const message = create(schema) as Record<string, unknown>;
  for (const [name, value] of given(settings)) {
    const field = fieldOf(schema, name);
    if (field === undefined) {
      const known = schema.fields
        .map((other) => other.localName)
        .sort()
        .join(', ');
      throw new TypeError(`unknown queue setting ${before}${name}; known are ${known}`);
    }
    message[name] = encodeValue(field, before + name, value);
  }
  return message as MessageShape<D>;
}

function encodeValue(field: DescField, name: string, value: unknown): unknown {
  switch (field.fieldKind) {
    case 'scalar':
      return encodeScalar(field.scalar, name, value);
    case 'enum':
      return numberOf(field.enum, name, value);
    case 'message':
      return encode(field.message, value as object, `${name}.`);
    case 'list':
      if (!Array.isArray(value)) throw wrongType(name, 'an array of strings', value);
      value.forEach((item, index) => requireText(`${name}[${index}]`, item));
      return [...(value as string[])];
    case 'map':
      if (typeof value !== 'object' || value === null) throw wrongType(name, 'an object of numbers', value);
      for (const [key, weight] of Object.entries(value))
        requireWhole(`${name}['${key}']`, weight, UINT32_MAX);
      return { ...value };
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function encodeScalar(scalar: ScalarType, name: string, value: unknown): unknown {
  if (isWide(scalar)) return toUint64(name, value);
  if (scalar === ScalarType.UINT32) requireWhole(name, value, UINT32_MAX);
  else if (scalar === ScalarType.STRING) requireText(name, value);
  else if (scalar === ScalarType.DOUBLE) requireRange(name, value, -Infinity, Infinity);
  else if (typeof value !== 'boolean') throw wrongType(name, 'a boolean', value);
  return value;
}

function numberOf(desc: DescEnum, name: string, value: unknown): number {
  requireText(name, value);
  const member = desc.values.find((known) => known.number !== 0 && known.localName.toLowerCase() === value);
  if (member !== undefined) return member.number;
  const words = desc.values
    .filter((known) => known.number !== 0)
    .map((known) => `'${known.localName.toLowerCase()}'`);
  throw new RangeError(`${name} must be ${words.join(' or ')}, got '${value}'`);
}
