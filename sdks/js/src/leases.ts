/**
 * Which leases this client holds, so that `ack(queue, messageId)` can name the delivery it means.
 *
 * Bounded without keeping order: two generations of a map. What is not settled by the time a whole further
 * generation was delivered is forgotten; acking it by id then settles whatever lease is current, as for a
 * client that remembers nothing.
 */

/** Twice this many leases are remembered for each queue, channel and consumer: some 10 MB at worst. */
const LEASES_PER_GENERATION_MAX = 32_768;

/** The lease of each message; the newest delivery wins. */
export class LeaseMemory {
  #newer = new Map<string, bigint>();
  #older = new Map<string, bigint>();
  readonly #perGenerationMax: number;

  constructor(perGenerationMax = LEASES_PER_GENERATION_MAX) {
    this.#perGenerationMax = perGenerationMax;
  }

  get size(): number {
    return this.#newer.size + this.#older.size;
  }

  /** Keeps the lease of a delivery. */
  remember(messageId: string, leaseId: bigint): void {
    if (this.#newer.size >= this.#perGenerationMax) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(messageId, leaseId);
  }

  /** Returns the lease under which the message was last delivered here, if it is still known. */
  get(messageId: string): bigint | undefined {
    return this.#newer.get(messageId) ?? this.#older.get(messageId);
  }

  /** Drops a lease that is being settled. A newer delivery of the same message stays. */
  forget(messageId: string, leaseId: bigint): void {
    for (const generation of [this.#newer, this.#older]) {
      if (generation.get(messageId) === leaseId) {
        generation.delete(messageId);
        return;
      }
    }
  }
}
