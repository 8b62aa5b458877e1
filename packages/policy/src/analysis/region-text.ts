import { formatNumber } from '../check/value-types.ts';
import { nextDown, nextUp } from './doubles.ts';
import { holdsUnknown, isEmpty, knownPart, subtract } from './region.ts';
import type { Region } from './region.ts';
import type { Narrowed } from './solve.ts';
import type { Variable } from './variable.ts';

/** What a solution narrows, as a condition: `complexity in (50, 60] and stream`. `any request` where nothing is narrowed. */
export function narrowedText(narrowed: Narrowed): string {
  const parts = Array.from(narrowed, ([variable, region]) => ({ variable, text: regionText(variable, region) }))
    .filter(({ variable, text }) => !(text === `${variable.text} exists` && isAskedBy(variable, narrowed)))
    .map(({ text }) => text);
  return parts.length === 0 ? 'any request' : parts.join(' and ');
}

/** Whether the value of a part that cannot be followed, as a search, says already that what it looks into is known. */
const isAskedBy = ({ text }: Variable, narrowed: Narrowed): boolean =>
  Array.from(narrowed).some(
    ([other, region]) => other.opaque && !holdsUnknown(region) && other.text.startsWith(`${text} `),
  );

/** That a variable lies in a region, as people would write it. */
export function regionText(variable: Variable, region: Region): string {
  if (isEmpty(knownPart(region))) return `${variable.text} unknown`;
  const mayBeMissing = holdsUnknown(region);
  if (mayBeMissing && variable.type === 'bool' && region.kind === 'choice' && (region.mask & 0b10) === 0)
    return `${variable.text} not true`;
  const known = knownText(variable, knownPart(region));
  if (mayBeMissing) return known === undefined ? 'any request' : `(${known} or ${variable.text} unknown)`;
  return known ?? `${variable.text} exists`;
}

function knownText(variable: Variable, region: Region): string | undefined {
  const whole = knownPart(variable.domain);
  if (isEmpty(subtract(whole, region, variable.grid))) return undefined;
  switch (region.kind) {
    case 'number': {
      const parts: string[] = [];
      for (let i = 0; i < region.ends.length; i += 2)
        parts.push(intervalText(variable, region.ends[i] ?? 0, region.ends[i + 1] ?? 0));
      return parts.length === 1 ? parts[0] : `(${parts.join(' or ')})`;
    }
    case 'choice':
      return choiceText(variable, region.mask);
    case 'text': {
      const members = [...region.members].map((member) => JSON.stringify(member));
      const list = members.length > 6 ? [...members.slice(0, 5), `… ${members.length - 5} more`] : members;
      if (list.length === 1) return `${variable.text} ${region.others ? '!=' : '=='} ${list[0] ?? ''}`;
      return `${variable.text} ${region.others ? 'not in' : 'in'} [${list.join(', ')}]`;
    }
  }
}

function choiceText(variable: Variable, mask: number): string {
  const members = variable.choices.filter((_, index) => (mask & (1 << index)) !== 0);
  if (variable.type === 'bool') return members[0] === true ? variable.text : `not ${variable.text}`;
  const [first] = members;
  if (members.length === 1) return `${variable.text} == ${JSON.stringify(first)}`;
  return `${variable.text} in [${members.map((member) => JSON.stringify(member)).join(', ')}]`;
}

function intervalText(variable: Variable, low: number, high: number): string {
  const { text, type, grid } = variable;
  const domain = variable.domain.kind === 'number' ? variable.domain.ends : [];
  const show = (value: number): string => formatNumber(value, type);
  if (low === high) return `${text} == ${show(low)}`;
  const first = grid === 'whole' ? { value: low, open: false } : plainEnd(low, nextDown(low));
  const last = grid === 'whole' ? { value: high, open: false } : plainEnd(high, nextUp(high));
  if (high === domain.at(-1)) return `${text} ${first.open ? '>' : '>='} ${show(first.value)}`;
  if (low === domain[0]) return `${text} ${last.open ? '<' : '<='} ${show(last.value)}`;
  return `${text} in ${first.open ? '(' : '['}${show(first.value)}, ${show(last.value)}${last.open ? ')' : ']'}`;
}

/** An end as it was probably written: its neighbour, left out, where that is the plainer number. */
const plainEnd = (end: number, neighbour: number): { readonly value: number; readonly open: boolean } =>
  String(neighbour).length < String(end).length ? { value: neighbour, open: true } : { value: end, open: false };
