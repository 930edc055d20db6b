// Resolves the dependencies of the package in this folder again, and keeps no web address in the lock file: npm leaves out
// where it downloads from, but not where to donate.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const file = "package-lock.json";
const call = ["install", "--package-lock-only", "--ignore-scripts", "--loglevel=error"];
execFileSync("npm", call, { stdio: "inherit" });
const lock = JSON.parse(readFileSync(file, "utf8"));
for (const entry of Object.values(lock.packages)) delete entry.funding;
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
