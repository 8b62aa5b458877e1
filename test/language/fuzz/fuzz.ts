/*
 * npm run fuzz -- --minutes 10 [--seed N]: tries texts on lexer, parser, formatter, compiler and both evaluators. What fails is made small and
 * kept under `found`, where a test tries it from then on.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { reportText, runFuzz } from './fuzz-run.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, seed: { type: 'string' } },
});
const minutes = Number(values.minutes);
const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed);
if (!(minutes > 0) || !Number.isInteger(seed)) {
  process.stderr.write('usage: npm run fuzz -- --minutes 10 [--seed N]\n');
  process.exit(2);
}
const end = Date.now() + minutes * 60_000;
const report = runFuzz(seed, (texts) => {
  if (texts % 1000 === 0)
    process.stderr.write(`seed ${seed + texts}, ${Math.round((end - Date.now()) / 1000)} s left\n`);
  return Date.now() < end;
});
process.stdout.write(reportText(seed, report));
const folder = new URL('found/', import.meta.url);
for (const { smallest, failure } of report.failures) {
  mkdirSync(folder, { recursive: true });
  const hash = createHash('sha256').update(smallest).digest('hex').slice(0, 12);
  writeFileSync(new URL(`${failure.kind}-${hash}.txt`, folder), smallest);
}
process.exitCode = report.failures.length === 0 ? 0 : 1;
