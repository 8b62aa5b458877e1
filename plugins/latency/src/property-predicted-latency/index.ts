// perf: fill() runs for every candidate of every request whose policy reads predicted_latency.
import type { PropertyDefinition, PropertyInstance, SetupContext } from '@signalbox/plugin-api';
import { PREDICTION_READS } from '../latency-view.ts';
import { createPredictor, predictionOptions } from '../predictor.ts';
import type { PredictorOptions } from '../predictor.ts';

/** Predicted seconds to the last token: the wait, the prefill and the decoding of the expected output. Learned while running. */
export const predictedLatency: PropertyDefinition = {
  doc: 'Predicted seconds to the last token: the wait, the prefill and the decoding of the expected output.',
  type: 'duration',
  options: predictionOptions,
  reads: PREDICTION_READS,
  setup(context: SetupContext<PredictorOptions>): PropertyInstance {
    const predictor = createPredictor(context);
    return {
      fill(request, candidates, out) {
        predictor.start(request, candidates);
        for (let i = 0; i < candidates.length; i++) out[i] = predictor.at(candidates.slots[i]!).latency;
      },
      ended: predictor.ended,
      forget: predictor.forget,
    };
  },
};
