/**
 * What one consumer holds: messages that wait in its buffer, and those its program has in hand.
 *
 * ```text
 * delivered --> ready --> in hand --> settled         began: a loop took it
 *                 |           +-----> lost            the broker took the lease back
 *                 +--> given back, revoked, past its lease
 * ```
 *
 * Each step is told to the prefetch controller, whose decisions go to the session as windows.
 */

import type { Clock } from './clock.js';
import { Fifo } from './fifo.js';
import type { Message } from './message.js';
import { type Decision, type PrefetchControl, SAMPLE_EVERY_US } from './prefetch.js';
import type { SettleFrame } from './settlement.js';
import type { HeldLeases } from './settler.js';

/** One measurement of how long messages take. */
interface Sample {
  readonly beganAt: number;
  readonly count: number;
  unsettled: number;
  asked: boolean;
}

/** One loop over a consumer. */
export interface Loop {
  readonly number: number;
  /** Of what it works on, if that is a sample. */
  sample: Sample | undefined;
  /** How many messages that it took are in hand. */
  inHand: number;
  /** What settles the last message that it had in hand, if it has not taken another since. */
  settledBy: SettleFrame | undefined;
  /** When the broker answered that; undefined before. */
  answeredAt: number | undefined;
}

/** Tells the broker how many messages may be held, and which it gets back. */
export type TellWindow = (size: number, giveBack: readonly bigint[]) => void;

/** Ready messages, and those in hand, of one session. */
export class Holding implements HeldLeases {
  control: PrefetchControl;
  readonly ready = new Fifo<Message>();
  readonly inHand = new Map<string, Message>();
  /** How long the broker keeps a lease from when it begins; 0 when that does not count from then. */
  renewalMs = 0;
  /** When the last lease in hand ends, on the client's clock. */
  heldUntil = -Infinity;
  readonly #clock: Clock;
  readonly #tell: TellWindow;
  readonly #wakers = new Set<() => void>();
  #loops = 0;
  readonly #joined = new Set<Loop>();
  /** Of each message in hand, the loop that took it. */
  readonly #takers = new Map<Message, Loop>();
  readonly #sampled = new Map<Message, Sample>();
  #nextSampleAt = -Infinity;
  #cancelTick: (() => void) | undefined;
  #tickAt = Infinity;

  constructor(control: PrefetchControl, clock: Clock, tell: TellWindow) {
    this.control = control;
    this.#clock = clock;
    this.#tell = tell;
  }

  // Loops.

  /** A loop that works on up to `size` messages at once begins. */
  join(size: number): Loop {
    const loop: Loop = {
      number: ++this.#loops,
      sample: undefined,
      inHand: 0,
      settledBy: undefined,
      answeredAt: undefined,
    };
    this.#joined.add(loop);
    this.#obey(this.control.joined(this.#now(), loop.number, size));
    return loop;
  }

  /** A loop ends. */
  part(loop: Loop): void {
    this.#joined.delete(loop);
    this.#obey(this.control.left(this.#now(), loop.number));
  }

  /** Calls back once, when a waiting loop should look again; returns what takes that back. */
  whenArrived(wake: () => void): () => void {
    this.#wakers.add(wake);
    return () => this.#wakers.delete(wake);
  }

  /** Lets waiting loops look again: all of them, or so many of those that have waited longest. */
  wake(count = Infinity): void {
    for (const wake of [...this.#wakers].slice(0, count)) {
      this.#wakers.delete(wake);
      wake();
    }
  }

  // Handing out.

  /** Messages arrived. */
  deliver(messages: readonly Message[]): void {
    for (const message of messages) this.ready.push(message);
    this.#obey(this.control.delivered(this.#now(), messages.length));
    this.wake(messages.length);
    this.#watch();
  }

  /** Hands out up to `countMax` messages whose leases run; none from `until` on. */
  take(loop: Loop, countMax: number, until: number): Message[] {
    const nowMs = this.#clock.now();
    if (loop.sample !== undefined) this.#asked(loop);
    const taken: Message[] = [];
    while (nowMs < until && taken.length < countMax) {
      const message = this.ready.shift();
      if (message === undefined) break;
      // One that waited here past its lease is, or will be, delivered to somebody else.
      if (message.heldUntil > nowMs) taken.push(message);
      else this.control.dropped(1);
    }
    if (taken.length > 0) this.#begin(taken, loop, nowMs);
    else this.#obey(this.control.idle(toUs(nowMs), loop.number));
    if (this.ready.length > 0) this.#watch();
    return taken;
  }

  #begin(taken: readonly Message[], loop: Loop, nowMs: number): void {
    for (const message of taken) {
      const before = this.inHand.get(message.id);
      // Delivered again, so its former lease is over.
      if (before !== undefined) this.#lose(before, 'LEASE_LOST');
      this.inHand.set(message.id, message);
      this.#takers.set(message, loop);
      message.heldUntil = Math.max(message.heldUntil, nowMs + this.renewalMs);
      this.heldUntil = Math.max(this.heldUntil, message.heldUntil);
    }
    loop.inHand += taken.length;
    loop.settledBy = undefined;
    loop.answeredAt = undefined;
    const now = toUs(nowMs);
    this.control.began(now, loop.number, taken.length);
    if (now < this.#nextSampleAt) return;
    this.#nextSampleAt = now + SAMPLE_EVERY_US;
    const sample: Sample = { beganAt: now, count: taken.length, unsettled: taken.length, asked: false };
    loop.sample = sample;
    for (const message of taken) this.#sampled.set(message, sample);
  }

  /** Undoes `take`, for messages that nobody has seen. */
  putBack(taken: readonly Message[]): void {
    for (const message of [...taken].reverse()) {
      if (this.inHand.get(message.id) !== message) continue;
      this.#drop(message);
      this.ready.unshift(message);
      this.#obey(this.control.delivered(this.#now(), 1));
    }
    this.wake();
  }

  /** Takes out of the buffer what came last, and returns its leases. */
  giveUp(count: number): bigint[] {
    const leases: bigint[] = [];
    while (leases.length < count) {
      const message = this.ready.pop();
      if (message === undefined) break;
      leases.push(message.leaseId);
    }
    return leases;
  }

  /** All that waits and all that is in hand. */
  leasesHeld(): bigint[] {
    return [...this.ready, ...this.inHand.values()].map((message) => message.leaseId);
  }

  // Settling.

  get size(): number {
    return this.inHand.size;
  }

  get(messageId: string): bigint | undefined {
    return this.inHand.get(messageId)?.leaseId;
  }

  forget(messageId: string, leaseId: bigint, settledBy: SettleFrame): void {
    const message = this.inHand.get(messageId);
    if (message?.leaseId === leaseId) this.#drop(message, settledBy);
  }

  answered(frame: SettleFrame): void {
    const now = this.#now();
    for (const loop of this.#joined) if (loop.settledBy === frame) this.#answered(loop, now);
    this.#watch();
  }

  #answered(loop: Loop, now: number): void {
    loop.answeredAt = now;
    this.control.answered(now, loop.number);
  }

  #drop(message: Message, settledBy?: SettleFrame): void {
    this.inHand.delete(message.id);
    const now = this.#now();
    const loop = this.#takers.get(message) as Loop;
    this.#takers.delete(message);
    this.#obey(this.control.settled(now, loop.number, 1));
    if (--loop.inHand === 0) {
      loop.settledBy = settledBy;
      if (settledBy === undefined) this.#answered(loop, now);
    }
    const sample = this.#sampled.get(message);
    if (sample === undefined) return;
    this.#sampled.delete(message);
    if (--sample.unsettled === 0 && sample.asked) this.#handled(sample, now);
  }

  /**
   * The broker took these leases back: drops what waits, tells the program of what it has in hand. Returns how
   * many of them were held: of a lease that was settled before, or is being settled, the program loses nothing.
   */
  lose(leaseIds: readonly bigint[], reason: string): number {
    if (leaseIds.length === 0) return 0;
    const lost = new Set(leaseIds);
    let held = 0;
    for (const message of this.ready.takeAll()) {
      if (lost.has(message.leaseId)) {
        held++;
        this.control.dropped(1);
      } else {
        this.ready.push(message);
      }
    }
    for (const message of [...this.inHand.values()]) {
      if (lost.has(message.leaseId)) {
        held++;
        this.#lose(message, reason);
      }
    }
    return held;
  }

  #lose(message: Message, reason: string): void {
    this.#drop(message);
    message.lose(reason);
  }

  // Measuring.

  /** A loop came back for more; its sample is over as soon as its messages are settled too. */
  #asked(loop: Loop): void {
    const sample = loop.sample as Sample;
    loop.sample = undefined;
    sample.asked = true;
    if (sample.unsettled === 0) this.#handled(sample, this.#now(), loop);
  }

  #handled(sample: Sample, now: number, asking?: Loop): void {
    const handlingUs = Math.floor((now - sample.beganAt) / sample.count);
    const afterUs = asking?.inHand === 0 ? now - (asking.answeredAt ?? now) : undefined;
    this.#obey(this.control.handled(now, handlingUs, asking?.number, afterUs));
  }

  // What the controller decides. Its time is in whole microseconds.

  #now(): number {
    return toUs(this.#clock.now());
  }

  #obey(decision: Decision | undefined): void {
    if (decision !== undefined) this.#tell(decision.window, this.giveUp(decision.giveBack));
  }

  /** Sees to it that the controller is asked when time alone changes something. */
  #watch(): void {
    const checkAt = this.control.checkAt;
    if (checkAt === undefined || checkAt >= this.#tickAt) return;
    this.#cancelTick?.();
    this.#tickAt = checkAt;
    this.#cancelTick = this.#clock.after((checkAt - this.#now()) / 1000, () => {
      this.#cancelTick = undefined;
      this.#tickAt = Infinity;
      const now = this.#now();
      if ((this.control.checkAt ?? Infinity) <= now) this.#obey(this.control.tick(now));
      this.#watch();
    });
  }

  /** Nothing comes any more. */
  close(): void {
    this.#cancelTick?.();
    this.#tickAt = -Infinity;
  }
}

function toUs(ms: number): number {
  return Math.floor(ms * 1000);
}
