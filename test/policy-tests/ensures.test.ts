import { expect, test } from 'vitest';
import type { EnsureResult } from '../../packages/core/src/index.ts';
import type { PolicyTestOptions } from '../../packages/core/src/index.ts';
import { analysePolicy } from '../../packages/policy/src/index.ts';
import { compileChecked, report } from './support/checked-policy.fixture.ts';

const POLICY = `
define gateway { models: ["auto"] }
define tier "eu" { model: "m", endpoints: ["http://10.0.0.11:8000", "http://10.0.0.12:8000"] }
define tier "us" { model: "m", endpoints: ["http://10.0.0.21:8000"] }
`;

function ensureOf(text: string, options: Partial<PolicyTestOptions> = {}): EnsureResult {
  const [ensure] = report(POLICY + text, options).ensures;
  if (ensure === undefined) throw new TypeError('the policy has an ensure');
  return ensure;
}

test('a counter-example at a boundary is found, and is a test that fails', () => {
  const rules = 'route "eu" when tenant.region == "eu" and complexity <= 50 to tier "eu"\ndefault to tier "us"';
  const found = ensureOf(`${rules}\nensure "e" when tenant.region == "eu" never to tier "us"`);
  expect(found).toMatchObject({ verdict: 'refuted', claim: 'never to tier "us"' });
  expect(found.witness).toMatch(/^given .*tenant\.region = "eu"/);
  expect(found.explanation?.tier).toBe('us');
  const [again] = report(`${POLICY}${rules}\ntest "t" { ${found.witness ?? ''} expect not to tier "us" }`).tests;
  expect(again?.unmet.map(({ expected }) => expected)).toEqual(['not to tier "us"']);
});

test('a way out that only a fleet with endpoints missing takes is found, and told by the endpoints that are away', () => {
  const rules = 'route "eu" when tenant.region == "eu" to tier "eu" else to tier "us"\ndefault to tier "us"';
  const found = ensureOf(`${rules}\nensure "e" when tenant.region == "eu" never to tier "us"`);
  expect(found.verdict).toBe('refuted');
  expect(found.witness).toContain('given endpoint "eu/1" { draining: true }\ngiven endpoint "eu/2" { draining: true }');
  const [again] = report(`${POLICY}${rules}\ntest "t" { ${found.witness ?? ''} expect to tier "us" }`).tests;
  expect(again).toMatchObject({ passed: true });
});

test('where none is found it says how many requests were tried, and that it is not proved', () => {
  const text =
    'route "eu" when tenant.region == "eu" to tier "eu"\ndefault to tier "us"\nensure "e" when tenant.region == "eu" never to tier "us"';
  expect(ensureOf(text, { requests: 200 })).toEqual({
    label: 'e',
    span: expect.anything(),
    claim: 'never to tier "us"',
    verdict: 'not_proved',
    reason: 'it was not analysed',
    tried: 200,
  });
});

test('`always` holds where the outcome came about each time', () => {
  const rules = 'reject "long" when prompt_tokens > 100k with status 413\ndefault to any';
  expect(ensureOf(`${rules}\nensure "e" when prompt_tokens > 100k always reject with status 413`).verdict).toBe(
    'not_proved',
  );
  expect(ensureOf(`${rules}\nensure "e" when prompt_tokens >= 100k always reject with status 413`)).toMatchObject({
    verdict: 'refuted',
    witness: expect.stringContaining('prompt_tokens = 100000'),
  });
});

test('a condition that no request meets tries none', () => {
  expect(ensureOf('default to any\nensure "e" when user == "a" and user == "b" never to any')).toMatchObject({
    verdict: 'not_proved',
    tried: 0,
  });
});

test('patterns are met by their own text', () => {
  const rules = 'route "code" when prompt matches r"\\bstack trace\\b|TypeError" to tier "eu"\ndefault to tier "us"';
  expect(ensureOf(`${rules}\nensure "e" never to tier "eu"`)).toMatchObject({ verdict: 'refuted' });
});

test('what analysis has settled is not searched; what it has refuted is shown by a decision', () => {
  const judge = (text: string): EnsureResult => {
    const { program, checks } = compileChecked(POLICY + text);
    return ensureOf(text, { verdicts: analysePolicy(program, { checks }).ensures });
  };
  const eu = 'route "eu" when tenant.region == "eu" to tier "eu"\ndefault to tier "us"';
  expect(judge(`${eu}\nensure "e" when tenant.region == "eu" never to tier "us"`)).toMatchObject({
    verdict: 'proved',
    tried: 0,
  });
  expect(judge(`${eu}\nensure "e" when complexity > 50 never to tier "us"`)).toMatchObject({
    verdict: 'refuted',
    witness: 'given complexity = 51',
    explanation: { tier: 'us' },
  });
  expect(
    judge(
      `${eu.replace('tier "eu"', 'tier "eu" else to tier "us"')}\nensure "e" when tenant.region == "eu" never to tier "us"`,
    ),
  ).toMatchObject({
    verdict: 'refuted',
    reason: expect.any(String),
    witness:
      'given tenant.region = "eu"\ngiven endpoint "eu/1" { draining: true }\ngiven endpoint "eu/2" { draining: true }',
    explanation: { tier: 'us' },
  });
});

test('a refuted ensure fails the report, one that is not proved does not', () => {
  const text = 'default to any\nensure "e" never to any';
  expect(report(`${POLICY}${text}`).passed).toBe(false);
  expect(report(`${POLICY}${text}`, { requests: 0 })).toMatchObject({
    passed: true,
    ensures: [{ verdict: 'not_proved', tried: 0 }],
  });
});

test('time, priority and parameters are searched like all else', () => {
  for (const condition of [
    'hour == 23',
    'weekday == "sun"',
    'priority == "low"',
    'param.zone == "b"',
    'within("sat 10:00-12:00")',
  ]) {
    const rules = `define param "zone" { env: "ZONE", default: "a" }\nroute "r" when ${condition} and hour >= 0 and hour in 10..23 and weekday != "mon" to tier "eu"\ndefault to tier "us"`;
    expect([condition, ensureOf(`${rules}\nensure "e" never to tier "eu"`, { requests: 3000 }).verdict]).toEqual([
      condition,
      'refuted',
    ]);
  }
});
