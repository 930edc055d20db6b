/**
 * One connection to a broker, and the rules by which a call is tried again.
 *
 * ```text
 * what went wrong                               tried again
 * the broker could not be reached               yes, for `retryForMs`: nothing was sent
 * the broker said UNAVAILABLE (it is stopping)  yes, for `retryForMs`: it did nothing
 * a node of a group said that another serves    yes, for `retryForMs`, there
 * the connection broke, the answer is missing   only what methods.ts calls repeatable
 * the broker said it is overloaded              for `waitWhenOverloadedMs`, at the pace it suggests
 * anything else                                 no
 * ```
 *
 * To know that nothing was sent, a call starts only on a connection that stands.
 */

import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  MessageShape,
} from '@bufbuild/protobuf';
import { Client, connectivityState, Metadata } from '@grpc/grpc-js';
import type { ClientDuplexStream, ClientReadableStream } from '@grpc/grpc-js';

import { type Address, addressesOf, channelOptions } from './address.js';
import { backoffMs, onAbort, sleep } from './clock.js';
import { diagnosis } from './diagnosis.js';
import {
  AnswerLost,
  ClientClosed,
  type ErrorFacts,
  type FilaError,
  NotOwner,
  Overloaded,
  Unavailable,
} from './errors.js';
import { encodedMethod, isRepeatable } from './methods.js';
import type { Settings } from './options.js';
import { answerLostUnlessSaid, errorOfCall } from './status.js';

/** How long one attempt to connect to one address may take. */
const ATTEMPT_MS = 5_000;

/** The same where there are others to try. */
const ATTEMPT_OF_SEVERAL_MS = 1_000;

/** A timer that is later than this was late because the process stood still. */
const STOOD_STILL_MS = 250;

/** What an attempt gets at least after the process stood still, beyond the longest pause before it. */
const FAIR_MS = 1_000;

/** How a call differs from others of its method. */
export interface CallOptions {
  /** Replaces `callTimeoutMs` for each attempt; a call that is meant to take long gives its own. */
  readonly timeoutMs?: number | undefined;
  /** Replaces what methods.ts says. */
  readonly repeatable?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The only module that talks to gRPC's client. */
export class Connection {
  readonly settings: Settings;
  /** Aborted, with a ClientClosed, when the client is closed. */
  readonly closed: AbortSignal;
  readonly #addresses: readonly Address[];
  readonly #closing = new AbortController();
  readonly #metadata = new Metadata();
  readonly #waiting = new Set<Waiter>();
  /** Calls that are not answered yet. */
  readonly #open = new Set<{ cancel(): void }>();
  /** The address to try next. */
  #next = 0;
  /** The address that a node named, to try before. */
  #owner: Address | undefined;
  /** Where the connection that stands leads to. */
  #at = '';
  #client: Client | undefined;
  #trying: Client | 'paused' | undefined;
  #lastFailure = '';
  #hasStood = false;
  /** By address, what waiting cannot mend. */
  readonly #wrong = new Map<Address, string>();

  constructor(address: string | readonly string[], settings: Settings) {
    this.settings = settings;
    this.closed = this.#closing.signal;
    this.#addresses = addressesOf(address, settings);
    if (settings.apiKey) this.#metadata.set('authorization', `Bearer ${settings.apiKey}`);
  }

  /** Closes the connection; calls that are still open end as lost. */
  close(): void {
    const closed = new ClientClosed('this client was closed; connect a new one');
    this.#closing.abort(closed);
    for (const waiter of [...this.#waiting]) waiter.fails(closed);
    for (const call of [...this.#open]) call.cancel();
    if (this.#trying instanceof Client) this.#trying.close();
    this.#client?.close();
    this.#client = undefined;
  }

  /** Calls that wait for their next attempt end here too. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleep(this.settings.clock, ms, signal, this.closed);
  }

  // Calls.

  /** Runs a unary call under the rules above. */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    known: ErrorFacts,
    { timeoutMs = this.settings.callTimeoutMs, repeatable = isRepeatable(method), signal }: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const beganAt = this.settings.clock.now();
    for (let tries = 0; ; tries++) {
      await this.ready(beganAt + this.settings.retryForMs, signal);
      let waitMs: number | undefined;
      try {
        return await this.#attempt(method, request, known, timeoutMs, signal);
      } catch (error) {
        this.follow(error);
        waitMs = this.#waitBeforeRetry(error, beganAt, tries, repeatable);
        if (waitMs === undefined) throw error;
      }
      await this.sleep(waitMs, signal);
    }
  }

  #waitBeforeRetry(error: unknown, beganAt: number, tries: number, repeatable: boolean): number | undefined {
    const { backoff, retryForMs, waitWhenOverloadedMs, clock } = this.settings;
    if (!(error instanceof Unavailable || error instanceof Overloaded)) return undefined;
    if (error instanceof AnswerLost && !repeatable) return undefined;
    let waitMs = backoffMs(backoff, tries);
    let patienceMs = retryForMs;
    if (error instanceof Overloaded) {
      patienceMs = waitWhenOverloadedMs;
      // At least what the broker asked for, and not all at the same moment.
      if (error.retryAfterMs !== undefined) waitMs = error.retryAfterMs + waitMs / 2;
    }
    return clock.now() + waitMs > beganAt + patienceMs ? undefined : waitMs;
  }

  #attempt<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    known: ErrorFacts,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<MessageShape<O>> {
    const { path, serialize, deserialize } = encodedMethod(method);
    const client = this.#standing();
    const failed = (failure: Error) =>
      this.closed.aborted ? lostByClosing(failure) : answerLostUnlessSaid(errorOfCall(failure, known));
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const over = () => {
        this.#open.delete(call);
        signal?.removeEventListener('abort', abort);
      };
      const abort = () => {
        reject(signal?.reason as Error);
        call.cancel();
      };
      const answered = (failure: Error | null, answer?: MessageShape<O>) => {
        over();
        if (failure !== null) reject(failed(failure));
        else resolve(answer as MessageShape<O>);
      };
      const deadline = Date.now() + timeoutMs;
      const metadata = this.#metadata;
      const call = client.makeUnaryRequest(
        path,
        serialize,
        deserialize,
        request,
        metadata,
        { deadline },
        answered,
      );
      this.#open.add(call);
      if (signal !== undefined) onAbort(signal, abort);
    });
  }

  /** Goes where the owner is, if this is the word of a node that stands by: the next try is there. */
  follow(error: unknown): void {
    const left = this.#client;
    if (!(error instanceof NotOwner) || left === undefined || error.owner === this.#at) return;
    if (error.owner !== '') {
      const scheme = this.#addresses.some((address) => address.tls !== undefined) ? 'https://' : '';
      [this.#owner] = addressesOf(scheme + error.owner, this.settings);
    } else {
      this.#next = (this.#next + 1) % this.#addresses.length;
    }
    // What is under way there ends by itself: that node refuses it.
    this.#broke(left);
  }

  /** Starts a bidirectional stream. */
  openStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodBiDiStreaming<I, O>,
  ): ClientDuplexStream<MessageShape<I>, MessageShape<O>> {
    const { path, serialize, deserialize } = encodedMethod(method);
    return this.#standing().makeBidiStreamRequest(path, serialize, deserialize, this.#metadata);
  }

  /** Starts a call that answers with a stream. */
  readStream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageShape<I>,
  ): ClientReadableStream<MessageShape<O>> {
    const { path, serialize, deserialize } = encodedMethod(method);
    const stream = this.#standing().makeServerStreamRequest(
      path,
      serialize,
      deserialize,
      request,
      this.#metadata,
    );
    this.#open.add(stream);
    stream.once('close', () => this.#open.delete(stream));
    return stream;
  }

  #standing(): Client {
    this.closed.throwIfAborted();
    const client = this.#client;
    if (client === undefined || !stands(client)) {
      throw new Unavailable('the connection broke before anything was sent');
    }
    return client;
  }

  // The connection itself.

  /**
   * Resolves when the connection stands; rejects with Unavailable at `giveUpAt` of the clock. Who can't wait
   * long between two attempts says so by `pauseMsMax`.
   */
  ready(giveUpAt: number, signal?: AbortSignal, pauseMsMax = Infinity): Promise<void> {
    if (this.closed.aborted) return Promise.reject(this.closed.reason as Error);
    if (this.#client !== undefined && stands(this.#client)) return Promise.resolve();
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const over = (end: () => void) => {
        cancel();
        signal?.removeEventListener('abort', abort);
        this.#waiting.delete(waiter);
        end();
      };
      const abort = () => over(() => reject(signal?.reason as Error));
      const waiter: Waiter = {
        pauseMsMax,
        stands: () => over(resolve),
        fails: (error) => over(() => reject(error)),
      };
      const cancel = this.#giveUpLater(giveUpAt, waiter);
      if (signal !== undefined) onAbort(signal, abort);
      this.#waiting.add(waiter);
      void this.#connect();
    });
  }

  /**
   * A process that stood still past that time saw nothing meanwhile, and its timers run before what came in
   * from the network: it waits for one more attempt.
   */
  #giveUpLater(giveUpAt: number, waiter: Waiter): () => void {
    if (giveUpAt === Infinity) return () => {};
    const { clock, backoff } = this.settings;
    let cancel = () => {};
    const giveUpBy = (at: number) => {
      cancel = clock.after(at - clock.now(), () => {
        if (clock.now() - at <= STOOD_STILL_MS) waiter.fails(this.#unreachable());
        else giveUpBy(clock.now() + backoff.capMs + FAIR_MS);
      });
    };
    giveUpBy(giveUpAt);
    return () => cancel();
  }

  #unreachable(): Unavailable {
    const places = this.#addresses.map((address) => address.target).join(', ');
    const why = this.#lastFailure === '' ? '' : ` (${this.#lastFailure})`;
    return new Unavailable(
      `no Fila broker answers at ${places}${why}. Start fila-server there, or connect elsewhere`,
    );
  }

  /** Tries one address after the other, round after round, for as long as anybody waits. */
  async #connect(): Promise<void> {
    if (this.#trying !== undefined) return;
    try {
      for (let tries = 0; this.#waiting.size > 0 && !this.closed.aborted; tries++) {
        if (await this.#tryNext()) return;
        if (tries % this.#addresses.length === this.#addresses.length - 1) await this.#pause(tries);
      }
    } catch (error) {
      // gRPC refuses the address itself: to try again would change nothing.
      this.#trying = undefined;
      const wrong = new Unavailable('this address can not be connected to', { cause: error });
      for (const waiter of [...this.#waiting]) waiter.fails(wrong);
    }
  }

  async #pause(tries: number): Promise<void> {
    const rounds = Math.floor(tries / this.#addresses.length);
    const pauseMsMax = Math.min(...[...this.#waiting].map((waiter) => waiter.pauseMsMax));
    this.#trying = 'paused';
    const pauseMs = Math.min(backoffMs(this.settings.backoff, rounds), pauseMsMax);
    await this.sleep(pauseMs).catch(() => {}); // closed: the loop sees it
    this.#trying = undefined;
  }

  async #tryNext(): Promise<boolean> {
    const owner = this.#owner;
    const address = (owner ?? this.#addresses[this.#next]) as Address;
    const { target, credentials } = address;
    const isOneOfSeveral = owner !== undefined || this.#addresses.length > 1;
    const client = new Client(target, credentials, channelOptions(this.settings, isOneOfSeveral));
    this.#trying = client;
    const attemptMs = isOneOfSeveral ? ATTEMPT_OF_SEVERAL_MS : ATTEMPT_MS;
    const state = await outcome(client, Date.now() + attemptMs);
    const connected = state === connectivityState.READY && !this.closed.aborted;
    if (!connected) {
      this.#lastFailure = await whyNot(client, state);
      client.close();
      if (owner === undefined) {
        await this.#findOutWhy(address);
        this.#next = (this.#next + 1) % this.#addresses.length;
      }
    }
    if (this.#owner === owner) this.#owner = undefined;
    this.#trying = undefined;
    if (connected) {
      this.#at = target;
      this.#arrived(client);
    }
    return connected;
  }

  /**
   * Gives up where the settings are wrong for every address and never were right; where they have been, logs the
   * sentence that names it.
   */
  async #findOutWhy(address: Address): Promise<void> {
    const sentence = await diagnosis(address.target, address.tls);
    const before = this.#wrong.get(address);
    this.#wrong.delete(address);
    if (sentence === '') return;
    this.#wrong.set(address, sentence);
    if (this.#hasStood) {
      if (sentence !== before) console.warn(`fila: ${sentence}`);
    } else if (this.#wrong.size === this.#addresses.length) {
      for (const waiter of [...this.#waiting]) waiter.fails(new Unavailable(sentence));
    }
  }

  #arrived(client: Client): void {
    this.#hasStood = true;
    this.#wrong.clear();
    this.#client?.close();
    this.#client = client;
    client.getChannel().watchConnectivityState(connectivityState.READY, Infinity, () => this.#broke(client));
    for (const waiter of [...this.#waiting]) waiter.stands();
  }

  #broke(client: Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    client.close();
  }
}

function lostByClosing(cause: Error): FilaError {
  const text = 'the client was closed before the answer came: it may or may not have happened';
  return new ClientClosed(text, { cause });
}

interface Waiter {
  readonly pauseMsMax: number;
  readonly stands: () => void;
  readonly fails: (error: Error) => void;
}

function stands(client: Client): boolean {
  return client.getChannel().getConnectivityState(false) === connectivityState.READY;
}

/** Resolves with the state in which an attempt to connect ends: READY, or another one. */
function outcome(client: Client, deadline: number): Promise<connectivityState> {
  const channel = client.getChannel();
  return new Promise((resolve) => {
    const look = () => {
      const state = channel.getConnectivityState(true);
      const undecided = state === connectivityState.IDLE || state === connectivityState.CONNECTING;
      if (!undecided) resolve(state);
      else channel.watchConnectivityState(state, deadline, (late) => (late ? resolve(state) : look()));
    };
    look();
  });
}

/** Says why an attempt failed. gRPC tells it only to a call: one is made, which can't leave. */
function whyNot(client: Client, state: connectivityState): Promise<string> {
  if (state !== connectivityState.TRANSIENT_FAILURE) return Promise.resolve('it does not answer');
  const asIs = (bytes: Buffer) => bytes;
  const call = [HEALTH, asIs, asIs, Buffer.alloc(0), { deadline: Date.now() + 100 }] as const;
  return new Promise((resolve) => {
    client.makeUnaryRequest(...call, (failure) => {
      const details = (failure?.details ?? '').replace('No connection established. Last error: ', '');
      resolve(details.replace(/\.? *Resolution note: *$/, ''));
    });
  });
}

const HEALTH = '/grpc.health.v1.Health/Check';
