/** Where the broker is, and how the client speaks to it: addresses, TLS, gRPC's settings. */

import { type ChannelCredentials, type ChannelOptions, credentials } from '@grpc/grpc-js';

import { requireText, wrongType } from './arguments.js';
import { KEEPALIVE_TIME_MS, type Settings } from './options.js';
import { type TlsMaterial, tlsMaterial } from './tls.js';
import { VERSION } from './version.js';

/** Above the broker's largest payload (64 MiB) with its headers, so that no delivery is unreadable. */
const MESSAGE_BYTES_MAX = 80 << 20;

/** One place where a broker may be. */
export interface Address {
  /** `host:port`, as gRPC takes it. */
  readonly target: string;
  readonly credentials: ChannelCredentials;
  /** Undefined where it is spoken to in plain. */
  readonly tls: TlsMaterial | undefined;
}

/** Returns the addresses given, each `host:port` with or without `http://` or `https://`; of a string with commas
 * between them. */
export function addressesOf(given: string | readonly string[], settings: Settings): Address[] {
  const all = typeof given === 'string' ? given.split(',').map((each) => each.trim()) : given;
  if (!Array.isArray(all)) throw wrongType('address', 'a string or an array of strings', given);
  if (all.length === 0) throw new RangeError('address must name at least one broker, such as localhost:5555');
  return all.map((address: unknown) => {
    requireText('address', address);
    const [, scheme, target] = /^(?:(https?):\/\/)?([^/\s]+)\/?$/.exec(address) ?? [];
    if (target === undefined) {
      throw new RangeError(
        `address must look like localhost:5555 or http://localhost:5555, got '${address}'`,
      );
    }
    const wanted = settings.tls ?? (scheme === 'https' ? {} : undefined);
    if (wanted === undefined) return { target, credentials: credentials.createInsecure(), tls: undefined };
    const tls = tlsMaterial(wanted);
    return { target, credentials: credentials.createSsl(tls.ca, tls.key, tls.cert), tls };
  });
}

/** A node of a group that hangs is left for another. */
const OF_SEVERAL = { keepaliveTimeMs: 10_000, keepaliveTimeoutMs: 3_000 };

/** Returns gRPC's own settings. */
export function channelOptions(given: Settings, isOneOfSeveral = false): ChannelOptions {
  const settings =
    isOneOfSeveral && given.keepaliveTimeMs === KEEPALIVE_TIME_MS ? { ...given, ...OF_SEVERAL } : given;
  const serverName = settings.tls?.serverName;
  return {
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
    // A broker that vanished without a word (power, network) is noticed by an unanswered ping.
    'grpc.keepalive_time_ms': settings.keepaliveTimeMs,
    'grpc.keepalive_timeout_ms': settings.keepaliveTimeoutMs,
    // What is repeated is decided here, by what a call means.
    'grpc.enable_retries': 0,
    // Two clients of one process must not share a connection: each has its own frames in flight.
    'grpc.use_local_subchannel_pool': 1,
    // An idle connection is kept: its end means that the broker is gone.
    'grpc.client_idle_timeout_ms': 2 ** 31 - 1,
    'grpc.primary_user_agent': `fila-js/${VERSION}`,
    ...(serverName === undefined
      ? {}
      : { 'grpc.ssl_target_name_override': serverName, 'grpc.default_authority': serverName }),
  };
}
