import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { arbitraryTypedPolicyText } from '../eval/arbitrary-policy-text.fixture.ts';
import { parsePolicy } from '../syntax/parse-policy.ts';
import type { PolicyToken } from '../syntax/parse-result.ts';
import { expectedAfter } from './expected.ts';
import type { Expectation } from './expected.ts';
import { examplePolicies } from './example-policies.fixture.ts';

const VALUE_SIGNS = ['-', '(', '['];

/** Whether a token is one that an expectation speaks of. */
const admits = (expectation: Expectation, { kind, text }: PolicyToken): boolean => {
  switch (expectation.kind) {
    case 'statement':
      return kind === 'keyword';
    case 'word':
      return text === expectation.word;
    case 'sign':
      return text === expectation.sign;
    case 'value':
      return (
        ['name', 'string', 'number'].includes(kind) || text === 'true' || text === 'false' || VALUE_SIGNS.includes(text)
      );
    case 'target':
      return kind === 'name' || (kind === 'number' && expectation.shares);
    case 'key':
      return kind === 'name' || kind === 'string' || kind === 'keyword';
    case 'argument-name':
      return kind === 'name' || kind === 'keyword';
    case 'string':
    case 'regex':
    case 'number':
      return kind === expectation.kind;
    default:
      return kind === 'name';
  }
};

/** The tokens of a text that the text before them does not let one expect. */
const surprises = (text: string): readonly string[] => {
  const tokens = parsePolicy(text, { file: 'a' }).tokens.filter(({ kind }) => kind !== 'comment');
  return tokens.flatMap((token, index) => {
    // What follows a dot is one name with what stands before it.
    if (tokens[index - 1]?.text === '.') return [];
    const expected = expectedAfter(text.slice(0, token.start));
    return expected.some((one) => admits(one, token))
      ? []
      : [`${text.slice(Math.max(0, token.start - 40), token.start)}⟨${token.text}⟩`];
  });
};

describe('what is expected', () => {
  test.each([...examplePolicies.keys()])('holds the token that comes, at every token of %s', (path) => {
    expect(surprises(examplePolicies.get(path) ?? '')).toEqual([]);
  });

  test('holds the token that comes in policies at random', () => {
    fc.assert(
      fc.property(arbitraryTypedPolicyText, (text) => {
        expect(surprises(text)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test('never fails on any text', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => Array.isArray(expectedAfter(text))));
  });

  const words = (text: string): readonly string[] =>
    expectedAfter(text).flatMap((one) => (one.kind === 'word' ? [one.word] : []));

  test('after a whole condition the clause goes on or the next begins', () => {
    expect(words('route "a" when complexity > 50 ')).toEqual(['and', 'or', 'to']);
  });

  test('a slip in one clause leaves the next its expectations', () => {
    expect(expectedAfter('route when foo bar to tier "a" with ')).toContainEqual({
      kind: 'modifier',
      place: 'destination',
      present: [],
    });
    expect(expectedAfter('reject when foo bar with ')).toContainEqual({
      kind: 'modifier',
      place: 'reject',
      present: [],
    });
  });

  test('a statement may begin where one is complete, in a group or not', () => {
    const after = (text: string): readonly Expectation[] =>
      expectedAfter(text).filter(({ kind }) => kind === 'statement');
    expect(after('default to any ')).toEqual([{ kind: 'statement', inGroup: false, annotated: false }]);
    expect(after('group "a" { default to any ')).toEqual([{ kind: 'statement', inGroup: true, annotated: false }]);
    expect(after('group "a" { default to any } ')).toEqual([{ kind: 'statement', inGroup: false, annotated: false }]);
    expect(after('route when ')).toEqual([]);
  });
});
