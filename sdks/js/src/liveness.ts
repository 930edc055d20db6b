/**
 * Until when a session may hand messages out: a broker that was not heard from may have given them to others.
 *
 * The consumer says `alive`, the broker answers. Whatever the broker answered last, it has heard from this
 * consumer no earlier than that frame was sent; so for a visibility timeout from the sending it has not
 * called the consumer silent. Judged by the client's monotonic clock: no two machines' clocks agree. Times
 * are milliseconds.
 */

/** So many `alive` frames are sent within a visibility timeout. */
const ALIVE_PER_TIMEOUT = 4;

/** One is sent at least this often, however long the timeout. */
const ALIVE_EVERY_MS_MAX = 10_000;

/** More unanswered frames would say nothing new. */
const UNANSWERED_MAX = 8;

/** What a session knows of whether it is heard. */
export class Liveness {
  /** Nothing is handed out from then on, until more is heard. */
  handOutUntil = -Infinity;
  #timeoutMs = 0;
  #sequence = 0n;
  /** When each unanswered frame was sent, oldest first. */
  readonly #unanswered = new Map<bigint, number>();

  /** The broker answered an `open` that was sent then; from now on it judges by this timeout. */
  opened(sentAt: number, timeoutMs: number): void {
    this.#timeoutMs = timeoutMs;
    this.#unanswered.clear();
    this.handOutUntil = sentAt + timeoutMs;
  }

  /** The broker is older than these rules. */
  openedWithoutRules(): void {
    this.handOutUntil = Infinity;
  }

  /** The stream is over. */
  lost(): void {
    this.handOutUntil = -Infinity;
  }

  /** How long after one `alive` the next is due. */
  get intervalMs(): number {
    return Math.min(this.#timeoutMs / ALIVE_PER_TIMEOUT, ALIVE_EVERY_MS_MAX);
  }

  /** Returns the number of a frame to send now; undefined when enough are unanswered. */
  sayAlive(now: number): bigint | undefined {
    if (this.#unanswered.size >= UNANSWERED_MAX) return undefined;
    this.#unanswered.set(++this.#sequence, now);
    return this.#sequence;
  }

  /** The broker heard the frame of this number. */
  answered(sequence: bigint): void {
    const sentAt = this.#unanswered.get(sequence);
    if (sentAt !== undefined) this.handOutUntil = Math.max(this.handOutUntil, sentAt + this.#timeoutMs);
    for (const number of this.#unanswered.keys()) {
      if (number <= sequence) this.#unanswered.delete(number);
    }
  }
}
