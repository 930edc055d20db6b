/**
 * How many messages a consumer holds: enough that no loop waits for the network, no more than a moment's
 * work.
 *
 * What lies in a client's buffer is out of the broker's hands: another consumer can't take it, and no quiet
 * tenant can overtake it. So the buffer is measured in time, not in messages:
 *
 * ```text
 * buffered work = unbegun messages x median handling time / loops that come free     at most `bufferUs`
 * ```
 *
 * This module is a function of (time, event) to (window, giveBack), with no clock and no I/O. All SDKs decide
 * alike: sdks/conformance/prefetch.yaml states it step by step, and the tests replay it. Times are whole
 * microseconds.
 */

import { Fifo } from './fifo.js';

/**
 * How many messages may lie in the buffer, however quick they are; and how many may be in hand beyond the
 * loops.
 */
const BUFFER_MESSAGES_MAX = 1_000;

/** The broker's bound on a session's window. */
export const WINDOW_MAX = 10_000;

/** The median is that of so many newest samples. */
const SAMPLES_MAX = 31;

/** A message that waited `bufferUs` times this shows that the median misled. */
const AGE_FACTOR = 4;

/**
 * So many messages must be settled for each that may lie in the buffer, and anew for each that went back: so at
 * most one in four is delivered in vain, however uneven the work is.
 */
const SETTLED_PER_BUFFERED = 4;

/** Samples begin at least so far apart: a quick loop need not time each message. */
export const SAMPLE_EVERY_US = 1_000;

/** What to tell the broker now, in one Window frame. */
export interface Decision {
  /** How many unsettled leases the session may hold from now on. */
  readonly window: number;
  /** How many unbegun messages to return with it: those that came last, which would wait longest. */
  readonly giveBack: number;
}

/** The newest samples of how long the program takes for a message. */
export class HandlingTimes {
  readonly #samples: number[] = [];
  /** The lower median; 0 while there is no sample. */
  medianUs = 0;

  get count(): number {
    return this.#samples.length;
  }

  add(handlingUs: number): void {
    if (this.#samples.push(handlingUs) > SAMPLES_MAX) this.#samples.shift();
    const sorted = [...this.#samples].sort((a, b) => a - b);
    this.medianUs = sorted[(sorted.length - 1) >> 1] ?? 0;
  }

  clear(): void {
    this.#samples.length = 0;
    this.medianUs = 0;
  }
}

/** What a session tells of its buffer, and asks for its window. A loop is known by its number. */
export interface PrefetchControl {
  readonly times: HandlingTimes;
  /**
   * Whether loops work on for long after the broker's answer to their settlements, or may do so for all that is
   * known. Then what `settled` decides must be sent before the settlement.
   */
  readonly acksFirst: boolean;
  /** The window in force, which a session is opened with. */
  readonly window: number;
  /** When `tick` may decide something next; undefined: not before another event. */
  readonly checkAt: number | undefined;
  /** A loop that works on up to `size` messages at once begins. */
  joined(now: number, loop: number, size: number): Decision | undefined;
  /** A loop ends. What it still has in hand stays in hand until it is settled. */
  left(now: number, loop: number): Decision | undefined;
  /** Messages arrived in the buffer. */
  delivered(now: number, count: number): Decision | undefined;
  /** A loop took messages out of the buffer. */
  began(now: number, loop: number, count: number): void;
  /**
   * Messages that a loop took are in hand no longer: settled, released or lost. The loop may have left
   * meanwhile.
   */
  settled(now: number, loop: number, count: number): Decision | undefined;
  /** The broker has answered the settlement of all that a loop took, before the loop asked for more. */
  answered(now: number, loop: number): void;
  /** Messages left the buffer otherwise: revoked, or their lease is over. They count as the oldest. */
  dropped(count: number): void;
  /** A loop came free and found the buffer empty. */
  idle(now: number, loop: number): Decision | undefined;
  /**
   * A sample: a message took so long, until it was settled and its loop had asked for more. `asking` is the
   * loop when it is its asking that ends the sample; `began` or `idle` of the same loop follows. `afterUs` is
   * how long ago the settlement of all it took was answered, 0 when it is not yet; undefined while it holds
   * something.
   */
  handled(
    now: number,
    handlingUs: number,
    asking: number | undefined,
    afterUs: number | undefined,
  ): Decision | undefined;
  /** Time passed. */
  tick(now: number): Decision | undefined;
}

/** A window of one size, whatever happens. */
export class FixedPrefetch implements PrefetchControl {
  readonly times = new HandlingTimes();
  readonly acksFirst = false;
  readonly checkAt = undefined;

  constructor(readonly window: number) {}

  joined(): undefined {}
  left(): undefined {}
  delivered(): undefined {}
  began(): void {}
  settled(): undefined {}
  answered(): void {}
  dropped(): void {}
  idle(): undefined {}
  tick(): undefined {}

  /** Only noted, for who asks how long messages take. */
  handled(_now: number, handlingUs: number): undefined {
    this.times.add(handlingUs);
  }
}

interface Loop {
  readonly size: number;
  /** How many messages that it took are in hand. */
  held: number;
  /** When it took what it works on; undefined while it waits for work. */
  beganAt: number | undefined;
  /** Whether it has settled all it took, and has not asked for more since. */
  isSettled: boolean;
  /** Its places left the window with that. */
  hasLeft: boolean;
  /** When the broker answered that. */
  answeredAt: number | undefined;
}

interface Arrival {
  readonly at: number;
  left: number;
}

/** What the loops do at a moment. */
interface Work {
  /** Loops that wait. */
  idle: number;
  /** Loops that will soon be free. */
  coming: number;
  /** How many messages either could take more than they have. */
  places: number;
}

/** A window that follows how fast the program works. */
export class AdaptivePrefetch implements PrefetchControl {
  readonly times = new HandlingTimes();
  /** True until a loop has shown how soon it asks after the answer. */
  acksFirst = true;
  window = 0;
  readonly #bufferUs: number;
  /** From the broker's answer to the loop's asking. */
  readonly #after = new HandlingTimes();
  readonly #loops = new Map<number, Loop>();
  #working = 0;
  /** Whether a loop's places left the window or came back to it. */
  #moved = false;
  /** What was settled, less what went back. */
  #earned = SETTLED_PER_BUFFERED;
  #inHand = 0;
  #unbegun = 0;
  /** Oldest first. */
  readonly #arrivals = new Fifo<Arrival>();
  /** How many left the buffer and are not subtracted from the arrivals yet. */
  #taken = 0;
  #decidedAt = 0;

  constructor(bufferUs: number) {
    this.#bufferUs = bufferUs;
  }

  // Events that come with every message: they change counts, and decide next to nothing.

  began(now: number, loop: number, count: number): void {
    const taker = this.#loop(loop);
    this.#asks(taker, now);
    taker.held += count;
    this.#inHand += count;
    this.#unbegun -= count;
    this.#taken += count;
  }

  /**
   * It decides when the loop's places leave the window, and for the last message of a loop that passed them on:
   * no other event may come before the next delivery, which a window that is too wide would make too large.
   */
  settled(now: number, loop: number, count: number): Decision | undefined {
    this.#inHand -= count;
    this.#earned = Math.min(this.#earned + count, SETTLED_PER_BUFFERED * BUFFER_MESSAGES_MAX);
    const worker = this.#loops.get(loop);
    if (worker !== undefined) {
      worker.held -= count;
      if (worker.held === 0 && worker.beganAt !== undefined) {
        worker.isSettled = true;
        worker.answeredAt = undefined;
        if (this.acksFirst) {
          this.#moved = worker.hasLeft = true;
          return this.#decide(now);
        }
      }
    }
    return this.#inHand > 0 || this.#working > 0 ? undefined : this.#decide(now);
  }

  answered(now: number, loop: number): void {
    const worker = this.#loops.get(loop);
    if (worker?.isSettled === true) worker.answeredAt = now;
  }

  dropped(count: number): void {
    this.#unbegun -= count;
    this.#taken += count;
  }

  // Events that decide.

  joined(now: number, loop: number, size: number): Decision | undefined {
    this.#loops.set(loop, {
      size,
      held: 0,
      beganAt: undefined,
      isSettled: false,
      hasLeft: false,
      answeredAt: undefined,
    });
    return this.#decide(now);
  }

  left(now: number, loop: number): Decision | undefined {
    if (this.#loop(loop).beganAt !== undefined) this.#working--;
    this.#loops.delete(loop);
    return this.#decide(now);
  }

  delivered(now: number, count: number): Decision | undefined {
    this.#unbegun += count;
    this.#arrivals.push({ at: now, left: count });
    return this.#decide(now);
  }

  idle(now: number, loop: number): Decision | undefined {
    const waiting = this.#loop(loop);
    this.#asks(waiting, now);
    waiting.beganAt = undefined;
    this.#working--;
    return this.#decide(now);
  }

  handled(now: number, handlingUs: number, asking?: number, afterUs?: number): Decision | undefined {
    this.times.add(handlingUs);
    if (asking !== undefined) {
      if (afterUs !== undefined) {
        this.#after.add(afterUs);
        this.acksFirst = this.#after.medianUs > this.#bufferUs;
      }
      // A loop that is just asking is not stuck, however long it took.
      this.#asks(this.#loop(asking), now);
    }
    return this.#decide(now);
  }

  tick(now: number): Decision | undefined {
    return this.#decide(now);
  }

  /** A loop becomes stuck then, or the oldest message too old. */
  get checkAt(): number | undefined {
    const oldest = this.#oldestAt();
    if (oldest === undefined) return undefined;
    let earliest = Infinity;
    const consider = (moment: number) => {
      if (moment > this.#decidedAt && moment < earliest) earliest = moment;
    };
    consider(oldest + AGE_FACTOR * this.#bufferUs);
    for (const loop of this.#loops.values()) {
      const since = countedSince(loop);
      if (since !== undefined) consider(since + this.#bufferUs);
    }
    return earliest === Infinity ? undefined : earliest;
  }

  #loop(number: number): Loop {
    const loop = this.#loops.get(number);
    if (loop === undefined) throw new Error(`there is no loop ${number}`);
    return loop;
  }

  /** A loop asks for more: it counts as coming free from now on. */
  #asks(loop: Loop, now: number): void {
    if (loop.beganAt === undefined) this.#working++;
    else if (loop.hasLeft) this.#moved = true;
    loop.beganAt = now;
    loop.isSettled = loop.hasLeft = false;
  }

  // The decision.

  #decide(now: number): Decision | undefined {
    this.#decidedAt = now;
    const work = this.#workAt(now);
    const { idle } = work;
    const oldest = this.#oldestAt();
    // With a loop idle nothing lies unbegun for longer than it takes to hand it out.
    const aged =
      idle === 0 && this.#unbegun > 1 && oldest !== undefined && now - oldest >= AGE_FACTOR * this.#bufferUs;
    if (aged) {
      this.times.clear();
      this.#earned = SETTLED_PER_BUFFERED;
    }

    const hands = this.#hands(work);
    const buffer = this.#bufferMessages(idle + work.coming);
    const target = Math.min(hands + buffer, WINDOW_MAX);
    const spare = Math.max(0, hands - this.#inHand);
    let giveBack = 0;
    if (idle === 0 && (aged || this.#unbegun > spare + 2 * buffer)) {
      giveBack = Math.max(0, this.#unbegun - spare - buffer);
    }
    const tells = giveBack > 0 || this.#isWorthTelling(target, idle);
    this.#moved = false;
    if (!tells) return undefined;
    this.window = target;
    this.#earned = Math.max(0, this.#earned - SETTLED_PER_BUFFERED * giveBack);
    this.#forgetNewest(giveBack);
    return { window: target, giveBack };
  }

  #workAt(now: number): Work {
    const work: Work = { idle: 0, coming: 0, places: 0 };
    for (const loop of this.#loops.values()) {
      const since = countedSince(loop);
      if (loop.beganAt === undefined) {
        work.idle++;
        work.places += loop.size;
      } else if (since === undefined || now - since < this.#bufferUs) {
        // One that has worked for longer than that comes free nobody knows when.
        work.coming++;
        if (!(loop.isSettled && this.acksFirst)) work.places += Math.max(0, loop.size - loop.held);
      }
    }
    return work;
  }

  /**
   * How many messages may be in hand: those that are, and one for each free place of the loops that come free.
   * So a loop that passes its messages on is not held up.
   */
  #hands({ places }: Work): number {
    let slots = 0;
    for (const { size } of this.#loops.values()) slots += size;
    return Math.min(this.#inHand + places, Math.max(slots, BUFFER_MESSAGES_MAX));
  }

  /** How many messages may wait: what the loops that come free do in `bufferUs`. */
  #bufferMessages(comingFree: number): number {
    const { count, medianUs } = this.times;
    // So near to `bufferUs` half of what waits would go back.
    if (comingFree === 0 || 5 * medianUs > 4 * this.#bufferUs) return 0;
    if (count === 0) return 1;
    const earned = Math.floor(this.#earned / SETTLED_PER_BUFFERED);
    return Math.min(earned, Math.floor((this.#bufferUs * comingFree) / Math.max(medianUs, 1)));
  }

  /** Whether the difference matters: small ones would cost a frame for every message. */
  #isWorthTelling(target: number, idle: number): boolean {
    const told = this.window;
    if (this.#moved) return target !== told;
    if (target > told) {
      const starved = idle > 0 && told <= this.#inHand;
      return starved || target - told >= Math.max(1, told >> 3);
    }
    return told - target >= Math.max(1, told >> 2);
  }

  // Since when the oldest has waited.

  #oldestAt(): number | undefined {
    let oldest = this.#arrivals.peek();
    while (oldest !== undefined && this.#taken >= oldest.left) {
      this.#taken -= oldest.left;
      this.#arrivals.shift();
      oldest = this.#arrivals.peek();
    }
    return oldest?.at;
  }

  #forgetNewest(count: number): void {
    this.#unbegun -= count;
    for (let left = count; left > 0;) {
      const newest = this.#arrivals.pop();
      if (newest === undefined) return;
      const part = Math.min(left, newest.left);
      newest.left -= part;
      left -= part;
      if (newest.left > 0) this.#arrivals.push(newest);
    }
  }
}

/** Since when a loop has counted as coming free, for `bufferUs`; undefined while no moment ends that. */
function countedSince({ isSettled, answeredAt, beganAt }: Loop): number | undefined {
  return isSettled ? answeredAt : beganAt;
}
