/** `npm run streams`: 3,000 streams of a token a second, then 5,000 for the memory of each. Exit code 1 if a byte was lost. */
import { parseArgs } from 'node:util';
import { bindSelf, findProgram } from '../bench/proxy/tools.ts';
import { runStreams, type StreamsOptions, type StreamsResult } from './streams-run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    streams: { type: 'string', default: '3000' },
    'memory-streams': { type: 'string', default: '5000' },
    'memory-seconds': { type: 'string', default: '30' },
    only: { type: 'string', default: 'all' },
  },
});

const AIM_DELAY_MS = 50;
const AIM_STREAM_BYTES = 28 * 1024;
const RAMP_PER_SECOND = 500;

function numberOf(name: Exclude<keyof typeof values, 'only'>): number {
  const value = Number(values[name]);
  if (!Number.isFinite(value) || value <= 0) throw new Error(`--${name} must be a number above 0, got ${values[name]}`);
  return value;
}
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
const verdict = (met: boolean): string => (met ? 'met' : 'MISSED');

async function run(options: StreamsOptions): Promise<StreamsResult> {
  say(
    `${options.streams} streams of ${options.seconds} s, a token each ${options.paceMs} ms, opened at ${options.perSecond}/s`,
  );
  const result = await runStreams(options);
  const { tally, steadySeconds, steadyFrames, cpuUs, delay } = result;
  say(`  streams: ${tally.whole} whole, ${tally.faults} lost, reordered or cut; ${tally.events} events`);
  for (const text of tally.faultTexts) say(`    ${text}`);
  say(
    `  all open for ${steadySeconds.toFixed(0)} s: ${(steadyFrames / steadySeconds).toFixed(0)} frames/s, ` +
      `${(cpuUs / steadyFrames).toFixed(1)} µs of CPU a frame, ${(cpuUs / 1e4 / steadySeconds).toFixed(0)} % of a core`,
  );
  say(
    `  event loop delay: p50 ${delay.p50.toFixed(1)} ms, p99 ${delay.p99.toFixed(1)} ms, max ${delay.max.toFixed(1)} ms ` +
      `(aim p99 ${AIM_DELAY_MS} ms: ${verdict(delay.p99 <= AIM_DELAY_MS)})`,
  );
  if (tally.faults > 0 || tally.whole !== options.streams) process.exitCode = 1;
  return result;
}

function sayMemory({ rss }: StreamsResult, streams: number): void {
  const each = (bytes: number): string => `${((bytes - rss.before) / streams / 1024).toFixed(1)} KB`;
  say(
    `  resident memory: ${mib(rss.before)} warmed, ${mib(rss.open)} with ${streams} open (${each(rss.open)} a stream; ` +
      `after a collection ${each(rss.openCollected)}), ${mib(rss.after)} after they ended and a collection ` +
      `(aim ${AIM_STREAM_BYTES / 1024} KB a stream: ${verdict((rss.open - rss.before) / streams <= AIM_STREAM_BYTES)})`,
  );
}

// Gateway, endpoints and client together have two cores.
if (findProgram('taskset') !== undefined) bindSelf('0-1');
const paced = { paceMs: 1000, perSecond: RAMP_PER_SECOND };
if (values.only !== 'memory') {
  const streams = numberOf('streams');
  sayMemory(await run({ streams, seconds: numberOf('minutes') * 60, ...paced }), streams);
}
if (values.only !== 'load') {
  const streams = numberOf('memory-streams');
  sayMemory(await run({ streams, seconds: numberOf('memory-seconds'), ...paced }), streams);
}
