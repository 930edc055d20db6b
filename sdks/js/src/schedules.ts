/** Schedules: messages that the broker enqueues by itself, by a cron line or at an interval. */

import type { ScheduleSettings, SchedulesOptions, SignalOption } from './admin-options.js';
import {
  payloadBytes,
  requireHeaders,
  requireText,
  requireTextIfGiven,
  requireWhole,
  toUint64,
  UINT32_MAX,
} from './arguments.js';
import { DeadLetterCalls } from './dead-letters.js';
import { FilaAdmin } from './gen/fila/v1/admin_pb.js';
import {
  type ListSchedulesResponse,
  ListSchedulesResponseSchema,
  MissedRule,
  type Schedule as WireSchedule,
  ScheduleSchema,
} from './gen/fila/v1/schedule_pb.js';
import { type Plain, plain } from './plain.js';

/** A schedule, and how it stands. */
export interface Schedule extends Plain<WireSchedule> {}

/** Schedules by queue, then by name. */
export interface SchedulePage extends Plain<ListSchedulesResponse> {}

const { method } = FilaAdmin;

const MISSED = { one: MissedRule.ONE, all: MissedRule.ALL, skip: MissedRule.SKIP } as const;

/** The calls of FilaAdmin about schedules. */
export abstract class ScheduleCalls extends DeadLetterCalls {
  /**
   * Makes a schedule of a queue. Rejects with QueueNotFound, Exists, Invalid (for a cron line that never fires, too).
   */
  async createSchedule(
    queue: string,
    schedule: string,
    settings: ScheduleSettings,
    options: SignalOption = {},
  ): Promise<Schedule> {
    requireSchedule(queue, schedule);
    const request = { queue, schedule, settings: encoded(settings) };
    return scheduleOf(await this.ask(method.createSchedule, request, { queue }, options));
  }

  /**
   * Gives a schedule these settings, and all that are left out their defaults. Rejects with QueueNotFound,
   * NotFound, Invalid.
   */
  async updateSchedule(
    queue: string,
    schedule: string,
    settings: ScheduleSettings,
    options: SignalOption = {},
  ): Promise<Schedule> {
    requireSchedule(queue, schedule);
    const request = { queue, schedule, settings: encoded(settings) };
    return scheduleOf(await this.ask(method.updateSchedule, request, { queue }, options));
  }

  /**
   * Pauses a schedule, `comment` says why, or lets it go on with the first moment that comes. Rejects with
   * QueueNotFound, NotFound.
   */
  async pauseSchedule(
    queue: string,
    schedule: string,
    paused = true,
    options: SignalOption & { readonly comment?: string } = {},
  ): Promise<Schedule> {
    requireSchedule(queue, schedule);
    const request = { queue, schedule, paused, comment: options.comment ?? '' };
    return scheduleOf(await this.ask(method.pauseSchedule, request, { queue }, options));
  }

  /** Deletes a schedule; what it has enqueued stays. Rejects with QueueNotFound, NotFound. */
  async deleteSchedule(queue: string, schedule: string, options: SignalOption = {}): Promise<void> {
    requireSchedule(queue, schedule);
    await this.ask(method.deleteSchedule, { queue, schedule }, { queue }, options);
  }

  /** How a schedule stands, with its next five moments. Rejects with QueueNotFound, NotFound. */
  async getSchedule(queue: string, schedule: string, options: SignalOption = {}): Promise<Schedule> {
    requireSchedule(queue, schedule);
    return scheduleOf(await this.ask(method.getSchedule, { queue, schedule }, { queue }, options));
  }

  /** Schedules with their next five moments, of one queue or, for the name '', of all. */
  async listSchedules(queue = '', options: SchedulesOptions = {}): Promise<SchedulePage> {
    const { pageSize = 0, pageToken = '' } = options;
    requireText('queue', queue);
    requireWhole('pageSize', pageSize, UINT32_MAX);
    requireText('pageToken', pageToken);
    const request = { queue, pageSize, pageToken };
    return plain(
      ListSchedulesResponseSchema,
      await this.ask(method.listSchedules, request, { queue }, options),
    );
  }
}

function requireSchedule(queue: unknown, schedule: unknown): void {
  requireText('queue', queue);
  requireText('schedule', schedule);
}

function scheduleOf({ schedule }: { schedule?: WireSchedule | undefined }): Schedule {
  return plain(ScheduleSchema, schedule as WireSchedule);
}

function encoded(settings: ScheduleSettings) {
  const { cron, everyMs = 0, timeZone, payload = '', headers = {}, ttlMs = 0 } = settings;
  const { missed = 'one', paused = false } = settings;
  requireTextIfGiven('cron', cron);
  requireTextIfGiven('timeZone', timeZone);
  requireHeaders(headers);
  if (!Object.hasOwn(MISSED, missed)) {
    throw new RangeError(`missed must be one, all or skip, got '${missed as string}'`);
  }
  return {
    cron: cron ?? '',
    everyMs: toUint64('everyMs', everyMs),
    timeZone: timeZone ?? '',
    payload: payloadBytes(payload),
    headers: { ...headers },
    ttlMs: toUint64('ttlMs', ttlMs),
    missed: MISSED[missed],
    paused,
  };
}
