import { builtin } from './entries.ts';
import type { AdmissionEntry, PickerEntry, ScorerEntry } from './entries.ts';

/** Scorers of the host itself, which hold until a plugin provides the name. `least_tokens` is what a destination without `by` means. */
export const builtInScorers: readonly ScorerEntry[] = [
  {
    kind: 'scorer',
    name: 'least_tokens',
    doc: 'Prompt tokens in flight weighed 0.1 plus decode tokens weighed 1.0, this request included, over the throughput.',
    provider: builtin,
    parameters: [],
    cost: true,
    instance: 'policy',
    reads: [],
    expression: '(0.1 * (queued_tokens + prompt_tokens) + decode_tokens + (output_tokens ?? 0)) / (throughput ?? 1/s)',
  },
];

export const builtInPickers: readonly PickerEntry[] = [
  {
    kind: 'picker',
    name: 'best',
    doc: 'The highest score, ties by the rule of the policy.',
    provider: builtin,
    parameters: [],
  },
];

const tokenWeight = (name: string, standard: number): AdmissionEntry['parameters'][number] => ({
  name,
  kind: 'value',
  type: 'number',
  optional: true,
  default: standard,
  minimum: 0,
});

/** Orders of a queue. They are the host's own: what an admission plugin provides is a predicate. */
export const builtInOrders: readonly AdmissionEntry[] = [
  {
    kind: 'admission',
    name: 'weighted_fair',
    doc: 'The key that has been served the fewest weighted tokens comes first; a key that returns starts level with the least served one that waits.',
    provider: builtin,
    parameters: [{ name: 'key', kind: 'key' }, tokenWeight('input_weight', 1), tokenWeight('output_weight', 2)],
  },
  {
    kind: 'admission',
    name: 'deadline',
    doc: 'The earliest deadline comes first, however full the queue is.',
    provider: builtin,
    parameters: [],
  },
];
