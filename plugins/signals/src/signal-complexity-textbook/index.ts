import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';
import { countQuestions, countWords } from '../counts.ts';

/** The textbook measure: 10 · (number of `?`) + words ÷ 10 of the last user message; below 50 counts as simple. No upper end. */
export const complexityTextbook: SignalDefinition = {
  doc: 'The textbook measure: ten for each question mark plus a tenth for each word. Below 50 counts as simple.',
  type: 'number',
  known: 'always',
  setup(): SignalInstance {
    return {
      evaluate(request) {
        const text = request.lastUserMessage() ?? '';
        return 10 * countQuestions(text) + countWords(text) / 10;
      },
    };
  },
};
