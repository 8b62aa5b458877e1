import { expect, test } from 'vitest';
import { parsePolicy } from '../../../packages/policy/src/index.ts';
import { readWords } from '../grammar/words.ts';
import { oracle, wordsOf } from '../support/oracle.fixture.ts';
import { validPolicies } from '../support/policies.fixture.ts';
import { codesOf, invalidity, judge, LIBRARY_TEXT } from './judge.ts';
import type { Verdict } from './judge.ts';
import { createRandom, deleteToken, misspellToken, swapTokens } from './mutate.ts';

/*
 * One slip of the hand in a valid policy: each token deleted, swapped with the next, and misspelled. A mutant counts as invalid where the
 * recogniser made from the page of the grammar refuses it or the check of names misses a name: neither is part of the compiler.
 * SIGNALBOX_MUTATIONS=n tries n spellings of each token, SIGNALBOX_SEED others.
 */

const rounds = Number(process.env['SIGNALBOX_MUTATIONS'] ?? 1);
const seed = Number(process.env['SIGNALBOX_SEED'] ?? 1);

function allVerdicts(): readonly Verdict[] {
  const random = createRandom(seed);
  return validPolicies.flatMap((policy) => {
    const words = wordsOf(policy.text);
    const before = codesOf(policy);
    const mutants = words.flatMap((word, index) => [
      deleteToken(policy.text, words, index),
      swapTokens(policy.text, words, index),
      ...Array.from({ length: rounds }, () => misspellToken(policy.text, word, random)),
    ]);
    return mutants.flatMap((mutant) => (mutant === undefined ? [] : [judge(policy, before, mutant, oracle)]));
  });
}

const verdicts = allVerdicts();
const invalid = verdicts.filter((verdict) => verdict.invalid !== undefined);
const share = (of: readonly Verdict[], holds: (verdict: Verdict) => boolean): number =>
  of.filter(holds).length / of.length;
const hasOne = ({ findings }: Verdict): boolean => findings.length === 1;
const percent = (ratio: number): string => `${(100 * ratio).toFixed(1)} %`;
const shown = ({ mutant, findings }: Verdict): string =>
  `${mutant.slip}: ${findings.map(({ code, message }) => `${code} ${message}`).join(' | ')}`;

test('the valid policies are sentences of the grammar on the page, with every name known', () => {
  const judged = validPolicies.map(({ name, text, files }) => ({
    name,
    invalid: invalidity(text, new Set(Object.keys(files)), oracle),
  }));
  expect(judged.filter((one) => one.invalid !== undefined)).toEqual([]);
  expect(judged.length).toBeGreaterThan(14);
});

test('of every mutant, the grammar on the page and the parser agree whether it is a sentence', () => {
  const disagree = verdicts.filter(
    ({ mutant, invalid: why }) =>
      (why === 'syntax') !==
      parsePolicy(mutant.text, { file: 'policy.route' }).diagnostics.some(({ severity }) => severity === 'error'),
  );
  expect(disagree.map(shown)).toEqual([]);
});

test('an invalid mutant gives an error', () => {
  const silent = invalid.filter(({ findings }) => !findings.some(({ severity }) => severity === 'error'));
  expect(silent.map(shown)).toEqual([]);
});

test('no mutant gives a text of the parser library or of a validator of schemas', () => {
  const leaks = verdicts.filter(({ findings }) =>
    findings.some(({ message, help, labels }) =>
      [message, help ?? '', ...labels.map((label) => label.message)].some((text) => LIBRARY_TEXT.test(text)),
    ),
  );
  expect(leaks.map(shown)).toEqual([]);
});

test('at least 90 % of the invalid mutants give exactly one finding, and at least 80 % one that touches the slip', () => {
  const kinds = Map.groupBy(invalid, ({ mutant, invalid: why }) => `${mutant.kind}, ${why ?? ''}`);
  const lines = [['all', invalid] as const, ...kinds].map(
    ([name, of]) =>
      `${name}: ${of.length} invalid, one finding ${percent(share(of, hasOne))}, touched ${percent(share(of, ({ touches }) => touches))}`,
  );
  process.stdout.write(`mutations, seed ${seed}: ${verdicts.length} mutants\n  ${lines.join('\n  ')}\n`);
  expect(invalid.length).toBeGreaterThan(2500);
  expect(share(invalid, hasOne)).toBeGreaterThanOrEqual(0.9);
  expect(share(invalid, ({ touches }) => touches)).toBeGreaterThanOrEqual(0.8);
  for (const of of kinds.values()) {
    if (of.length < 100) continue;
    expect(share(of, hasOne)).toBeGreaterThanOrEqual(0.85);
    expect(share(of, ({ touches }) => touches)).toBeGreaterThanOrEqual(0.8);
  }
});

test('the check of names misses what it must: a lost definition, a name of no catalogue, a name used above its place', () => {
  const unknown = (text: string): readonly string[] =>
    oracle.names.unknownNames(readWords(text) ?? [], new Set()).map((word) => word.text);
  expect(unknown('define tier "a" { model: "m" } default to tier "b"')).toEqual(['"b"']);
  expect(unknown('route when complexitty > 5 to any')).toEqual(['complexitty']);
  expect(unknown('route when mine > 5 to any let mine = 5')).toEqual(['mine']);
  expect(unknown('let mine = 5 route when mine > 5 to any')).toEqual([]);
});
