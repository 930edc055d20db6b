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
  /** Begun messages are in hand no longer: settled, released or lost. */
  settled(now: number, count: number): Decision | undefined;
  /** Messages left the buffer otherwise: revoked, or their lease is over. They count as the oldest. */
  dropped(count: number): void;
  /** A loop came free and found the buffer empty. */
  idle(now: number, loop: number): Decision | undefined;
  /**
   * A sample: a message took so long, until it was settled and its loop had asked for more. `asking` is the
   * loop when it is its asking that ends the sample; `began` or `idle` of the same loop follows.
   */
  handled(now: number, handlingUs: number, asking: number | undefined): Decision | undefined;
  /** Time passed. */
  tick(now: number): Decision | undefined;
}

/** A window of one size, whatever happens. */
export class FixedPrefetch implements PrefetchControl {
  readonly times = new HandlingTimes();
  readonly checkAt = undefined;

  constructor(readonly window: number) {}

  joined(): undefined {}
  left(): undefined {}
  delivered(): undefined {}
  began(): void {}
  settled(): undefined {}
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
  /** When it took what it works on; undefined while it waits for work. */
  beganAt: number | undefined;
}

interface Arrival {
  readonly at: number;
  left: number;
}

/** What the loops do at a moment. */
interface Work {
  /** Loops that wait, and how many messages they could work on. */
  idle: number;
  free: number;
  /**
   * Loops that took their work less than the buffer's time ago, and how many messages they work on at once.
   */
  coming: number;
  places: number;
}

/** A window that follows how fast the program works. */
export class AdaptivePrefetch implements PrefetchControl {
  readonly times = new HandlingTimes();
  window = 0;
  readonly #bufferUs: number;
  readonly #loops = new Map<number, Loop>();
  #working = 0;
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
    if (taker.beganAt === undefined) this.#working++;
    taker.beganAt = now;
    this.#inHand += count;
    this.#unbegun -= count;
    this.#taken += count;
  }

  /**
   * The last message of a loop that passed them on decides: no other event may come before the next delivery,
   * which a window that is too wide would make too large.
   */
  settled(now: number, count: number): Decision | undefined {
    this.#inHand -= count;
    return this.#inHand > 0 || this.#working > 0 ? undefined : this.#decide(now);
  }

  dropped(count: number): void {
    this.#unbegun -= count;
    this.#taken += count;
  }

  // Events that decide.

  joined(now: number, loop: number, size: number): Decision | undefined {
    this.#loops.set(loop, { size, beganAt: undefined });
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
    if (waiting.beganAt !== undefined) this.#working--;
    waiting.beganAt = undefined;
    return this.#decide(now);
  }

  handled(now: number, handlingUs: number, asking: number | undefined): Decision | undefined {
    this.times.add(handlingUs);
    // A loop that is just asking is not stuck, however long it took.
    if (asking !== undefined) this.#loop(asking).beganAt = now;
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
    for (const { beganAt } of this.#loops.values()) {
      if (beganAt !== undefined) consider(beganAt + this.#bufferUs);
    }
    return earliest === Infinity ? undefined : earliest;
  }

  #loop(number: number): Loop {
    const loop = this.#loops.get(number);
    if (loop === undefined) throw new Error(`there is no loop ${number}`);
    return loop;
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
    if (aged) this.times.clear();

    const hands = this.#hands(work);
    const buffer = this.#bufferMessages(idle + work.coming);
    const target = Math.min(hands + buffer, WINDOW_MAX);
    const spare = Math.max(0, hands - this.#inHand);
    let giveBack = 0;
    if (idle === 0 && (aged || this.#unbegun > spare + 2 * buffer)) {
      giveBack = Math.max(0, this.#unbegun - spare - buffer);
    }
    if (giveBack === 0 && !this.#isWorthTelling(target, idle)) return undefined;
    this.window = target;
    this.#forgetNewest(giveBack);
    return { window: target, giveBack };
  }

  #workAt(now: number): Work {
    const work: Work = { idle: 0, free: 0, coming: 0, places: 0 };
    for (const { size, beganAt } of this.#loops.values()) {
      if (beganAt === undefined) {
        work.idle++;
        work.free += size;
      } else if (now - beganAt < this.#bufferUs) {
        // One that has worked for longer than that comes free nobody knows when.
        work.coming++;
        work.places += size;
      }
    }
    return work;
  }

  /**
   * How many messages may be in hand: one for each place in the loops that come free, and what the others
   * hold. Of a loop that passes its messages on, all that it passed on and one more, so that it is not held
   * up.
   */
  #hands({ free, places }: Work): number {
    let slots = 0;
    for (const { size } of this.#loops.values()) slots += size;
    return Math.min(Math.max(free + places, this.#inHand + free), Math.max(slots, BUFFER_MESSAGES_MAX));
  }

  /** How many messages may wait: what the loops that come free do in `bufferUs`. */
  #bufferMessages(comingFree: number): number {
    const { count, medianUs } = this.times;
    if (comingFree === 0 || medianUs > this.#bufferUs) return 0;
    if (count === 0) return 1;
    // A few quick messages prove little: so each further sample at most doubles what may wait.
    const proven = Math.min(2 ** count, BUFFER_MESSAGES_MAX);
    return Math.min(proven, Math.floor((this.#bufferUs * comingFree) / Math.max(medianUs, 1)));
  }

  /** Whether the difference matters: small ones would cost a frame for every message. */
  #isWorthTelling(target: number, idle: number): boolean {
    const told = this.window;
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
