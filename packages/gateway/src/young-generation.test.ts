import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { youngGenerationBound } from './young-generation.ts';

const MIB = 2 ** 20;

test('the space grows until it has its size, and again when V8 has made it smaller', () => {
  let bytes = MIB;
  const factors: number[] = [];
  const look = youngGenerationBound({ bytes: () => bytes, setGrowthFactor: (factor) => factors.push(factor) });
  for (const mib of [1, 31, 32, 40, 32, 2, 16, 32]) {
    bytes = mib * MIB;
    look();
  }
  expect(factors).toEqual([1, 2, 1]);
});

/** Fills and empties a table of objects that outlive several collections, and prints the most that the young generation had, in MiB. */
const CHURN = `
import { getHeapSpaceStatistics } from 'node:v8';
const { youngGenerationBound } = await import(process.argv[1]);
const look = youngGenerationBound();
let held = [];
let most = 0;
for (let i = 0; i < 6_000_000; i++) {
  held.push({ i });
  if (held.length > 200_000) held = [];
  if (i % 5000 !== 0) continue;
  look();
  most = Math.max(most, getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size);
}
console.log(most / 2 ** 20);
`;

test('V8 takes the factor while it runs: the young generation of this version of Node stays within 32 MiB', () => {
  const module = new URL('young-generation.ts', import.meta.url).href;
  const args = ['--no-warnings', '--experimental-strip-types', '--input-type=module', '-e', CHURN, module];
  const most = Number(
    execFileSync(process.execPath, args, { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } }),
  );
  expect(most).toBeGreaterThan(8);
  expect(most).toBeLessThanOrEqual(32);
}, 60_000);
