/** Whom a client trusts and who it is, from its options, files and environment, and what is wrong with them. */

import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

import type { TlsOptions } from './options.js';

/** What TLS takes, read and looked at. */
export interface TlsMaterial {
  /** Undefined for the system's authorities. */
  readonly ca: Buffer | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
  readonly serverName: string | undefined;
}

const CERTIFICATE = '-----BEGIN CERTIFICATE-----';

/**
 * Reads what the options name; what they leave out is taken from the files that FILA_CA_FILE, FILA_CERT_FILE and
 * FILA_KEY_FILE name. Throws TypeError, naming the option or file and what is wrong with it.
 */
export function tlsMaterial(options: TlsOptions, environment = process.env): TlsMaterial {
  const { ca, caFile, cert, certFile, key, keyFile, serverName } = withEnvironment(options, environment);
  const read: TlsMaterial = {
    ca: contents('ca', ca, caFile),
    cert: contents('cert', cert, certFile),
    key: contents('key', key, keyFile),
    serverName,
  };
  if (read.ca?.includes(CERTIFICATE) === false) {
    throw new TypeError(`${caFile ?? 'tls.ca'} holds no certificate in PEM form`);
  }
  const mine = certFile ?? 'tls.cert';
  const mineKey = keyFile ?? 'tls.key';
  try {
    createSecureContext({ ca: read.ca, cert: read.cert, key: read.key });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const text = why.includes('key values mismatch')
      ? `the key in ${mineKey} is not that of the certificate in ${mine}`
      : `tls.ca, tls.cert and tls.key must be PEM, and belong together: ${why}`;
    throw new TypeError(text, { cause: error });
  }
  return read;
}

function withEnvironment(options: TlsOptions, environment: NodeJS.ProcessEnv): TlsOptions {
  const { FILA_CA_FILE, FILA_CERT_FILE, FILA_KEY_FILE } = environment;
  const trustsNobody = options.ca === undefined && options.caFile === undefined;
  const isNobody = options.cert === undefined && options.certFile === undefined;
  return {
    ...options,
    ...(trustsNobody && FILA_CA_FILE ? { caFile: FILA_CA_FILE } : {}),
    ...(isNobody && FILA_CERT_FILE && FILA_KEY_FILE
      ? { certFile: FILA_CERT_FILE, keyFile: FILA_KEY_FILE }
      : {}),
  };
}

function contents(name: string, pem: string | Uint8Array | undefined, file: string | undefined) {
  if (pem !== undefined) return Buffer.from(pem);
  if (file === undefined) return undefined;
  try {
    return readFileSync(file);
  } catch (error) {
    throw new TypeError(`tls.${name}File: ${file} cannot be read`, { cause: error });
  }
}
