import { builtin } from './entries.ts';
import type { PickerEntry, ScorerEntry } from './entries.ts';

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
