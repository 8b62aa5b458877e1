export { fitDecodeModel, fitPrefillModel } from './calibrate.ts';
export type { MeasuredRow } from './calibrate.ts';
export { findProfile, parsePrecision } from './find-profile.ts';
export type { ProfileQuery } from './find-profile.ts';
export { findGpu, knownGpus, suggestGpus } from './gpu-names.ts';
export {
  decodeStepMs,
  decodeTokensPerSecond,
  predictRequest,
  prefillMs,
  requestThroughput,
  timePerOutputTokenMs,
  tokensToMs,
} from './latency.ts';
export type { LatencyModel, RequestPrediction, RequestShape, SteadyLoad, Throughput } from './latency.ts';
export { kvBytesPerToken, modelSizeFromName, parseModelSize } from './model-size.ts';
export type { ModelSize } from './model-size.ts';
export type {
  DecodeModel,
  Engine,
  FitQuality,
  GpuSpec,
  MeasuredConfiguration,
  Precision,
  PrefillModel,
  Profile,
  Provenance,
} from './profile.ts';
export { gpuSpecs, measuredConfigurations } from './profiles.generated.ts';
export { predictSecondsTextbook, textbookProfiles, textbookTokensPerSecond } from './textbook.ts';
export type { TextbookProfile } from './textbook.ts';
