// Builds dist: ES modules and CommonJS, each with its types, from one source.
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('..', import.meta.url));
const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc');
const run = (...command) => {
  const { status } = spawnSync(process.execPath, command, { stdio: 'inherit', cwd: here });
  if (status !== 0) process.exit(status ?? 1);
};

rmSync(join(here, 'dist'), { recursive: true, force: true });
run('scripts/generate-google.mjs');
run(tsc, '-p', 'tsconfig.json');
// The types of the same sources were just checked.
run(tsc, '-p', 'tsconfig.cjs.json', '--noCheck');
// The package says "module"; this half of it is not.
writeFileSync(join(here, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n');
