/** `npm run replay`: the Azure conversation trace through the gateway over four simulated engines, under several policies. */
import { parseArgs } from 'node:util';
import { choosers, predictedOutput } from './choosers.ts';
import { simulate } from './expected.ts';
import { replayEndpoints } from './fleet.ts';
import { runLive } from './live-run.ts';
import { planLoad } from './load-plan.ts';
import type { LoadPlan } from './load-plan.ts';
import { failures, formatReport, makeReport } from './report.ts';
import type { Run } from './report.ts';
import { readAzureConversation } from './trace.ts';
import type { TraceRequest } from './trace.ts';

const HELP = `npm run replay -- [options]

Replays the first requests of the Azure conversation trace (2023), time-compressed, through \`signalbox serve\` over four simulated
engines of two GPU kinds, once for each policy and run, and compares with the first policy. Exit code 1 if a claim does not hold.

  --policies a,b,c   scorers as written after \`by\`; "direct" is no gateway, the client takes the engines in turn
                     (round_robin,least_tokens,least_latency)
  --runs N           interleaved runs of each, pooled (3)
  --requests N       of the 500 (500)
  --compression X    how many times faster than the trace's clock (10)
  --utilisation X    of a slow engine under round robin (0.8)
  --virtual          no gateway and no clock: the policies as formulas over the engines in virtual time, one run
  --json             the report as JSON
`;

const { values } = parseArgs({
  options: {
    policies: { type: 'string', default: 'round_robin,least_tokens,least_latency' },
    runs: { type: 'string', default: '3' },
    requests: { type: 'string', default: '500' },
    compression: { type: 'string', default: '10' },
    utilisation: { type: 'string', default: '0.8' },
    virtual: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function positive(name: 'runs' | 'requests' | 'compression' | 'utilisation'): number {
  const value = Number(values[name]);
  if (!(value > 0)) throw new RangeError(`--${name} must be a number above 0, got ${values[name]}`);
  return value;
}

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const trace = readAzureConversation(positive('requests'));
  const load = planLoad(trace, positive('utilisation'));
  const policies = values.policies.split(',');
  const compression = values.virtual ? undefined : positive('compression');
  const runs =
    compression === undefined
      ? virtualRuns(policies, trace, load)
      : await runLive(trace, {
          policies,
          runs: positive('runs'),
          compression,
          stretch: load.stretch,
          onRun: (policy, round) => process.stderr.write(`run ${round + 1} of ${values.runs}: ${policy}\n`),
        });
  const report = makeReport(runs, { load, compression, requests: trace.length });
  const names = replayEndpoints.map(({ name }) => name);
  process.stdout.write(values.json ? `${JSON.stringify(report, undefined, 2)}\n` : `${formatReport(report, names)}\n`);
  const failed = failures(report);
  for (const failure of failed) process.stderr.write(`${failure}\n`);
  return failed.length === 0 ? 0 : 1;
}

function virtualRuns(
  policies: readonly string[],
  trace: readonly TraceRequest[],
  { stretch }: LoadPlan,
): readonly Run[] {
  return policies.map((policy) => {
    const chooser = choosers[policy];
    if (chooser === undefined)
      throw new RangeError(`no formula for ${policy}; known: ${Object.keys(choosers).join(', ')}`);
    return { policy, round: 0, ...simulate(replayEndpoints, trace, stretch, chooser(), predictedOutput) };
  });
}

process.exitCode = await main();
