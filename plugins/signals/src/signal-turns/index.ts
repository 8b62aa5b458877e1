import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';

/** Messages of the conversation so far. */
export const turns: SignalDefinition = {
  doc: 'Messages of the conversation so far, system messages included.',
  type: 'number',
  known: 'always',
  setup(): SignalInstance {
    return {
      evaluate: (request) => request.messages().length,
    };
  },
};
