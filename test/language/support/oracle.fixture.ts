import { readFileSync } from 'node:fs';
import { ebnfOf, readEbnf } from '../grammar/ebnf.ts';
import { createNameCheck } from '../grammar/name-check.ts';
import { createRecogniser } from '../grammar/recogniser.ts';
import type { Word } from '../grammar/words.ts';
import { readWords } from '../grammar/words.ts';
import type { Oracle } from '../mutations/judge.ts';
import { validPolicies } from './policies.fixture.ts';

const page = readFileSync(new URL('../../../docs/reference/language.md', import.meta.url), 'utf8');

/** The words of a text that is right. */
export function wordsOf(text: string): readonly Word[] {
  const words = readWords(text);
  if (words === undefined) throw new Error('a valid policy has a character that fits nowhere');
  return words;
}

/** What judges mutants: made from the page of the language and from valid policies, and from nothing of the compiler. */
export const oracle: Oracle = {
  recognises: createRecogniser(readEbnf(ebnfOf(page))),
  names: createNameCheck(
    validPolicies.flatMap(({ text, files }) => [wordsOf(text), ...Object.values(files).map(wordsOf)]),
  ),
};
