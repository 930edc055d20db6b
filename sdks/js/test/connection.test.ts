import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect as dial, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test, type TestContext } from 'node:test';
import { ServerCredentials, status } from '@grpc/grpc-js';

import { FilaClient } from '../src/client.js';
import { AnswerLost, NotAllowed, Unavailable } from '../src/errors.js';
import { FilaAdmin } from '../src/gen/fila/v1/admin_pb.js';
import type { ClientOptions } from '../src/options.js';
import { tlsMaterial } from '../src/tls.js';
import { connected, rejection } from './connected.js';
import { failure, FakeBroker } from './fake-broker.js';
import { ManualClock, turns } from './manual-clock.js';

const NOBODY = '127.0.0.1:1';
const soon: ClientOptions = { connectTimeoutMs: 300, backoff: { baseMs: 1, capMs: 20 } };

async function broker(t: TestContext, credentials?: ServerCredentials): Promise<FakeBroker> {
  const fake = await FakeBroker.start(credentials);
  fake.on(FilaAdmin.method.listQueues, () => ({}));
  t.after(() => fake.kill());
  return fake;
}

async function works(t: TestContext, address: string | string[], options: ClientOptions): Promise<void> {
  const client = await FilaClient.connect(address, { ...soon, connectTimeoutMs: 5_000, ...options });
  t.after(() => client.close());
  await client.listQueues();
}

test('a wrong address is Unavailable within the time given, and says what to do', async () => {
  const error = await rejection(FilaClient.connect(NOBODY, { ...soon, connectTimeoutMs: 2_000 }));
  assert.ok(error instanceof Unavailable);
  assert.match(
    error.message,
    /no Fila broker answers at 127\.0\.0\.1:1 \(.*ECONNREFUSED.*\)\. Start fila-server there/,
  );
});

test('an address that is none is refused before anything is sent', async () => {
  for (const address of ['', 'ftp://x', 'http://x/path', 'a b']) {
    assert.ok((await rejection(FilaClient.connect(address))) instanceof RangeError, address);
  }
  assert.ok((await rejection(FilaClient.connect([]))) instanceof RangeError);
  assert.ok((await rejection(FilaClient.connect(5555 as never))) instanceof TypeError);
});

test('connecting can be aborted', async () => {
  const stop = new AbortController();
  const connecting = rejection(FilaClient.connect(NOBODY, { signal: stop.signal }));
  stop.abort();
  assert.equal(((await connecting) as Error).name, 'AbortError');
});

test('of several addresses the first that answers is used, and the next when it is gone', async (t) => {
  const [one, other] = [await broker(t), await broker(t)];
  const client = await FilaClient.connect([NOBODY, one.address, other.address], {
    ...soon,
    connectTimeoutMs: 5_000,
  });
  t.after(() => client.close());
  await client.listQueues();
  assert.equal(one.calls.length, 1);
  one.kill();
  while (other.calls.length === 0) await client.listQueues();
});

test('a broker that was away is found again by the next call', async (t) => {
  const { broker: fake, client } = await connected(t);
  fake.on(FilaAdmin.method.listQueues, () => ({}));
  fake.kill();
  const listed = client.listQueues();
  await fake.restart();
  await listed;
});

test('a process that stood still past its patience makes one more attempt before it gives up', async (t) => {
  const fake = await broker(t);
  fake.kill();
  const clock = new ManualClock();
  const connecting = FilaClient.connect(fake.address, { connectTimeoutMs: 1_000, clock });
  await turns(10);
  clock.stall(60_000);
  await fake.restart();
  const moving = setInterval(() => clock.advance(5), 1);
  try {
    await (await connecting).close();
  } finally {
    clearInterval(moving);
  }
});

test('a call is not tried again beyond retryForMs', async (t) => {
  const { broker: fake, client } = await connected(t, { retryForMs: 50 });
  fake.kill();
  assert.ok((await rejection(client.listQueues())) instanceof Unavailable);
});

test('reads are repeated when an answer is lost, deletions are not', async (t) => {
  const { broker: fake, client } = await connected(t);
  let tries = 0;
  fake.on(FilaAdmin.method.getConfig, () => {
    if (++tries === 1) throw failure(status.UNAVAILABLE, '') as Error;
    return { value: 'x' };
  });
  assert.equal(await client.getConfig('k'), 'x');
  fake.on(FilaAdmin.method.deleteQueue, () => {
    throw failure(status.UNAVAILABLE, '') as Error;
  });
  assert.ok((await rejection(client.deleteQueue('q'))) instanceof AnswerLost);
  assert.equal(fake.calls.filter((call) => call.name === 'DeleteQueue').length, 1);
});

test('what a stopping broker refused is tried again, whatever it was', async (t) => {
  const { broker: fake, client } = await connected(t);
  let tries = 0;
  fake.on(FilaAdmin.method.deleteQueue, () => {
    if (++tries === 1) throw failure(status.UNAVAILABLE, 'SHUTTING_DOWN') as Error;
    return {};
  });
  await client.deleteQueue('q');
  assert.equal(tries, 2);
});

test('a call that is not answered in time may have happened', async (t) => {
  const { broker: fake, client } = await connected(t, { callTimeoutMs: 50, retryForMs: 0 });
  fake.on(FilaAdmin.method.purgeQueue, () => new Promise(() => {}));
  assert.ok((await rejection(client.purge('q'))) instanceof AnswerLost);
});

test('a call can be aborted', async (t) => {
  const { broker: fake, client } = await connected(t);
  fake.on(FilaAdmin.method.purgeQueue, () => new Promise(() => {}));
  const stop = new AbortController();
  const purging = rejection(client.purge('q', { signal: stop.signal }));
  setImmediate(() => stop.abort(new Error('mine')));
  assert.equal(((await purging) as Error).message, 'mine');
});

test('the API key goes with every call, from the option or the environment', async (t) => {
  const fake = await broker(t);
  fake.on(FilaAdmin.method.listQueues, (_, metadata) => {
    const [authorization] = metadata.get('authorization');
    if (authorization !== 'Bearer secret') throw failure(status.UNAUTHENTICATED, '') as Error;
    return {};
  });
  await works(t, fake.address, { apiKey: 'secret' });
  process.env['FILA_API_KEY'] = 'secret';
  t.after(() => delete process.env['FILA_API_KEY']);
  await works(t, fake.address, {});
  process.env['FILA_API_KEY'] = 'wrong';
  const client = await FilaClient.connect(fake.address);
  t.after(() => client.close());
  assert.ok((await rejection(client.listQueues())) instanceof NotAllowed);
});

// TLS.

const folder = mkdtempSync(join(tmpdir(), 'fila-js-'));
after(() => rmSync(folder, { recursive: true }));
const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
const pem = (name: string) => readFileSync(join(folder, name));

/** A certificate authority, and certificates of a broker called `broker.test` and of a client. */
function makeCertificates(): void {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...curve,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-subj',
    '/CN=test ca',
    '-days',
    '2',
  );
  for (const name of ['broker', 'client']) {
    openssl('req', ...curve, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}.test`,
      '-addext', `subjectAltName=DNS:${name}.test`); // prettier-ignore
    openssl('x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial',
      '-copy_extensions', 'copy', '-days', '2', '-out', `${name}.pem`); // prettier-ignore
  }
}

makeCertificates();
const pair = () => [{ private_key: pem('broker.key'), cert_chain: pem('broker.pem') }];

test('TLS: the authority and the name decide', async (t) => {
  const fake = await broker(t, ServerCredentials.createSsl(null, pair()));
  await works(t, fake.address, { tls: { ca: pem('ca.pem'), serverName: 'broker.test' } });
  await works(t, `https://${fake.address}`, {
    tls: { ca: pem('ca.pem').toString(), serverName: 'broker.test' },
  });
  const wrongName = await rejection(
    FilaClient.connect(fake.address, { ...soon, tls: { ca: pem('ca.pem') } }),
  );
  assert.ok(wrongName instanceof Unavailable);
  const unknownAuthority = await rejection(
    FilaClient.connect(`https://${fake.address}`, { ...soon, connectTimeoutMs: 2_000 }),
  );
  assert.ok(unknownAuthority instanceof Unavailable);
  assert.match(unknownAuthority.message, /certificate/);
});

test('TLS: a broker that asks for a client certificate gets it', async (t) => {
  const fake = await broker(t, ServerCredentials.createSsl(pem('ca.pem'), pair(), true));
  const tls = { ca: pem('ca.pem'), serverName: 'broker.test' };
  await works(t, fake.address, { tls: { ...tls, cert: pem('client.pem'), key: pem('client.key') } });
  const without = FilaClient.connect(fake.address, { ...soon, tls, retryForMs: 0 });
  const refused = await rejection(
    without.then((client) => client.listQueues().finally(() => client.close())),
  );
  assert.ok(refused instanceof Unavailable);
});

test('TLS: neither side takes the other for what it is not', async (t) => {
  const secure = await broker(t, ServerCredentials.createSsl(null, pair()));
  assert.ok((await rejection(FilaClient.connect(secure.address, soon))) instanceof Unavailable);
  const plain = await broker(t);
  const tls = { ca: pem('ca.pem') };
  assert.ok((await rejection(FilaClient.connect(plain.address, { ...soon, tls }))) instanceof Unavailable);
  const half = rejection(FilaClient.connect(plain.address, { tls: { cert: 'x' } }));
  assert.ok((await half) instanceof TypeError);
  const nonsense = await rejection(FilaClient.connect(plain.address, { tls: { cert: 'x', key: 'y' } }));
  assert.ok(nonsense instanceof TypeError);
  assert.match(nonsense.message, /must be PEM/);
});

test('TLS: files are named where they hold no certificate, and a path as `ca` is refused', async (t) => {
  const fake = await broker(t, ServerCredentials.createSsl(null, pair()));
  const caFile = join(folder, 'ca.pem');
  await works(t, fake.address, { tls: { caFile, serverName: 'broker.test' } });
  const path = await rejection(FilaClient.connect(fake.address, { tls: { ca: caFile } }));
  assert.ok(path instanceof TypeError);
  assert.match(path.message, /tls\.ca holds no certificate in PEM form/);
  const key = await rejection(FilaClient.connect(fake.address, { tls: { caFile: join(folder, 'ca.key') } }));
  assert.match((key as Error).message, /ca\.key holds no certificate in PEM form/);
});

test('TLS: the environment names files where the program names none', () => {
  const environment = { FILA_CA_FILE: join(folder, 'ca.pem') };
  assert.deepEqual(tlsMaterial({}, environment).ca, pem('ca.pem'));
  assert.deepEqual(tlsMaterial({ ca: pem('broker.pem') }, environment).ca, pem('broker.pem'));
});

test('another of the ports of Fila is named at once', async (t) => {
  const redis = createServer((socket) =>
    socket.once('data', () => socket.end("-ERR unknown command 'PRI'\r\n")),
  );
  redis.listen(0, '127.0.0.1');
  await once(redis, 'listening');
  t.after(() => redis.close());
  const { port } = redis.address() as AddressInfo;
  const wrong = await rejection(FilaClient.connect(`127.0.0.1:${port}`, { connectTimeoutMs: 60_000 }));
  assert.ok(wrong instanceof Unavailable);
  assert.match(wrong.message, /speaks the Redis protocol/);
});

test('a connection that swallows everything is noticed by the unanswered ping', async (t) => {
  const fake = await broker(t);
  fake.on(FilaAdmin.method.purgeQueue, () => new Promise(() => {}));
  const sockets: Socket[] = [];
  let swallows = false;
  const proxy = createServer((near) => {
    const far = dial(Number(fake.address.split(':')[1]), '127.0.0.1');
    sockets.push(near, far);
    near.on('data', (bytes) => swallows || far.write(bytes)).on('error', () => {});
    far.on('data', (bytes) => swallows || near.write(bytes)).on('error', () => {});
  }).listen(0, '127.0.0.1');
  t.after(() => {
    proxy.close();
    for (const socket of sockets) socket.destroy();
  });
  await new Promise((resolve) => proxy.once('listening', resolve));
  const { port } = proxy.address() as { port: number };
  const options = { ...soon, connectTimeoutMs: 5_000, keepaliveTimeMs: 1_000, keepaliveTimeoutMs: 100 };
  const client = await FilaClient.connect(`127.0.0.1:${port}`, options);
  t.after(() => client.close());
  const purging = rejection(client.purge('q'));
  while (fake.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  swallows = true;
  assert.ok((await purging) instanceof AnswerLost);
  swallows = false;
  await client.listQueues();
});
