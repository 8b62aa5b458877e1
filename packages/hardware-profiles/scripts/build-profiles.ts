// Writes src/profiles.generated.ts from data/. Run: node --conditions=@signalbox/source packages/hardware-profiles/scripts/build-profiles.ts
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { renderGenerated } from '../src/calibrate.ts';

const read = (name: string): string => {
  const bytes = readFileSync(new URL(`../data/${name}`, import.meta.url));
  return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
};

writeFileSync(
  new URL('../src/profiles.generated.ts', import.meta.url),
  renderGenerated({
    gpuSpecs: read('gpu-specs.csv'),
    silicon: read('silicon_sample.csv.gz'),
    splitwise: read('splitwise-perf-median.csv'),
  }),
);
