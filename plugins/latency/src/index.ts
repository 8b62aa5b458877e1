import { definePlugin } from '@signalbox/plugin-api';
import type { Plugin } from '@signalbox/plugin-api';
import { predictedLatency } from './property-predicted-latency/index.ts';
import { predictedLatencyTextbook } from './property-predicted-latency-textbook/index.ts';
import { predictedTpot } from './property-predicted-tpot/index.ts';
import { predictedTtft } from './property-predicted-ttft/index.ts';
import { predictedWait } from './property-predicted-wait/index.ts';
import { leastLatency } from './scorer-least-latency/index.ts';
import { leastLatencyTextbook } from './scorer-least-latency-textbook/index.ts';
import { peakEwma } from './scorer-peak-ewma/index.ts';

/** Predicted times per endpoint, and scorers over them. */
const plugin: Plugin = definePlugin({
  name: 'latency',
  apiVersion: 1,
  doc: 'Predicted times per endpoint from hardware profiles and the requests in flight, learned while running, and scorers over them.',
  provides: {
    property: {
      predicted_wait: predictedWait,
      predicted_ttft: predictedTtft,
      predicted_tpot: predictedTpot,
      predicted_latency: predictedLatency,
      'predicted_latency.textbook': predictedLatencyTextbook,
    },
    scorer: {
      least_latency: leastLatency,
      'least_latency.textbook': leastLatencyTextbook,
      peak_ewma: peakEwma,
    },
  },
});

export default plugin;
