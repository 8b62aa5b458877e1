/** How weights are held. `bf16` stands for every 16-bit format: its speed and size are those of `fp16`. */
export type Precision = 'bf16' | 'fp8' | 'int8' | 'fp4' | 'int4';

/** The serving software that was measured. */
export type Engine = 'vllm' | 'sglang' | 'trtllm' | 'unstated';

/**
 * Where a profile's numbers come from: `measured` = fitted to measurements of this very configuration; `estimated` = carried over
 * from other configurations or from specification sheets. There is no third kind.
 */
export type Provenance = 'measured' | 'estimated';

/** One accelerator as its specification sheet states it. Absent = no source at hand states it. All rates are dense, not sparse. */
export interface GpuSpec {
  readonly id: string;
  readonly vendor: string;
  readonly memoryGiB: number;
  /** Memory bandwidth, 10⁹ bytes/s. */
  readonly bandwidthGBs: number;
  /** Peak 16-bit rate, 10¹² operations/s (FP16 where the part has no BF16). */
  readonly tflops16?: number;
  readonly tflops8?: number;
  readonly tflops4?: number;
  readonly powerW?: number;
  readonly source: string;
}

/**
 * The four numbers of a decode step. With c sequences in the batch that hold C tokens of context between them, and n prompt tokens
 * prefilled beside it, a step takes `aMs + bMs·c + kMs·C/1000 + pMs·n` milliseconds.
 */
export interface DecodeModel {
  /** Milliseconds of every step: reading the weights, launching the kernels. */
  readonly aMs: number;
  /** Milliseconds for each sequence in the batch. */
  readonly bMs: number;
  /** Milliseconds for each 1,000 tokens of context read from the KV cache. */
  readonly kMs: number;
  /** Milliseconds for each prompt token of newcomers prefilled between decode steps. */
  readonly pMs: number;
}

/** Time to prefill n uncached prompt tokens alone: `fixedMs + perTokenMs·n` milliseconds. */
export interface PrefillModel {
  readonly fixedMs: number;
  readonly perTokenMs: number;
}

/** What a configuration's own rows say of its fit. Percentages are absolute errors of time per output token. */
export interface FitQuality {
  readonly rows: number;
  readonly heldOutRows: number;
  /** Median over the held-out rows of a fit that never saw them; absent when there are none. */
  readonly heldOutMedianErrorPct?: number;
}

/** A configuration whose latency was measured, as built from `data/` by `scripts/build-profiles.ts`. */
export interface MeasuredConfiguration {
  readonly id: string;
  readonly gpu: string;
  readonly gpuCount: number;
  readonly model: string;
  /** All parameters, 10⁹. */
  readonly modelSizeB: number;
  /** Parameters used for one token, 10⁹: equal to `modelSizeB` for dense models, less for mixtures of experts. */
  readonly activeSizeB: number;
  readonly precision: Precision;
  readonly engine: Engine;
  readonly prefill: PrefillModel;
  /**
   * What the prefill rate was read from: times to first token at low concurrency; else the interference term; else, where that term
   * is faster than the roofline allows, the roofline (then the prefill rate alone is an estimate).
   */
  readonly prefillFrom: 'ttft' | 'interference' | 'roofline';
  readonly decode: DecodeModel;
  readonly fit: FitQuality;
  readonly source: string;
}

/** What is known, or marked as guessed, of one model server: GPUs × model × precision. */
export interface Profile {
  readonly id: string;
  readonly gpu: string;
  readonly gpuCount: number;
  readonly modelSizeB: number;
  readonly activeSizeB: number;
  readonly precision: Precision;
  readonly engine: Engine;
  readonly provenance: Provenance;
  /** One sentence: how the numbers came about. */
  readonly basis: string;
  readonly sources: readonly string[];
  /** Prompt tokens per second of a long prompt alone on the server. */
  readonly prefillTokensPerSecond: number;
  readonly prefill: PrefillModel;
  readonly decode: DecodeModel;
  readonly fit?: FitQuality;
  /** Device memory of all GPUs, GiB. */
  readonly memoryGiB: number;
  /** Weights at this precision, GiB. */
  readonly weightsGiB: number;
  /** False when weights and working memory exceed the device memory: such a server cannot start. */
  readonly fitsMemory: boolean;
  /** Estimate of the tokens that the KV cache can hold (90 % of memory, less weights and 2 GiB a GPU; 16-bit cache, grouped-query attention). */
  readonly kvTokensCapacity: number;
  /** Estimate of the batch limit: vLLM's default of 256, or less where the KV cache holds fewer sequences of 2,048 tokens. */
  readonly maxBatch: number;
  /** Rated power of all GPUs, W. Absent when no source states it. */
  readonly powerW?: number;
}
