import type { SignalDefinition, SignalInstance } from '@signalbox/plugin-api';
import { languageOf } from './language-of.ts';

/** The language of the last user message; see `languageOf` for what can be told and what stays unknown. */
export const textLanguage: SignalDefinition = {
  doc: 'Language of the last user message as a two-letter code, by script and frequent words; unknown where these do not tell.',
  type: 'string',
  known: 'maybe',
  setup(): SignalInstance {
    return {
      evaluate(request) {
        const text = request.lastUserMessage();
        return text === undefined ? undefined : languageOf(text);
      },
    };
  },
};
