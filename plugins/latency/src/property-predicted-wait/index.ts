// perf: fill() runs for every candidate of every request whose policy reads predicted_wait.
import type { PropertyDefinition, PropertyInstance, SetupContext } from '@signalbox/plugin-api';
import { PREDICTION_READS } from '../latency-view.ts';
import { createPredictor, predictionOptions } from '../predictor.ts';
import type { PredictorOptions } from '../predictor.ts';

/** Predicted seconds until the endpoint turns to this request: prompts ahead of it, and a full batch. Learned while running. */
export const predictedWait: PropertyDefinition = {
  doc: 'Predicted seconds until the endpoint turns to this request: prompts ahead of it, and a full batch.',
  type: 'duration',
  options: predictionOptions,
  reads: PREDICTION_READS,
  setup(context: SetupContext<PredictorOptions>): PropertyInstance {
    const predictor = createPredictor(context);
    return {
      fill(request, candidates, out) {
        predictor.start(request, candidates);
        for (let i = 0; i < candidates.length; i++) out[i] = predictor.at(candidates.slots[i]!).wait;
      },
      ended: predictor.ended,
      forget: predictor.forget,
    };
  },
};
