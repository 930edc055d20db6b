/**
 * Which messages in hand the broker knows to be begun.
 *
 * A message that comes back unbegun counts no attempt, so the broker must learn of what the program really
 * has in hand. Quick messages need no word: their settling says it. A message that came back before is
 * declared before the program sees it: one that kills its worker at once would else never be declared, and
 * come back uncounted for ever.
 */

import type { Clock } from './clock.js';
import type { Holding } from './holding.js';
import type { Message } from './message.js';

/** What is in hand at one look and still at the next is declared: so within 5 ms of being handed out. */
const LOOK_EVERY_MS = 2.5;

/** Writes a Begun frame; resolves when it is written, false when it is lost with its stream. */
export type WriteBegun = (leaseIds: readonly bigint[]) => Promise<boolean>;

/** Declares what a session's loops have in hand. */
export class Begun {
  readonly #holding: Holding;
  readonly #clock: Clock;
  readonly #write: WriteBegun;
  readonly #declared = new Set<Message>();
  #seen: Message[] = [];
  #cancelLook: (() => void) | undefined;

  constructor(holding: Holding, clock: Clock, write: WriteBegun) {
    this.#holding = holding;
    this.#clock = clock;
    this.#write = write;
  }

  /** Something is in hand that is not declared. */
  handedOut(): void {
    this.#cancelLook ??= this.#clock.after(LOOK_EVERY_MS, () => this.#look());
  }

  #look(): void {
    this.#cancelLook = undefined;
    const { inHand } = this.#holding;
    const still = this.#seen.filter(
      (message) => inHand.get(message.id) === message && !this.#declared.has(message),
    );
    if (still.length > 0) void this.declare(still);
    for (const message of this.#declared) {
      if (inHand.get(message.id) !== message) this.#declared.delete(message);
    }
    this.#seen = [...inHand.values()].filter((message) => !this.#declared.has(message));
    if (this.#seen.length > 0) this.handedOut();
  }

  /** Resolves when the broker's word for these is written; false when it is lost with its stream. */
  declare(messages: readonly Message[]): Promise<boolean> {
    for (const message of messages) this.#declared.add(message);
    return this.#write(messages.map((message) => message.leaseId));
  }

  /** The stream is a new one, and what was written to the old one may not have arrived. */
  declareAnew(): void {
    this.#declared.clear();
    if (this.#holding.size > 0) void this.declare([...this.#holding.inHand.values()]);
  }

  /** Nothing comes any more. */
  close(): void {
    this.#cancelLook?.();
    this.#cancelLook = undefined;
  }
}
