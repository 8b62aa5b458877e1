import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { definePlugin } from '../../packages/plugin-api/src/index.ts';
import type { Plugin } from '../../packages/plugin-api/src/index.ts';
import { createCore } from '../../packages/core/src/index.ts';
import { toManifest } from '../../packages/plugin-api/src/index.ts';
import { parsedRequest } from '../../packages/testkit/src/index.ts';
import { compile, expectDecision, MODES, plugins } from './support/bench.fixture.ts';
import { fakeTime } from './support/fake-time.fixture.ts';

const folder = new URL('../../packages/policy/fixtures/examples/', import.meta.url);
const read = (path: string): string | undefined => {
  try {
    return readFileSync(new URL(path, folder), 'utf8');
  } catch {
    return undefined;
  }
};

const carbon: Plugin = definePlugin({
  name: 'carbon',
  apiVersion: 1,
  options: {
    type: 'object',
    properties: { refresh: { type: 'number', default: 300, 'x-unit': 'duration' } },
    additionalProperties: false,
  },
  provides: {
    signal: { intensity: { doc: 'Grams per kilowatt hour.', type: 'number', setup: () => ({ evaluate: () => 200 }) } },
    scorer: { least_grams: { doc: 'Fewest grams.', cost: true, reads: ['candidate.power'], expression: 'power' } },
  },
});

describe.each(readdirSync(folder).filter((name) => name.endsWith('.route')))(
  'the example %s of the language page',
  (name) => {
    const result = compile(read(name) ?? '', {
      path: name,
      readFile: read,
      resolvePlugin: () => ({ manifest: toManifest(carbon) }),
    });

    test('compiles with the first-party plugins', () => {
      expect(result.diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    });

    test('is put in force and decides in both modes alike', () => {
      const { program } = result;
      if (program === undefined) throw new Error('no program');
      const decided = MODES.map((evaluators) => {
        const time = fakeTime();
        const core = createCore({ clock: time, scheduler: time, evaluators, seed: 7 });
        core.activate(core.prepare(program, [...plugins, carbon]));
        const outcomes = Array.from({ length: 20 }, (_, i) => {
          const outcome = core.router.route({
            id: 'x',
            parsed: parsedRequest({
              model: 'llama-3.1-8b',
              messages: `Why ${'so '.repeat(i)}? Prove it.`,
              user: `u-${i}`,
            }),
            headers: i % 2 === 0 ? { 'x-session-id': `s-${i}`, 'x-slo': 'interactive' } : {},
            receivedAtMs: 0,
            deadlineMs: Infinity,
          });
          if (outcome instanceof Promise) return 'queued';
          return outcome.kind === 'forward' ? outcome.attempt.endpoint : `${outcome.status} ${outcome.code}`;
        });
        core.close();
        return outcomes;
      });
      expect(decided[1]).toEqual(decided[0]);
      expect(decided[0]?.every((outcome) => outcome !== '')).toBe(true);
    });
  },
);

describe('the first example, decided', () => {
  const policy = `define gateway { models: ["m"] }
define tier "8B"  { model: "llama-3.1-8b",  gpu: "L4",   endpoints: ["http://10.0.0.11:8000", "http://10.0.0.12:8000"] }
define tier "70B" { model: "llama-3.1-70b", gpu: "H100", gpu_count: 4, endpoints: ["http://10.0.0.21:8000", "http://10.0.0.22:8000"] }

route "hard" when complexity.textbook > 50 to tier "70B" by least_tokens with affinity session
default to tier "8B" by least_tokens`;
  const hard = { messages: '?'.repeat(6) };

  test('a hard prompt goes to the least loaded 70B', () => {
    const fleet = { '70B/1': { queuedTokens: 9000 }, '70B/2': { queuedTokens: 2000 } };
    expectDecision(policy, '70B/2', hard, { fleet });
    expectDecision(policy, '70B/1', hard, {
      fleet: { '70B/1': { queuedTokens: 2000 }, '70B/2': { queuedTokens: 9000 } },
    });
  });

  test('an easy one to the least loaded 8B', () => {
    expectDecision(policy, '8B/2', { messages: 'hi' }, { fleet: { '8B/1': { decodeTokens: 900 } } });
  });
});
