/** The policies that a soak goes between. Each edit has a text, and so an identity, of its own. */
import { renameSync, writeFileSync } from 'node:fs';
import { MODEL } from './support/seeded-answer.ts';

export const TIERS = ['north', 'south'] as const;

export interface Edit {
  readonly text: string;
  /** Where every request goes; undefined of a text that must be refused. */
  readonly tier: (typeof TIERS)[number] | undefined;
}

const BROKEN: readonly ((text: string) => string)[] = [
  (text) => text.replace('to tier "south"', 'to tier "nowhere"'),
  (text) => text.slice(0, text.lastIndexOf('define')) + 'define tier "south" {',
  (text) => `${text}\nroute when when to\n`,
];

/** The edit with this number: south and north by turns, by rules of different kinds; each sixth is broken. */
export function editAt(number: number, urls: readonly string[]): Edit {
  const tier = number % 2 === 0 ? 'north' : 'south';
  const text = policyText(tier, number, urls);
  if (number % 6 !== 5) return { text, tier };
  const breakIt = BROKEN[Math.floor(number / 6) % BROKEN.length] ?? ((whole: string) => whole);
  return { text: breakIt(policyText('south', number, urls)), tier: undefined };
}

function policyText(tier: (typeof TIERS)[number], number: number, urls: readonly string[]): string {
  const tiers = TIERS.map(
    (name, index) =>
      `define tier "${name}" { model: "${MODEL}", max_requests: 10k, endpoints: [${urls
        .filter((_, at) => at % TIERS.length === index)
        .map((url) => `"${url}"`)
        .join(', ')}] }`,
  ).join('\n');
  // The number is in the text, so that no two versions are the same.
  const modifiers = `with timeout ${1000 + number}s, retry 1 (on: [connect])`;
  const rules =
    tier === 'north'
      ? `default to tier "north" by least_requests ${modifiers}`
      : `route "short" when prompt_tokens < 32k to tier "south" by least_tokens ${modifiers}\ndefault to tier "north" by least_requests`;
  return `${tiers}\n${rules}\n`;
}

/** Replaces a file in one step, as editors and deployments do. */
export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
