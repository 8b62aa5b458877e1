import { findGpu } from './gpu-names.ts';
import { kvBytesPerToken, modelSizeFromName, parseModelSize } from './model-size.ts';
import type { ModelSize } from './model-size.ts';
import type { Engine, GpuSpec, MeasuredConfiguration, Precision, Profile } from './profile.ts';
import { gpuSpecs, measuredConfigurations } from './profiles.generated.ts';
import { bytesPerParameter, configurationDistance, rooflineCoefficients, scaleCoefficients } from './roofline.ts';
import type { LatencyCoefficients, RooflineTarget } from './roofline.ts';

/** What to look up. Only the GPU and one of size and name are needed. */
export interface ProfileQuery {
  /** Any usual name of the accelerator, see `findGpu`. */
  readonly gpu: string;
  /** GPUs that hold one copy of the model; default 1. */
  readonly gpuCount?: number;
  /** All parameters, as a number (`70e9`) or written (`"70B"`); default: read from `modelName`. */
  readonly modelSize?: number | string;
  /** The model's name; tells size and sparsity where it can. */
  readonly modelName?: string;
  /** Any usual name of the weights' format (`fp16`, `nvfp4`, `awq` …); default bf16. */
  readonly precision?: string;
  /** Prefer measurements of this engine; default vllm. */
  readonly engine?: Engine;
}

// The four settings below were chosen together, for the least sum of three leave-out errors that `calibrate.test.ts` prints
// (same hardware unseen, model unseen, GPU unseen); those figures are optimistic by what little such a choice can gain.

/** Neighbours further away than this are not used. */
const farthestNeighbour = 2.5;

/** How many neighbours are averaged. */
const neighbours = 3;

/** What another engine than the wanted one adds to the distance, and what an unstated one adds. */
const otherEngineDistance = 0.5;
const unstatedEngineDistance = 0.6;

/** The distance at which the specification sheet takes part in the average, as one more neighbour. */
const specificationDistance = 0.7;

const precisionNames: Readonly<Record<string, Precision>> = Object.freeze({
  bf16: 'bf16',
  bfloat16: 'bf16',
  fp16: 'bf16',
  float16: 'bf16',
  half: 'bf16',
  fp8: 'fp8',
  int8: 'int8',
  w8a8: 'int8',
  fp4: 'fp4',
  nvfp4: 'fp4',
  mxfp4: 'fp4',
  int4: 'int4',
  w4a16: 'int4',
  awq: 'int4',
  gptq: 'int4',
});

/** A format's name in any usual spelling as a `Precision`; undefined if unknown. */
export function parsePrecision(name: string): Precision | undefined {
  return precisionNames[name.toLowerCase().replace(/[^a-z0-9]/g, '')];
}

/**
 * The profile of a model server. First choice: this very configuration as measured (same GPU, count, precision, parameters within 6 %,
 * same sparsity). Else the closest measured configurations, each scaled term by term by the ratio of ideal times, averaged with the
 * specification sheet by closeness. Else the specification sheet alone. The last two are marked `estimated`.
 *
 * Undefined for an unknown GPU or precision, a count that is not a positive whole number, or a model whose size cannot be told.
 */
export function findProfile(query: ProfileQuery): Profile | undefined {
  const gpu = findGpu(query.gpu);
  const gpuCount = query.gpuCount ?? 1;
  const precision = parsePrecision(query.precision ?? 'bf16');
  const size = sizeOf(query);
  if (gpu === undefined || precision === undefined || size === undefined || !Number.isInteger(gpuCount) || gpuCount < 1)
    return undefined;
  const target: RooflineTarget = { gpu, gpuCount, precision, ...size };
  const engine = query.engine ?? 'vllm';
  const exact = measuredConfigurations
    .filter((configuration) => isSame(configuration, target))
    .sort((x, y) => rank(x, query.modelName, engine) - rank(y, query.modelName, engine))[0];
  return exact === undefined ? estimatedProfile(target, engine) : measuredProfile(exact, target);
}

function sizeOf(query: ProfileQuery): ModelSize | undefined {
  const named = query.modelName === undefined ? undefined : modelSizeFromName(query.modelName);
  if (query.modelSize === undefined) return named;
  const parameters = parseModelSize(query.modelSize);
  if (parameters === undefined) return undefined;
  if (named !== undefined && within(named.parameters, parameters, 0.06)) return { ...named, parameters };
  // A mixture of experts given by its size alone is recognised if one of that size, and no dense model, was measured.
  const similar = measuredConfigurations.filter((configuration) =>
    within(configuration.modelSizeB * 1e9, parameters, 0.06),
  );
  const dense =
    similar.length === 0 || similar.some((configuration) => configuration.activeSizeB === configuration.modelSizeB);
  return { parameters, activeParameters: dense ? parameters : (similar[0]?.activeSizeB ?? parameters / 1e9) * 1e9 };
}

const within = (x: number, y: number, share: number): boolean => Math.abs(x - y) <= share * y;

function isSame(configuration: MeasuredConfiguration, target: RooflineTarget): boolean {
  return (
    configuration.gpu === target.gpu.id &&
    configuration.gpuCount === target.gpuCount &&
    configuration.precision === target.precision &&
    within(configuration.modelSizeB * 1e9, target.parameters, 0.06) &&
    within(configuration.activeSizeB * 1e9, target.activeParameters, 0.06)
  );
}

const engineOrder: readonly Engine[] = ['vllm', 'sglang', 'trtllm', 'unstated'];

/** Lower is preferred: the named model, then the wanted engine, then a fixed order of engines. */
function rank(configuration: MeasuredConfiguration, modelName: string | undefined, engine: Engine): number {
  const short = (name: string): string => (name.split('/').pop() ?? name).toLowerCase();
  const named = modelName !== undefined && short(modelName) === short(configuration.model);
  return (named ? 0 : 100) + (configuration.engine === engine ? 0 : 10) + engineOrder.indexOf(configuration.engine);
}

function measuredProfile(configuration: MeasuredConfiguration, target: RooflineTarget): Profile {
  const prefillNote = configuration.prefillFrom === 'roofline' ? '; prefill rate from the specification sheet' : '';
  return {
    id: configuration.id,
    engine: configuration.engine,
    provenance: 'measured',
    basis: `fitted to ${configuration.fit.rows} measurements of ${configuration.model}${prefillNote}`,
    sources: [configuration.source],
    fit: configuration.fit,
    ...commonPart(target, configuration),
  };
}

function estimatedProfile(target: RooflineTarget, engine: Engine): Profile {
  const { gpu, gpuCount, precision } = target;
  const { coefficients, used } = estimateCoefficients(measuredConfigurations, target, engine);
  return {
    id: `${gpu.id}x${gpuCount}/${Number((target.parameters / 1e9).toPrecision(4))}b/${precision}/estimated`,
    engine,
    provenance: 'estimated',
    basis:
      used.length > 0
        ? `scaled from ${used.map((configuration) => configuration.id).join(', ')}`
        : 'roofline of the specification sheet at usual fractions of peak',
    sources: [gpu.source, ...new Set(used.map((configuration) => configuration.source))],
    ...commonPart(target, coefficients),
  };
}

function commonPart(
  target: RooflineTarget,
  { prefill, decode }: LatencyCoefficients,
): Omit<Profile, 'id' | 'engine' | 'provenance' | 'basis' | 'sources' | 'fit'> {
  const { gpu, gpuCount, parameters, activeParameters, precision } = target;
  const memoryGiB = gpu.memoryGiB * gpuCount;
  const weightsGiB = (parameters * bytesPerParameter[precision]) / 2 ** 30;
  const cacheGiB = Math.max(0, memoryGiB * 0.9 - weightsGiB - 2 * gpuCount);
  const kvTokensCapacity = Math.floor((cacheGiB * 2 ** 30) / kvBytesPerToken(activeParameters));
  return {
    gpu: gpu.id,
    gpuCount,
    modelSizeB: parameters / 1e9,
    activeSizeB: activeParameters / 1e9,
    precision,
    prefillTokensPerSecond: 1000 / prefill.perTokenMs,
    prefill,
    decode,
    memoryGiB,
    weightsGiB,
    fitsMemory: cacheGiB > 0,
    kvTokensCapacity,
    maxBatch: Math.max(1, Math.min(256, Math.floor(kvTokensCapacity / 2048))),
    ...(gpu.powerW === undefined ? {} : { powerW: gpu.powerW * gpuCount }),
  };
}

/**
 * Coefficients for a configuration that was not measured, out of those given: the three closest, scaled, and the roofline of the
 * specification sheet, averaged with weights e^−distance. The roofline alone when no configuration is close. `used` lists the
 * neighbours, closest first.
 */
export function estimateCoefficients(
  configurations: readonly MeasuredConfiguration[],
  target: RooflineTarget,
  engine: Engine,
): { readonly coefficients: LatencyCoefficients; readonly used: readonly MeasuredConfiguration[] } {
  const near = configurations
    .flatMap((configuration) => {
      const from = toTarget(configuration);
      if (from === undefined) return [];
      return [
        {
          configuration,
          from,
          distance: configurationDistance(from, target) + engineDistance(configuration.engine, engine),
        },
      ];
    })
    .filter(({ distance }) => distance <= farthestNeighbour)
    .sort((x, y) => x.distance - y.distance || (x.configuration.id < y.configuration.id ? -1 : 1))
    .slice(0, neighbours);
  const parts = near.map(({ configuration, from, distance }) => ({
    weight: Math.exp(-distance),
    coefficients: scaleCoefficients(configuration, from, target),
  }));
  parts.push({ weight: Math.exp(-specificationDistance), coefficients: rooflineCoefficients(target) });
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  const mean = (of: (coefficients: LatencyCoefficients) => number): number =>
    parts.reduce((sum, { weight, coefficients }) => sum + (of(coefficients) * weight) / total, 0);
  return {
    coefficients: {
      prefill: { fixedMs: mean((c) => c.prefill.fixedMs), perTokenMs: mean((c) => c.prefill.perTokenMs) },
      decode: {
        aMs: mean((c) => c.decode.aMs),
        bMs: mean((c) => c.decode.bMs),
        kMs: mean((c) => c.decode.kMs),
        pMs: mean((c) => c.decode.pMs),
      },
    },
    used: near.map(({ configuration }) => configuration),
  };
}

function engineDistance(measured: Engine, wanted: Engine): number {
  if (measured === wanted) return 0;
  return measured === 'unstated' ? unstatedEngineDistance : otherEngineDistance;
}

/** A measured configuration as a roofline target; undefined if its GPU has no specification. */
export function toTarget(
  configuration: Pick<MeasuredConfiguration, 'gpu' | 'gpuCount' | 'modelSizeB' | 'activeSizeB' | 'precision'>,
): RooflineTarget | undefined {
  const gpu: GpuSpec | undefined = gpuSpecs.find((spec) => spec.id === configuration.gpu);
  return gpu === undefined
    ? undefined
    : {
        gpu,
        gpuCount: configuration.gpuCount,
        parameters: configuration.modelSizeB * 1e9,
        activeParameters: configuration.activeSizeB * 1e9,
        precision: configuration.precision,
      };
}
