import { kvBytesPerToken } from './model-size.ts';
import type { DecodeModel, GpuSpec, MeasuredConfiguration, Precision, PrefillModel } from './profile.ts';

/** A configuration to estimate. Parameters are absolute numbers. */
export interface RooflineTarget {
  readonly gpu: GpuSpec;
  readonly gpuCount: number;
  readonly parameters: number;
  readonly activeParameters: number;
  readonly precision: Precision;
}

/** Latency coefficients, however they came about. */
export interface LatencyCoefficients {
  readonly prefill: PrefillModel;
  readonly decode: DecodeModel;
}

/** Bytes of one parameter. 4-bit formats carry block scales: half a byte and 1/16 of one. */
export const bytesPerParameter: Readonly<Record<Precision, number>> = Object.freeze({
  bf16: 2,
  fp8: 1,
  int8: 1,
  fp4: 0.5625,
  int4: 0.5625,
});

/**
 * Fractions of peak compute that inference-sim (BLIS) fits for prefill and decode: H100 0.45 and 0.30, A100 0.38 and 0.18, L40S 0.32
 * and 0.08. Other parts take the row of the part closest in kind: data-centre Hopper and later, older data-centre parts, or the L40S's.
 */
export function computeFractions(gpu: GpuSpec): { readonly prefill: number; readonly decode: number } {
  if (/^(H|B|GB|MI|TPU)/.test(gpu.id)) return { prefill: 0.45, decode: 0.3 };
  if (/^(A100|A30|V100)/.test(gpu.id)) return { prefill: 0.38, decode: 0.18 };
  return { prefill: 0.32, decode: 0.08 };
}

/** Milliseconds of every step that no specification sheet shows (kernel launches, sampling, collectives); a round figure below the fastest measured step. */
const stepOverheadMs = 2;

/** Milliseconds that every prefill takes beside its tokens, in the same spirit. */
const prefillOverheadMs = 10;

/** The ideal times of a configuration at full bandwidth and full peak, in milliseconds. */
interface Ideal {
  readonly weightsMs: number;
  readonly tokenComputeMs: number;
  readonly contextMs: number;
}

function ideal(target: RooflineTarget): Ideal {
  const { gpu, gpuCount, activeParameters, precision } = target;
  const bytesPerMs = gpu.bandwidthGBs * gpuCount * 1e6;
  const flopsPerMs = peakTflops(gpu, precision) * gpuCount * 1e9;
  return {
    weightsMs: (activeParameters * bytesPerParameter[precision]) / bytesPerMs,
    tokenComputeMs: (2 * activeParameters) / flopsPerMs,
    contextMs: (1000 * kvBytesPerToken(activeParameters)) / bytesPerMs,
  };
}

/** Peak of the fastest unit that can multiply at this precision: a part without FP8 or FP4 units falls back to wider ones. */
function peakTflops(gpu: GpuSpec, precision: Precision): number {
  const wide = gpu.tflops16 ?? 0;
  if (precision === 'bf16' || precision === 'int4') return wide;
  const eight = gpu.tflops8 ?? wide;
  return precision === 'fp4' ? (gpu.tflops4 ?? eight) : eight;
}

/** Coefficients from specification sheets alone: bandwidth for weights and context, compute at the fractions of `computeFractions`. */
export function rooflineCoefficients(target: RooflineTarget): LatencyCoefficients {
  const { weightsMs, tokenComputeMs, contextMs } = ideal(target);
  const fraction = computeFractions(target.gpu);
  const perTokenMs = tokenComputeMs / fraction.prefill;
  return {
    prefill: { fixedMs: prefillOverheadMs, perTokenMs },
    decode: { aMs: weightsMs + stepOverheadMs, bMs: tokenComputeMs / fraction.decode, kMs: contextMs, pMs: perTokenMs },
  };
}

/** Coefficients of a measured configuration carried over to another one, term by term, by the ratio of their ideal times. */
export function scaleCoefficients(
  measured: MeasuredConfiguration,
  from: RooflineTarget,
  to: RooflineTarget,
): LatencyCoefficients {
  const source = ideal(from);
  const target = ideal(to);
  const computeRatio = target.tokenComputeMs / source.tokenComputeMs;
  return {
    prefill: {
      fixedMs: measured.prefill.fixedMs,
      perTokenMs: measured.prefill.perTokenMs * computeRatio,
    },
    decode: {
      aMs: (measured.decode.aMs * (target.weightsMs + stepOverheadMs)) / (source.weightsMs + stepOverheadMs),
      bMs: measured.decode.bMs * computeRatio,
      kMs: (measured.decode.kMs * target.contextMs) / source.contextMs,
      pMs: measured.decode.pMs * computeRatio,
    },
  };
}

/** Unlikeness of two configurations, 0 for the same. Sizes and counts count by the logarithm of their ratio, another part by at least 0.3. */
export function configurationDistance(from: RooflineTarget, to: RooflineTarget): number {
  const log = (x: number, y: number): number => Math.abs(Math.log(x / y));
  const otherPart = from.gpu.id === to.gpu.id ? 0 : 0.3 + log(from.gpu.bandwidthGBs, to.gpu.bandwidthGBs);
  const precision = log(bytesPerParameter[from.precision], bytesPerParameter[to.precision]) / 2;
  const sparsity = log(from.parameters / from.activeParameters, to.parameters / to.activeParameters);
  return (
    log(from.activeParameters, to.activeParameters) +
    log(from.gpuCount, to.gpuCount) +
    otherPart +
    precision +
    2 * sparsity
  );
}
