/** `npm run soak`: load on the built gateway with a reload each few seconds. Exit code 1 if something leaked, failed or grew. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { soakChart } from './chart.ts';
import { saturatingRate } from './saturation.ts';
import { runSoak, type Sample } from './soak-run.ts';
import { judge } from './verdict.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string' },
    held: { type: 'string', default: '50' },
    reloads: { type: 'string', default: '0' },
    'reload-every': { type: 'string', default: '5' },
    'sample-every': { type: 'string', default: '10' },
  },
});

function numberOf(name: keyof typeof values): number {
  const value = Number(values[name]);
  if (!Number.isFinite(value) || value < 0)
    throw new Error(`--${name} must be a number of 0 or more, got ${values[name]}`);
  return value;
}

const SLOPE_FROM_SECONDS = 300;
const results = fileURLToPath(new URL('results/', import.meta.url));
const name = new Date().toISOString().replaceAll(/[:.]/g, '-');
const say = (text: string): void => void process.stdout.write(`${text}\n`);

function describe({ seconds, heapUsed, rss, descriptors, active, inflight, requests, reloads }: Sample): string {
  const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);
  return `${seconds.toFixed(0)} s: heap ${mib(heapUsed)} MiB, rss ${mib(rss)} MiB, ${descriptors} descriptors, ${active} active, ${inflight} in flight, ${requests} requests, ${reloads} reloads`;
}

mkdirSync(results, { recursive: true });
const seconds = numberOf('minutes') * 60;
let rate = values.rate === undefined ? 0 : numberOf('rate');
if (values.rate === undefined) {
  const saturation = await saturatingRate((step) => say(step));
  rate = saturation / 2;
  say(`saturated at ${saturation} requests/s; half of it is ${rate}`);
}
const samplesPath = join(results, `${name}.ndjson`);
say(
  `${rate} requests/s and ${values.held} held streams for ${values.minutes} min, a reload each ${values['reload-every']} s; samples: ${samplesPath}`,
);
const result = await runSoak({
  rate,
  heldStreams: numberOf('held'),
  seconds,
  edits: numberOf('reloads'),
  editEveryMs: numberOf('reload-every') * 1000,
  sampleEveryMs: numberOf('sample-every') * 1000,
  samplesPath,
  onSample: (sample) => say(describe(sample)),
});
say(`before the load: ${describe(result.idleBefore)}\nafter it: ${describe(result.idleAfter)}`);
writeFileSync(join(results, `${name}.svg`), soakChart(result.samples));
const lastSeconds = result.samples.at(-1)?.seconds ?? 0;
const findings = judge(result, {
  // A third of the soak, and at most five minutes.
  warmUpSeconds: Math.min(300, lastSeconds / 3),
  heapShare: 0.05,
  // In its first minutes the process still grows to its working size.
  rssSlope: lastSeconds < SLOPE_FROM_SECONDS ? undefined : 1024 * 1024,
  descriptors: 2,
});
for (const { what, met } of findings) say(`${met ? 'met' : 'MISSED'}: ${what}`);
process.exitCode = findings.every(({ met }) => met) ? 0 : 1;
