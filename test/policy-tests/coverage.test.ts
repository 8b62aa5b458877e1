import { expect, test } from 'vitest';
import { coverageTotals, mergeCoverage, missingOutcomes } from '../../packages/core/src/index.ts';
import type { Coverage } from '../../packages/core/src/index.ts';
import { compileChecked, report } from './support/checked-policy.fixture.ts';

const POLICY = `
let big = prompt_tokens > 10k
reject "banned" when user == "mallory" with status 403
route "hard" when complexity > 50 and (big or user exists)
  to tier "70B" where zone == "a" by least_tokens
  else to tier "34B"
  else reject with status 503
route "big" when big to tier "34B"
default to tier "8B"
`;

function coverageOf(tests: string): Coverage {
  return report(POLICY + tests).coverage;
}

const leaves = (coverage: Coverage): { readonly [text: string]: string } =>
  Object.fromEntries(coverage.leaves.map((leaf) => [leaf.text, `${leaf.true}/${leaf.false}/${leaf.unknown}`]));

const rules = (coverage: Coverage): { readonly [label: string]: string } =>
  Object.fromEntries(
    coverage.rules.map(({ label, matched, reached, elses }) => [
      label,
      [`${matched}/${reached}`, ...elses.map((part) => part.reached)].join(' '),
    ]),
  );

test('without tests nothing is covered', () => {
  const coverage = coverageOf('');
  expect(coverageTotals(coverage)).toEqual({
    rules: { covered: 0, total: 4 },
    elses: { covered: 0, total: 2 },
    // Two outcomes each of `complexity > 50`, `big` and `user exists`, three of what may be unknown: `user == …` and `zone == …`.
    outcomes: { covered: 0, total: 12 },
    percent: 0,
  });
  expect(coverage.leaves.filter((leaf) => leaf.mayBeUnknown).map(({ text }) => text)).toEqual([
    'user == "mallory"',
    'zone == "a"',
  ]);
});

test('counts are of tests: rules reached and matched, `else` parts come to, leaves by what they came to', () => {
  const coverage = coverageOf(`
    test "a" { given complexity = 60, prompt_tokens = 20k given endpoint "x" { tier: "70B", zone: "a" } expect to tier "70B" }
    test "b" { given complexity = 60, user = "bob" given endpoint "x" { tier: "70B", zone: "b" } given endpoint "y" { tier: "70B", zone: "c" } expect to tier "34B" }
    test "c" { expect default }`);
  expect(rules(coverage)).toEqual({ banned: '0/3', hard: '2/3 1 0', big: '0/1', default: '1/1' });
  expect(leaves(coverage)).toEqual({
    'user == "mallory"': '0/1/2',
    'complexity > 50': '2/1/0',
    'prompt_tokens > 10k': '1/2/0',
    'user exists': '1/2/0',
    'zone == "a"': '1/1/0',
  });
  expect(coverage.leaves.map((leaf) => [leaf.text, missingOutcomes(leaf)])).toContainEqual([
    'user == "mallory"',
    ['true'],
  ]);
  expect(coverageTotals(coverage)).toMatchObject({ rules: { covered: 2, total: 4 }, elses: { covered: 1, total: 2 } });
});

test('a leaf that a connective need not look at is looked at all the same, and rules below the one that matched are not', () => {
  const coverage = coverageOf('test "a" { given user = "mallory" expect reject }');
  expect(rules(coverage)).toEqual({ banned: '1/1', hard: '0/0 0 0', big: '0/0', default: '0/0' });
  expect(leaves(coverage)['complexity > 50']).toBe('0/0/0');
  const both = coverageOf('test "a" { given complexity = 1, prompt_tokens = 20k expect not route "hard" }');
  expect(leaves(both)['user exists']).toBe('0/1/0');
});

test('an `else next` is passed, and what is behind it counts', () => {
  const text = `route "a" when stream to tier "8B" else next
    route "b" to tier "70B"
    test "t" { given stream = true given endpoint "x" { tier: "8B", draining: true } expect route "b" }`;
  expect(rules(report(text).coverage)).toEqual({ a: '1/1 1', b: '1/1' });
});

test('coverage of several programs adds up by place', () => {
  const tests = ['test "a" { given user = "mallory" expect reject }', 'test "b" { expect default }'];
  const [first, second] = tests.map(coverageOf);
  if (first === undefined || second === undefined) throw new TypeError('there are two');
  const merged = mergeCoverage([first, second]);
  expect(leaves(merged)['user == "mallory"']).toBe('1/0/1');
  expect(rules(merged)).toEqual({ banned: '1/2', hard: '0/1 0 0', big: '0/1', default: '1/1' });
  expect(mergeCoverage([merged]).rules).toEqual(merged.rules);
});

test('a policy can be covered whole', () => {
  const coverage = coverageOf(`
    test "1" { given user = "mallory" expect reject }
    test "2" { given complexity = 60, prompt_tokens = 20k, user = "a" given endpoint "x" { tier: "70B", zone: "a" } expect to tier "70B" }
    test "3" { given complexity = 60, user = "a" given endpoint "x" { tier: "70B", zone: "b" } expect to tier "34B" }
    test "4" { given complexity = 60, user = "a" given endpoint "x" { tier: "70B" } given endpoint "y" { tier: "34B", draining: true } expect reject with status 503 }
    test "5" { given prompt_tokens = 20k expect route "big" }
    test "6" { expect default }`);
  expect(coverage.leaves.flatMap((leaf) => missingOutcomes(leaf).map((truth) => `${leaf.text} ${truth}`))).toEqual([]);
  expect(coverageTotals(coverage).percent).toBe(100);
});

test('a policy of nothing but a default has its default to cover', () => {
  expect(coverageTotals(report('default to tier "8B"').coverage).percent).toBe(0);
  expect(coverageTotals(report('default to tier "8B"\ntest "t" { expect default }').coverage).percent).toBe(100);
  expect(compileChecked('default to tier "8B"').checks.tests).toEqual([]);
});
