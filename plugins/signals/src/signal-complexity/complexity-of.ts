// perf: one scratch vector per caller; see features.ts.
import { FEATURES, readFeatures } from './features.ts';
import { BIAS, WEIGHTS } from './weights.generated.ts';

/** A function that gives the complexity of a text, 0 to 100: 100 ÷ (1 + exp(−(bias + Σ weight · feature))). It reuses its memory. */
export function createComplexityReader(): (text: string) => number {
  const features = new Float64Array(FEATURES.length);
  return (text) => {
    readFeatures(text, features);
    let sum = BIAS;
    for (let k = 0; k < features.length; k++) sum += WEIGHTS[k]! * features[k]!;
    return 100 / (1 + Math.exp(-sum));
  };
}
