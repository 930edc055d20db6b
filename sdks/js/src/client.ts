/**
 * The client. One is one connection, one stream for all it enqueues, and one stream for each consumer; any
 * part of a program may share it.
 */

import type { ChannelOption, SignalOption } from './admin-options.js';
import { requireCount, requireText, requireWhole, UINT32_MAX } from './arguments.js';
import { Connection } from './connection.js';
import type { ConnectionEvent } from './connection-event.js';
import { Consumer } from './consumer.js';
import { ManyEnqueues, type Messages } from './enqueue-many.js';
import { FilaError, SomeFailed } from './errors.js';
import { FilaService } from './gen/fila/v1/service_pb.js';
import { KeyCalls } from './keys.js';
import { LeaseMemory } from './leases.js';
import { Message, type NackOptions } from './message.js';
import { encodeMessage, mayRepeat, type Enqueued, type MessageOptions } from './new-message.js';
import { type ClientOptions, type Prefetch, requirePrefetch, settingsOf } from './options.js';
import { Producer } from './producer.js';
import { Session, type SessionPlan } from './session.js';
import { ACK, nackVerdict, rejectVerdict, RELEASE, type Settlement, type Verdict } from './settlement.js';
import { Settler } from './settler.js';
import { lookForTracing } from './tracing.js';

/** How much longer than `waitMs` a pull may go unanswered. */
const LEASE_GRACE_MS = 10_000;

/** What a consumer may be told. */
export interface ConsumeOptions extends ChannelOption {
  /** Messages held at once, those in your hands included; the client's `prefetch` when left out. */
  readonly prefetch?: Prefetch;
  /**
   * End the loop when nothing arrived for so many milliseconds; never when left out. Time in which the broker
   * is not heard does not count: an outage is not an empty queue.
   */
  readonly stopWhenIdleMs?: number;
  /** The consumer's name for people, at most 128 bytes; `listConsumers` shows it. */
  readonly name?: string;
  /**
   * How long the broker keeps the lease of a message that you work on, for as long as this consumer is alive.
   * Default 600,000 (10 min); 0 leaves the queue's visibility timeout; at most 43,200,000 (12 h).
   */
  readonly maxLeaseRenewalMs?: number;
}

/** What a pull may be told. */
export interface LeaseOptions extends ChannelOption {
  /** At most so many messages, up to 10,000; default 1. */
  readonly maxMessages?: number;
  /** How long to wait for the first message; default 0. */
  readonly waitMs?: number;
}

/** What a nack of a message by its id may ask for. */
export interface NackByIdOptions extends NackOptions, ChannelOption {}

/**
 * A client of one broker.
 *
 * ```ts
 * const client = await FilaClient.connect('localhost:5555');
 * const { id } = await client.enqueue('orders', 'one coffee', { headers: { tenant: 'acme' } });
 * for await (const message of client.consume('orders')) await message.ack();
 * ```
 *
 * Every call rejects with a FilaError, which draws the tree; a TypeError or RangeError for an argument that
 * can't be right; or the reason of the signal that ended it.
 */
export class FilaClient extends KeyCalls {
  readonly #options: ClientOptions;
  readonly #producer: Producer;
  /** What was leased by pulling, and what outlived its consumer, by queue and channel. */
  readonly #pulled = new Map<string, { readonly settler: Settler; readonly leases: LeaseMemory }>();
  readonly #sessions = new Set<Session>();
  #closing: Promise<void> | undefined;

  private constructor(connection: Connection, options: ClientOptions) {
    super(connection);
    this.#options = options;
    this.#producer = new Producer(connection);
  }

  /**
   * Connects to the broker at `address`, `host:port` with or without `http://` (`https://` for TLS); of
   * several addresses to the first that answers, and later, when the connection breaks, to the next. Without an
   * address it is the environment's `FILA_ADDR`, or localhost:5555. Rejects with Unavailable when none answers within
   * `connectTimeoutMs`, and at once when the two do not agree on TLS, or something else answers there.
   */
  static async connect(
    address: string | readonly string[] = process.env['FILA_ADDR'] || 'localhost:5555',
    options: ClientOptions & SignalOption = {},
  ): Promise<FilaClient> {
    const { signal, ...others } = options;
    const connection = new Connection(address, settingsOf(others));
    const { clock, connectTimeoutMs } = connection.settings;
    try {
      await lookForTracing();
      await connection.ready(clock.now() + connectTimeoutMs, signal);
    } catch (error) {
      connection.close();
      throw error;
    }
    return new FilaClient(connection, others);
  }

  /**
   * Sends what waits, settles what is under way, gives back what consumers hold, and disconnects. Nothing of
   * the client keeps the process running after that.
   *
   * Messages in your hands go back uncounted. With `release: false` they have failed instead, when the
   * queue's `disconnectGraceMs` is over: for an end by an error whose cause they may be.
   */
  close({ release = true }: { readonly release?: boolean } = {}): Promise<void> {
    this.#closing ??= this.#close(release);
    return this.#closing;
  }

  async #close(release: boolean): Promise<void> {
    await this.#producer.close();
    const settlers = [...this.#sessions].map((session) => session.settler);
    for (const { settler } of this.#pulled.values()) settlers.push(settler);
    await Promise.all(settlers.map((settler) => settler.close()));
    await Promise.all([...this.#sessions].map((session) => session.close(release)));
    this.connection.close();
  }

  /** As `close`: `await using client = await FilaClient.connect(...)`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // Producing.

  /**
   * Stores one message; resolves with its id and offset once it is as durable as the queue asks for.
   * Concurrent calls travel together; a call alone is sent at once.
   *
   * Rejects with QueueNotFound, Invalid, Overloaded; Unavailable when it was certainly not sent; AnswerLost
   * when it was sent and the answer did not come. An enqueue whose answer was lost is never repeated by the
   * client, unless it has a dedup key: it could be stored twice.
   */
  async enqueue(
    queue: string,
    payload: Uint8Array | string,
    options: MessageOptions & SignalOption = {},
  ): Promise<Enqueued> {
    requireText('queue', queue);
    const message = encodeMessage(payload, options);
    if (this.connection.settings.batching) return this.#producer.enqueue(queue, message, options.signal);
    const { messageId: id, offset } = await this.connection.call(
      FilaService.method.enqueue,
      { ...message, $typeName: 'fila.v1.EnqueueRequest', queue },
      { queue },
      { repeatable: mayRepeat(message.options), signal: options.signal },
    );
    return { id, offset: Number(offset) };
  }

  /**
   * Stores many messages, a window of large frames at a time: the fastest way to produce. Resolves with what
   * became of each, in order.
   *
   * `messages` is read as fast as the broker takes it, so it may be a generator. One bad message does not
   * fail its neighbours: if any was refused, SomeFailed tells what became of each one (`results`).
   */
  async enqueueMany(queue: string, messages: Messages, options: SignalOption = {}): Promise<Enqueued[]> {
    requireText('queue', queue);
    return new ManyEnqueues(this.#producer, this.connection.settings, queue, options.signal).run(messages);
  }

  // Consuming.

  /**
   * Returns a consumer to loop over: `for await (const message of client.consume('orders'))`.
   *
   * A broken stream is reopened with backoff; every other error of the stream is thrown by the loop:
   * QueueNotFound, also when the queue is deleted under it, ChannelNotFound, Invalid, Unavailable after
   * `reconnectForMs`. After the loop, messages you still hold can be settled until their leases end.
   */
  consume(queue: string, options: ConsumeOptions = {}): Consumer {
    const {
      channel = '',
      prefetch = this.connection.settings.prefetch,
      name = '',
      maxLeaseRenewalMs,
    } = options;
    requireText('queue', queue);
    requireText('channel', channel);
    requireText('name', name);
    requirePrefetch(prefetch);
    if (options.stopWhenIdleMs !== undefined)
      requireWhole('stopWhenIdleMs', Math.ceil(options.stopWhenIdleMs));
    if (maxLeaseRenewalMs !== undefined) requireWhole('maxLeaseRenewalMs', maxLeaseRenewalMs);
    const plan: SessionPlan = { queue, channel, prefetch, name, maxLeaseRenewalMs };
    return new Consumer({
      openSession: () => this.#openSession(plan),
      clock: this.connection.settings.clock,
      stopWhenIdleMs: options.stopWhenIdleMs,
      signal: options.signal,
    });
  }

  #openSession(plan: SessionPlan): Session {
    this.connection.closed.throwIfAborted();
    const session = new Session(this.connection, plan, {
      refused: (error) => this.#refused(error),
      connection: (event) => this.#tell(event),
    });
    this.#sessions.add(session);
    void session.over.then(() => this.#outlive(session));
    return session;
  }

  /** Keeps the leases of a consumer that is over: its messages may still be settled by id. */
  #outlive(session: Session): void {
    this.#sessions.delete(session);
    if (session.holding.size === 0) return;
    const { leases } = this.#puller(session.plan.queue, session.plan.channel);
    for (const { id, leaseId } of session.holding.inHand.values()) leases.remember(id, leaseId);
  }

  /**
   * Pulls up to `maxMessages` that are ready, waiting up to `waitMs` for the first. None when there were
   * none. Rejects with QueueNotFound, ChannelNotFound, Invalid.
   */
  async lease(queue: string, options: LeaseOptions = {}): Promise<Message[]> {
    const { channel = '', maxMessages = 1, waitMs = 0, signal } = options;
    requireText('queue', queue);
    requireText('channel', channel);
    requireCount('maxMessages', maxMessages, UINT32_MAX);
    requireWhole('waitMs', waitMs, UINT32_MAX);
    const { messages } = await this.connection.call(
      FilaService.method.lease,
      { $typeName: 'fila.v1.LeaseRequest', queue, channel, maxMessages, waitMs },
      { queue, channel: channel || 'default' },
      { timeoutMs: waitMs + LEASE_GRACE_MS, signal },
    );
    const { settler, leases } = this.#puller(queue, channel);
    return messages.map((wire) => {
      // Nothing pulled waits in the client, so nobody needs to know here when the lease ends.
      const message = new Message(wire, settler, Infinity);
      leases.remember(message.id, message.leaseId);
      return message;
    });
  }

  #puller(queue: string, channel: string): { readonly settler: Settler; readonly leases: LeaseMemory } {
    const name = JSON.stringify([queue, channel || 'default']);
    let puller = this.#pulled.get(name);
    if (puller === undefined) {
      const leases = new LeaseMemory();
      const settler = new Settler(this.connection, queue, channel, leases, (error) => this.#refused(error));
      puller = { settler, leases };
      this.#pulled.set(name, puller);
    }
    return puller;
  }

  // Settling.

  /**
   * The message is done. As `message.ack()`, for when only the id is at hand: the client remembers the lease
   * under which it delivered the message, so that a late ack cannot settle somebody else's.
   */
  ack(queue: string, messageId: string, options: ChannelOption = {}): Settlement {
    return this.#settle(queue, messageId, ACK, options);
  }

  /** The message failed. As `message.nack()`, for when only the id is at hand. */
  nack(queue: string, messageId: string, error = '', options: NackByIdOptions = {}): Settlement {
    return this.#settle(queue, messageId, nackVerdict(error, options.delayMs), options);
  }

  /** The message becomes a dead letter now. As `message.reject()`, for when only the id is at hand. */
  reject(queue: string, messageId: string, error = '', options: ChannelOption = {}): Settlement {
    return this.#settle(queue, messageId, rejectVerdict(error), options);
  }

  /** The message goes back to its place. As `message.release()`, for when only the id is at hand. */
  release(queue: string, messageId: string, options: ChannelOption = {}): Settlement {
    return this.#settle(queue, messageId, RELEASE, options);
  }

  #settle(
    queue: string,
    messageId: string,
    verdict: Verdict,
    { channel = '', signal }: ChannelOption,
  ): Settlement {
    const { settler, leaseId } = this.#held(queue, messageId, channel);
    return settler.settle(messageId, leaseId, verdict, signal);
  }

  /**
   * Holds the message for so many milliseconds from now. Resolves with when its lease ends, by the broker's
   * clock. As `message.extend()`, for when only the id is at hand.
   */
  async extend(
    queue: string,
    messageId: string,
    extendMs: number,
    options: ChannelOption = {},
  ): Promise<Date> {
    const { channel = '', signal } = options;
    requireWhole('extendMs', extendMs);
    const { settler, leaseId } = this.#held(queue, messageId, channel);
    return settler.extender.extend(messageId, leaseId, extendMs, signal);
  }

  /** Who settles a delivery, and under which lease; lease 0 when this client does not know it. */
  #held(
    queue: string,
    messageId: string,
    channel: string,
  ): { readonly settler: Settler; readonly leaseId: bigint } {
    requireText('queue', queue);
    requireText('messageId', messageId);
    requireText('channel', channel);
    for (const { plan, settler } of this.#sessions) {
      if (plan.queue !== queue || (plan.channel || 'default') !== (channel || 'default')) continue;
      const leaseId = settler.leases.get(messageId);
      if (leaseId !== undefined) return { settler, leaseId };
    }
    const { settler, leases } = this.#puller(queue, channel);
    return { settler, leaseId: leases.get(messageId) ?? 0n };
  }

  /** Acks many messages, in few frames. SomeFailed tells which were refused and why. */
  async ackMany(messages: Iterable<Message>, options: SignalOption = {}): Promise<void> {
    await all(Array.from(messages, (message) => message.ack(options)));
  }

  /** Nacks many messages for one reason, in few frames. SomeFailed tells which were refused and why. */
  async nackMany(messages: Iterable<Message>, error = '', options: NackOptions = {}): Promise<void> {
    await all(Array.from(messages, (message) => message.nack(error, options)));
  }

  // What nobody awaits.

  #refused(error: FilaError): void {
    report(this.#options.onRefused, error);
  }

  #tell(event: ConnectionEvent): void {
    report(this.connection.settings.onConnection, event);
  }
}

/** Waits for all, whatever becomes of some. */
async function all(settlements: readonly Settlement[]): Promise<void> {
  const outcomes = await Promise.allSettled(settlements);
  const results = outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? undefined : (outcome.reason as unknown),
  );
  const unexpected = results.find((result) => result !== undefined && !(result instanceof FilaError));
  if (unexpected !== undefined) throw unexpected as Error;
  if (results.some((result) => result !== undefined)) throw new SomeFailed(results);
}

/** Calls the program's callback. What it throws is its own: it must not stop what the client is doing. */
function report<T>(callback: ((value: T) => void) | undefined, value: T): void {
  if (callback === undefined) return;
  try {
    callback(value);
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}
