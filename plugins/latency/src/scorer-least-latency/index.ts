// perf: score() runs for every candidate of every decision of a rule that names least_latency.
import type { OptionSchema, ScorerDefinition, ScorerInstance, SetupContext } from '@signalbox/plugin-api';
import { PREDICTION_READS } from '../latency-view.ts';
import { createPredictor, predictionOptions } from '../predictor.ts';

const options: OptionSchema = {
  ...predictionOptions,
  properties: {
    percentile: {
      type: 'number',
      exclusiveMinimum: 0,
      exclusiveMaximum: 1,
      default: 0.5,
      'x-unit': 'percent',
      description:
        'Share of requests that the prediction should cover: 50% ranks by the mean, 95% prefers steady endpoints.',
    },
    ...predictionOptions.properties,
  },
};

/** Predicted seconds to the last token, lowest best: wait + prefill of what is not cached + decoding, corrected by measurement. */
export const leastLatency: ScorerDefinition = {
  doc: 'Predicted time to the last token, least best: the wait, the prefill of what is not cached, and the decoding.',
  cost: true,
  options,
  positional: ['percentile'],
  reads: PREDICTION_READS,
  setup(context: SetupContext<{ readonly percentile: number; readonly window: number }>): ScorerInstance {
    const predictor = createPredictor(context);
    return {
      score(request, candidates, out) {
        predictor.start(request, candidates);
        for (let i = 0; i < candidates.length; i++) out[i] = predictor.at(candidates.slots[i]!).latency;
      },
      ended: predictor.ended,
    };
  },
};
