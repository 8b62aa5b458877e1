import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  calibrate,
  fitDecodeModel,
  heldOutErrorsPct,
  isHeldOut,
  readGpuSpecs,
  readRowSets,
  renderGenerated,
  tpotErrorsPct,
} from './calibrate.ts';
import type { CalibrationTexts, RowSet } from './calibrate.ts';
import { parseCsv } from './csv.ts';
import { estimateCoefficients, findProfile, toTarget } from './find-profile.ts';
import { decodeStepMs, timePerOutputTokenMs } from './latency.ts';
import { fitNonNegative, median } from './least-squares.ts';
import type { MeasuredConfiguration } from './profile.ts';
import { measuredConfigurations } from './profiles.generated.ts';
import { rooflineCoefficients } from './roofline.ts';

const read = (name: string): string => {
  const bytes = readFileSync(new URL(`../data/${name}`, import.meta.url));
  return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
};
const texts: CalibrationTexts = {
  gpuSpecs: read('gpu-specs.csv'),
  silicon: read('silicon_sample.csv.gz'),
  splitwise: read('splitwise-perf-median.csv'),
};
const sets = readRowSets(texts);
const dense = sets.filter((set) => set.modelSizeB === set.activeSizeB);
const sparse = sets.filter((set) => set.modelSizeB !== set.activeSizeB);

const report = (line: string): void => void process.stdout.write(`${line}\n`);
const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((x, y) => x - y)[Math.min(values.length - 1, Math.floor(share * values.length))] ?? Number.NaN;
const summary = (errors: readonly number[]): string =>
  `median ${median(errors).toFixed(1)} %, p90 ${percentile(errors, 0.9).toFixed(1)} % over ${errors.length} rows`;

test('the generated module is what the script writes from the data', () => {
  expect(readFileSync(new URL('./profiles.generated.ts', import.meta.url), 'utf8')).toBe(renderGenerated(texts));
});

test('time per output token on held-out rows of dense models is predicted within 6 % in the median', () => {
  const errors = dense.flatMap(heldOutErrorsPct);
  report(`held-out rows, dense models (${dense.length} configurations): ${summary(errors)}`);
  report(
    `held-out rows, mixtures of experts (${sparse.length} configurations): ${summary(sparse.flatMap(heldOutErrorsPct))}`,
  );
  expect(errors.length).toBeGreaterThan(150);
  expect(median(errors)).toBeLessThanOrEqual(6);
});

test('the held-out rows are a fifth of all, and no repeat of a point is on both sides', () => {
  const rows = dense.flatMap((set) => set.rows);
  const share = rows.filter(isHeldOut).length / rows.length;
  expect(share).toBeGreaterThan(0.12);
  expect(share).toBeLessThan(0.3);
});

/** Errors of an estimate that sees only the configurations that `keep` lets it see. */
function estimateErrors(of: readonly RowSet[], keep: (other: MeasuredConfiguration, set: RowSet) => boolean): number[] {
  return of.flatMap((set) => {
    const target = toTarget(set);
    if (target === undefined) return [];
    const others = measuredConfigurations.filter((other) => other.id !== set.id && keep(other, set));
    const { coefficients } = estimateCoefficients(others, target, set.engine);
    return tpotErrorsPct(coefficients.decode, set.rows);
  });
}

test('whole configurations that were held out are estimated, and the error is printed', () => {
  const otherEngines = estimateErrors(dense, () => true);
  const noTwin = estimateErrors(
    dense,
    (other, set) =>
      !(
        other.gpu === set.gpu &&
        other.gpuCount === set.gpuCount &&
        other.modelSizeB === set.modelSizeB &&
        other.precision === set.precision
      ),
  );
  const noModel = estimateErrors(dense, (other, set) => other.model !== set.model);
  const noGpu = estimateErrors(dense, (other, set) => other.gpu !== set.gpu);
  const roofline = dense.flatMap((set) => {
    const target = toTarget(set);
    return target === undefined ? [] : tpotErrorsPct(rooflineCoefficients(target).decode, set.rows);
  });
  report(`held-out configuration, other engines on the same hardware seen: ${summary(otherEngines)}`);
  report(`held-out configuration, all engines on the same hardware unseen: ${summary(noTwin)}`);
  report(`held-out model: ${summary(noModel)}`);
  report(`held-out GPU: ${summary(noGpu)}`);
  report(`specification sheet alone: ${summary(roofline)}`);
  // Ceilings well above the printed figures: they catch an estimator that broke, not one that is a little worse.
  expect(median(noTwin)).toBeLessThan(30);
  expect(median(noGpu)).toBeLessThan(40);
  expect(median(roofline)).toBeLessThan(60);
});

test('published peak prefill rates agree with the profiles within a factor of two', () => {
  const rows = parseCsv(read('throughput-measured.csv.gz')).filter(
    (row) =>
      row['kind']?.startsWith('measured peakPrefillThroughput') === true &&
      row['model'] === 'Qwen3-32B' &&
      row['gpu']?.startsWith('H100') === true,
  );
  expect(rows.length).toBeGreaterThanOrEqual(3);
  for (const row of rows) {
    const profile = findProfile({
      gpu: row['gpu'] ?? '',
      gpuCount: Number(row['gpu_count']),
      modelName: row['model'] ?? '',
    });
    const ratio = (profile?.prefillTokensPerSecond ?? 0) / Number(row['prefill_tok_s']);
    report(
      `prefill, ${row['model']} on ${row['gpu_count']} × H100, ${row['engine']}: profile ÷ published = ${ratio.toFixed(2)}`,
    );
    expect(ratio).toBeGreaterThan(0.5);
    expect(ratio).toBeLessThan(2);
  }
});

test('an L4 estimated from its specification sheet decodes as a measured fleet of eight does, within a third', () => {
  const rows = parseCsv(read('throughput-measured.csv.gz')).filter(
    (row) => row['gpu'] === 'L4-24GB' && row['workload']?.includes('PrefixHash') === true,
  );
  const profile = findProfile({ gpu: 'L4', modelSize: '8B', precision: 'fp8' });
  if (profile === undefined) throw new Error('expected a profile');
  expect(rows).toHaveLength(3);
  const ratios = rows.map((row) => {
    // Mean prompt 386 tokens, mostly cached, and 39 of output: context alone counts, newcomers' prefill is left out.
    const batch = Number(row['concurrency']) / Number(row['gpu_count']);
    const ratio = decodeStepMs(profile, batch, batch * (386 + 39 / 2)) / Number(row['tpot_ms']);
    report(`L4, Llama-3.1-8B FP8, ${batch} concurrent requests a GPU: estimated ÷ measured = ${ratio.toFixed(2)}`);
    return ratio;
  });
  expect(Math.min(...ratios)).toBeGreaterThan(2 / 3);
  expect(Math.max(...ratios)).toBeLessThan(4 / 3);
});

test('rows made from known coefficients give the coefficients back', () => {
  const coefficient = fc.double({ min: 0.01, max: 20, noNaN: true });
  fc.assert(
    fc.property(coefficient, coefficient, coefficient, coefficient, (aMs, bMs, kMs, pMs) => {
      const decode = { aMs, bMs: bMs / 50, kMs: kMs / 100, pMs: pMs / 100 };
      const rows = [1, 4, 16, 64].flatMap((concurrency) =>
        [
          [128, 128],
          [1024, 256],
          [4096, 512],
          [512, 2048],
        ].map(([promptTokens = 0, outputTokens = 0]) => {
          const load = { concurrency, promptTokens, outputTokens };
          return { ...load, tpotMs: timePerOutputTokenMs({ decode, prefill: { fixedMs: 0, perTokenMs: 0 } }, load) };
        }),
      );
      const fitted = fitDecodeModel(rows);
      expect(fitted.aMs).toBeCloseTo(decode.aMs, 4);
      expect(fitted.bMs).toBeCloseTo(decode.bMs, 4);
      expect(fitted.kMs).toBeCloseTo(decode.kMs, 4);
      expect(fitted.pMs).toBeCloseTo(decode.pMs, 4);
    }),
  );
});

test('no coefficient is ever negative', () => {
  const value = fc.double({ min: 0, max: 100, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(value, value, value, fc.double({ min: 0.1, max: 100, noNaN: true })), { maxLength: 20 }),
      (rows) => {
        const fitted = fitNonNegative(
          rows.map(([x, y, z]) => [x, y, z]),
          rows.map(([, , , target]) => target),
        );
        expect(fitted.every((coefficient) => coefficient >= 0)).toBe(true);
      },
    ),
  );
});

test('every configuration with a specification becomes a profile, and the data covers the published fits', () => {
  const gpus = readGpuSpecs(texts.gpuSpecs);
  const prefills = sets.map((set) => {
    const gpu = gpus.find(({ id }) => id === set.gpu);
    return gpu === undefined ? 0 : calibrate(set, gpu).prefill.perTokenMs;
  });
  expect(Math.min(...prefills)).toBeGreaterThan(0);
  expect(measuredConfigurations).toHaveLength(sets.length);
});

test('quoted fields keep their commas, quotes and line breaks', () => {
  expect(parseCsv('a,b\r\n"x,""y""\nz",2\n3\n')).toEqual([
    { a: 'x,"y"\nz', b: '2' },
    { a: '3', b: '' },
  ]);
});
