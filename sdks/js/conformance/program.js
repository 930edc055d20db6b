// Runs a program of docs/patterns: from a copy inside this package, where the package's name leads to it.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';

const folder = new URL('../build/', import.meta.url);
mkdirSync(folder, { recursive: true });
const copy = new URL(`program-${process.pid}.mjs`, folder);
copyFileSync(process.argv[2], copy);
try {
  await import(copy.href);
} finally {
  rmSync(copy);
}
