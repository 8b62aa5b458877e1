import { describe, expect, test } from 'vitest';
import { candidates, ContractViolation, requestView, viewContract } from './index.ts';
import type { Check, ViewFacts, Views } from './index.ts';

const shown = (facts: ViewFacts, slots: readonly number[] = [4, 0, 2]): Views => ({
  request: requestView(facts.signals, { reads: facts.reads, seed: 5 }),
  candidates: candidates(
    facts.endpoints.map((endpoint) => ({ decode_tokens: 9, tier: 't', ...endpoint })),
    { slots, reads: facts.reads },
  ),
});

for (const check of viewContract((facts, inspect) => inspect(shown(facts)))) {
  test(`the builders' ${check.name}`, () => {
    expect(() => check.run()).not.toThrow();
  });
}

describe('a host that breaks the contract fails', () => {
  const failing = (change: (views: Views, facts: ViewFacts) => Views): readonly string[] =>
    viewContract((facts, inspect) => inspect(change(shown(facts), facts)))
      .filter(({ run }: Check) => {
        try {
          run();
          return false;
        } catch (error) {
          expect(error).toBeInstanceOf(ContractViolation);
          return true;
        }
      })
      .map(({ name }) => name.slice('views: '.length));

  test('with a candidate too few', () => {
    expect(failing((views) => ({ ...views, candidates: { ...views.candidates, length: 2 } }))).toContain(
      'each candidate has a position and a slot of its own',
    );
  });

  test('with columns by position', () => {
    const byPosition = (views: Views): Views => ({
      ...views,
      candidates: { ...views.candidates, slots: Int32Array.of(0, 1, 2) },
    });
    expect(failing(byPosition)).toEqual([
      'numeric columns are indexed by slot',
      'texts are indexed by slot, and one that is not known is undefined',
    ]);
  });

  test('with properties and signals that were not declared', () => {
    const open = (_views: Views, facts: ViewFacts): Views =>
      shown({ ...facts, reads: [...facts.reads, 'candidate.decode_tokens', 'candidate.tier'] });
    expect(failing(open)).toEqual(['a property that was not declared is unknown for every candidate']);
    expect(
      failing((views) => ({ ...views, request: requestView({ prompt_tokens: 100, model: 'm', words: 3 }) })),
    ).toEqual(['signals are read by key; unknown and undeclared ones are NaN and undefined']);
  });

  test('with a seed of another kind', () => {
    expect(failing((views) => ({ ...views, request: { ...views.request, seed: 0.5 } }))).toEqual([
      'the seed is a uint32',
    ]);
  });

  test('without calling the plugin', () => {
    const checks = viewContract(() => {});
    for (const { run } of checks) expect(run).toThrow('the host never called the plugin');
  });
});
