// The conformance driver: the line protocol of sdks/conformance/PROTOCOL.md on standard input and output.
import { createInterface } from 'node:readline';

import { FilaClient } from '@fila-mq/client';
import { traced } from '@fila-mq/client/opentelemetry';
import { propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';

import { operating } from './operating.js';
import {
  clientOptions,
  errorAnswer,
  given,
  messageAnswer,
  moment,
  newMessage,
  plain,
  refuse,
  settings,
  storedAnswer,
  Unsupported,
} from './translation.js';

propagation.setGlobalPropagator(new W3CTraceContextPropagator());

/** A loop over a consumer, one step at a time. A step that outlives its request is the next one's. */
class Taking {
  #step;

  constructor(consumer) {
    this.consumer = consumer;
  }

  /** Resolves with the loop's step; with undefined when the time is over. */
  async next(timeoutMs, signal, batches) {
    this.loop ??= batches ? this.consumer.batches() : this.consumer[Symbol.asyncIterator]();
    this.#step ??= this.loop.next();
    const step = await within(this.#step, timeoutMs, signal);
    if (step !== undefined) this.#step = undefined;
    return step;
  }

  async leave() {
    await this.loop?.return();
    this.consumer.close();
  }
}

/** Resolves as `promise` does, or with undefined after so long; rejects when the signal aborts. */
async function within(promise, timeoutMs, signal) {
  let timer, abort;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, Math.max(0, timeoutMs))));
  const aborted = new Promise((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort);
  });
  try {
    return await Promise.race([promise, late, aborted]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

/** What a key has committed, which is the last that may be asked for it. */
function committed({
  committed_per_second: committedPerSecond,
  committed_by_default: committedByDefault,
  ...unknown
}) {
  refuse(unknown);
  return { committedPerSecond, committedByDefault };
}

/** What a page of messages is asked for with. */
function pageAsked(others, signal) {
  const {
    channel,
    max_messages: maxMessages,
    after_offset: afterOffset,
    fairness_key: fairnessKey,
    ...unknown
  } = others;
  refuse(unknown);
  return given({ channel, maxMessages, afterOffset, fairnessKey, signal });
}

const clients = new Map();
const events = new Map();
const takings = new Map();
const messages = new Map();
const requests = new Map();
let handles = 0;

function handOut(message) {
  messages.set(++handles, message);
  return { handle: handles, ...messageAnswer(message) };
}

const named = (name) => {
  const client = clients.get(name);
  if (client === undefined) throw new Unsupported(`no client ${name}`);
  return client;
};

/** One function an operation: the request's arguments, and the signal that `cancel` aborts. */
const operations = {
  ...operating(named),

  async connect({ client, target, options = {}, ...unknown }, signal) {
    refuse(unknown);
    const happened = [];
    const onConnection = ({ kind }) => happened.push(kind);
    clients.set(
      client,
      await FilaClient.connect(target, { ...clientOptions(options), onConnection, signal }),
    );
    events.set(client, happened);
    return {};
  },

  async close({ client, ...unknown }) {
    refuse(unknown);
    await named(client).close();
    return {};
  },

  async cancel({ request, ...unknown }) {
    refuse(unknown);
    requests.get(request)?.abort();
    return {};
  },

  async enqueue({ client, queue, ...message }, signal) {
    const { payload, ...options } = newMessage(message);
    return storedAnswer(await named(client).enqueue(queue, payload, { ...options, signal }));
  },

  async enqueue_many({ client, queue, messages: many, ...unknown }, signal) {
    refuse(unknown);
    const stored = await named(client).enqueueMany(queue, many.map(newMessage), { signal });
    return { results: stored.map(storedAnswer) };
  },

  async consume({ client, consumer, queue, channel, prefetch, stop_when_idle_s, ...others }) {
    const { name, max_lease_renewal_ms: maxLeaseRenewalMs, ...unknown } = others;
    refuse(unknown);
    const stopWhenIdleMs = stop_when_idle_s === undefined ? undefined : stop_when_idle_s * 1000;
    takings.set(
      consumer,
      new Taking(
        named(client).consume(queue, given({ channel, prefetch, stopWhenIdleMs, name, maxLeaseRenewalMs })),
      ),
    );
    return {};
  },

  async receive({ consumer, count = 1, timeout_ms = 5000, ...unknown }, signal) {
    refuse(unknown);
    const taken = [];
    const until = performance.now() + timeout_ms;
    while (taken.length < count) {
      const step = await takings.get(consumer).next(until - performance.now(), signal, false);
      if (step === undefined) break;
      if (step.done) return { messages: taken, ended: true };
      taken.push(handOut(step.value));
    }
    return { messages: taken, ended: false };
  },

  async receive_batch({ consumer, timeout_ms = 5000, ...unknown }, signal) {
    refuse(unknown);
    const step = await takings.get(consumer).next(timeout_ms, signal, true);
    return { messages: (step?.value ?? []).map(handOut), ended: step?.done === true };
  },

  async leave({ consumer, ...unknown }) {
    refuse(unknown);
    await takings.get(consumer).leave();
    return {};
  },

  async lease({ client, queue, channel, max_messages: maxMessages, wait_ms: waitMs, ...unknown }, signal) {
    refuse(unknown);
    const pulled = await named(client).lease(queue, given({ channel, maxMessages, waitMs, signal }));
    return { messages: pulled.map(handOut) };
  },

  async await_lost({ handle, timeout_ms = 5000, ...unknown }, signal) {
    refuse(unknown);
    const { signal: notice } = messages.get(handle);
    const lost = new Promise((resolve) => notice.addEventListener('abort', () => resolve(true)));
    const isLost = notice.aborted || (await within(lost, timeout_ms, signal)) === true;
    return isLost ? { lost: true, reason: notice.reason.reason } : { lost: false };
  },

  async connection_events({ client, ...unknown }) {
    refuse(unknown);
    return { events: events.get(client) };
  },

  async ack({ handle, ...unknown }, signal) {
    refuse(unknown);
    await messages.get(handle).ack({ signal });
    return {};
  },

  async nack({ handle, error, delay_ms: delayMs, dead_letter, ...unknown }, signal) {
    refuse(unknown);
    const message = messages.get(handle);
    await (dead_letter ? message.reject(error, { signal }) : message.nack(error, given({ delayMs, signal })));
    return {};
  },

  async reject({ handle, error, ...unknown }, signal) {
    refuse(unknown);
    await messages.get(handle).reject(error, { signal });
    return {};
  },

  async release({ handle, ...unknown }, signal) {
    refuse(unknown);
    await messages.get(handle).release({ signal });
    return {};
  },

  async span_of({ handle, parent, ...unknown }) {
    refuse(unknown);
    const [options, context] = traced(messages.get(handle), { parent });
    const name = (span) => (span === undefined ? '' : `${span.traceId}-${span.spanId}`);
    const links = (options.links ?? []).map((link) => name(link.context));
    return { parent: name(trace.getSpanContext(context)), links };
  },

  async limited({ handle, retry_after_ms: retryAfterMs, throttle_key: limit, error, ...unknown }, signal) {
    refuse(unknown);
    await messages.get(handle).limited({ retryAfterMs, limit, error, signal });
    return {};
  },

  async extend({ handle, extend_ms, ...unknown }, signal) {
    refuse(unknown);
    return { lease_expires_at_ms: (await messages.get(handle).extend(extend_ms, { signal })).getTime() };
  },

  async ack_by_id({ client, queue, message_id, channel, ...unknown }, signal) {
    refuse(unknown);
    await named(client).ack(queue, message_id, given({ channel, signal }));
    return {};
  },

  async nack_by_id(
    { client, queue, message_id, channel, error, delay_ms: delayMs, dead_letter, ...unknown },
    signal,
  ) {
    refuse(unknown);
    const by = named(client);
    if (dead_letter) await by.reject(queue, message_id, error, given({ channel, signal }));
    else await by.nack(queue, message_id, error, given({ channel, delayMs, signal }));
    return {};
  },

  async extend_by_id({ client, queue, message_id, channel, extend_ms, ...unknown }, signal) {
    refuse(unknown);
    const ends = await named(client).extend(queue, message_id, extend_ms, given({ channel, signal }));
    return { lease_expires_at_ms: ends.getTime() };
  },

  async ack_many({ client, handles: many, ...unknown }, signal) {
    refuse(unknown);
    await named(client).ackMany(
      many.map((handle) => messages.get(handle)),
      { signal },
    );
    return {};
  },

  async nack_many({ client, handles: many, error, delay_ms: delayMs, ...unknown }, signal) {
    refuse(unknown);
    const those = many.map((handle) => messages.get(handle));
    await named(client).nackMany(those, error, given({ delayMs, signal }));
    return {};
  },

  async create_queue({ client, queue, config = {}, ...unknown }, signal) {
    refuse(unknown);
    await named(client).createQueue(queue, settings(config), { signal });
    return {};
  },

  async get_queue({ client, queue, ...unknown }, signal) {
    refuse(unknown);
    return plain(await named(client).getQueue(queue, { signal }));
  },

  async update_queue({ client, queue, config = {}, expected_version, comment, ...unknown }, signal) {
    refuse(unknown);
    const options = given({ expectedVersion: expected_version, comment, signal });
    return { config: plain(await named(client).updateQueue(queue, settings(config), options)) };
  },

  async delete_queue({ client, queue, force, ...unknown }, signal) {
    refuse(unknown);
    await named(client).deleteQueue(queue, given({ force, signal }));
    return {};
  },

  async list_queues(
    { client, prefix, containing, page_size: pageSize, page_token: pageToken, ...unknown },
    signal,
  ) {
    refuse(unknown);
    const asked = given({ prefix, containing, pageSize, pageToken, signal });
    return { queues: plain(await named(client).listQueues(asked)) };
  },

  async get_stats({ client, queue, channel, max_keys: maxKeys, ...unknown }, signal) {
    refuse(unknown);
    return plain(await named(client).getStats(queue, given({ channel, maxKeys, signal })));
  },

  async purge({ client, queue, fairness_key: fairnessKey, channel, ...unknown }, signal) {
    refuse(unknown);
    return { purged: await named(client).purge(queue, given({ fairnessKey, channel, signal })) };
  },

  async peek({ client, queue, ...others }, signal) {
    return { messages: (await named(client).peek(queue, pageAsked(others, signal))).map(messageAnswer) };
  },

  async list_pending({ client, queue, ...others }, signal) {
    return { messages: plain(await named(client).listPending(queue, pageAsked(others, signal))) };
  },

  async redrive({ client, queue, count, rate_per_second: ratePerSecond, offsets, ...unknown }, signal) {
    refuse(unknown);
    const options = given({ count, ratePerSecond, offsets, signal });
    return { redriven: await named(client).redrive(queue, options) };
  },

  async create_channel({ client, queue, channel, start, expires_after_idle_ms, ...unknown }, signal) {
    refuse(unknown);
    const from = typeof start === 'object' ? (start.offset ?? moment(start.time_ms)) : start;
    const options = given({ start: from, expiresAfterIdleMs: expires_after_idle_ms, signal });
    return { start_offset: await named(client).createChannel(queue, channel, options) };
  },

  async delete_channel({ client, queue, channel, ...unknown }, signal) {
    refuse(unknown);
    await named(client).deleteChannel(queue, channel, { signal });
    return {};
  },

  async list_channels({ client, queue, ...unknown }, signal) {
    refuse(unknown);
    return { channels: plain(await named(client).listChannels(queue, { signal })) };
  },

  async seek_channel({ client, queue, channel, offset, time_ms, validate_only, ...unknown }, signal) {
    refuse(unknown);
    const target = offset ?? moment(time_ms);
    const options = given({ channel, signal });
    if (validate_only) return plain(await named(client).previewSeek(queue, target, options));
    return { offset: await named(client).seekChannel(queue, target, options) };
  },

  async purge_channel({ client, queue, channel, fairness_key: fairnessKey, ...unknown }, signal) {
    refuse(unknown);
    return { purged: await named(client).purgeChannel(queue, given({ channel, fairnessKey, signal })) };
  },

  async set_config({ client, key, value, ...unknown }, signal) {
    refuse(unknown);
    await named(client).setConfig(key, value, { signal });
    return {};
  },

  async get_config({ client, key, ...unknown }, signal) {
    refuse(unknown);
    return { value: await named(client).getConfig(key, { signal }) };
  },

  async list_config({ client, prefix, ...unknown }, signal) {
    refuse(unknown);
    return { entries: plain(await named(client).listConfig(prefix, { signal })) };
  },

  async set_key_policy({ client, queue, fairness_key, weight, paused, max_in_flight, ...others }, signal) {
    const { rate_per_second: ratePerSecond, burst, comment, ...more } = others;
    const { cap_by_default: capByDefault, rate_by_default: rateByDefault, ...last } = more;
    const numbers = { weight, paused, maxInFlight: max_in_flight, ratePerSecond, burst, ...committed(last) };
    const change = given({ ...numbers, capByDefault, rateByDefault, comment });
    return plain(await named(client).setKeyPolicy(queue, fairness_key, change, { signal }));
  },

  async preview_key_policy({ client, queue, fairness_key, channel, weight, paused, ...others }, signal) {
    const { max_in_flight: maxInFlight, rate_per_second: ratePerSecond, burst, ...more } = others;
    const { cap_by_default: capByDefault, rate_by_default: rateByDefault, ...last } = more;
    const numbers = { weight, paused, maxInFlight, ratePerSecond, burst, ...committed(last) };
    const change = given({ ...numbers, capByDefault, rateByDefault });
    const asked = given({ channel, signal });
    return plain(await named(client).previewKeyPolicy(queue, fairness_key, change, asked));
  },

  async explain_key({ client, queue, channel, fairness_key, ...unknown }, signal) {
    refuse(unknown);
    return plain(await named(client).explainKey(queue, fairness_key, given({ channel, signal })));
  },

  async skip_message({ client, queue, channel, fairness_key, message_id: messageId, ...unknown }, signal) {
    refuse(unknown);
    const asked = given({ channel, messageId, signal });
    return plain(await named(client).skipMessage(queue, fairness_key, asked));
  },

  async get_message({ client, queue, channel, message_id, dedup_key, ...unknown }, signal) {
    refuse(unknown);
    const message = given({ messageId: message_id, dedupKey: dedup_key });
    return plain(await named(client).getMessage(queue, message, given({ channel, signal })));
  },

  async cancel_messages({ client, queue, channel, message_ids, dedup_keys, ...unknown }, signal) {
    refuse(unknown);
    const messages = given({ messageIds: message_ids, dedupKeys: dedup_keys });
    return { outcomes: await named(client).cancelMessages(queue, messages, given({ channel, signal })) };
  },

  async list_consumers({ client, queue, channel, ...unknown }, signal) {
    refuse(unknown);
    return { consumers: plain(await named(client).listConsumers(queue, given({ channel, signal }))) };
  },

  async read_log({ client, queue, from_offset, to_offset, from_time_ms, to_time_ms, ...others }, signal) {
    const { fairness_key: fairnessKey, max_messages = Infinity, max_batch: maxBatch, ...unknown } = others;
    refuse(unknown);
    const range = { fromOffset: from_offset, toOffset: to_offset, fairnessKey, maxBatch, signal };
    const options = given({ ...range, fromTime: moment(from_time_ms), toTime: moment(to_time_ms) });
    const taken = [];
    for await (const message of named(client).readLog(queue, options)) {
      if (taken.push(messageAnswer(message)) >= max_messages) break;
    }
    return { messages: taken };
  },
};

async function answer({ id, op, ...request }) {
  const cancelling = new AbortController();
  requests.set(id, cancelling);
  let line;
  try {
    const operation = operations[op];
    if (operation === undefined) throw new Unsupported(`unknown operation ${op}`);
    const notNull = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== null));
    line = { ok: await operation(notNull, cancelling.signal) };
  } catch (error) {
    if (error instanceof Unsupported) line = { unsupported: error.message };
    else if (error === cancelling.signal.reason) line = { cancelled: true };
    else line = { error: errorAnswer(error) };
  }
  requests.delete(id);
  write({ id, ...line });
}

function write(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

write({ ready: true, language: 'js' });
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity }))
  void answer(JSON.parse(line));
for (const taking of takings.values()) await taking.leave();
await Promise.all(Array.from(clients.values(), (client) => client.close()));
