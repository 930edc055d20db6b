// Between the line protocol's JSON (snake_case, base64, milliseconds) and the SDK's arguments and answers.

import { FilaError, Message, SomeFailed } from '@fila-mq/client';

/** Mappings whose keys are a user's, not the protocol's. */
const USERS_KEYS = new Set(['weights', 'headers', 'entries', 'details', 'ignoredFields', 'lastErrorHeaders']);

/** What an error may carry beside its text. */
const CARRIED = ['queue', 'channel', 'messageId', 'leaseId', 'field', 'configKey'];

/** @param {string} name */
export const toCamel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** @param {string} name */
const toSnake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Nested names too. */
export function settings(given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given;
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      toCamel(name),
      USERS_KEYS.has(name) ? value : settings(value),
    ]),
  );
}

/** Seconds in the protocol are milliseconds in the SDK. */
export function clientOptions({ ca_file, cert_file, key_file, server_name, ...others }) {
  const options = Object.fromEntries(
    Object.entries(others).map(([name, value]) =>
      name.endsWith('_s') ? [toCamel(`${name.slice(0, -2)}_ms`), value * 1000] : [toCamel(name), value],
    ),
  );
  const tls = given({ caFile: ca_file, certFile: cert_file, keyFile: key_file, serverName: server_name });
  return Object.keys(tls).length > 0 ? { ...options, tls } : options;
}

export const moment = (ms) => (ms === undefined ? undefined : new Date(ms));

/** A message to enqueue. */
export function newMessage({
  payload = '',
  headers,
  delay_ms,
  deliver_at_ms,
  ttl_ms,
  dedup_key,
  replace,
  max_wait_ms,
  fairness_key,
  weight,
  cost,
  priority,
  ...unknown
}) {
  refuse(unknown);
  const options = {
    headers,
    delayMs: delay_ms,
    deliverAt: moment(deliver_at_ms),
    ttlMs: ttl_ms,
    dedupKey: dedup_key,
    replace,
    maxWaitMs: max_wait_ms,
    fairnessKey: fairness_key,
    weight,
    cost,
    priority,
  };
  return { payload: Buffer.from(payload, 'base64'), ...given(options) };
}

/** Without what was not given. */
export function given(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** An argument that the driver does not know. */
export class Unsupported extends Error {}

export function refuse(unknown) {
  const [name] = Object.keys(unknown);
  if (name !== undefined) throw new Unsupported(`unknown argument ${name}`);
}

export const storedAnswer = ({ id, offset }) => ({ message_id: id, offset });

/** A message as the protocol writes it. */
export function messageAnswer(message) {
  const { deadLetter } = message;
  return {
    id: message.id,
    queue: message.queue,
    channel: message.channel,
    offset: message.offset,
    headers: message.headers,
    payload: Buffer.from(message.payload).toString('base64'),
    fairness_key: message.fairnessKey,
    weight: message.weight,
    cost: message.cost,
    priority: message.priority,
    throttle_keys: message.throttleKeys,
    attempt_count: message.attemptCount,
    redelivered: message.redelivered,
    came_back: message.cameBack,
    enqueued_at_ms: message.enqueuedAt.getTime(),
    appended_at_ms: message.appendedAt.getTime(),
    due_at_ms: message.dueAt === undefined ? null : message.dueAt.getTime(),
    dead_letter: deadLetter === undefined ? null : plain(deadLetter),
    ...(message instanceof Message
      ? {
          lease_id: Number(message.leaseId),
          leased_at_ms: message.leasedAt.getTime(),
          lease_expires_at_ms: message.leaseExpiresAt.getTime(),
        }
      : {}),
  };
}

/** An answer's fields by the protocol's names. */
export function plain(answer) {
  if (answer instanceof Map) return Object.fromEntries(answer);
  if (Array.isArray(answer)) return answer.map(plain);
  if (typeof answer !== 'object' || answer === null) return answer;
  if (answer instanceof Uint8Array) return Buffer.from(answer).toString('base64');
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => {
      if (name === 'nextAt') return ['next_at_ms', value.map((each) => each.getTime())];
      if (value instanceof Date) return [`${toSnake(name)}_ms`, value.getTime()];
      return [toSnake(name), USERS_KEYS.has(name) ? value : plain(value)];
    }),
  );
}

/** An error as the protocol writes it. */
export function errorAnswer(error) {
  if (error instanceof TypeError || error instanceof RangeError) {
    return { kind: 'Argument', code: '', reason: '', message: error.message };
  }
  if (!(error instanceof FilaError)) {
    return { kind: 'Unexpected', code: '', reason: '', message: String(error) };
  }
  const answer = { kind: error.name, code: error.code, reason: error.reason, message: error.message };
  for (const name of CARRIED) {
    if (name in error) answer[toSnake(name)] = name === 'leaseId' ? Number(error[name]) : error[name];
  }
  if ('retryAfterMs' in error) {
    answer.retry_after_s = error.retryAfterMs === undefined ? null : error.retryAfterMs / 1000;
  }
  if (error instanceof SomeFailed) answer.results = error.results.map(resultAnswer);
  return answer;
}

function resultAnswer(result) {
  if (result instanceof FilaError) return { error: errorAnswer(result) };
  return { ok: result === undefined ? {} : storedAnswer(result) };
}
