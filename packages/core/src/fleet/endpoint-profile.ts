import { decodeTokensPerSecond, findProfile } from '@signalbox/hardware-profiles';
import type { Profile } from '@signalbox/hardware-profiles';
import type { EndpointFacts } from '@signalbox/policy';

/** Rates and sizes of one endpoint, from what the operator states and else from its hardware profile. NaN where neither says. */
export interface EndpointRates {
  /** Output tokens per second: stated, else the profile's decode rate at a full batch. */
  readonly throughput: number;
  /** Prompt tokens per second of a long prompt alone. */
  readonly prefillRate: number;
  readonly prefillFixedMs: number;
  readonly prefillPerTokenMs: number;
  readonly decodeAMs: number;
  readonly decodeBMs: number;
  readonly decodeKMs: number;
  readonly decodePMs: number;
  /** Bytes of one GPU. */
  readonly gpuMemory: number;
  readonly power: number;
  /** Parameters. */
  readonly modelSize: number;
  readonly maxBatch: number;
}

/** The batch at which a profile's throughput is read where no `max_batch` is stated; larger batches gain little and wait long. */
const REFERENCE_BATCH = 64;
/** Tokens of context that each sequence of that batch is taken to hold. */
const REFERENCE_CONTEXT = 1024;

/** Looks up the profile for these facts and fills in what the operator did not state. */
export function endpointRates(facts: EndpointFacts): EndpointRates {
  const profile = profileOf(facts);
  const batch = Math.min(facts.maxBatch ?? REFERENCE_BATCH, profile?.maxBatch ?? Infinity);
  const nan = Number.NaN;
  return {
    throughput:
      facts.throughput ??
      (profile === undefined ? nan : decodeTokensPerSecond(profile, batch, batch * REFERENCE_CONTEXT)),
    prefillRate: profile?.prefillTokensPerSecond ?? nan,
    prefillFixedMs: profile?.prefill.fixedMs ?? nan,
    prefillPerTokenMs: profile?.prefill.perTokenMs ?? nan,
    decodeAMs: profile?.decode.aMs ?? nan,
    decodeBMs: profile?.decode.bMs ?? nan,
    decodeKMs: profile?.decode.kMs ?? nan,
    decodePMs: profile?.decode.pMs ?? nan,
    gpuMemory: profile === undefined ? nan : (profile.memoryGiB / profile.gpuCount) * 2 ** 30,
    power: profile?.powerW ?? nan,
    modelSize: facts.modelSize ?? (profile === undefined ? nan : profile.modelSizeB * 1e9),
    maxBatch: facts.maxBatch ?? nan,
  };
}

function profileOf(facts: EndpointFacts): Profile | undefined {
  if (facts.gpu === undefined) return undefined;
  return findProfile({
    gpu: facts.gpu,
    ...(facts.gpuCount === undefined ? {} : { gpuCount: facts.gpuCount }),
    ...(facts.modelSize === undefined ? {} : { modelSize: facts.modelSize }),
    ...(facts.model === undefined ? {} : { modelName: facts.model }),
    ...(facts.precision === undefined ? {} : { precision: facts.precision }),
  });
}
