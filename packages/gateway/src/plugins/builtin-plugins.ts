import admission from '@signalbox/plugin-admission';
import type { Plugin } from '@signalbox/plugin-api';
import latency from '@signalbox/plugin-latency';
import pickers from '@signalbox/plugin-pickers';
import signals from '@signalbox/plugin-signals';
import strategies from '@signalbox/plugin-strategies';
import tokenAware from '@signalbox/plugin-token-aware';

/** The first-party plugins, whose names are in scope in every policy without a prefix. They come by the same door as everybody's. */
export const BUILTIN_PLUGINS: readonly Plugin[] = Object.freeze([
  strategies,
  tokenAware,
  latency,
  pickers,
  admission,
  signals,
]);
