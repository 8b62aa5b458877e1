import { readFileSync } from 'node:fs';
import { createOptionChecker } from '@signalbox/config';
import { expect, describe, test } from 'vitest';
import { EXAMPLE_NAMES, EXAMPLES } from './examples.ts';
import type { ExampleName } from './examples.ts';
import { createPolicyService } from './policy-service.ts';
import type { Evaluation } from './policy-service.ts';
import { EMPTY_STATE } from './state.ts';
import type { PlaygroundState } from './state.ts';

const check = createOptionChecker();
const service = createPolicyService({ askOptionCheck: async (schema, value) => check(schema, value) });

const exampleOf = (name: ExampleName): PlaygroundState => {
  const { title: _title, ...given } = EXAMPLES[name];
  const path = new URL(`../../../../examples/policies/${name}.route`, import.meta.url);
  return { ...EMPTY_STATE, ...given, policy: readFileSync(path, 'utf8') };
};

const TIERS = `define gateway { models: ["auto"] }
define tier "8B" { model: "small", endpoints: ["http://10.0.0.11:8000", "http://10.0.0.12:8000"] }
define tier "70B" { model: "large", endpoints: ["http://10.0.0.21:8000"] }
`;
const BODY = '{ "model": "auto", "messages": [{ "role": "user", "content": "hello" }] }';
const evaluate = (rules: string, more: Partial<PlaygroundState> = {}): Promise<Evaluation> =>
  service.evaluate({ ...EMPTY_STATE, policy: TIERS + rules, body: BODY, ...more });
const endpointOf = ({ decision }: Evaluation): string | null | undefined =>
  decision?.kind === 'explained' ? decision.explanation.endpoint : undefined;

describe('examples', () => {
  const EXPECTED: { readonly [name in ExampleName]: string } = {
    tour: '70B/2',
    'complexity-tiers': '34B/2',
    'sla-fallback': '70B/2',
    'session-affinity': '8B/1',
    'latency-aware': '8B/2',
    canary: 'next/1',
    admission: '8B/2',
  };

  test.each(EXAMPLE_NAMES)('%s decides, and its tests pass', async (name) => {
    const state = exampleOf(name);
    const evaluation = await service.evaluate(state);
    expect(evaluation.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect(evaluation.cellProblems).toEqual([]);
    expect(endpointOf(evaluation)).toBe(EXPECTED[name]);
    const { report } = await service.tryOut(state);
    if (name === 'tour') expect(report?.tests).toHaveLength(2);
    expect(report?.passed ?? true).toBe(true);
  });
});

describe('findings', () => {
  test('have text, code, place and fix of the compiler', async () => {
    const { findings, outline, decision } = await evaluate('default to tier "8B" by least_tokns');
    expect(findings).toEqual([
      {
        code: 'E0204',
        severity: 'error',
        message: 'unknown scorer `least_tokns`',
        help: 'did you mean `least_tokens`?',
        from: TIERS.length + 24,
        to: TIERS.length + 35,
        line: 4,
        column: 25,
        labels: [],
        fix: {
          message: 'write `least_tokens`',
          changes: [{ from: TIERS.length + 24, to: TIERS.length + 35, text: 'least_tokens' }],
        },
      },
    ]);
    expect(outline).toBeUndefined();
    expect(decision).toBeUndefined();
  });

  test('options are checked by the checker that is asked elsewhere', async () => {
    const { findings } = await evaluate('default to tier "8B" by least_latency(percentile: 200%)');
    expect(findings.map(({ code }) => code)).toEqual(['E0508']);
  });

  test('a package cannot be loaded, and what can is said', async () => {
    const { findings } = await evaluate('use "@acme/carbon" as carbon\ndefault to tier "8B" by carbon.least_grams');
    expect(findings[0]?.message + (findings[0]?.help ?? '')).toMatch(/first-party plugins only/);
  });

  test('analysis adds its own', async () => {
    const rules =
      'route "a" when words > 5 to tier "70B"\nroute "b" when words > 6 to tier "70B"\ndefault to tier "8B"';
    const { findings } = await service.tryOut({ ...EMPTY_STATE, policy: TIERS + rules });
    expect(findings.map(({ code, line }) => [code, line])).toEqual([['W0502', 5]]);
  });
});

describe('the fleet', () => {
  const RULES = 'default to tier "8B" where kv_cache_used ?? 0% < 90% by lowest(queued_tokens)';

  test('is read in the units of the language, and decides', async () => {
    expect(endpointOf(await evaluate(RULES, { fleet: { '8B/1': { queued_tokens: '9k' } } }))).toBe('8B/2');
    expect(endpointOf(await evaluate(RULES, { fleet: { '8B/2': { queued_tokens: '9k' } } }))).toBe('8B/1');
    expect(endpointOf(await evaluate(RULES, { fleet: { '8B/1': { kv_cache_used: '95%' } } }))).toBe('8B/2');
    expect(endpointOf(await evaluate(RULES, { fleet: { '8B/1': { healthy: 'false' } } }))).toBe('8B/2');
  });

  test('a wrong value is a problem of its cell, in the words of the compiler, and the others count', async () => {
    const fleet = { '8B/1': { queued_tokens: '9k', kv_cache_used: '95' }, '8B/2': { loudness: '3' } };
    const evaluation = await evaluate(RULES, { fleet });
    expect(evaluation.cellProblems).toMatchObject([
      { endpoint: '8B/1', property: 'kv_cache_used', code: 'E0305', help: 'write `95%`' },
      { endpoint: '8B/2', property: 'loudness' },
    ]);
    expect(endpointOf(evaluation)).toBe('8B/2');
  });

  test.each(['"', '9k }', '9k\n}', '#', '{', '[', '(', '9k, healthy: false', 'test "x" {', '\\', 'r"'])(
    'a value that is no literal spoils nothing but itself: %j',
    async (value) => {
      const fleet = { '8B/1': { queue_depth: value, queued_tokens: '9k' } };
      const evaluation = await evaluate(RULES, { fleet });
      expect(evaluation.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
      expect(evaluation.decision?.kind).toBe('explained');
    },
  );

  test('properties that can be given have type and doc', async () => {
    expect(await service.properties()).toContainEqual({
      name: 'queued_tokens',
      type: 'count',
      doc: expect.stringMatching(/tokens/i),
    });
  });
});

test('equal states have equal decisions', async () => {
  const state = exampleOf('tour');
  expect((await service.evaluate(state)).decision).toEqual((await service.evaluate({ ...state })).decision);
});

test('marks cover words in order, and say what the checker takes names for', async () => {
  const { marks } = await evaluate(
    'route when complexity > 50 to tier "70B" by least_tokens # why\ndefault to tier "8B"',
  );
  expect(marks.every(({ from }, index) => from >= (marks[index - 1]?.to ?? 0))).toBe(true);
  const kinds = marks.filter(({ from }) => from >= TIERS.length).map(({ kind }) => kind);
  expect(kinds).toEqual(
    expect.arrayContaining(['keyword', 'signal', 'operator', 'number', 'string', 'scorer', 'comment']),
  );
});

test('completion and hover answer for a place in the text', async () => {
  const policy = `${TIERS}default to tier "8B" by least_`;
  const offered = await service.complete({ policy, offset: policy.length });
  expect(offered.map(({ label }) => label)).toContain('least_tokens');
  expect(offered[0]?.replace).toEqual({ from: policy.length - 'least_'.length, to: policy.length });
  const whole = `${TIERS}default to tier "8B" by least_tokens`;
  expect(await service.hover({ policy: whole, offset: whole.length - 3 })).toMatchObject({
    title: 'scorer least_tokens',
    from: whole.length - 'least_tokens'.length,
    to: whole.length,
  });
  expect(await service.hover({ policy: whole, offset: 0 })).toBeNull();
});

test('a policy is laid out as `signalbox fmt` lays it out', async () => {
  expect(await service.format('default   to tier "8B"')).toBe('default to tier "8B"\n');
});
