import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';

/** User messages of the conversation so far. */
export const turns: SignalDefinition = {
  doc: 'User messages of the conversation so far.',
  type: 'number',
  known: 'always',
  setup(): SignalInstance {
    return {
      evaluate: (request) => request.messages().filter(({ role }) => role === 'user').length,
    };
  },
};
