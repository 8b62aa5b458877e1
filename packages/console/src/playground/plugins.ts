import admission from '@signalbox/plugin-admission';
import type { Plugin } from '@signalbox/plugin-api';
import latency from '@signalbox/plugin-latency';
import pickers from '@signalbox/plugin-pickers';
import signals from '@signalbox/plugin-signals';
import strategies from '@signalbox/plugin-strategies';
import tokenAware from '@signalbox/plugin-token-aware';

/** The plugins that every gateway has; no other code runs in the playground. */
export const PLAYGROUND_PLUGINS: readonly Plugin[] = Object.freeze([
  strategies,
  tokenAware,
  latency,
  pickers,
  admission,
  signals,
]);
