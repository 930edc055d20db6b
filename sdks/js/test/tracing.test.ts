import assert from 'node:assert/strict';
import { test } from 'node:test';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { AlwaysOffSampler, BasicTracerProvider } from '@opentelemetry/sdk-trace-base';

import { contextOf, linksTo, traced } from '../src/opentelemetry.js';
import { connected } from './connected.js';

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
const sampled = new BasicTracerProvider().getTracer('test');
const unsampled = new BasicTracerProvider({ sampler: new AlwaysOffSampler() }).getTracer('test');

test('what is enqueued inside a sampled span carries its context, and a consumer can link to it', async (t) => {
  const { broker, client } = await connected(t);
  const mine = { tenant: 'acme' };
  const { traceId } = await sampled.startActiveSpan('produce', async (span) => {
    await client.enqueue('q', 'x', { headers: mine });
    await client.enqueueMany('q', ['y']);
    return span.spanContext();
  });
  assert.deepEqual(mine, { tenant: 'acme' }, 'the caller’s headers are left alone');
  for (const message of broker.enqueued) {
    assert.match(message.headers['traceparent'] ?? '', new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
    const [link] = linksTo({ headers: message.headers });
    assert.equal(link?.context.traceId, traceId);
    const producers = contextOf({ headers: message.headers });
    assert.ok(producers !== undefined);
    assert.equal(trace.getSpanContext(producers)?.isRemote, true);
  }
});

test('nothing is added outside a span, in one that is not sampled, or over what is there', async (t) => {
  const { broker, client } = await connected(t);
  await client.enqueue('q', 'outside');
  await unsampled.startActiveSpan('produce', () => client.enqueue('q', 'unsampled'));
  const headers = { traceparent: 'theirs' };
  await sampled.startActiveSpan('produce', () => client.enqueue('q', 'there', { headers }));
  assert.deepEqual(
    broker.enqueued.map((message) => message.headers['traceparent']),
    [undefined, undefined, 'theirs'],
  );
});

test('a span links to the producer’s, and is its child where that is asked for', () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const message = { headers: { traceparent: `00-${traceId}-b7ad6b7169203331-01` } };
  const [linked, here] = traced(message);
  assert.deepEqual(
    linked.links?.map((link) => link.context.traceId),
    [traceId],
  );
  assert.equal(here, context.active());
  const [asChild, producers] = traced(message, { parent: true });
  assert.equal(asChild.links, undefined);
  assert.equal(trace.getSpanContext(producers)?.traceId, traceId);
  assert.equal(traced({ headers: {} }, { parent: true })[1], context.active());
});

test('a message without context has no links', () => {
  assert.deepEqual(linksTo({ headers: {} }, { headers: { traceparent: 'nonsense' } }), []);
  assert.equal(contextOf({ headers: {} }), undefined);
});
