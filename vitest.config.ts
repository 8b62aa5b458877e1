import { defineConfig } from 'vitest/config';

const conditions: string[] = ['@signalbox/source'];

const config: ReturnType<typeof defineConfig> = defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'plugins/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', 'test/integration/**', 'test/packaging/**'],
    execArgv: ['--conditions=@signalbox/source'],
    pool: 'forks',
    testTimeout: 30_000,
  },
});

export default config;
