/** What the calls of operators may be told. */

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

/** Which messages to drop. */
export interface PurgeOptions extends TimeoutOption {
  /** Only this key's. */
  readonly fairnessKey?: string;
  /** Only in this channel; in every one when left out. */
  readonly channel?: string;
}

/** Which messages to look at. */
export interface PeekOptions extends ChannelOption {
  /** At most so many; default 10, at most 1,000. */
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
  /** Most messages of this key leased at once in a channel; 0 for no cap. */
  readonly maxInFlight?: number;
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
