/** Limits: what the messages that name a throttle key may use of it, over all queues. */

import type {
  LimitBudgetSettings,
  LimitRateSettings,
  LimitSettings,
  LimitsOptions,
  SignalOption,
} from './admin-options.js';
import { requireRange, requireText, requireWhole, toUint64, UINT32_MAX, wrongType } from './arguments.js';
import { FilaAdmin } from './gen/fila/v1/admin_pb.js';
import {
  type Limit as WireLimit,
  type LimitState as WireLimitState,
  Limit_Unit,
  LimitSchema,
  LimitStateSchema,
  type ListLimitsResponse,
  ListLimitsResponseSchema,
} from './gen/fila/v1/limit_pb.js';
import { type Plain, plain } from './plain.js';
import { given } from './request-fields.js';
import { ScheduleCalls } from './schedules.js';

/** A limit as it was set. */
export interface Limit extends Plain<WireLimit> {}

/** A limit as it is now. */
export interface LimitState extends Plain<WireLimitState> {}

/** Limits in the order of their names' bytes. */
export interface LimitPage extends Plain<ListLimitsResponse> {}

const { method } = FilaAdmin;

const UNITS = { messages: Limit_Unit.MESSAGES, cost: Limit_Unit.COST } as const;

/** The calls of FilaAdmin about limits. All need the right `admin`. */
export abstract class LimitCalls extends ScheduleCalls {
  /**
   * Sets the limit of a throttle key as a whole, or where the name ends in a `*` that of each throttle key which begins
   * so. Rejects with Invalid, LimitExceeded.
   */
  async setLimit(name: string, parts: LimitSettings, options: SignalOption = {}): Promise<Limit> {
    requireText('name', name);
    const request = { limit: { name, ...encoded(parts) } };
    return plain(LimitSchema, (await this.ask(method.setLimit, request, {}, options)).limit as WireLimit);
  }

  /**
   * The limit that messages with this throttle key meet, its own or that of a pattern, and what of it is used;
   * undefined where nothing limits it.
   */
  async getLimit(throttleKey: string, options: SignalOption = {}): Promise<LimitState | undefined> {
    requireText('throttleKey', throttleKey);
    const [state] = (await this.ask(method.listLimits, { throttleKey }, {}, options)).limits;
    return state && plain(LimitStateSchema, state);
  }

  /** The limits whose names begin with `prefix`. */
  async listLimits(prefix = '', options: LimitsOptions = {}): Promise<LimitPage> {
    const { after = '', maxLimits = 0 } = options;
    requireText('prefix', prefix);
    requireText('after', after);
    requireWhole('maxLimits', maxLimits, UINT32_MAX);
    const request = { prefix, after, maxLimits };
    return plain(ListLimitsResponseSchema, await this.ask(method.listLimits, request, {}, options));
  }

  /** Deletes a limit by the name it was set with; what waits for it goes. Rejects with NotFound. */
  async deleteLimit(name: string, options: SignalOption = {}): Promise<void> {
    requireText('name', name);
    await this.ask(method.deleteLimit, { limitName: name }, {}, options);
  }

  /**
   * Says how much of its budget a throttle key has spent in this period. Resolves with how its limit is then. Rejects
   * with NotFound, Invalid.
   */
  async resetLimit(throttleKey: string, spent = 0, options: SignalOption = {}): Promise<LimitState> {
    requireText('throttleKey', throttleKey);
    requireRange('spent', spent, 0, Infinity);
    const { limit } = await this.ask(method.resetLimit, { throttleKey, spent }, {}, options);
    return plain(LimitStateSchema, limit as WireLimitState);
  }
}

function encoded(parts: LimitSettings) {
  const { rates = [], maxInFlight = 0, budget, learn, shadow = false } = parts;
  if (!Array.isArray(rates)) throw wrongType('rates', 'an array', rates);
  requireWhole('maxInFlight', maxInFlight, UINT32_MAX);
  return {
    rates: rates.map((rate: LimitRateSettings, index) => encodedRate(`rates[${index}]`, rate)),
    maxInFlight,
    shadow,
    ...given({ budget: budget && encodedBudget(budget), learn: learn && encodedLearn(learn) }),
  };
}

function encodedRate(name: string, { perSecond, burst = 0, unit }: LimitRateSettings) {
  requireRange(`${name}.perSecond`, perSecond, 0, Infinity);
  requireRange(`${name}.burst`, burst, 0, Infinity);
  return { perSecond, burst, unit: unitOf(`${name}.unit`, unit) };
}

function encodedBudget({ amount, periodMs, anchorMs = 0, unit }: LimitBudgetSettings) {
  requireRange('budget.amount', amount, 0, Infinity);
  requireWhole('budget.anchorMs', Math.abs(anchorMs));
  return {
    amount,
    periodMs: toUint64('budget.periodMs', periodMs),
    anchorMs: BigInt(anchorMs),
    unit: unitOf('budget.unit', unit),
  };
}

function encodedLearn({ min, max }: { readonly min: number; readonly max: number }) {
  requireRange('learn.min', min, 0, Infinity);
  requireRange('learn.max', max, 0, Infinity);
  return { min, max };
}

function unitOf(name: string, unit: 'messages' | 'cost' = 'messages'): Limit_Unit {
  if (!Object.hasOwn(UNITS, unit)) {
    throw new RangeError(`${name} must be messages or cost, got '${unit as string}'`);
  }
  return UNITS[unit];
}
