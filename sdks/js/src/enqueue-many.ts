/** Many messages of one call: read as fast as the broker takes them, a window of large frames at a time. */

import { unlessAborted } from './clock.js';
import { FilaError, InternalError, SomeFailed } from './errors.js';
import { type Outcome, SliceFrame } from './frames.js';
import { encodeItem, type Enqueued, type NewMessage, sizeOf } from './new-message.js';
import type { Settings } from './options.js';
import type { Producer } from './producer.js';

/** What `enqueueMany` reads: any iterable, of messages, bytes or text. */
export type Messages =
  Iterable<NewMessage | Uint8Array | string> | AsyncIterable<NewMessage | Uint8Array | string>;

/** One call of `enqueueMany`. */
export class ManyEnqueues {
  readonly #producer: Producer;
  readonly #settings: Settings;
  readonly #queue: string;
  readonly #signal: AbortSignal | undefined;
  readonly #results: (Outcome | undefined)[] = [];
  readonly #sent: SliceFrame[] = [];
  #slice: SliceFrame | undefined;
  #count = 0;

  constructor(producer: Producer, settings: Settings, queue: string, signal: AbortSignal | undefined) {
    this.#producer = producer;
    this.#settings = settings;
    this.#queue = queue;
    this.#signal = signal;
  }

  /** Returns what became of each message, in order. */
  async run(messages: Messages): Promise<Enqueued[]> {
    try {
      if (Symbol.asyncIterator in messages) await this.#readSlowly(messages);
      else await this.#read(messages);
      this.#putSlice();
      await this.#until(0);
    } catch (error) {
      for (const slice of this.#sent) this.#producer.take(slice);
      throw error;
    }
    const outcomes = this.#results.map((outcome) => outcome ?? new InternalError('no outcome'));
    const stored = outcomes.filter((outcome): outcome is Enqueued => !(outcome instanceof FilaError));
    if (stored.length < outcomes.length) throw new SomeFailed(outcomes);
    return stored;
  }

  async #read(messages: Iterable<NewMessage | Uint8Array | string>): Promise<void> {
    for (const message of messages) {
      this.#signal?.throwIfAborted();
      if (this.#add(message)) await this.#room();
    }
  }

  /** What comes slowly must not wait for a full slice. */
  async #readSlowly(messages: AsyncIterable<NewMessage | Uint8Array | string>): Promise<void> {
    const { clock, lingerMs } = this.#settings;
    let cancel: (() => void) | undefined;
    try {
      for await (const message of messages) {
        this.#signal?.throwIfAborted();
        if (this.#add(message)) await this.#room();
        cancel ??= clock.after(lingerMs, () => {
          cancel = undefined;
          this.#putSlice();
        });
      }
    } finally {
      cancel?.();
    }
  }

  /** Adds a message to the slice; true when a slice left. */
  #add(item: NewMessage | Uint8Array | string): boolean {
    const message = encodeAt(item, this.#count++);
    const bytes = sizeOf(message);
    let left = false;
    if (this.#slice !== undefined && this.#slice.bytes + bytes > this.#settings.frameBytesMax)
      left = this.#putSlice();
    const slice = (this.#slice ??= new SliceFrame(this.#queue, this.#settings.clock.now()));
    slice.add(message, bytes);
    return this.#producer.isFull(slice) ? this.#putSlice() : left;
  }

  #putSlice(): boolean {
    const slice = this.#slice;
    if (slice === undefined) return false;
    this.#slice = undefined;
    slice.takePlaces(this.#results);
    this.#sent.push(slice);
    this.#producer.put(slice);
    return true;
  }

  /** One slice more than may be in flight, so that the producer always finds the next. */
  #room(): Promise<void> {
    return this.#until(this.#settings.framesInFlightMax);
  }

  async #until(left: number): Promise<void> {
    while (this.#sent.length > left) {
      await unlessAborted((this.#sent[0] as SliceFrame).done, this.#signal);
      this.#sent.shift();
    }
  }
}

function encodeAt(item: NewMessage | Uint8Array | string, index: number): ReturnType<typeof encodeItem> {
  try {
    return encodeItem(item);
  } catch (error) {
    if (error instanceof Error) error.message = `messages[${index}]: ${error.message}`;
    throw error;
  }
}
