import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';
import { createComplexityReader } from './complexity-of.ts';

/**
 * How hard the last user message is, 0 to 100, by a logistic model over twenty features of its text. 35 is the median of exam questions,
 * 60 what nine in ten of them do not reach. Weights: scripts/train-complexity.ts.
 */
export const complexity: SignalDefinition = {
  doc: 'How hard the last user message is, 0 to 100, by a small logistic model over its text. Above 50: better sent to a large model.',
  type: 'number',
  known: 'always',
  setup(): SignalInstance {
    const complexityOf = createComplexityReader();
    return {
      evaluate: (request) => complexityOf(request.lastUserMessage() ?? ''),
    };
  },
};
