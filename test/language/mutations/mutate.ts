import type { Word } from '../grammar/words.ts';

export type MutationKind = 'delete' | 'swap' | 'misspell';

/** One slip of the hand in a valid text. */
export interface Mutant {
  readonly kind: MutationKind;
  /** What was done, in words. */
  readonly slip: string;
  readonly text: string;
  /** Where in the mutant a finding would touch the slip: the token changed, both swapped, or the neighbours of what is gone. */
  readonly start: number;
  readonly end: number;
}

/** Gives numbers from 0 up to and without `below`. */
export type Random = (below: number) => number;

/** A linear congruential generator (Numerical Recipes); the same seed gives the same numbers. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const splice = (text: string, start: number, end: number, by: string): string =>
  text.slice(0, start) + by + text.slice(end);

export function deleteToken(text: string, words: readonly Word[], index: number): Mutant | undefined {
  const word = words[index];
  if (word === undefined) return undefined;
  const removed = word.end - word.start;
  return {
    kind: 'delete',
    slip: `delete ${word.text}`,
    text: splice(text, word.start, word.end, ''),
    start: words[index - 1]?.start ?? 0,
    end: (words[index + 1]?.end ?? word.end) - removed,
  };
}

export function swapTokens(text: string, words: readonly Word[], index: number): Mutant | undefined {
  const [first, second] = words.slice(index, index + 2);
  if (first === undefined || second === undefined || first.text === second.text) return undefined;
  const between = text.slice(first.end, second.start);
  return {
    kind: 'swap',
    slip: `swap ${first.text} and ${second.text}`,
    text: splice(text, first.start, second.end, second.text + between + first.text),
    start: first.start,
    end: second.end,
  };
}

/** A letter left out, doubled, exchanged with the next, or hit beside. */
export function misspellToken(text: string, word: Word | undefined, random: Random): Mutant | undefined {
  if (word === undefined) return undefined;
  const letters = [...word.text.matchAll(/[A-Za-z]/g)].map(({ index }) => index);
  const at = letters[random(letters.length)];
  if (at === undefined || (letters.length < 3 && word.kind !== 'QUANTITY')) return undefined;
  const [letter = '', next = ''] = word.text.slice(at, at + 2);
  const beside = String.fromCharCode(letter === 'z' ? 97 : letter === 'Z' ? 65 : letter.charCodeAt(0) + 1);
  const forms = [
    splice(word.text, at, at + 1, ''),
    splice(word.text, at, at + 1, letter + letter),
    splice(word.text, at, at + 1, beside),
    /[A-Za-z]/.test(next) ? splice(word.text, at, at + 2, next + letter) : '',
  ].filter((form) => form !== '' && form !== word.text);
  const form = forms[random(forms.length)];
  if (form === undefined) return undefined;
  return {
    kind: 'misspell',
    slip: `misspell ${word.text} as ${form}`,
    text: splice(text, word.start, word.end, form),
    start: word.start,
    end: word.start + form.length,
  };
}
