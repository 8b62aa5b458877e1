import type { ValueType } from '@signalbox/plugin-api';

/** A named argument of a modifier: `on: [error]`. */
interface ModifierArgument {
  readonly words?: readonly string[];
  readonly type?: ValueType;
  readonly doc: string;
}

/** Named arguments by modifier. */
export const modifierArguments: { readonly [modifier: string]: { readonly [argument: string]: ModifierArgument } } = {
  affinity: {
    bound: {
      type: 'number',
      doc: 'The most load, as a multiple of the mean, that an endpoint bears before the next one is taken; 1.25 unless written.',
    },
    unit: { words: ['requests', 'tokens'], doc: 'What load is counted in.' },
    method: { words: ['bounded_rendezvous', 'modulo_md5'], doc: 'How keys are spread.' },
  },
  retry: {
    on: {
      words: ['saturated', 'connect', 'error', 'timeout', 'first_token', 'rate_limited'],
      doc: 'The causes for which it is tried again.',
    },
  },
  fallback: {
    on: {
      words: ['saturated', 'connect', 'error', 'timeout', 'first_token', 'rate_limited', 'context_exceeded'],
      doc: 'The causes for which the target is taken.',
    },
  },
  hedge: {
    after: { type: 'duration', doc: 'How long the first attempt may be without a token.' },
    share: { type: 'percent', doc: 'The most share of requests that get a second attempt.' },
  },
};
