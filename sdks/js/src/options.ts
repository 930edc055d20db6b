/** Every setting of a client, with its default, unit, bounds and reason. */

import { requireRange, requireText } from './arguments.js';
import { type Backoff, type Clock, systemClock } from './clock.js';
import { type ConnectionEvent, logged } from './connection-event.js';
import type { FilaError } from './errors.js';
import { WINDOW_MAX } from './prefetch.js';

/** How many messages a consumer holds at once: a number, or what its program works off in a moment. */
export type Prefetch = number | 'auto';

/**
 * How to speak TLS: PEM, as text or bytes, or the files that hold it. What is left out is taken from the files that
 * the environment's `FILA_CA_FILE`, `FILA_CERT_FILE` and `FILA_KEY_FILE` name.
 */
export interface TlsOptions {
  /** The certificates to trust; the system's when nothing names any. */
  readonly ca?: string | Uint8Array;
  /** The file that holds them. */
  readonly caFile?: string;
  /** The client's own certificate chain, for brokers that ask for one; with its key. */
  readonly cert?: string | Uint8Array;
  readonly certFile?: string;
  /** The private key of the certificate. */
  readonly key?: string | Uint8Array;
  readonly keyFile?: string;
  /** The name that the broker's certificate must carry, when it is not the name in the address. */
  readonly serverName?: string;
}

/** The settings of a client. */
export interface ClientOptions {
  /**
   * Speak TLS: `true` for the system's certificates. An address that begins with `https://` means the same.
   */
  readonly tls?: boolean | TlsOptions;
  /** Sent with every call, as `authorization: Bearer ...`. Default: the environment's `FILA_API_KEY`. */
  readonly apiKey?: string;
  /** How long `connect` waits for a broker to answer. Default 10,000. */
  readonly connectTimeoutMs?: number;
  /**
   * How long one call, or one frame of enqueues, may go unanswered before it counts as lost. Default 30,000.
   */
  readonly callTimeoutMs?: number;
  /**
   * How long an unreachable broker is tried again before a call ends with Unavailable. Default 30,000; 0: not
   * at all.
   */
  readonly retryForMs?: number;
  /**
   * How long a consumer tries to get its stream back before its loop ends with Unavailable. Default Infinity.
   */
  readonly reconnectForMs?: number;
  /**
   * How long a call that is refused with Overloaded is tried again, waiting as long as the broker suggests
   * each time. Default 0: rejected at once, so that the caller feels the pressure.
   */
  readonly waitWhenOverloadedMs?: number;
  /**
   * After how long without traffic the broker is asked whether it is there. Default 30,000; at least 1,000.
   */
  readonly keepaliveTimeMs?: number;
  /** How long it may take to answer that before the connection counts as broken. Default 10,000. */
  readonly keepaliveTimeoutMs?: number;
  /** Send concurrent `enqueue` calls together. Default true; false makes each a call of its own. */
  readonly batching?: boolean;
  /**
   * Longest an `enqueue` may wait for company while an earlier frame is unanswered. Default and most 5. With
   * nothing unanswered it is sent at once.
   */
  readonly lingerMs?: number;
  /**
   * Most messages in one frame. Default 200; at most 10,000. Larger frames cost less a message, and hold up
   * others.
   */
  readonly frameMessagesMax?: number;
  /** A frame is sent when its headers and payloads reach this. Default 1 MiB; at most 8 MiB. */
  readonly frameBytesMax?: number;
  /** Unanswered frames of enqueues. Default 4; more hide the broker's pace instead of following it. */
  readonly framesInFlightMax?: number;
  /** Bytes of enqueues not yet sent, beyond which `enqueue` waits. Default 64 MiB. */
  readonly waitingBytesMax?: number;
  /**
   * Messages a consumer holds at once, those in your hands included, unless `consume` says otherwise. Default
   * `'auto'`: enough that no loop waits for the network, and no more than `prefetchBufferMs` of work.
   */
  readonly prefetch?: Prefetch;
  /** How much work may lie prefetched under `prefetch: 'auto'`. Default 50; 1 to 60,000. */
  readonly prefetchBufferMs?: number;
  /**
   * Told when a consumer's stream is lost, and when it is back. What it throws is an uncaught exception. Default:
   * `console.warn` in a line.
   */
  readonly onConnection?: (event: ConnectionEvent) => void;
  /**
   * Told of refused acks, nacks, rejects and releases that nobody awaited. What it throws is an uncaught
   * exception.
   */
  readonly onRefused?: (error: FilaError) => void;
  /** Waits between attempts. */
  readonly backoff?: Backoff;
  /** Time, for tests. */
  readonly clock?: Clock;
}

/** The settings with their defaults. */
export type Settings = Required<Omit<ClientOptions, 'tls' | 'backoff'>> & {
  readonly tls: TlsOptions | undefined;
  readonly backoff: Required<Backoff>;
};

/** After so long without a word a broker is asked whether it is there, where nobody said otherwise. */
export const KEEPALIVE_TIME_MS = 30_000;

const DEFAULTS = {
  connectTimeoutMs: 10_000,
  callTimeoutMs: 30_000,
  retryForMs: 30_000,
  reconnectForMs: Infinity,
  waitWhenOverloadedMs: 0,
  keepaliveTimeMs: KEEPALIVE_TIME_MS,
  keepaliveTimeoutMs: 10_000,
  batching: true,
  lingerMs: 5,
  frameMessagesMax: 200,
  frameBytesMax: 1 << 20,
  framesInFlightMax: 4,
  waitingBytesMax: 64 << 20,
  prefetch: 'auto' as Prefetch,
  prefetchBufferMs: 50,
  onConnection: logged,
  onRefused: () => {},
  clock: systemClock,
};

const BOUNDS: Readonly<Record<string, readonly [number, number]>> = {
  connectTimeoutMs: [1, Infinity],
  callTimeoutMs: [1, Infinity],
  retryForMs: [0, Infinity],
  reconnectForMs: [0, Infinity],
  waitWhenOverloadedMs: [0, Infinity],
  keepaliveTimeMs: [1000, Infinity],
  keepaliveTimeoutMs: [1, Infinity],
  lingerMs: [0, 5],
  frameMessagesMax: [1, 10_000],
  frameBytesMax: [1, 8 << 20],
  framesInFlightMax: [1, Infinity],
  waitingBytesMax: [1, Infinity],
  prefetchBufferMs: [1, 60_000],
};

/** Fills in the defaults; a setting that is unknown, of a wrong type or out of range is refused. */
export function settingsOf(options: ClientOptions, environment = process.env): Settings {
  const { tls = false, backoff = {}, apiKey = environment['FILA_API_KEY'] ?? '', ...others } = options;
  for (const name of Object.keys(others)) {
    if (!(name in DEFAULTS)) throw new TypeError(`unknown option ${name}; known are ${KNOWN}`);
  }
  const given = Object.fromEntries(
    Object.entries(others).filter(([, value]: [string, unknown]) => value !== undefined),
  );
  const settings: Settings = {
    ...DEFAULTS,
    ...given,
    apiKey,
    tls: tls === true ? {} : tls || undefined,
    backoff: { baseMs: 50, capMs: 5000, random: Math.random, ...backoff },
  };
  requireText('apiKey', apiKey);
  for (const [name, [least, most]] of Object.entries(BOUNDS)) {
    requireRange(name, settings[name as keyof Settings], least, most);
  }
  requirePrefetch(settings.prefetch);
  requireRange('backoff.baseMs', settings.backoff.baseMs, Number.MIN_VALUE, settings.backoff.capMs);
  const { cert, certFile = cert, key, keyFile = key } = settings.tls ?? {};
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new TypeError('tls.cert and tls.key belong together: give both, or neither');
  }
  return settings;
}

const KNOWN = ['tls', 'apiKey', 'backoff', ...Object.keys(DEFAULTS)].sort().join(', ');

/** Refuses what is no prefetch. */
export function requirePrefetch(prefetch: unknown): void {
  if (prefetch !== 'auto') requireRange('prefetch', prefetch, 1, WINDOW_MAX, "a number or 'auto'");
}
