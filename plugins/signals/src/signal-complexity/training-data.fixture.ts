import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** One labelled prompt. */
export interface LabelledPrompt {
  readonly prompt: string;
  /** Whether it needs the strong model. */
  readonly hard: boolean;
}

const folder = new URL('../../data/', import.meta.url);

/** The rows of RouteLLM's evaluation, split by SHA-256 of the prompt: an even first byte is for training, an odd one is held out. */
export function readRouteLlm(): {
  readonly training: readonly LabelledPrompt[];
  readonly heldOut: readonly LabelledPrompt[];
} {
  const training: LabelledPrompt[] = [];
  const heldOut: LabelledPrompt[] = [];
  const text = gunzipSync(readFileSync(new URL('routellm_weak_strong.csv.gz', folder))).toString('utf8');
  for (const [, prompt = '', weak, strong] of parseCsv(text).slice(1)) {
    const firstByte = createHash('sha256').update(prompt).digest().readUInt8(0);
    (firstByte % 2 === 0 ? training : heldOut).push({ prompt, hard: strong === '1' && weak === '0' });
  }
  return { training, heldOut };
}

/** The hand-written prompts. All are for training. */
export function readSeedPrompts(): readonly LabelledPrompt[] {
  const text = readFileSync(new URL('seed-prompts.csv', folder), 'utf8');
  return text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => ({ hard: line.startsWith('1'), prompt: line.slice(2) }));
}

/** Comma-separated values with quotes doubled inside quotes (RFC 4180), as rows of fields. */
function parseCsv(text: string): readonly (readonly string[])[] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)) {
    if (end === '' && quoted === undefined && plain === '' && row.length === 0) break;
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    rows.push(row);
    row = [];
  }
  return rows;
}

/** The area under the ROC curve by ranks, ties counting half. Throws on a score that is not a number. */
export function areaUnderCurve(scores: readonly number[], labels: readonly boolean[]): number {
  if (scores.some(Number.isNaN)) throw new RangeError('a score is not a number');
  const order = scores.map((_, i) => i).sort((a, b) => at(scores, a) - at(scores, b));
  let rankSum = 0;
  let positives = 0;
  for (let from = 0; from < order.length;) {
    let to = from;
    while (to < order.length && at(scores, at(order, to)) === at(scores, at(order, from))) to++;
    for (let i = from; i < to; i++) {
      if (labels[at(order, i)] !== true) continue;
      rankSum += (from + to + 1) / 2;
      positives++;
    }
    from = to;
  }
  return (rankSum - (positives * (positives + 1)) / 2) / (positives * (scores.length - positives));
}

function at(list: readonly number[], index: number): number {
  const value = list[index];
  if (value === undefined) throw new RangeError(`no entry ${index}`);
  return value;
}
