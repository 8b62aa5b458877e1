import { defineConfig } from 'vitest/config';

const conditions: string[] = ['@signalbox/source'];
const results: string | undefined = process.env['SIGNALBOX_RESULTS'];

/** Which suite runs: `unit` is what `npm test` runs; `packaging` and `integration` install packages beyond the workspace's own. */
const suites = {
  unit: {
    include: ['packages/*/src/**/*.test.ts', 'plugins/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [
      '**/node_modules/**',
      'test/integration/**',
      'test/packaging/**',
      'test/edge/**',
      'test/conformance/**',
      'test/faults/**',
      'test/soak/soak.test.ts',
    ],
    testTimeout: 120_000,
  },
  packaging: { include: ['test/packaging/**/*.test.ts'], exclude: [], testTimeout: 600_000 },
  /** Bounded, or whole with SIGNALBOX_FAULTS=full, which takes as long as it takes. */
  faults: {
    include: ['test/faults/**/*.test.ts', 'test/soak/soak.test.ts'],
    exclude: [],
    testTimeout: process.env['SIGNALBOX_FAULTS'] === 'full' ? 3_600_000 : 120_000,
  },
  edge: { include: ['test/edge/**/*.test.ts', 'test/conformance/**/*.test.ts'], exclude: [], testTimeout: 120_000 },
  integration: { include: ['test/integration/**/*.test.ts'], exclude: [], testTimeout: 600_000 },
};
const suite = (process.env['SIGNALBOX_SUITE'] ?? 'unit') as keyof typeof suites;

const config: ReturnType<typeof defineConfig> = defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    ...suites[suite],
    execArgv: ['--conditions=@signalbox/source'],
    pool: 'forks',
    fileParallelism: suite === 'unit',
    hookTimeout: 600_000,
    setupFiles: ['test/setup.ts'],
    ...(results === undefined
      ? {}
      : { reporters: ['default', 'json'], outputFile: { json: `${results}/${suite}.json` } }),
  },
});

export default config;
