/** A fila-server of this repository, with a data directory of its own. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const SERVER = process.env['FILA_SERVER'] ?? join(PACKAGE, '../../.venv/bin/fila-server');

export interface RealBroker {
  readonly address: string;
  readonly stop: () => Promise<void>;
}

/** Starts one, and resolves when it answers. */
export async function startBroker(): Promise<RealBroker> {
  if (!existsSync(SERVER)) throw new Error(`there is no ${SERVER}: run \`make build\`, or set FILA_SERVER`);
  const folder = mkdtempSync(join(tmpdir(), 'fila-js-broker-'));
  const process_ = spawn(SERVER, {
    cwd: folder,
    env: {
      ...withoutFila(process.env),
      FILA_SERVER__LISTEN_ADDR: '127.0.0.1:0',
      FILA_REDIS__ENABLED: 'false',
      FILA_METRICS__LISTEN_ADDR: '',
      FILA_DATA_DIR: join(folder, 'data'),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said: string[] = [];
  const address = await new Promise<string>((resolve, reject) => {
    createInterface({ input: process_.stderr }).on('line', (line) => {
      said.push(line);
      if (line.includes('server.started')) resolve((JSON.parse(line) as { grpc: string }).grpc);
    });
    process_.once('exit', () => reject(new Error(`fila-server ended at once:\n${said.join('\n')}`)));
  });
  const stop = async () => {
    const exited = once(process_, 'exit');
    process_.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true });
  };
  return { address, stop };
}

/** What a program printed, and how it ended. */
export interface Ran {
  readonly code: number | null;
  readonly printed: string;
}

/** Runs a program of this package, in whose folder its own name leads to it. */
export async function run(words: string[], environment: Record<string, string> = {}): Promise<Ran> {
  const child = spawn(process.execPath, words, {
    cwd: PACKAGE,
    env: { ...withoutFila(process.env), ...environment },
    timeout: 200_000,
  });
  let printed = '';
  for (const output of [child.stdout, child.stderr])
    output.on('data', (bytes: Buffer) => (printed += bytes.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, printed };
}

function withoutFila(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = Object.entries(environment).filter(
    ([name]) => !name.startsWith('FILA_') && name !== 'NODE_TEST_CONTEXT',
  );
  return Object.fromEntries(others);
}
