import { compilePolicy } from '@signalbox/policy';
import type { GivenEndpoint, PolicyProgram } from '@signalbox/policy';
import { expect, test } from 'vitest';
import { request } from '../program.fixture.ts';
import { explainOnFleet } from './explain-on-fleet.ts';
import type { SupposedRequest } from './explain-on-fleet.ts';

const TIERS = `define gateway { models: ["auto"] }
define tier "a" { model: "m", endpoints: ["http://a.test:1", "http://a.test:2", "http://a.test:3"] }
`;

function compiled(rules: string): PolicyProgram {
  const { program, diagnostics } = compilePolicy({ path: 'p.route', text: TIERS + rules });
  if (program === undefined) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  return program;
}

function given(name: string, properties: GivenEndpoint['properties']): GivenEndpoint {
  return { name, properties, span: { file: 'p.route', start: 0, end: 0 } };
}

function ask(program: PolicyProgram, more: Partial<SupposedRequest> = {}): ReturnType<typeof explainOnFleet> {
  return explainOnFleet({
    program,
    plugins: [],
    endpoints: [],
    request: request({ body: { model: 'auto' } }),
    epochMs: Date.UTC(2026, 0, 5),
    ...more,
  });
}

const BY_QUEUE = 'default to tier "a" where kv_cache_used ?? 0% < 90% by lowest(queued_tokens)';

test('the fleet that is given decides, whatever evaluates it, and nothing is kept from one question to the next', () => {
  const program = compiled(BY_QUEUE);
  const endpoints = [
    given('a/1', { queued_tokens: 9000 }),
    given('a/2', { queued_tokens: 10, kv_cache_used: 0.95 }),
    given('a/3', { queued_tokens: 500 }),
  ];
  const first = ask(program, { endpoints });
  expect(first).toMatchObject({ outcome: 'forward', endpoint: 'a/3' });
  expect(first.candidates.map(({ endpoint, verdict }) => [endpoint, verdict])).toEqual([
    ['a/1', 'eligible'],
    ['a/2', 'where'],
    ['a/3', 'picked'],
  ]);
  expect(ask(program, { endpoints })).toEqual(first);
  expect(ask(program, { endpoints, evaluators: 'generated' })).toEqual(first);
});

test('an endpoint that is ejected or draining is left out', () => {
  const endpoints = [given('a/1', { healthy: false }), given('a/2', { state: 'draining' })];
  const { endpoint, candidates } = ask(compiled(BY_QUEUE), { endpoints });
  expect(endpoint).toBe('a/3');
  expect(candidates.map(({ verdict }) => verdict)).toEqual(['ejected', 'draining', 'picked']);
});

test('deadline and clock are those of the question', () => {
  const program = compiled(`reject "late" when deadline < 2s\nreject "night" when hour < 6\n${BY_QUEUE}`);
  const noon = Date.UTC(2026, 0, 5, 12);
  expect(ask(program, { epochMs: noon }).outcome).toBe('forward');
  expect(ask(program, { epochMs: noon, deadlineInMs: 1500 }).decided).toMatchObject({ label: 'late' });
  expect(ask(program, { epochMs: Date.UTC(2026, 0, 5, 3) }).decided).toMatchObject({ label: 'night' });
});
