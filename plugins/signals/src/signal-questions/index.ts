import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';
import { countQuestions } from '../counts.ts';

/** Question marks in the last user message. */
export const questions: SignalDefinition = {
  doc: 'Question marks in the last user message.',
  type: 'number',
  known: 'always',
  setup(): SignalInstance {
    return {
      evaluate: (request) => countQuestions(request.lastUserMessage() ?? ''),
    };
  },
};
