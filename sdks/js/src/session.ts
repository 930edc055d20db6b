/**
 * One consumer's stream, kept alive: deliveries come down it, settlements go up, and it is resumed when it
 * breaks.
 *
 * ```text
 * connecting --> open --> leaving ---------------> over
 *     ^           |          the buffer goes back at once; the stream is closed
 *     +- backoff <+          as soon as nothing that was handed out is unsettled
 * ```
 *
 * What a session holds is in holding.ts, what it declares in begun.ts, how long it may hand out in
 * liveness.ts, and how much it asks for in prefetch.ts. A broker that is older than these rules answers
 * `Opened` without a visibility timeout: with it the window is a number, and every delivery is begun.
 */

import { Begun } from './begun.js';
import { backoffMs, onAbort } from './clock.js';
import type { Connection } from './connection.js';
import type { ConnectionEvent } from './connection-event.js';
import { ClientClosed, FilaError, InternalError, NotOwner, Overloaded, Unavailable } from './errors.js';
import type { Message as WireMessage } from './gen/fila/v1/messages_pb.js';
import {
  type ConsumeSessionRequest_Open,
  type ConsumeSessionResponse,
  type ConsumeSessionResponse_Opened,
  FilaService,
} from './gen/fila/v1/service_pb.js';
import { Holding, type Loop } from './holding.js';
import { Liveness } from './liveness.js';
import { Message } from './message.js';
import type { Prefetch } from './options.js';
import { AdaptivePrefetch, FixedPrefetch } from './prefetch.js';
import { FRAME_LEASES_MAX, SessionWords } from './session-words.js';
import { Settler } from './settler.js';
import { errorOfCall, unavailableUnlessSaid } from './status.js';
import { toMs } from './times.js';

/** How long a closing session waits for the broker to end the stream. */
const CLOSE_TIMEOUT_MS = 2_000;

/** The window with a broker that can't change it while the stream is open. */
const OLDER_BROKER_WINDOW = 256;

/**
 * A session that holds leases waits at most this part of the broker's grace between two tries to come back.
 */
const TRIES_PER_GRACE = 8;

/** What a consumer asked for. */
export interface SessionPlan {
  readonly queue: string;
  readonly channel: string;
  readonly prefetch: Prefetch;
  readonly name: string;
  readonly maxLeaseRenewalMs: number | undefined;
}

/** Whom a session tells what happens to it. */
export interface SessionListener {
  refused(error: FilaError): void;
  connection(event: ConnectionEvent): void;
}

/** Keeps its loops in work until `leave`; `failure` says why it ended before. */
export class Session {
  readonly plan: SessionPlan;
  readonly holding: Holding;
  readonly settler: Settler;
  /** Resolves when the session is over; never rejects. */
  readonly over: Promise<void>;
  failure: FilaError | undefined;
  leaving = false;
  isOver = false;
  readonly #connection: Connection;
  readonly #listener: SessionListener;
  readonly #begun: Begun;
  readonly #liveness = new Liveness();
  /** The broker knows the rules of begun, window and alive. */
  #tracked = true;
  #consumerId = 0n;
  #timeoutMs = 0;
  #graceMs = 0;
  readonly #words = new SessionWords();
  #open = false;
  /** The last delivery, or when the stream opened, if that is later. */
  #quietSince = -Infinity;
  #lostAt: number | undefined;
  #closeSent = false;
  /** Settles when the word that gives back what waits is written, or lost with its stream. */
  #gaveBack: Promise<boolean> | undefined;
  #reopening = false;
  readonly #ending = new AbortController();
  #cancelAlive: (() => void) | undefined;
  #cancelLeave: (() => void) | undefined;

  constructor(connection: Connection, plan: SessionPlan, listener: SessionListener) {
    const { clock, prefetchBufferMs } = connection.settings;
    const { prefetch } = plan;
    const control =
      prefetch === 'auto' ? new AdaptivePrefetch(prefetchBufferMs * 1000) : new FixedPrefetch(prefetch);
    this.plan = plan;
    this.holding = new Holding(control, clock, (size, giveBack) => this.#tellWindow(size, giveBack));
    this.#begun = new Begun(this.holding, clock, (leaseIds) => this.#words.begun(leaseIds));
    this.settler = new Settler(connection, plan.queue, plan.channel, this.holding, (error) =>
      listener.refused(error),
    );
    this.#connection = connection;
    this.#listener = listener;
    // Soon, and not now: the loop that opened the session joins it first, which decides how much it asks for.
    this.over = Promise.resolve().then(() => this.#run());
  }

  #now(): number {
    return this.#connection.settings.clock.now();
  }

  // Life.

  async #run(): Promise<void> {
    try {
      await this.#keepOpen();
    } catch (error) {
      if (!this.leaving) {
        this.failure =
          error instanceof FilaError
            ? error
            : new InternalError('the consumer met a mistake of the SDK', { cause: error });
      }
    } finally {
      this.#end();
    }
  }

  async #keepOpen(): Promise<void> {
    const { backoff, reconnectForMs } = this.#connection.settings;
    let outageBeganAt = this.#now();
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#connection.ready(outageBeganAt + reconnectForMs, this.#ending.signal, this.#waitMsMax());
        while (!(await this.#follow()));
        return;
      } catch (error) {
        if (!(error instanceof Unavailable || error instanceof Overloaded)) throw error;
        this.#connection.follow(error);
        if (this.#open) {
          attempt = 0;
          outageBeganAt = this.#now();
        }
        this.#loseStream(error);
        if (this.leaving && this.holding.size === 0) return;
        const waitMs = Math.min(backoffMs(backoff, attempt), this.#waitMsMax());
        if (this.#now() + waitMs > outageBeganAt + reconnectForMs) throw error;
        await this.#connection.sleep(waitMs, this.#ending.signal);
      }
    }
  }

  /** Who holds leases must be back within the broker's grace, and tries several times. */
  #waitMsMax(): number {
    const holds = this.holding.size > 0 || this.holding.ready.length > 0;
    return holds && this.#graceMs > 0 ? this.#graceMs / TRIES_PER_GRACE : Infinity;
  }

  /** Opens a stream and takes in what comes; true when it ended because we left, false to open another. */
  async #follow(): Promise<boolean> {
    const known = { queue: this.plan.queue, channel: this.plan.channel || 'default' };
    const stream = this.#connection.openStream(FilaService.method.consumeSession);
    this.#words.attach(stream);
    const sentAt = this.#now();
    this.#words.open(this.#openRequest());
    let stop = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const ended = (error: FilaError) => (this.#closeSent || this.#reopening ? resolve() : reject(error));
        stream.on('data', (response: ConsumeSessionResponse) => {
          // What arrives after the end is no longer ours.
          if (this.#words.isOn(stream)) this.#takeIn(response, sentAt);
        });
        stream.on('error', (failure) => ended(unavailableUnlessSaid(errorOfCall(failure, known))));
        stream.on('end', () => ended(new Unavailable("the broker ended the consumer's stream")));
        stop = () => reject(this.#ending.signal.reason as Error);
        onAbort(this.#ending.signal, stop);
      });
    } finally {
      this.#ending.signal.removeEventListener('abort', stop);
      this.#words.detach();
      this.#liveness.lost();
      stream.cancel();
      this.settler.useCalls();
      this.settler.extender.useCalls();
    }
    const left = !this.#reopening;
    this.#reopening = false;
    return left;
  }

  #openRequest(): ConsumeSessionRequest_Open {
    const { queue, channel, name, maxLeaseRenewalMs } = this.plan;
    const resume = this.#consumerId !== 0n;
    const leaseIds = resume ? this.#leasesHeld() : [];
    return {
      $typeName: 'fila.v1.ConsumeSessionRequest.Open',
      queue,
      channel,
      name,
      maxInFlight: this.holding.control.window,
      initialCredit: 0,
      tracksBegun: true,
      ...(maxLeaseRenewalMs === undefined ? {} : { maxLeaseRenewalMs: BigInt(maxLeaseRenewalMs) }),
      ...(resume
        ? {
            resume: {
              $typeName: 'fila.v1.ConsumeSessionRequest.Resume',
              consumerId: this.#consumerId,
              leaseIds,
            },
          }
        : {}),
    };
  }

  /**
   * All that the broker must not return on a resume, also what is being settled, as it may not know of that.
   * At most as many as a resume may name, the buffer and what is in hand first: of what is being settled and
   * not named the broker has settled nearly all already, and delivers the rest again.
   */
  #leasesHeld(): bigint[] {
    return [...this.holding.leasesHeld(), ...this.settler.unansweredLeases()].slice(0, FRAME_LEASES_MAX);
  }

  #takeOpened(opened: ConsumeSessionResponse_Opened, sentAt: number): void {
    this.#tracked = opened.visibilityTimeoutMs > 0n;
    let leasesLost = 0;
    if (this.#tracked) {
      this.#consumerId = opened.consumerId;
      this.#timeoutMs = Number(opened.visibilityTimeoutMs);
      this.#graceMs = Number(opened.disconnectGraceMs);
      this.holding.renewalMs = Number(opened.maxLeaseRenewalMs);
      leasesLost = this.holding.lose(opened.lostLeaseIds, 'LEASE_LOST');
      this.#liveness.opened(sentAt, this.#timeoutMs);
      this.#sayAliveLater();
    } else {
      this.#liveness.openedWithoutRules();
      if (this.holding.control instanceof AdaptivePrefetch) return this.#reopenWithNumber();
    }
    this.#open = true;
    this.#quietSince = this.#now();
    this.settler.useStream((frame) => this.#words.settle(frame));
    this.settler.extender.useStream((frame) => this.#words.extend(frame));
    if (this.#tracked) this.#begun.declareAnew();
    this.#tellBack(leasesLost);
    if (this.leaving) {
      this.#giveBackBuffer();
      this.#closeWhenSettled();
    }
    this.holding.wake();
  }

  /** The broker is older than a window that adapts, so it needs one that does not. */
  #reopenWithNumber(): void {
    this.#reopening = true;
    this.holding.control = new FixedPrefetch(OLDER_BROKER_WINDOW);
    this.#words.close(true);
  }

  /** For how long messages could have come since then, and none did. */
  quietForMs(since: number): number {
    const now = this.#now();
    return now < this.#liveness.handOutUntil ? now - Math.max(since, this.#quietSince) : 0;
  }

  #loseStream(error: FilaError): void {
    this.#cancelAlive?.();
    if (!this.#open) return;
    this.#open = false;
    this.#lostAt = this.#now();
    const { queue, channel } = this.plan;
    const isParting = error.reason === 'SHUTTING_DOWN' || error instanceof NotOwner;
    const kind = isParting ? 'draining' : 'lost';
    this.#listener.connection({ kind, queue, channel: channel || 'default', error });
  }

  #tellBack(leasesLost: number): void {
    if (this.#lostAt === undefined) return;
    const { queue, channel } = this.plan;
    const outageMs = this.#now() - this.#lostAt;
    this.#lostAt = undefined;
    this.#listener.connection({ kind: 'back', queue, channel: channel || 'default', outageMs, leasesLost });
  }

  #end(): void {
    this.#open = false;
    this.isOver = true;
    this.#cancelAlive?.();
    this.#cancelLeave?.();
    this.#begun.close();
    this.holding.close();
    this.settler.useCalls();
    this.settler.extender.useCalls();
    this.holding.wake();
  }

  // What comes down.

  #takeIn({ response }: ConsumeSessionResponse, sentAt: number): void {
    switch (response.case) {
      case 'opened':
        return this.#takeOpened(response.value, sentAt);
      case 'delivery':
        return this.#deliver(response.value.messages);
      case 'settled':
        this.settler.settled(response.value);
        return this.#closeWhenSettled();
      case 'extended':
        return this.settler.extender.extended(response.value);
      case 'alive':
        return this.#hear(response.value.sequence);
      case 'revoked':
        this.holding.lose(response.value.leaseIds, response.value.reason);
        return this.#closeWhenSettled();
    }
  }

  #deliver(messages: readonly WireMessage[]): void {
    const [first] = messages;
    if (first === undefined || this.#reopening) return;
    if (this.leaving) {
      const leaseIds = messages.map((message) => message.metadata?.leaseId ?? 0n);
      if (this.#tracked && !this.#closeSent) void this.#words.window(0, leaseIds);
      return; // else given back with the close
    }
    // The broker's clock tells how long the lease is; ours, from when it runs.
    const leaseMs =
      this.holding.renewalMs || toMs(first.timestamps?.leaseExpiresAt) - toMs(first.timestamps?.leasedAt);
    this.#quietSince = this.#now();
    const heldUntil = leaseMs > 0 ? this.#quietSince + leaseMs : Infinity;
    this.holding.deliver(messages.map((message) => new Message(message, this.settler, heldUntil)));
  }

  // Staying alive.

  #sayAliveLater(): void {
    this.#cancelAlive?.();
    const { clock } = this.#connection.settings;
    this.#cancelAlive = clock.after(this.#liveness.intervalMs, () => this.#sayAlive());
  }

  #sayAlive(): void {
    const sequence = this.#liveness.sayAlive(this.#now());
    if (sequence !== undefined) {
      this.#words.alive(sequence, this.holding.control.times.medianUs);
    }
    this.#sayAliveLater();
  }

  #hear(sequence: bigint): void {
    const wasSilent = this.#now() >= this.#liveness.handOutUntil;
    this.#liveness.answered(sequence);
    if (!wasSilent) return;
    // The answer to an old one: it asks anew, as the broker is back.
    if (this.#now() >= this.#liveness.handOutUntil) this.#sayAlive();
    this.holding.wake();
  }

  // Handing out.

  /** Whether a loop that asks now would get something. */
  get hasWork(): boolean {
    return this.holding.ready.length > 0 && this.#now() < this.#liveness.handOutUntil;
  }

  /** Returns messages whose leases run, none when there are none now. They are the loop's to settle. */
  async take(loop: Loop, countMax: number): Promise<Message[]> {
    const taken = this.holding.take(loop, countMax, this.#liveness.handOutUntil);
    if (taken.length === 0 || !this.#tracked) return taken;
    this.#begun.handedOut();
    const sentBefore = taken.filter((message) => message.redelivered || message.cameBack);
    if (sentBefore.length === 0 || (await this.#begun.declare(sentBefore))) return taken;
    this.holding.putBack(taken);
    return [];
  }

  // Windows.

  #tellWindow(size: number, giveBack: readonly bigint[]): void {
    if (this.#open && this.#tracked && !this.leaving) void this.#words.window(size, giveBack);
  }

  // Leaving.

  /**
   * Takes nothing more, and gives the buffer back. The stream is closed once all that was handed out is
   * settled. A visibility timeout from now it breaks off with what is still in hand, which has failed a grace
   * later.
   */
  leave(): void {
    if (this.leaving || this.isOver) return;
    this.leaving = true;
    this.holding.wake();
    const waitMs = this.#tracked ? this.#timeoutMs : this.holding.heldUntil - this.#now();
    this.#cancelLeave = this.#connection.settings.clock.after(waitMs, () => this.#breakOff());
    if (this.#open) {
      this.#giveBackBuffer();
      this.#closeWhenSettled();
    } else {
      this.holding.giveUp(this.holding.ready.length);
      if (this.holding.size === 0) this.#stop();
    }
  }

  /** Goes without a word, as if the process had ended: so that what is in hand counts as failed soon. */
  #breakOff(): void {
    // An older broker knows no other way of giving the buffer back.
    if (this.#open && !this.#tracked) this.#closeStream();
    else this.#stop();
  }

  #stop(): void {
    this.#ending.abort(new ClientClosed('the consumer was left'));
  }

  #giveBackBuffer(): void {
    const leaseIds = this.holding.giveUp(this.holding.ready.length);
    if (this.#tracked) this.#gaveBack = this.#words.window(0, leaseIds);
  }

  #closeWhenSettled(): void {
    if (this.leaving && this.holding.size === 0 && !this.settler.hasUnanswered) this.#closeStream();
  }

  #closeStream(): void {
    if (this.#closeSent || !this.#open) return;
    this.#closeSent = true;
    this.#words.close(true);
    this.#stopAfter(CLOSE_TIMEOUT_MS);
  }

  #stopAfter(ms: number): void {
    this.#cancelLeave?.();
    this.#cancelLeave = this.#connection.settings.clock.after(ms, () => this.#stop());
  }

  /**
   * Leaves at once, also with messages in the program's hands: `release` gives them back uncounted, else they
   * have failed when the broker's grace is over.
   */
  async close(release: boolean): Promise<void> {
    this.leave();
    if (this.#open && (release || !this.#tracked)) this.#closeStream();
    if (this.#open && !this.#closeSent) {
      // Broken off at once, the stream would lose the word that gives back what waited.
      this.#stopAfter(CLOSE_TIMEOUT_MS);
      await this.#gaveBack;
    }
    if (!this.#closeSent) this.#stop();
    await this.over;
    this.failure ??= new ClientClosed('the client was closed while this consumer was in use');
  }
}
