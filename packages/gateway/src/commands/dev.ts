import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decisionText } from '@signalbox/telemetry';
import type { Command, Terminal } from '../cli/command.ts';
import { UsageError } from '../cli/command.ts';
import { createSimulatedFleet } from '../dev/simulated-fleet.ts';
import type { SimulatedFleet } from '../dev/simulated-fleet.ts';
import type { Gateway } from '../gateway.ts';
import { commonOptions, runGateway } from './serve.ts';
import { PLUGIN_OPTIONS } from '../plugins/plugin-options.ts';

/** The policy that `dev` runs without a FILE. */
const QUICKSTART = fileURLToPath(new URL('../../policies/quickstart.route', import.meta.url));

export const devCommand: Command = {
  name: 'dev',
  summary: 'try a policy: the gateway over simulated GPUs, a line for every decision',
  arguments: '[FILE]',
  arity: [0, 1],
  help: `
Runs the gateway with a simulated engine in the place of each endpoint that the policy defines, as fast as the GPU that its tier names, so that any
policy can be tried on a laptop. Edits of the file take effect while it runs. Without a FILE, a policy with two tiers on three kinds of GPU is used.

  signalbox dev
  signalbox dev my-production.route --speed 10`,
  options: {
    listen: {
      type: 'string',
      value: 'HOST:PORT',
      help: 'in place of `listen` in define gateway; the next free port is taken if it is in use',
    },
    admin: { type: 'string', value: 'HOST:PORT', help: 'in place of `admin` in define gateway' },
    speed: {
      type: 'string',
      value: 'FACTOR',
      help: 'how many times faster than real the simulated GPUs run; 1 by default',
    },
    strict: { type: 'boolean', help: 'a policy without a default is an error' },
    ...PLUGIN_OPTIONS,
  },
  async run(input, terminal) {
    const timeScale = Number(input.text('speed') ?? 1);
    if (!(timeScale > 0 && timeScale <= 1000))
      throw new UsageError(`--speed must be a number above 0 and at most 1000, got "${input.text('speed')}"`);
    const [policyPath = QUICKSTART] = input.positionals;
    const fleet = createSimulatedFleet({ timeScale });
    const shownPath = relative(terminal.cwd, resolve(terminal.cwd, policyPath));
    return runGateway(
      {
        ...commonOptions(input, terminal, policyPath),
        nextFreePort: true,
        // Whoever calls gets simulated answers.
        open: true,
        transform: (program) => fleet.stand(program),
        onDecision: (record) => terminal.out(`${decisionText(record)}\n`),
      },
      terminal,
      undefined,
      (gateway) =>
        terminal.out(
          welcome(gateway, fleet, { shownPath, listen: input.text('listen') ?? gateway.definition.listen }, terminal),
        ),
      () => fleet.close(),
    );
  },
};

interface Shown {
  readonly shownPath: string;
  /** The address that was asked for. */
  readonly listen: string;
}

function welcome(gateway: Gateway, fleet: SimulatedFleet, { shownPath, listen }: Shown, terminal: Terminal): string {
  const bold = (text: string): string => (terminal.colour ? `\u001b[1m${text}\u001b[0m` : text);
  const { url, adminUrl, definition } = gateway;
  const wantedPort = listen.split(':').at(-1) ?? '';
  const moved = wantedPort === '0' || url.endsWith(`:${wantedPort}`) ? '' : ` (${listen} is taken)`;
  const engines = [...fleet.engines.values()];
  const rows = gateway.endpoints().map(({ name, tier, model, throughput }) => {
    const speed = Number.isFinite(throughput) ? `  about ${Math.round(throughput)} tokens/s` : '';
    return `    ${name.padEnd(10)} tier "${tier}"  ${model ?? ''}${speed}`;
  });
  const model = definition.models[0] ?? gateway.endpoints()[0]?.model ?? 'auto';
  const body = JSON.stringify({
    model,
    stream: true,
    messages: [{ role: 'user', content: 'Prove that there are infinitely many primes.' }],
  });
  return `${gateway.startFindings}
${bold('Signalbox')} is running on ${bold(url)}${moved}
  policy   ${shownPath}   (edit it: new requests follow at once)
  admin    ${adminUrl}/metrics   ${adminUrl}/-/policy
  try out  ${adminUrl}/playground/   (policies, in the browser)
  fleet    ${engines.length} simulated engines
${rows.join('\n')}

Try it:
  curl -N ${url}/v1/chat/completions -H 'content-type: application/json' \\${gateway.asksForKeys ? '\n    -H "authorization: Bearer $SIGNALBOX_KEY" \\' : ''}
    -d '${body.replaceAll("'", "'\\''")}'

Ctrl-C stops. A line for every decision follows.
`;
}
