import { parseCsv } from './csv.ts';
import { timePerOutputTokenMs } from './latency.ts';
import { fitNonNegative, median } from './least-squares.ts';
import { modelSizeFromName } from './model-size.ts';
import type { DecodeModel, Engine, GpuSpec, MeasuredConfiguration, Precision, PrefillModel } from './profile.ts';
import { rooflineCoefficients } from './roofline.ts';

/** One measured point of a configuration: a closed loop of `concurrency` requests of one shape. Absent times were not measured. */
export interface MeasuredRow {
  readonly concurrency: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly ttftMs?: number;
  readonly tpotMs?: number;
}

/** All rows of one configuration, before any fit. */
export interface RowSet {
  readonly id: string;
  readonly gpu: string;
  readonly gpuCount: number;
  readonly model: string;
  readonly modelSizeB: number;
  readonly activeSizeB: number;
  readonly precision: Precision;
  readonly engine: Engine;
  readonly source: string;
  /** False where newcomers were not prefilled beside the measured decode steps, so that the rows cannot show the interference. */
  readonly interference: boolean;
  readonly rows: readonly MeasuredRow[];
}

/** The CSV texts that profiles are built from; `data/README.md` says where each comes from. */
export interface CalibrationTexts {
  readonly gpuSpecs: string;
  readonly silicon: string;
  readonly splitwise: string;
}

const siliconSource =
  'github:ai-dynamo/aiconfigurator@095f58a51c4c:aic-core/src/aiconfigurator_core/systems/silicon_sample.csv';
const splitwiseSource = 'github:Mutinifni/splitwise-sim@8f99e7dc9b40:data/perf_model.csv';

const gpuOfSystem: Readonly<Record<string, string>> = {
  h100_sxm: 'H100-80GB-SXM',
  h200_sxm: 'H200-141GB-SXM',
  b200_sxm: 'B200-SXM-180GB',
  b300_sxm: 'B300-SXM',
  gb200: 'GB200',
  gb300: 'GB300',
  'a100-80gb': 'A100-80GB-SXM',
  'h100-80gb': 'H100-80GB-SXM',
};

/** The specification table. */
export function readGpuSpecs(text: string): readonly GpuSpec[] {
  return parseCsv(text).map((record) => ({
    id: record['gpu'] ?? '',
    vendor: record['vendor'] ?? '',
    memoryGiB: Number(record['mem_gib']),
    bandwidthGBs: Number(record['hbm_gb_s']),
    ...optional('tflops16', record['bf16_dense_tflops']),
    ...optional('tflops8', record['fp8_dense_tflops']),
    ...optional('tflops4', record['fp4_dense_tflops']),
    ...optional('powerW', record['power_w']),
    source: record['source'] ?? '',
  }));
}

/**
 * Measured rows by configuration: aggregated serving at a stated concurrency (disaggregated rows mix two servers and are left out),
 * with at least 12 points of 3 shapes; of several ways to spread a mixture of experts over the same GPUs, the one with most rows.
 */
export function readRowSets(texts: CalibrationTexts): readonly RowSet[] {
  const sets = [...readSilicon(texts.silicon), ...readSplitwise(texts.splitwise)].filter((set) => {
    const timed = set.rows.filter((row) => row.tpotMs !== undefined);
    const shapes = new Set(timed.map((row) => `${row.promptTokens}/${row.outputTokens}`));
    return new Set(timed.map(rowKey)).size >= 12 && shapes.size >= 3;
  });
  const best = new Map<string, RowSet>();
  for (const set of sets) {
    const rival = best.get(set.id);
    if (rival === undefined || set.rows.length > rival.rows.length) best.set(set.id, set);
  }
  return [...best.values()].sort((x, y) => (x.id < y.id ? -1 : 1));
}

function readSilicon(text: string): RowSet[] {
  const groups = new Map<string, { set: Omit<RowSet, 'rows'>; rows: MeasuredRow[] }>();
  for (const record of parseCsv(text)) {
    const gpu = gpuOfSystem[record['system'] ?? ''];
    const model = record['model_path'] ?? '';
    const size = modelSizeFromName(model);
    const tpotMs = Number(record['silicon_tpot_ms']);
    if (
      record['mode'] !== 'agg' ||
      gpu === undefined ||
      size === undefined ||
      !(Number(record['concurrency']) > 0) ||
      !(tpotMs > 0)
    )
      continue;
    const count = (name: string): number => Math.max(1, Number(record[name] ?? 1));
    const gpuCount = count('tp_size') * count('pp_size') * count('attention_dp_size');
    const engine = (record['backend'] ?? 'unstated') as Engine;
    const precision = siliconPrecision(record['precision'] ?? '');
    const id = configurationId(gpu, gpuCount, model, precision, engine);
    const spread = ['tp_size', 'pp_size', 'attention_dp_size', 'moe_tp_size', 'moe_ep_size'].map(count).join('-');
    const key = `${id} ${size.parameters === size.activeParameters ? '' : spread}`;
    let group = groups.get(key);
    if (group === undefined) {
      const set = {
        id,
        gpu,
        gpuCount,
        model,
        ...sizesB(size),
        precision,
        engine,
        source: siliconSource,
        interference: true,
      };
      groups.set(key, (group = { set, rows: [] }));
    }
    group.rows.push({
      concurrency: Number(record['concurrency']),
      promptTokens: Number(record['isl']),
      outputTokens: Number(record['osl']),
      tpotMs,
      ...optional('ttftMs', record['silicon_ttft_ms']),
    });
  }
  return [...groups.values()].map(({ set, rows }) => ({ ...set, rows }));
}

/** The source leaves the precision of unquantised checkpoints blank: 16 bits. */
function siliconPrecision(text: string): Precision {
  return text === 'fp8' || text === 'fp4' || text === 'int4' ? text : 'bf16';
}

function readSplitwise(text: string): RowSet[] {
  const groups = new Map<string, { set: Omit<RowSet, 'rows'>; rows: MeasuredRow[] }>();
  for (const record of parseCsv(text)) {
    const gpu = gpuOfSystem[record['hardware'] ?? ''];
    const model = record['model'] ?? '';
    const size = modelSizeFromName(model);
    if (gpu === undefined || size === undefined) continue;
    const gpuCount = Number(record['tensor_parallel']);
    const id = configurationId(gpu, gpuCount, model, 'bf16', 'unstated');
    let group = groups.get(id);
    if (group === undefined) {
      const set = {
        id,
        gpu,
        gpuCount,
        model,
        ...sizesB(size),
        precision: 'bf16',
        engine: 'unstated',
        source: splitwiseSource,
        interference: false,
      } as const;
      groups.set(id, (group = { set, rows: [] }));
    }
    group.rows.push({
      concurrency: Number(record['batch_size']),
      promptTokens: Number(record['prompt_size']),
      outputTokens: Number(record['token_size']),
      ...optional('tpotMs', record['token_ms']),
      ...optional('ttftMs', record['prompt_ms']),
    });
  }
  return [...groups.values()].map(({ set, rows }) => ({
    ...set,
    rows: rows.filter((row) => ranAsOneBatch(row, rows)),
  }));
}

/** False for a batch that prefilled in less than half the time of a smaller one: it did not fit the memory and ran in parts (70B on two GPUs, batch 64). */
function ranAsOneBatch(row: MeasuredRow, all: readonly MeasuredRow[]): boolean {
  return !all.some(
    (other) =>
      other.promptTokens === row.promptTokens &&
      other.concurrency < row.concurrency &&
      (row.ttftMs ?? 0) < (other.ttftMs ?? 0) / 2,
  );
}

function configurationId(gpu: string, gpuCount: number, model: string, precision: Precision, engine: Engine): string {
  const short = (model.split('/').pop() ?? model).replace(/-(Instruct|FP8|NVFP4)/gi, '').toLowerCase();
  return `${gpu}x${gpuCount}/${short}/${precision}/${engine}`;
}

const sizesB = (size: {
  parameters: number;
  activeParameters: number;
}): { modelSizeB: number; activeSizeB: number } => ({
  modelSizeB: size.parameters / 1e9,
  activeSizeB: size.activeParameters / 1e9,
});

function optional<K extends string>(key: K, text: string | undefined): { [name in K]?: number } {
  const value = text === undefined || text === '' ? Number.NaN : Number(text);
  return (value > 0 ? { [key]: value } : {}) as { [name in K]?: number };
}

/** The decode coefficients that fit the rows' times per output token best in relative terms, none below zero. */
export function fitDecodeModel(rows: readonly MeasuredRow[], interference = true): DecodeModel {
  const timed = rows.filter((row) => row.tpotMs !== undefined);
  const [aMs = 0, bMs = 0, kMs = 0, pMs = 0] = fitNonNegative(
    timed.map((row) => {
      const { concurrency: c, promptTokens, outputTokens } = row;
      const terms = [1, c, (c * (promptTokens + outputTokens / 2)) / 1000];
      return interference ? [...terms, (c * promptTokens) / outputTokens] : terms;
    }),
    timed.map((row) => row.tpotMs ?? 0),
  );
  return { aMs, bMs, kMs, pMs };
}

/**
 * Prefill time from times to first token at a concurrency of at most 16: fixed + perToken·prompt + wait·concurrency·prompt, of which
 * the first two are kept; the third is the wait for other newcomers. Undefined unless rows at a concurrency of at most 4 cover two
 * prompt lengths (from busier rows alone the wait cannot be told from the prefill) and the time grows with the prompt.
 */
export function fitPrefillModel(rows: readonly MeasuredRow[]): PrefillModel | undefined {
  const timed = rows.filter((row) => row.ttftMs !== undefined && row.concurrency <= 16);
  const calm = new Set(timed.filter((row) => row.concurrency <= 4).map((row) => row.promptTokens));
  if (timed.length < 4 || calm.size < 2) return undefined;
  const [fixedMs = 0, perTokenMs = 0] = fitNonNegative(
    timed.map((row) => [1, row.promptTokens, row.concurrency * row.promptTokens]),
    timed.map((row) => row.ttftMs ?? 0),
  );
  return perTokenMs > 0 ? { fixedMs, perTokenMs } : undefined;
}

/** True for about one point in five, by a hash of its shape and concurrency: repeats of a point fall on the same side. */
export function isHeldOut(row: MeasuredRow): boolean {
  let hash = 0x811c9dc5;
  for (const ch of rowKey(row)) hash = Math.imul(hash ^ ch.charCodeAt(0), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((hash ^ (hash >>> 13)) >>> 0) % 5 === 0;
}

const rowKey = (row: MeasuredRow): string => `${row.promptTokens}/${row.outputTokens}/${row.concurrency}`;

/** Absolute errors in percent of predicted times per output token, one for each timed row, in order. */
export function tpotErrorsPct(decode: DecodeModel, rows: readonly MeasuredRow[]): readonly number[] {
  const model = { decode, prefill: { fixedMs: 0, perTokenMs: 0 } };
  return rows.flatMap((row) =>
    row.tpotMs === undefined ? [] : [100 * Math.abs(timePerOutputTokenMs(model, row) / row.tpotMs - 1)],
  );
}

/** Prefill time where each row timed one batch of `concurrency` prompts prefilled together: fixed + perToken·concurrency·prompt. */
function fitBatchedPrefillModel(rows: readonly MeasuredRow[]): PrefillModel | undefined {
  const timed = rows.filter((row) => row.ttftMs !== undefined);
  const [fixedMs = 0, perTokenMs = 0] = fitNonNegative(
    timed.map((row) => [1, row.concurrency * row.promptTokens]),
    timed.map((row) => row.ttftMs ?? 0),
  );
  return perTokenMs > 0 ? { fixedMs, perTokenMs } : undefined;
}

/** Errors on the held-out rows of a fit to the others. */
export function heldOutErrorsPct(set: RowSet): readonly number[] {
  const decode = fitDecodeModel(
    set.rows.filter((row) => !isHeldOut(row)),
    set.interference,
  );
  return tpotErrorsPct(decode, set.rows.filter(isHeldOut));
}

/**
 * The shipped profile of a configuration: fitted to all of its rows; the error stated beside it is that of a fit without the held-out
 * rows. Without calm rows the prefill rate is the interference term, but no faster than the roofline at the usual fraction of peak:
 * interference alone understates prefill, since part of it hides behind the step.
 */
export function calibrate(set: RowSet, gpu: GpuSpec): MeasuredConfiguration {
  const decode = fitDecodeModel(set.rows, set.interference);
  const prefill = prefillOf(set, gpu, decode);
  const errors = heldOutErrorsPct(set);
  const { id, gpuCount, model, modelSizeB, activeSizeB, precision, engine, source } = set;
  return {
    id,
    gpu: set.gpu,
    gpuCount,
    model,
    modelSizeB,
    activeSizeB,
    precision,
    engine,
    prefill: { fixedMs: round(prefill.fixedMs), perTokenMs: round(prefill.perTokenMs) },
    prefillFrom: prefill.from,
    decode: {
      aMs: round(decode.aMs),
      bMs: round(decode.bMs),
      kMs: round(decode.kMs),
      // Where interference was not measured, a newcomer's token is taken to cost what it costs alone.
      pMs: round(set.interference ? decode.pMs : prefill.perTokenMs),
    },
    fit: {
      rows: set.rows.length,
      heldOutRows: errors.length,
      ...(errors.length > 0 ? { heldOutMedianErrorPct: round(median(errors)) } : {}),
    },
    source,
  };
}

function prefillOf(
  set: RowSet,
  gpu: GpuSpec,
  decode: DecodeModel,
): PrefillModel & { readonly from: MeasuredConfiguration['prefillFrom'] } {
  const fitted = set.interference ? fitPrefillModel(set.rows) : fitBatchedPrefillModel(set.rows);
  if (fitted !== undefined) return { ...fitted, from: 'ttft' };
  const roofline = rooflineCoefficients({
    gpu,
    gpuCount: set.gpuCount,
    parameters: set.modelSizeB * 1e9,
    activeParameters: set.activeSizeB * 1e9,
    precision: set.precision,
  }).prefill;
  return decode.pMs > roofline.perTokenMs
    ? { fixedMs: roofline.fixedMs, perTokenMs: decode.pMs, from: 'interference' }
    : { ...roofline, from: 'roofline' };
}

const round = (value: number): number => Number(value.toPrecision(5));

/** The text of `profiles.generated.ts`. */
export function renderGenerated(texts: CalibrationTexts): string {
  const list = (values: readonly unknown[]): string =>
    `[\n${values.map((value) => `  ${JSON.stringify(value)},`).join('\n')}\n]`;
  const gpus = readGpuSpecs(texts.gpuSpecs);
  const configurations = readRowSets(texts).flatMap((set) => {
    const gpu = gpus.find(({ id }) => id === set.gpu);
    return gpu === undefined ? [] : [calibrate(set, gpu)];
  });
  return `// Generated by scripts/build-profiles.ts from data/; a test fails when it differs. Do not edit.
import type { GpuSpec, MeasuredConfiguration } from './profile.ts';

/** Specification sheets of accelerators, each with its source. */
export const gpuSpecs: readonly GpuSpec[] = ${list(gpus)};

/** Configurations with enough measurements for a fit, each with its source and held-out error. */
export const measuredConfigurations: readonly MeasuredConfiguration[] = ${list(configurations)};
`;
}
