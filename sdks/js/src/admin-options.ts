/** What the calls of operators may be told. */

/** Which queues to list. */
export interface ListQueuesOptions {
  /** Only queues whose names begin so, in letters of either case. */
  readonly prefix?: string;
  /** Only queues whose names have this in them, in letters of either case. */
  readonly containing?: string;
  /** At most so many, up to 1,000; 0 for all. */
  readonly pageSize?: number;
  /** Those behind this name: the last one of the page before. */
  readonly pageToken?: string;
}

/** What every call takes. */
export interface SignalOption {
  /** Ends the call, which rejects with the signal's reason. What had been sent may happen all the same. */
  readonly signal?: AbortSignal;
}

/** What a call about one channel takes. */
export interface ChannelOption extends SignalOption {
  /** The channel; `default` when left out. */
  readonly channel?: string;
}

/** A call that may take longer than `callTimeoutMs`. */
export interface TimeoutOption extends SignalOption {
  /** How long each attempt may go unanswered; `callTimeoutMs` when left out. */
  readonly timeoutMs?: number;
}

/** A call that refuses to do harm unless told so. */
export interface ForceOption extends SignalOption {
  /** Do it all the same. */
  readonly force?: boolean;
}

/** What goes with a change of settings. */
export interface UpdateQueueOptions extends SignalOption {
  /** Change them only if this is their version, as `getQueue` tells it. */
  readonly expectedVersion?: number;
  /** Why; kept with the version, at most 1,024 bytes. */
  readonly comment?: string;
}

/** Which messages to drop. */
export interface PurgeOptions extends TimeoutOption {
  /** Only this key's. */
  readonly fairnessKey?: string;
  /** Only in this channel; in every one when left out. */
  readonly channel?: string;
}

/** One message: its id, or the dedup key that it was enqueued with. */
export type MessageName = string | { readonly messageId?: string; readonly dedupKey?: string };

/** Messages, by their ids and by their dedup keys. */
export interface MessageNames {
  readonly messageIds?: readonly string[];
  readonly dedupKeys?: readonly string[];
}

/** Which messages to look at. */
export interface PeekOptions extends ChannelOption {
  /** At most so many, up to 1,000; default 10, and 100 for `listPending`. */
  readonly maxMessages?: number;
  /** Only behind this offset: that of the last message turns the page. */
  readonly afterOffset?: number;
  /** Only this key's. */
  readonly fairnessKey?: string;
}

/** How many dead letters go back, and how fast. */
export interface RedriveOptions extends TimeoutOption {
  /** At most so many; all that are there at the start when left out. */
  readonly count?: number;
  /** The pace; as fast as it goes when left out. Paced, it takes its time: give `timeoutMs`. */
  readonly ratePerSecond?: number;
  /** Just those with these offsets, at most 1,000. */
  readonly offsets?: readonly number[];
}

/** Where a channel begins. */
export interface CreateChannelOptions extends SignalOption {
  /** At the head (the default), the oldest retained message, an offset, or a moment. */
  readonly start?: 'head' | 'oldest' | number | Date;
  /**
   * Delete the channel after this long without a stream, pull or lease: at least 1,000; never when left out.
   */
  readonly expiresAfterIdleMs?: number;
}

/** What to change about a fairness key; what is left out stays. */
export interface KeyPolicyChange {
  /** 1 to 1000; 0 takes the operator's weight away. */
  readonly weight?: number;
  /** Deliver nothing of this key until it is resumed. */
  readonly paused?: boolean;
  /** Most messages of this key leased at once in a channel; 0 for no cap, also where `keyDefaults` have one. */
  readonly maxInFlight?: number;
  /**
   * Most messages of this key delivered a second, over all channels; 0 for no rate, also where the queue's
   * `keyDefaults` have one.
   */
  readonly ratePerSecond?: number;
  /** How many may be delivered at once after a pause, at least 1; 0 for one second's worth. Needs a rate. */
  readonly burst?: number;
  /** Take the operator's cap back: the queue's default holds for the key again. */
  readonly capByDefault?: boolean;
  /** Take the operator's rate and burst back: the queue's default holds for the key again. */
  readonly rateByDefault?: boolean;
  /**
   * Messages of this key that go, a second, before those of keys that are not within theirs, over all channels; 0 for
   * none, also where the queue's `keyDefaults` have one.
   */
  readonly committedPerSecond?: number;
  /** Take the operator's committed rate back: the queue's default holds for the key again. */
  readonly committedByDefault?: boolean;
  /** Why, in at most 1,024 bytes; kept in the audit, and with the pause where the key is paused. */
  readonly comment?: string;
}

/** A page of what is listed newest first. */
export interface PageOptions extends SignalOption {
  /** Only what has a number below this: the last one's, to turn the page. */
  readonly before?: number;
  /** At most so many. */
  readonly limit?: number;
}

/** Of what is wrong, what to tell. */
export interface StatusOptions extends SignalOption {
  /** Only troubles of this queue; of all that may be seen when left out. */
  readonly queue?: string;
  /** Leave out the pauses of other keys. */
  readonly fairnessKey?: string;
  /** At most so many; default 4, at most 100. */
  readonly maxTroubles?: number;
}

/** Which keys to rank. */
export interface LateOptions extends SignalOption {
  /** Only this queue's; every queue's when left out. */
  readonly queue?: string;
  /** At most so many; default 20, at most 1,000. */
  readonly maxKeys?: number;
}

/** What to look back at. */
export interface SeriesOptions extends ChannelOption {
  /** Keys to tell besides, at most 50; they are recorded from then on, for the hour that follows. */
  readonly keys?: readonly string[];
}

/** What to watch. */
export interface WatchStatsOptions extends ChannelOption {
  /** The queues, at most 20; all of them, keys left out, when left out. */
  readonly queues?: readonly string[];
  /** By what the leading keys are ranked, largest first; default `backlog`. */
  readonly order?: 'backlog' | 'late' | 'arriving' | 'served' | 'off_share';
  /** How many leading keys to tell, at most 50; default 20. */
  readonly top?: number;
  /** Keys to tell besides, at most 50. */
  readonly keys?: readonly string[];
}

/** Which events to tell: all that is given must hold. */
export interface WatchEventsOptions extends SignalOption {
  /** Only of this queue. */
  readonly queue?: string;
  /** Only of these kinds: `queue.created`, or `queue` for all that begin with it. At most 64. */
  readonly kinds?: readonly string[];
  /** Only of this fairness key. */
  readonly fairnessKey?: string;
  /** Only those after this event's `position`. */
  readonly afterPosition?: number;
  /** Go on with what happens; without it the loop ends with what is kept. */
  readonly follow?: boolean;
}

/** Which dead letters are meant: all that is given must hold. */
export interface DeadLetterFilter {
  /** Only of this fairness key. */
  readonly fairnessKey?: string;
  /** Only those that died of this: `max_attempts`, `on_failure`, `ttl`, `rejected` or `skipped`. */
  readonly reason?: string;
  /** Only those whose last error has this text in it. */
  readonly error?: string;
  /** Only those that died at this moment or later. */
  readonly diedFrom?: Date;
  /** Only those that died before this moment. */
  readonly diedBefore?: Date;
  /** Only those that failed in this channel. */
  readonly sourceChannel?: string;
}

/** Which dead letters an operation means, and how fast it goes. */
export interface OperationOptions extends SignalOption {
  /** Those that are meant; all that are there at the start when left out. */
  readonly filter?: DeadLetterFilter;
  /** Most messages a second; as fast as it goes when left out. */
  readonly ratePerSecond?: number;
}

/** When a schedule fires, and what it enqueues; exactly one of `cron` and `everyMs` is given. */
export interface ScheduleSettings {
  /** Five fields: minute, hour, day of month, month, day of week, such as `0 9 * * 1-5`. */
  readonly cron?: string;
  /** From one firing to the next, at least 1,000; counted from when the schedule was made. */
  readonly everyMs?: number;
  /** Whose clocks `cron` means, such as `Europe/Berlin`; UTC when left out. */
  readonly timeZone?: string;
  readonly payload?: Uint8Array | string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long a message waits for its delivery before it expires; for ever when left out. */
  readonly ttlMs?: number;
  /**
   * What becomes of moments at which the broker could not fire: one message for all, the default; one for each, at
   * most 100; none.
   */
  readonly missed?: 'one' | 'all' | 'skip';
  /** It does not fire; default false. */
  readonly paused?: boolean;
}

/** How many schedules to list, and behind which. */
export interface SchedulesOptions extends SignalOption {
  /** At most so many, up to 1,000; default 100. */
  readonly pageSize?: number;
  /** An earlier page's `nextPageToken`. */
  readonly pageToken?: string;
}

/** A limit's parts; at least one of rates, slots and a budget. */
export interface LimitSettings {
  /** At most 4. */
  readonly rates?: readonly LimitRateSettings[];
  /** Slots: most messages in flight at once, over all queues; any number when left out. */
  readonly maxInFlight?: number;
  readonly budget?: LimitBudgetSettings;
  /**
   * Follow the provider from the first rate on, between so many messages a second, as workers tell of it
   * (`Message.limited`).
   */
  readonly learn?: { readonly min: number; readonly max: number };
  /** Judge and count, and hold nothing; default false. */
  readonly shadow?: boolean;
}

/** A token bucket of a limit. */
export interface LimitRateSettings {
  /** From 0 (nothing goes) to 1e9; 60 a minute are 1. */
  readonly perSecond: number;
  /** How much may go at once after a pause, from 1 to 1e9; one second's worth when left out. */
  readonly burst?: number;
  /** What it counts: each message as 1, the default, or as its cost. */
  readonly unit?: 'messages' | 'cost';
}

/** So much within each of periods of one length, which follow each other. */
export interface LimitBudgetSettings {
  /** Above 0, up to 1e12. */
  readonly amount: number;
  /** From 1,000 to 31,622,400,000, which are 366 days. */
  readonly periodMs: number;
  /** When a period begins, in milliseconds since 1970 in UTC; default 0. */
  readonly anchorMs?: number;
  /** What it counts: each message as 1, the default, or as its cost. */
  readonly unit?: 'messages' | 'cost';
}

/** How many limits to list, and behind which. */
export interface LimitsOptions extends SignalOption {
  /** Only those behind this name, in the order of their bytes. */
  readonly after?: string;
  /** At most so many, up to 1,000; default 100. */
  readonly maxLimits?: number;
}

/** How long a new key is valid, and whose messages it sends. */
export interface CreateKeyOptions extends SignalOption {
  /** For ever when left out. */
  readonly expiresAfterMs?: number;
  /**
   * Bind the messages of its holder to this fairness key; only for a name that is new, and with no right but
   * produce and view.
   */
  readonly asTenant?: string;
}

/** How long a tenant's link is valid, and what it may do. */
export interface CreateTenantLinkOptions extends SignalOption {
  /** 7 days when left out, 90 at most; of one that produces for ever when left out, 10 years at most. */
  readonly ttlMs?: number;
  /**
   * `view` shows one fairness key's numbers, also when left out. `produce` is the end of a webhook's address: it only
   * sends, and what it sends has the link's fairness key, or the queue's if that is empty.
   */
  readonly right?: 'view' | 'produce';
}

/** How the old key ends, and the new one. */
export interface RotateKeyOptions extends SignalOption {
  /** How long the old key stays valid beside the new one; not at all when left out. */
  readonly overlapMs?: number;
  /** How long the new one is valid; for ever when left out. */
  readonly expiresAfterMs?: number;
}

/** Rights on queues, by names or patterns such as `orders.*`. */
export interface Rights {
  /** To enqueue. */
  readonly produce?: readonly string[];
  /** To receive, settle, peek and read the log; `orders.*:billing` names channels too. */
  readonly consume?: readonly string[];
  /** To create, change, purge, seek and delete queues and channels. */
  readonly manage?: readonly string[];
  /** To look at numbers and events; at no message. */
  readonly view?: readonly string[];
  /** To take messages back. */
  readonly cancel?: readonly string[];
  /** To everything, keys and runtime config included. */
  readonly admin?: boolean;
}

/** Bounds of what a name may use, all its keys together; what is left out is not bounded. */
export interface QuotaOptions {
  /** Messages enqueued a second. */
  readonly messagesPerSecond?: number;
  /** Bytes of enqueue requests a second. */
  readonly bytesPerSecond?: number;
  /** Connections of the Redis protocol at a time. */
  readonly connections?: number;
  /** Streams and waiting pulls at a time. */
  readonly streams?: number;
  /** Messages leased at a time, in all queues; for names that are not bound to a tenant. */
  readonly inFlight?: number;
  /** Bytes stored of its tenant's messages, in all queues; for names that are bound to a tenant. */
  readonly storedBytes?: number;
}

/** What to read from a log: all the bounds given must hold. */
export interface ReadLogOptions extends SignalOption {
  /** The first offset; the oldest retained when left out. */
  readonly fromOffset?: number;
  /** Read below this offset; up to the head as of the call when left out. */
  readonly toOffset?: number;
  /** Only what was appended at this moment or later. */
  readonly fromTime?: Date;
  /** Only what was appended before this moment. */
  readonly toTime?: Date;
  /** Only this key's messages. */
  readonly fairnessKey?: string;
  /** Most messages that travel together; default 100. */
  readonly maxBatch?: number;
}
