/**
 * Why does nobody answer there? Asks the port itself when gRPC's attempts fail. A connection is opened and greeted
 * as gRPC greets, by TLS where the client speaks it. Only what waiting cannot mend is told: a broker that is not
 * started yet, or stops, says nothing of this kind.
 */

import { connect, isIP, type Socket } from 'node:net';
import { connect as connectByTls, TLSSocket } from 'node:tls';

import type { TlsMaterial } from './tls.js';

/** How long one look at a port may take. */
const LOOK_MS = 400;

const GREETING = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1');
const SETTINGS_FRAME = 4;

const UNKNOWN_AUTHORITY = 'no authority that this client trusts has signed it';

/** Why a certificate is not accepted, by Node's codes. */
const REJECTIONS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
};

/**
 * Resolves with the sentence that says what is wrong with the client's settings; with an empty one where none is
 * found wrong.
 */
export async function diagnosis(target: string, tls: TlsMaterial | undefined): Promise<string> {
  const place = /^\[?([^\]]+?)\]?:(\d+)$/.exec(target);
  if (place === null) return '';
  const at = { host: place[1] as string, port: Number(place[2]) };
  const broker = target;
  if (tls === undefined) return inPlain(broker, at, false);
  const name = tls.serverName ?? at.host;
  const servername = isIP(name) === 0 ? name : '';
  const { ca, cert, key } = tls;
  const { error } = await greeted(() =>
    connectByTls({ ...at, ca, cert, key, servername, ALPNProtocols: ['h2'] }),
  );
  if (error === undefined) return '';
  const { code = '', message } = error;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return rejected(broker, `it is not made out to ${name}`);
  if (code in REJECTIONS) return rejected(broker, REJECTIONS[code] as string);
  return ofAlert(broker, message, cert !== undefined) ?? inPlain(broker, at, true);
}

function rejected(broker: string, why: string): string {
  return `the certificate of ${broker} is not accepted: ${why}`;
}

/** What a broker's alert says of the certificate that the client showed, or did not show. */
function ofAlert(broker: string, message: string, shows: boolean): string | undefined {
  const alert = /alert ([a-z ]+)/.exec(message)?.[1]?.trim() ?? '';
  const isMissing = alert === 'certificate required' || (alert === 'handshake failure' && !shows);
  if (isMissing) return `the broker at ${broker} asks for a client certificate: give one, with its key`;
  const refused = `the broker at ${broker} does not accept the client certificate: `;
  if (alert === 'unknown ca') return `${refused}no authority that the broker trusts has signed it`;
  return alert.includes('certificate') ? refused + alert : undefined;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

async function inPlain(broker: string, at: Place, byTls: boolean): Promise<string> {
  const { answer, error } = await greeted(() => connect(at));
  if (error?.code === 'ECONNREFUSED' || error?.code === 'ENOTFOUND') return '';
  const text = answer.toString('latin1');
  if (/^[-+$]/.test(text)) {
    return `${broker} speaks the Redis protocol; the client wants the gRPC port, 5555 unless changed`;
  }
  if (text.startsWith('HTTP/1')) {
    return `${broker} is a web server, such as the metrics page; the gRPC port is 5555 unless changed`;
  }
  if (answer.length > SETTINGS_FRAME && answer[3] === SETTINGS_FRAME) {
    return byTls ? `the broker at ${broker} speaks without TLS: write http:// instead of https://` : '';
  }
  if (byTls) return '';
  const speaksTls = text.startsWith('\x15\x03') || (answer.length === 0 && (await shakesHands(at)));
  return speaksTls ? `${broker} speaks TLS: write https:// instead of http://` : '';
}

function shakesHands(at: Place): Promise<boolean> {
  return new Promise((resolve) => {
    const anybody = { ...at, rejectUnauthorized: false, ALPNProtocols: ['h2'], timeout: LOOK_MS };
    const socket = connectByTls(anybody, () => end(true));
    const end = (does: boolean) => {
      resolve(does);
      socket.destroy();
    };
    socket.on('timeout', () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => resolve(false));
  });
}

interface Greeted {
  readonly answer: Buffer;
  readonly error?: NodeJS.ErrnoException;
}

/**
 * Opens, greets where it is in plain, and resolves with the first bytes of the answer, or with why there are none. By
 * TLS a broker that wants another certificate of the client says so after the handshake, and closes: a client that
 * writes then loses what it said.
 */
function greeted(open: () => Socket): Promise<Greeted> {
  const none = Buffer.alloc(0);
  return new Promise((resolve) => {
    const socket = open();
    const end = (outcome: Greeted) => {
      resolve(outcome);
      clearTimeout(late);
      socket.destroy();
    };
    const late = setTimeout(() => end({ answer: none }), LOOK_MS);
    socket.on('error', (error) => end({ answer: none, error }));
    socket.on('close', () => end({ answer: none }));
    socket.once('data', (answer: Buffer) => end({ answer }));
    if (!(socket instanceof TLSSocket)) socket.write(GREETING);
  });
}
