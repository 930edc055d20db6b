/**
 * Enqueues on their way to the broker, over one EnqueueStream: concurrent calls travel together.
 *
 * ```text
 * enqueue ------> gathering frame --+
 *                                   +--> in flight --> each caller's answer
 * enqueueMany --> its slices -------+
 * ```
 *
 * When a gathering frame leaves:
 *
 * ```text
 * nothing is in flight      at the end of this turn of the event loop, so a lone call does not wait
 * one frame is in flight    when that is answered, or when as many have gathered as it holds (32 at least)
 * more are in flight        when they are answered
 * in any case               when the frame is full, or after `lingerMs`
 * ```
 *
 * When the stream breaks, the answers of what was in flight are lost. A message with a dedup key is sent
 * again: the broker recognises it. Any other is not, for it may have been stored: its caller gets AnswerLost
 * and decides. What had not been sent stays here and goes over the next stream.
 */

import type { ClientDuplexStream } from '@grpc/grpc-js';

import { backoffMs, onAbort } from './clock.js';
import type { Connection } from './connection.js';
import {
  AnswerLost,
  ClientClosed,
  FilaError,
  InternalError,
  NotAllowed,
  NotOwner,
  NotSupported,
  Overloaded,
  Unavailable,
} from './errors.js';
import { Fifo } from './fifo.js';
import { type Caller, type Frame, GatheredFrame } from './frames.js';
import {
  type EnqueueMessage,
  type EnqueueStreamRequest,
  type EnqueueStreamResponse,
  FilaService,
} from './gen/fila/v1/service_pb.js';
import { type Enqueued, mayRepeat, sizeOf } from './new-message.js';
import type { Settings } from './options.js';
import { errorOf, errorOfCall, isTheBrokersWord, unavailableUnlessSaid } from './status.js';

type Stream = ClientDuplexStream<EnqueueStreamRequest, EnqueueStreamResponse>;

/** A second frame that is smaller costs more than the wait does. */
const SECOND_FRAME_LEAST = 32;

/** A message that waits for room, or in the gathering frame. */
interface Entry extends Caller {
  readonly queue: string;
  readonly message: EnqueueMessage;
  readonly bytes: number;
}

/** Sends frames and hands out the answers. Its stream opens with the first message. */
export class Producer {
  readonly #connection: Connection;
  readonly #settings: Settings;
  /** Calls beyond `waitingBytesMax`. */
  readonly #outside = new Fifo<Entry>();
  #gathering: GatheredFrame | undefined;
  readonly #full = new Fifo<Frame>();
  readonly #inFlight = new Map<bigint, Frame>();
  /** Frames that wait for their next try. */
  #delayed = 0;
  #sequence = 0;
  #waitingBytes = 0;
  #losses = 0;
  #stream: Stream | undefined;
  #opening = false;
  #pumping: NodeJS.Immediate | undefined;
  #cancelLinger: (() => void) | undefined;
  #cancelWatch: (() => void) | undefined;
  #closed: ClientClosed | undefined;
  #whenAnswered: (() => void) | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#settings = connection.settings;
  }

  /** Sends one message with whatever else is enqueued around now. */
  enqueue(queue: string, message: EnqueueMessage, signal?: AbortSignal): Promise<Enqueued> {
    if (this.#closed) return Promise.reject(this.#closed);
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      let entry: Entry = { queue, message, bytes: sizeOf(message), resolve, reject };
      if (signal !== undefined) entry = this.#abortable(entry, signal);
      if (this.#waitingBytes >= this.#settings.waitingBytesMax) this.#outside.push(entry);
      else this.#gather(entry);
      this.#pumpSoon();
    });
  }

  /** Returns the entry, which is taken back when its signal aborts; what was sent by then is sent. */
  #abortable(entry: Entry, signal: AbortSignal): Entry {
    const over =
      <V>(end: (value: V) => void) =>
      (value: V) => {
        signal.removeEventListener('abort', abort);
        end(value);
      };
    const abortable: Entry = { ...entry, resolve: over(entry.resolve), reject: over(entry.reject) };
    const abort = () => {
      if (!this.#outside.remove(abortable)) this.#withdraw(abortable);
      abortable.reject(signal.reason as Error);
    };
    onAbort(signal, abort);
    return abortable;
  }

  #withdraw(entry: Entry): void {
    for (const frame of [this.#gathering, ...this.#full]) {
      if (frame instanceof GatheredFrame && frame.withdraw(entry, entry.bytes)) {
        this.#waitingBytes -= entry.bytes;
        if (frame === this.#gathering && frame.length === 0) this.#gathering = undefined;
        return;
      }
    }
  }

  #gather(entry: Entry): void {
    const { queue, message, bytes } = entry;
    let frame = this.#gathering;
    if (frame !== undefined && frame.bytes + bytes > this.#settings.frameBytesMax) {
      this.#full.push(frame);
      frame = undefined;
    }
    frame ??= new GatheredFrame(queue, this.#settings.clock.now());
    if (queue !== frame.queue) message.queue = queue;
    frame.add(message, bytes, entry);
    this.#waitingBytes += bytes;
    if (this.isFull(frame)) {
      this.#full.push(frame);
      this.#gathering = undefined;
    } else {
      this.#gathering = frame;
    }
  }

  /** Sends a frame that somebody else has filled. */
  put(frame: Frame): void {
    if (this.#closed) frame.resolveAll(this.#closed);
    else this.#full.push(frame);
    this.#pumpSoon();
  }

  /** Takes back a frame that was not sent yet. */
  take(frame: Frame): void {
    this.#full.remove(frame);
  }

  isFull(frame: Frame): boolean {
    const { frameMessagesMax, frameBytesMax } = this.#settings;
    return frame.length >= frameMessagesMax || frame.bytes >= frameBytesMax;
  }

  /** Sends what waits and takes in what is answered, for as long as a call may take; fails the rest. */
  async close(): Promise<void> {
    if (this.#isUnanswered()) {
      await new Promise<void>((resolve) => {
        const cancel = this.#settings.clock.after(this.#settings.callTimeoutMs, resolve);
        this.#whenAnswered = () => {
          cancel();
          resolve();
        };
      });
    }
    this.#closed = new ClientClosed('the client was closed before the message was sent');
    this.#failWaiting(this.#closed);
    const stream = this.#stream;
    this.#streamEnded(stream, new ClientClosed('the client was closed before the answer came'));
    stream?.cancel();
  }

  #isUnanswered(): boolean {
    return this.#isWaiting() || this.#inFlight.size > 0 || this.#delayed > 0;
  }

  #isWaiting(): boolean {
    return this.#gathering !== undefined || this.#full.length > 0 || this.#outside.length > 0;
  }

  // On the way out.

  /** Whatever else this turn of the event loop enqueues joins in. */
  #pumpSoon(): void {
    this.#pumping ??= setImmediate(() => {
      this.#pumping = undefined;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#stream === undefined) {
      if (this.#isWaiting()) void this.#open();
      return;
    }
    this.#letIn();
    for (let frame = this.#nextFrame(); frame !== undefined; frame = this.#nextFrame()) {
      this.#sequence++;
      frame.sentAt = this.#settings.clock.now();
      this.#inFlight.set(BigInt(this.#sequence), frame);
      this.#watch();
      this.#stream.write(frame.request(this.#sequence));
      this.#letIn();
    }
  }

  /** Gathers what waited for room. */
  #letIn(): void {
    while (this.#waitingBytes < this.#settings.waitingBytesMax) {
      const entry = this.#outside.shift();
      if (entry === undefined) return;
      this.#gather(entry);
    }
  }

  /** Returns the frame to send now, or undefined when it is time to wait. */
  #nextFrame(): Frame | undefined {
    if (this.#inFlight.size >= this.#settings.framesInFlightMax) return undefined;
    let frame = this.#full.shift();
    while (frame?.length === 0) frame = this.#full.shift(); // all of it was withdrawn
    if (frame === undefined) {
      frame = this.#gathering;
      if (frame === undefined || this.#lingers(frame)) return undefined;
      this.#gathering = undefined;
    }
    if (frame instanceof GatheredFrame && frame.tries === 0) this.#waitingBytes -= frame.bytes;
    return frame;
  }

  #lingers(frame: Frame): boolean {
    const { clock, lingerMs } = this.#settings;
    const remainingMs = frame.firstAt + lingerMs - clock.now();
    if (this.#inFlight.size === 0 || remainingMs <= 0 || this.#isSecond(frame)) return false;
    this.#cancelLinger ??= clock.after(remainingMs, () => {
      this.#cancelLinger = undefined;
      this.#pump();
    });
    return true;
  }

  /** While the broker syncs the first frame, the callers of a second one of that size are served. */
  #isSecond({ length }: Frame): boolean {
    const [first, another] = this.#inFlight.values();
    return another === undefined && length >= Math.max(SECOND_FRAME_LEAST, first?.length ?? 0);
  }

  // The stream.

  async #open(): Promise<void> {
    if (this.#opening) return;
    this.#opening = true;
    try {
      if (this.#losses > 0) await this.#connection.sleep(backoffMs(this.#settings.backoff, this.#losses - 1));
      await this.#connection.ready(this.#settings.clock.now() + this.#settings.retryForMs);
      if (this.#closed === undefined)
        this.#follow(this.#connection.openStream(FilaService.method.enqueueStream));
    } catch (error) {
      if (error instanceof FilaError) this.#failWaiting(error);
      else this.#failWaiting(new InternalError('the producer met a mistake of the SDK', { cause: error }));
    } finally {
      this.#opening = false;
    }
    this.#pump();
  }

  #follow(stream: Stream): void {
    this.#stream = stream;
    stream.on('data', (response: EnqueueStreamResponse) => this.#takeIn(response));
    stream.on('error', (failure) => {
      this.#streamEnded(stream, unavailableUnlessSaid(errorOfCall(failure, {})));
    });
    stream.on('end', () => this.#streamEnded(stream, new Unavailable('the broker ended the stream')));
  }

  #takeIn(response: EnqueueStreamResponse): void {
    const frame = this.#inFlight.get(response.sequence);
    if (frame === undefined) return;
    this.#inFlight.delete(response.sequence);
    this.#losses = 0;
    const { results } = response;
    if (results.length === frame.length) {
      this.#resolve(frame, results);
    } else {
      const wrong = `${frame.length} messages were sent, but ${results.length} results came back`;
      frame.resolveAll(new InternalError(wrong));
    }
    this.#answered();
    this.#pumpSoon();
  }

  #resolve(frame: Frame, results: EnqueueStreamResponse['results']): void {
    const again: number[] = [];
    const waitMs = backoffMs(this.#settings.backoff, frame.tries);
    results.forEach(({ messageId: id, offset, error: status }, index) => {
      if (id !== '') {
        frame.resolve(index, { id, offset: Number(offset) });
        return;
      }
      const { code, message, reason } = status ?? NO_STATUS;
      const error = errorOf(code, message, reason, { queue: frame.queueOf(index) });
      if (this.#mayTryAgain(error, frame, waitMs)) again.push(index);
      else frame.resolve(index, error);
    });
    if (again.length > 0) this.#sendLater(frame.part(again), waitMs);
  }

  /** Whether the broker refused for now only, and the caller's patience allows another try. */
  #mayTryAgain(error: FilaError, frame: Frame, waitMs: number): boolean {
    const { clock, waitWhenOverloadedMs, retryForMs } = this.#settings;
    const waitedMs = clock.now() + waitMs - frame.firstAt;
    if (error instanceof Overloaded) return waitedMs < waitWhenOverloadedMs;
    return error instanceof Unavailable && waitedMs < retryForMs;
  }

  #sendLater(frame: Frame, waitMs: number): void {
    this.#delayed++;
    const put = () => {
      this.#delayed--;
      this.put(frame);
    };
    this.#connection.sleep(waitMs).then(put, put); // closed: `put` refuses it
  }

  #streamEnded(stream: Stream | undefined, failure: FilaError): void {
    if (stream === undefined || this.#stream !== stream) return;
    this.#stream = undefined;
    this.#losses++;
    this.#connection.follow(failure);
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    this.#loseInFlight(failure);
    this.#answered();
    this.#pumpSoon();
  }

  /** The stream is over: what may be repeated goes back to the front, the rest is answered with why. */
  #loseInFlight(failure: FilaError): void {
    const { clock, retryForMs } = this.#settings;
    const frames = [...this.#inFlight.values()];
    this.#inFlight.clear();
    for (const frame of frames.reverse()) {
      const patient = failure instanceof Unavailable && clock.now() - frame.firstAt < retryForMs;
      const again: number[] = [];
      frame.messages.forEach((message, index) => {
        // A node that stands by has taken none of it.
        if ((failure instanceof NotOwner || mayRepeat(message.options)) && patient) again.push(index);
        else frame.resolve(index, asLost(failure, frame.queueOf(index)));
      });
      if (again.length > 0) this.#full.unshift(frame.part(again));
    }
  }

  #failWaiting(failure: FilaError): void {
    const frames = this.#full.takeAll();
    if (this.#gathering !== undefined) frames.push(this.#gathering);
    this.#gathering = undefined;
    this.#waitingBytes = 0;
    for (const frame of frames) frame.resolveAll(failure);
    for (const entry of this.#outside.takeAll()) entry.reject(failure);
    this.#answered();
  }

  #answered(): void {
    if (this.#whenAnswered !== undefined && !this.#isUnanswered()) this.#whenAnswered();
    if (this.#inFlight.size === 0) {
      this.#cancelWatch?.();
      this.#cancelWatch = undefined;
    }
  }

  // A broker that does not answer.

  #watch(): void {
    const [oldest] = this.#inFlight.values();
    if (oldest === undefined || this.#cancelWatch !== undefined) return;
    const { clock, callTimeoutMs } = this.#settings;
    this.#cancelWatch = clock.after(oldest.sentAt + callTimeoutMs - clock.now(), () => {
      this.#cancelWatch = undefined;
      const [frame] = this.#inFlight.values();
      if (frame === undefined || clock.now() < frame.sentAt + callTimeoutMs) {
        this.#watch();
        return;
      }
      const stream = this.#stream;
      this.#streamEnded(stream, new Unavailable(`no answer came within ${callTimeoutMs} ms`));
      stream?.cancel();
    });
  }
}

const NO_STATUS = { code: 2, message: 'the broker neither stored nor refused the message', reason: '' };

/** What the sender of a message in flight must know: above all, that it may have been stored. */
function asLost(failure: FilaError, queue: string): FilaError {
  const said = isTheBrokersWord(failure) && !(failure instanceof Unavailable);
  if (
    said ||
    failure instanceof NotOwner ||
    failure instanceof NotSupported ||
    failure instanceof NotAllowed ||
    failure instanceof ClientClosed
  ) {
    return failure;
  }
  const text = `the message for ${queue} may have been stored, but no answer came: ${failure.message}`;
  return new AnswerLost(text, { cause: failure });
}
