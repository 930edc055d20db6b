// Resolves the dependencies again, and keeps no web address in the lock file: what is installed is said by
// version and hash, from whichever registry is at hand. (npm leaves out where it downloads from, but not
// where to donate.)
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const file = new URL('../package-lock.json', import.meta.url);
const arguments_ = ['install', '--package-lock-only', '--ignore-scripts', '--loglevel=error'];
execFileSync('npm', arguments_, { stdio: 'inherit', cwd: new URL('..', import.meta.url) });
const lock = JSON.parse(readFileSync(file, 'utf8'));
for (const entry of Object.values(lock.packages)) delete entry.funding;
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
