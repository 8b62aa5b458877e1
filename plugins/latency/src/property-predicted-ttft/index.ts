// perf: fill() runs for every candidate of every request whose policy reads predicted_ttft.
import type { PropertyDefinition, PropertyInstance, SetupContext } from '@signalbox/plugin-api';
import { PREDICTION_READS } from '../latency-view.ts';
import { createPredictor, predictionOptions } from '../predictor.ts';
import type { PredictorOptions } from '../predictor.ts';

/** Predicted seconds to the first token: the wait and the prefill of what the endpoint has not cached. Learned while running. */
export const predictedTtft: PropertyDefinition = {
  doc: 'Predicted seconds to the first token: the wait and the prefill of what the endpoint has not cached.',
  type: 'duration',
  options: predictionOptions,
  reads: PREDICTION_READS,
  setup(context: SetupContext<PredictorOptions>): PropertyInstance {
    const predictor = createPredictor(context);
    return {
      fill(request, candidates, out) {
        predictor.start(request, candidates);
        for (let i = 0; i < candidates.length; i++) out[i] = predictor.at(candidates.slots[i]!).ttft;
      },
      ended: predictor.ended,
      forget: predictor.forget,
    };
  },
};
