/** The load of fila_bench/sdk_load.py through the JavaScript SDK: 1 KB messages, each enqueue and each ack awaited. */

import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

import { FilaClient } from '../../sdks/js/dist/esm/index.js';
import { EnqueueRequestSchema, EnqueueResponseSchema } from '../../sdks/js/dist/esm/gen/fila/v1/service_pb.js';

// What the bare stub takes is the SDK's, not the benchmark's.
const require = createRequire(new URL('../../sdks/js/package.json', import.meta.url));
const grpc = require('@grpc/grpc-js');
const { create, fromBinary, toBinary } = require('@bufbuild/protobuf');

const PAYLOAD = new Uint8Array(1024);
const HEADERS = Array.from({ length: 10 }, (_, number) => ({ tenant: `k${String(number).padStart(7, '0')}` }));

const [address, queue, mode, ...numbers] = process.argv.slice(2);
const [callers, warmUpS, seconds, messages] = numbers.map(Number);

function liveHeap() {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Measures for some seconds, or until so many messages are acked, the first tenth of them as the warm-up. */
async function awaited() {
  const client = await FilaClient.connect(address);
  let acked = 0;
  let isOver = false;
  const until = async (untilS, count) => {
    if (count === 0) await sleep(untilS * 1000);
    while (acked < count) await sleep(10);
  };
  const produce = async () => {
    for (let sequence = 0; !isOver; sequence++) {
      await client.enqueue(queue, PAYLOAD, { headers: HEADERS[sequence % 10] });
    }
  };
  const leaving = new AbortController();
  const consumer = client.consume(queue, { signal: leaving.signal });
  const consume = async () => {
    for await (const message of consumer) {
      await message.ack();
      acked++;
    }
  };
  const producing = Array.from({ length: callers }, produce);
  const consuming = Array.from({ length: callers }, consume);
  await until(warmUpS, Math.floor(messages / 10));
  const heapFirst = liveHeap();
  const [began, cpu, first] = [performance.now(), cpuSeconds(), acked];
  await until(seconds, messages);
  const elapsedS = (performance.now() - began) / 1000;
  const result = {
    acked,
    acked_per_s: (acked - first) / elapsedS,
    seconds: elapsedS,
    cpu_s: cpuSeconds() - cpu,
    heap_first: heapFirst,
    heap_last: liveHeap(),
  };
  isOver = true;
  await Promise.all(producing);
  leaving.abort();
  await Promise.allSettled(consuming);
  await client.close();
  return result;
}

async function oneAtATime(send) {
  const took = [];
  const began = performance.now();
  const measured = began + warmUpS * 1000;
  for (let sequence = 0; ; sequence++) {
    const now = performance.now();
    if (now > measured + seconds * 1000) break;
    await send(sequence);
    if (now > measured) took.push((performance.now() - now) * 1000);
  }
  took.sort((a, b) => a - b);
  return { p50_us: took[took.length >> 1] };
}

async function one() {
  const client = await FilaClient.connect(address);
  const result = await oneAtATime((n) => client.enqueue(queue, PAYLOAD, { headers: HEADERS[n % 10] }));
  await client.close();
  return result;
}

async function stub() {
  const channel = new grpc.Client(address, grpc.credentials.createInsecure());
  const encode = (request) => Buffer.from(toBinary(EnqueueRequestSchema, request));
  const decode = (bytes) => fromBinary(EnqueueResponseSchema, bytes);
  const result = await oneAtATime(
    (n) =>
      new Promise((resolve, reject) => {
        const request = create(EnqueueRequestSchema, { queue, headers: HEADERS[n % 10], payload: PAYLOAD });
        channel.makeUnaryRequest('/fila.v1.FilaService/Enqueue', encode, decode, request, (error, answer) =>
          error ? reject(error) : resolve(answer),
        );
      }),
  );
  channel.close();
  return result;
}

console.log(JSON.stringify(await { awaited, one, stub }[mode]()));
