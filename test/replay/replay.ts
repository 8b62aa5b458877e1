/** `npm run replay`: the Azure conversation trace through the gateway over four simulated engines, under several policies. */
import { parseArgs } from 'node:util';
import { defaultMaxBatch, replayEndpoints } from './fleet.ts';
import { runLive } from './live-run.ts';
import { planLoad } from './load-plan.ts';
import { failures, formatReport, makeReport } from './report.ts';
import { readAzureConversation, readTrace } from './trace.ts';
import { runVirtual } from './virtual-run.ts';

const HELP = `npm run replay -- [options]

Replays the first requests of the Azure conversation trace (2023), time-compressed, through \`signalbox serve\` over four simulated
engines of two GPU kinds, once for each policy and run, and compares with the first policy. Exit code 1 if a claim does not hold.

  --policies a,b,c   scorers as written after \`by\`; "direct" is no gateway, the client takes the engines in turn
                     (round_robin,least_tokens,least_latency)
  --runs N           interleaved runs of each, pooled (3)
  --requests N       of the 500 (500)
  --trace FILE       another trace in place of them: CSV with TIMESTAMP,ContextTokens,GeneratedTokens, as Azure publishes them
  --from N           requests of FILE to leave out first (0)
  --compression X    how many times faster than the trace's clock (12; with --virtual 1: only the core's clock is slowed by it)
  --utilisation X    of a slow engine under round robin (0.8)
  --max-batch N      of each engine (16)
  --virtual          virtual time: the gateway's compiler, core and plugins over the engines, without processes or network; one run
  --json             the report as JSON
`;

const { values } = parseArgs({
  options: {
    policies: { type: 'string', default: 'round_robin,least_tokens,least_latency' },
    runs: { type: 'string', default: '3' },
    requests: { type: 'string', default: '500' },
    trace: { type: 'string' },
    from: { type: 'string', default: '0' },
    compression: { type: 'string' },
    'max-batch': { type: 'string', default: String(defaultMaxBatch) },
    utilisation: { type: 'string', default: '0.8' },
    virtual: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function positive(name: 'runs' | 'requests' | 'compression' | 'utilisation' | 'max-batch', fallback?: number): number {
  const value = Number(values[name] ?? fallback);
  if (!(value > 0)) throw new RangeError(`--${name} must be a number above 0, got ${values[name]}`);
  return value;
}

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const requests = positive('requests');
  const from = Number(values.from);
  if (!(from >= 0)) throw new RangeError(`--from must be a number of requests, got ${values.from}`);
  const trace = values.trace === undefined ? readAzureConversation(requests) : readTrace(values.trace, from, requests);
  const endpoints = replayEndpoints(positive('max-batch'));
  const load = planLoad(endpoints, trace, positive('utilisation'));
  // Commas within an option list do not part.
  const policies = values.policies.split(/,(?![^(]*\))/).map((policy) => policy.trim());
  const compression = positive('compression', values.virtual ? 1 : 12);
  const { stretch } = load;
  const runs = values.virtual
    ? policies.map((policy) => runVirtual(policy, trace, { endpoints, stretch, compression }))
    : await runLive(trace, {
        endpoints,
        policies,
        runs: positive('runs'),
        compression,
        stretch,
        onRun: (policy, round, again) =>
          process.stderr.write(
            `run ${round + 1} of ${values.runs}: ${policy}${again ? ', again: the machine was busy' : ''}\n`,
          ),
      });
  const report = makeReport(runs, {
    endpoints: endpoints.map(({ name }) => name),
    load,
    compression,
    virtual: values.virtual,
    requests: trace.length,
  });
  process.stdout.write(values.json ? `${JSON.stringify(report, undefined, 2)}\n` : `${formatReport(report)}\n`);
  const failed = failures(report);
  for (const failure of failed) process.stderr.write(`${failure}\n`);
  return failed.length === 0 ? 0 : 1;
}

process.exitCode = await main();
