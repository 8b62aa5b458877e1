import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { leastTokens } from './scorer-least-tokens/index.ts';

/** Balancing by token work. */
const plugin: Plugin = definePlugin({
  name: 'token-aware',
  apiVersion: 1,
  doc: 'Balancing by token work: prompt and output tokens in flight against the tokens per second of each endpoint.',
  provides: { scorer: { least_tokens: leastTokens } },
});

export default plugin;
