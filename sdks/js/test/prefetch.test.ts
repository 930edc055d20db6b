import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parse } from 'yaml';

import { AdaptivePrefetch, type Decision, FixedPrefetch } from '../src/prefetch.js';

interface Step {
  readonly at: number;
  readonly event: string;
  /** Of `handled`: the loop that asks, if any. */
  readonly loop: number;
  readonly size: number;
  readonly count: number;
  readonly handling_us: number;
  readonly after_us?: number;
  readonly window?: number;
  readonly give_back?: number;
  readonly check_at?: number | null;
  readonly median_us?: number;
}

const file = new URL('../../../conformance/prefetch.yaml', import.meta.url);
const { scenarios } = parse(readFileSync(file, 'utf8')) as { scenarios: { name: string; steps: Step[] }[] };

function play(control: AdaptivePrefetch, step: Step): Decision | undefined {
  const { at, event, loop, size, count } = step;
  switch (event) {
    case 'joined':
      return control.joined(at, loop, size);
    case 'left':
      return control.left(at, loop);
    case 'delivered':
      return control.delivered(at, count);
    case 'began':
      control.began(at, loop, count);
      return undefined;
    case 'idle':
      return control.idle(at, loop);
    case 'settled':
      return control.settled(at, loop, count);
    case 'answered':
      control.answered(at, loop);
      return undefined;
    case 'dropped':
      control.dropped(count);
      return undefined;
    case 'handled':
      return control.handled(at, step.handling_us, loop, step.after_us);
    case 'tick':
      return control.tick(at);
  }
  throw new Error(`unknown event ${event}`);
}

describe('the prefetch controller answers each step as the file that all SDKs replay says', () => {
  assert.ok(scenarios.length > 0);
  for (const { name, steps } of scenarios) {
    test(name, () => {
      const control = new AdaptivePrefetch(50_000);
      for (const step of steps) {
        const decision = play(control, step);
        const expected =
          step.window === undefined ? undefined : { window: step.window, giveBack: step.give_back };
        assert.deepEqual(decision, expected, JSON.stringify(step));
        if (step.check_at !== undefined)
          assert.equal(control.checkAt ?? null, step.check_at, JSON.stringify(step));
        if (step.median_us !== undefined)
          assert.equal(control.times.medianUs, step.median_us, JSON.stringify(step));
      }
    });
  }
});

test('a fixed prefetch is the window for ever, and still knows how long messages take', () => {
  const control = new FixedPrefetch(100);
  const decisions = [control.joined(), control.delivered(), control.handled(0, 9_000_000), control.tick()];
  assert.deepEqual(decisions, [undefined, undefined, undefined, undefined]);
  assert.equal(control.window, 100);
  assert.equal(control.times.medianUs, 9_000_000);
});
