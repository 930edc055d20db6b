/**
 * The wire's answers as plain objects: whole numbers are `number`, moments are `Date`, enums are words.
 *
 * What a newer broker's contract adds appears in them as soon as the stubs are generated from it. Counts,
 * bytes and offsets are below 2^53 for as long as anybody will run a broker (at a million messages a second
 * an offset gets there in 285 years), so they are numbers; a lease id is only compared and given back, and
 * stays the bigint it is.
 */

import type { DescEnum, DescField, DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';

import type {
  BreakerState,
  Durability,
  ExplainKeyResponse_State,
  GetMessageResponse_State,
  HookFallback,
  RetryPolicy_Kind,
} from './gen/fila/v1/admin_pb.js';
import type { Right } from './gen/fila/v1/auth_pb.js';
import type { DiskLevel, Forecast_Unknown, LateKey_Cause } from './gen/fila/v1/events_pb.js';
import type { Limit_Unit, LimitPart } from './gen/fila/v1/limit_pb.js';
import type { Operation_State, StartOperationRequest_Kind } from './gen/fila/v1/operation_pb.js';
import type { MissedRule } from './gen/fila/v1/schedule_pb.js';
import type { CancelMessagesResponse_Outcome } from './gen/fila/v1/service_pb.js';
import type { KeyState_State } from './gen/fila/v1/watch_pb.js';
import { toDate } from './times.js';

/** An enum's words, in lower case. */
type Word<T> = T extends Durability
  ? Lowercase<keyof typeof Durability>
  : T extends HookFallback
    ? Lowercase<keyof typeof HookFallback>
    : T extends RetryPolicy_Kind
      ? Lowercase<keyof typeof RetryPolicy_Kind>
      : T extends BreakerState
        ? Lowercase<keyof typeof BreakerState>
        : T extends ExplainKeyResponse_State
          ? Lowercase<keyof typeof ExplainKeyResponse_State>
          : T extends Forecast_Unknown
            ? Lowercase<keyof typeof Forecast_Unknown>
            : T extends KeyState_State
              ? Lowercase<keyof typeof KeyState_State>
              : T extends LateKey_Cause
                ? Lowercase<keyof typeof LateKey_Cause>
                : T extends DiskLevel
                  ? Lowercase<keyof typeof DiskLevel>
                  : T extends Operation_State
                    ? Lowercase<keyof typeof Operation_State>
                    : T extends StartOperationRequest_Kind
                      ? Lowercase<keyof typeof StartOperationRequest_Kind>
                      : T extends Right
                        ? Lowercase<keyof typeof Right>
                        : T extends GetMessageResponse_State
                          ? Lowercase<keyof typeof GetMessageResponse_State>
                          : T extends CancelMessagesResponse_Outcome
                            ? Lowercase<keyof typeof CancelMessagesResponse_Outcome>
                            : T extends MissedRule
                              ? Lowercase<keyof typeof MissedRule>
                              : T extends LimitPart
                                ? Lowercase<keyof typeof LimitPart>
                                : T extends Limit_Unit
                                  ? Lowercase<keyof typeof Limit_Unit>
                                  : number;

/** In `number`, and in no enum. */
type AnyNumber = 999_999;

/** A message of the wire, as a plain object. */
export type Plain<T> = T extends bigint
  ? number
  : T extends string | boolean | Uint8Array | undefined
    ? T
    : T extends number
      ? AnyNumber extends T
        ? number
        : Word<T>
      : T extends Timestamp
        ? Date
        : T extends readonly (infer E)[]
          ? readonly Plain<E>[]
          : T extends Message
            ? { readonly [K in keyof T as K extends keyof Message ? never : K]: Plain<T[K]> }
            : { readonly [K in keyof T]: Plain<T[K]> };

/** Returns a message of the wire as a plain object. */
export function plain<D extends DescMessage>(schema: D, message: MessageShape<D>): Plain<MessageShape<D>> {
  const values: Record<string, unknown> = {};
  const given = message as unknown as Record<string, unknown>;
  for (const field of schema.fields) {
    const value = given[field.localName];
    if (value !== undefined) values[field.localName] = plainValue(field, value);
  }
  return values as Plain<MessageShape<D>>;
}

function plainValue(field: DescField, value: unknown): unknown {
  switch (field.fieldKind) {
    case 'scalar':
      return isWide(field.scalar) ? Number(value) : value;
    case 'enum':
      return word(field.enum, value as number);
    case 'message':
      return plainMessage(field.message, value as Message);
    case 'list':
      return (value as unknown[]).map((item) => {
        if (field.listKind === 'message') return plainMessage(field.message, item as Message);
        if (field.listKind === 'enum') return word(field.enum, item as number);
        return isWide(field.scalar) ? Number(item) : item;
      });
    case 'map': {
      const wide = field.mapKind === 'scalar' && isWide(field.scalar);
      if (!wide) return { ...(value as object) };
      const entries = Object.entries(value as Record<string, bigint>);
      return Object.fromEntries(entries.map(([name, count]) => [name, Number(count)]));
    }
  }
}

function plainMessage(schema: DescMessage, message: Message): unknown {
  return schema.typeName === TimestampSchema.typeName ? toDate(message as Timestamp) : plain(schema, message);
}

/** Whether the wire has 64 bits for it. */
export function isWide(scalar: ScalarType): boolean {
  return scalar === ScalarType.UINT64 || scalar === ScalarType.INT64;
}

function word(desc: DescEnum, number: number): string {
  return desc.value[number]?.localName.toLowerCase() ?? String(number);
}
