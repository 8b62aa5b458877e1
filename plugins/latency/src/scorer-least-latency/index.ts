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
    wait_weight: {
      type: 'number',
      minimum: 0,
      default: 4,
      description:
        'What a predicted second of waiting counts against one of prefill or decoding: above 1 because whoever comes later waits too.',
    },
    ...predictionOptions.properties,
  },
};

/**
 * Predicted seconds to the last token, lowest best: wait + prefill of what is not cached + decoding, corrected by measurement. The wait counts
 * `wait_weight` times: a request that ends soonest by waiting for a fast endpoint's full batch makes all that come after it wait as well.
 */
export const leastLatency: ScorerDefinition = {
  doc: 'Predicted time to the last token, least best: the wait (weighted), the prefill of what is not cached, and the decoding.',
  cost: true,
  options,
  positional: ['percentile'],
  reads: PREDICTION_READS,
  setup(context: SetupContext<LeastLatencyOptions>): ScorerInstance {
    const predictor = createPredictor(context);
    const more = context.options.wait_weight - 1;
    return {
      score(request, candidates, out) {
        predictor.start(request, candidates);
        for (let i = 0; i < candidates.length; i++) {
          const { latency, wait } = predictor.at(candidates.slots[i]!);
          out[i] = latency + more * wait;
        }
      },
      ended: predictor.ended,
      forget: predictor.forget,
    };
  },
};

interface LeastLatencyOptions {
  readonly percentile: number;
  readonly wait_weight: number;
  readonly window: number;
}
