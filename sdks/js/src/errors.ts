/**
 * Every way a call can fail, drawn once.
 *
 * ```text
 * FilaError                    what was asked for did not happen, unless a class says otherwise
 * ├── NotFound
 * │   ├── QueueNotFound        .queue
 * │   ├── ChannelNotFound      .queue .channel
 * │   ├── MessageNotFound      .queue .messageId
 * │   └── ConfigKeyNotFound    .configKey
 * ├── Exists
 * │   ├── QueueExists          .queue
 * │   └── ChannelExists        .queue .channel
 * ├── Invalid                  .field          the request is wrong; repeating it changes nothing
 * │   └── LimitExceeded        .field
 * ├── Conflict                                 right once, or right in another state
 * │   ├── LeaseLost            .messageId .leaseId
 * │   └── SourceQueueGone      .queue
 * ├── Overloaded               .retryAfterMs   capacity; the same call may succeed later
 * │   ├── QueueFull            .queue
 * │   ├── HooksFull            .queue
 * │   └── DiskFloor
 * ├── Unavailable                              the broker could not be reached, or is stopping
 * │   ├── AnswerLost                           it may or may not have happened: the answer is missing
 * │   └── NotOwner             .owner          another node of the group serves; nothing happened
 * ├── NotSupported                             this broker does not do that (yet)
 * ├── NotAllowed                               who you are does not permit it
 * ├── InternalError                            the broker's own mistake; its log has the rest
 * │   └── LogDamaged                           what can't be read, and where to read on
 * ├── ClientClosed                             this client was closed
 * └── SomeFailed               .results        some items of a batch; results has one entry an item
 * ```
 *
 * Beside these, an argument of a wrong type is a `TypeError`, one out of range a `RangeError`, and a call
 * that is aborted rejects with its signal's `reason`.
 */

/** A gRPC status, by its name. */
export type StatusName =
  | 'OK'
  | 'CANCELLED'
  | 'UNKNOWN'
  | 'INVALID_ARGUMENT'
  | 'DEADLINE_EXCEEDED'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'OUT_OF_RANGE'
  | 'UNIMPLEMENTED'
  | 'INTERNAL'
  | 'UNAVAILABLE'
  | 'DATA_LOSS'
  | 'UNAUTHENTICATED';

/** What is known about a failed call besides its text: from the broker's answer, else from the request. */
export interface ErrorFacts {
  readonly code?: StatusName;
  readonly reason?: string;
  readonly cause?: unknown;
  readonly queue?: string;
  readonly channel?: string;
  readonly messageId?: string;
  readonly leaseId?: bigint;
  readonly configKey?: string;
  readonly field?: string;
  readonly retryAfterMs?: number;
  readonly owner?: string;
}

/** The root. `message` is a sentence for people; `code`, `reason` and the classes are for programs. */
export class FilaError extends Error {
  /** @internal The status that belongs to the class. */
  static readonly code: StatusName = 'UNKNOWN';

  /** The gRPC status. */
  readonly code: StatusName;
  /** The broker's word for what happened, such as `QUEUE_NOT_FOUND`; empty when the broker said nothing. */
  readonly reason: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = facts.code ?? new.target.code;
    this.reason = facts.reason ?? '';
  }
}

/** What was named does not exist. */
export class NotFound extends FilaError {
  static override readonly code: StatusName = 'NOT_FOUND';
  readonly queue: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.queue = facts.queue ?? '';
  }
}

/** There is no queue of that name. */
export class QueueNotFound extends NotFound {}

/** The queue exists, but has no such channel. */
export class ChannelNotFound extends NotFound {
  readonly channel: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.channel = facts.channel ?? '';
  }
}

/** The message is not stored (done, dropped, purged), or is not leased and no lease was given. */
export class MessageNotFound extends NotFound {
  readonly messageId: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.messageId = facts.messageId ?? '';
  }
}

/** The runtime config has no such key. */
export class ConfigKeyNotFound extends NotFound {
  readonly configKey: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.configKey = facts.configKey ?? '';
  }
}

/** What should have been made exists already. */
export class Exists extends FilaError {
  static override readonly code: StatusName = 'ALREADY_EXISTS';
  readonly queue: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.queue = facts.queue ?? '';
  }
}

/** A queue of that name exists. */
export class QueueExists extends Exists {}

/** The queue has a channel of that name. */
export class ChannelExists extends Exists {
  readonly channel: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.channel = facts.channel ?? '';
  }
}

/** The request itself is wrong. The text names the field and its bound. */
export class Invalid extends FilaError {
  static override readonly code: StatusName = 'INVALID_ARGUMENT';
  readonly field: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.field = facts.field ?? '';
  }
}

/** A bound of the broker's `[limits]` was passed. */
export class LimitExceeded extends Invalid {}

/** The request was right once, or would be right in another state. */
export class Conflict extends FilaError {
  static override readonly code: StatusName = 'FAILED_PRECONDITION';
}

/** The message is stored, but this delivery's lease is over: it was, or will be, delivered again. */
export class LeaseLost extends Conflict {
  readonly messageId: string;
  readonly leaseId: bigint;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.messageId = facts.messageId ?? '';
    this.leaseId = facts.leaseId ?? 0n;
  }
}

/** A dead letter cannot go back: the queue it came from was deleted. */
export class SourceQueueGone extends Conflict {
  readonly queue: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.queue = facts.queue ?? '';
  }
}

/** The broker is at a bound of its capacity and stored nothing. */
export class Overloaded extends FilaError {
  static override readonly code: StatusName = 'RESOURCE_EXHAUSTED';
  /** Milliseconds after which the broker suggests to try again; undefined when it said nothing. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.retryAfterMs = facts.retryAfterMs;
  }
}

/** The queue is at its `maxDepth` or `maxBytes`. */
export class QueueFull extends Overloaded {
  readonly queue: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.queue = facts.queue ?? '';
  }
}

/** Too many messages wait for a queue's script that fails (`hookFallback: 'hold'`). */
export class HooksFull extends Overloaded {
  readonly queue: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.queue = facts.queue ?? '';
  }
}

/** The broker's disk is nearly full: enqueues are refused, acks and deliveries go on. */
export class DiskFloor extends Overloaded {}

/** The broker could not be reached, or is stopping. Nothing happened, unless it is an AnswerLost. */
export class Unavailable extends FilaError {
  static override readonly code: StatusName = 'UNAVAILABLE';
}

/** The request may have arrived, but no answer came: it may or may not have happened. */
export class AnswerLost extends Unavailable {}

/** This node of a group stands by, and another one serves. The client goes there by itself. */
export class NotOwner extends Unavailable {
  /** The address of the node that serves; empty where it is not known. */
  readonly owner: string;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts);
    this.owner = facts.owner ?? '';
  }
}

/** The broker does not implement this. */
export class NotSupported extends FilaError {
  static override readonly code: StatusName = 'UNIMPLEMENTED';
}

/** Missing or insufficient credentials. */
export class NotAllowed extends FilaError {
  static override readonly code: StatusName = 'PERMISSION_DENIED';
}

/** The broker's own mistake. */
export class InternalError extends FilaError {
  static override readonly code: StatusName = 'INTERNAL';
}

/** `readLog` came to messages that the broker's disk damaged; the text says from which offset to read on. */
export class LogDamaged extends InternalError {
  static override readonly code: StatusName = 'DATA_LOSS';
}

/** The call was made on, or outlived, a closed client. */
export class ClientClosed extends FilaError {
  static override readonly code: StatusName = 'CANCELLED';
}

/** Some items of a batch failed; the others went well. */
export class SomeFailed<T = unknown> extends FilaError {
  /** One entry an item, in order: what that item gave, or its FilaError. */
  readonly results: readonly (T | FilaError)[];

  constructor(results: readonly (T | FilaError)[]) {
    const failures = results.filter((result) => result instanceof FilaError);
    const [first] = failures;
    super(`${failures.length} of ${results.length} failed; the first: ${first?.message ?? ''}`, {
      code: first?.code ?? 'UNKNOWN',
      reason: first?.reason ?? '',
      cause: first,
    });
    this.results = results;
  }

  /** The errors by position in the batch. */
  get failures(): Map<number, FilaError> {
    const failures = new Map<number, FilaError>();
    this.results.forEach((result, index) => {
      if (result instanceof FilaError) failures.set(index, result);
    });
    return failures;
  }
}
