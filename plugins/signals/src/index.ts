import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { code } from './signal-code/index.ts';
import { complexity } from './signal-complexity/index.ts';
import { complexityTextbook } from './signal-complexity-textbook/index.ts';
import { questions } from './signal-questions/index.ts';
import { textLanguage } from './signal-text-language/index.ts';
import { turns } from './signal-turns/index.ts';
import { words } from './signal-words/index.ts';

/** Facts about a request that are read from its text. */
const plugin: Plugin = definePlugin({
  name: 'signals',
  apiVersion: 1,
  doc: 'Facts about a request that are read from its text.',
  provides: {
    signal: {
      code,
      complexity,
      'complexity.textbook': complexityTextbook,
      questions,
      text_language: textLanguage,
      turns,
      words,
    },
  },
});

export default plugin;
