import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';
import { countWords } from '../counts.ts';

/** Words in the last user message. */
export const words: SignalDefinition = {
  doc: 'Words in the last user message: runs of anything but white space.',
  type: 'number',
  known: 'always',
  setup(): SignalInstance {
    return {
      evaluate: (request) => countWords(request.lastUserMessage() ?? ''),
    };
  },
};
