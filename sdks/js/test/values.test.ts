import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import * as errors from '../src/errors.js';
import { Fifo } from '../src/fifo.js';
import { FilaAdmin, GetQueueResponseSchema } from '../src/gen/fila/v1/admin_pb.js';
import { FilaAuth } from '../src/gen/fila/v1/auth_pb.js';
import { FilaService } from '../src/gen/fila/v1/service_pb.js';
import { LeaseMemory } from '../src/leases.js';
import { isRepeatable } from '../src/methods.js';
import { encodeMessage } from '../src/new-message.js';
import { settingsOf } from '../src/options.js';
import { plain } from '../src/plain.js';
import { encodeSettings, maskOf } from '../src/queue-settings.js';
import { ERROR_BY_CODE, ERROR_BY_REASON, errorOf } from '../src/status.js';
import { toDate, toTimestamp } from '../src/times.js';
import { VERSION } from '../src/version.js';

test('the version is the package’s', () => {
  const file = new URL('../../package.json', import.meta.url);
  assert.equal((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version, VERSION);
});

test('every error of the tree has a name, a code, and a way to it', () => {
  const reached = new Set([...ERROR_BY_REASON.values(), ...ERROR_BY_CODE.values()].map((kind) => kind.name));
  const made = ['FilaError', 'AnswerLost', 'ClientClosed', 'SomeFailed'];
  for (const [name, kind] of Object.entries(errors)) {
    assert.ok(reached.has(name) || made.includes(name), `nothing leads to ${name}`);
    assert.ok(kind === errors.FilaError || kind.prototype instanceof errors.FilaError);
  }
  for (const [reason, kind] of ERROR_BY_REASON) {
    const error = new kind('text', { reason });
    assert.deepEqual([error.name, error.reason, error.code], [kind.name, reason, kind.code]);
  }
});

test('a reason from a newer broker still has its branch of the tree', () => {
  const error = errorOf(9, 'text', 'LEASE_ON_MARS', {});
  assert.equal(error.constructor, errors.Conflict);
  assert.equal(error.reason, 'LEASE_ON_MARS');
  assert.equal(errorOf(5, '', 'LEASE_LOST', {}).constructor, errors.NotFound);
  assert.equal(errorOf(99, '', '', {}).code, 'UNKNOWN');
});

test('every call is either repeated on purpose or never', () => {
  const once = ['Ack', 'Nack', 'Enqueue', 'EnqueueBatch', 'EnqueueStream', 'Consume', 'ConsumeSession'];
  const onceAdmin = ['CreateQueue', 'DeleteQueue', 'PurgeQueue', 'Redrive', 'CreateChannel', 'DeleteChannel'];
  const newer = ['SeekChannel', 'PurgeChannel', 'StartOperation', 'EditDeadLetter'];
  const newest = ['CreateSchedule', 'DeleteSchedule', 'CancelMessages', 'SkipMessage'];
  const keys = ['CreateKey', 'RotateKey', 'RevokeKey', 'RevokeGrant', 'ForgetPrincipal'];
  const links = ['CreateTenantLink', 'RevokeTenantLink'];
  const limits = ['DeleteLimit', 'ResetLimit'];
  const group = ['MoveOwner', 'RemoveNode', 'UpgradeGroup'];
  const never = new Set([...once, ...onceAdmin, ...newer, ...newest, ...keys, ...links, ...limits, ...group]);
  for (const method of [...FilaService.methods, ...FilaAdmin.methods, ...FilaAuth.methods]) {
    assert.equal(isRepeatable(method), !never.has(method.name), method.name);
  }
});

test('settings that are unknown, of a wrong type or out of range are refused by name', () => {
  const bad: [object, RegExp][] = [
    [{ lingers: 1 }, /unknown option lingers/],
    [{ lingerMs: 6 }, /lingerMs must be from 0 to 5, got 6/],
    [{ retryForMs: -1 }, /retryForMs must be at least 0/],
    [{ prefetch: 'all' }, /prefetch must be a number or 'auto', got string/],
    [{ prefetch: 0 }, /prefetch must be from 1 to 10000, got 0/],
    [{ prefetch: 10_001 }, /prefetch must be from 1 to 10000, got 10001/],
    [{ callTimeoutMs: '5' }, /callTimeoutMs must be a number, got string/],
    [{ apiKey: 5 }, /apiKey must be a string/],
    [{ backoff: { baseMs: 10, capMs: 5 } }, /backoff\.baseMs/],
  ];
  for (const [options, message] of bad) assert.throws(() => settingsOf(options), { message });
  assert.equal(settingsOf({ lingerMs: undefined as never }).lingerMs, 5);
});

test('messages that can not be sent are refused by name', () => {
  const bad: [unknown, object, RegExp][] = [
    [5, {}, /payload must be a Uint8Array or a string, got number/],
    ['\ud800', {}, /payload must be text that can be written as UTF-8/],
    ['', { headers: { a: 5 } }, /headers\["a"\] must be a string, got number/],
    ['', { headers: [] }, /headers must be an object of strings, got Array/],
    ['', { delayMs: -1 }, /delayMs must be from 0/],
    ['', { delayMs: 1.5 }, /delayMs must be a whole number/],
    ['', { deliverAt: 'tomorrow' }, /deliverAt must be a Date/],
    ['', { deliverAt: new Date(NaN) }, /deliverAt must be a valid Date/],
    ['', { dedupKey: 5 }, /dedupKey must be a string/],
  ];
  for (const [payload, options, message] of bad) {
    assert.throws(() => encodeMessage(payload as string, options), { message });
  }
});

test('a mask names exactly the settings given, of nested ones the parts', () => {
  const settings = { maxAttempts: 3, retry: { baseMs: 5 }, weights: { a_b: 2 }, durability: 'os' } as const;
  assert.deepEqual(maskOf(settings).paths, ['max_attempts', 'retry.base_ms', 'weights', 'durability']);
  const encoded = encodeSettings(settings);
  assert.deepEqual([encoded.maxAttempts, encoded.retry?.baseMs, encoded.durability], [3, 5n, 2]);
  assert.deepEqual(encoded.weights, { a_b: 2 });
});

test('wrong queue settings are refused by name', () => {
  const bad: [object, RegExp][] = [
    [{ maxAttemps: 3 }, /unknown queue setting maxAttemps; known are .*maxAttempts/],
    [{ constructor: 3 }, /unknown queue setting constructor/],
    [{ durability: 'mostly' }, /durability must be 'fsync' or 'os', got 'mostly'/],
    [{ retry: { kind: 'odd' } }, /retry\.kind must be 'exponential' or 'fixed'/],
    [{ retry: 5 }, /retry must be an object|retry\. must be an object/],
    [{ weights: { a: -1 } }, /weights\['a'\] must be from 0/],
    [{ channels: 'a' }, /channels must be an array of strings/],
    [{ ttlToDlq: 1 }, /ttlToDlq must be a boolean/],
  ];
  for (const [settings, message] of bad) assert.throws(() => encodeSettings(settings), { message });
});

test('answers are plain: numbers, dates, words', () => {
  const createdAt = toTimestamp(new Date(1_500));
  const answer = plain(GetQueueResponseSchema, {
    $typeName: 'fila.v1.GetQueueResponse',
    queue: 'q',
    config: encodeSettings({ maxDepth: 7, hookFallback: 'hold', channels: ['a'] }),
    createdAt,
    version: 3n,
  });
  assert.deepEqual(
    [answer.createdAt, answer.config?.maxDepth, answer.config?.hookFallback],
    [new Date(1_500), 7, 'hold'],
  );
  assert.deepEqual(answer.config?.channels, ['a']);
});

test('moments before 1970 and with a fraction survive', () => {
  for (const ms of [-1_500, -1, 0, 1_700_000_000_123])
    assert.equal(toDate(toTimestamp(new Date(ms))).getTime(), ms);
});

test('a Fifo keeps order through any mixture of its ends', () => {
  const fifo = new Fifo<number>();
  const model: number[] = [];
  let seed = 1;
  for (let i = 0; i < 20_000; i++) {
    seed = (seed * 48_271) % 0x7fffffff;
    const what = seed % 7;
    if (what < 3) {
      fifo.push(i);
      model.push(i);
    } else if (what === 3) {
      fifo.unshift(i);
      model.unshift(i);
    } else if (what === 4) assert.equal(fifo.pop(), model.pop());
    else assert.equal(fifo.shift(), model.shift());
    assert.equal(fifo.length, model.length);
    assert.equal(fifo.peek(), model[0]);
  }
  assert.deepEqual([...fifo], model);
});

test('leases are remembered for a whole generation, and the newest delivery wins', () => {
  const leases = new LeaseMemory(2);
  leases.remember('a', 1n);
  leases.remember('a', 2n);
  assert.equal(leases.get('a'), 2n);
  leases.forget('a', 1n);
  assert.equal(leases.get('a'), 2n);
  for (const id of ['b', 'c', 'd', 'e']) leases.remember(id, 3n);
  assert.equal(leases.get('a'), undefined);
  assert.equal(leases.get('c'), 3n);
  leases.forget('c', 3n);
  assert.equal(leases.get('c'), undefined);
});
