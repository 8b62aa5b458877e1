import { createDecisionLog, createLogger, createLogStream, decisionText, LOG_LEVELS } from '@signalbox/telemetry';
import type { LogLevel } from '@signalbox/telemetry';
import type { Logger } from '@signalbox/plugin-api';
import { splitListen } from '../admin/admin-server.ts';
import type { Command, CommandInput, Terminal } from '../cli/command.ts';
import { EXIT_FAILED, UsageError } from '../cli/command.ts';
import { PolicyRefused, startGateway } from '../gateway.ts';
import type { Gateway, GatewayOptions } from '../gateway.ts';
import { boundYoungGeneration } from '../young-generation.ts';
import { runUntilStopped } from './run-until-stopped.ts';
import { PLUGIN_OPTIONS, readPluginChoice } from '../plugins/plugin-options.ts';

export const serveCommand: Command = {
  name: 'serve',
  summary: 'run the gateway as a policy says',
  arguments: 'FILE',
  arity: [1, 1],
  help: `
Runs the gateway for one policy file and what it imports; \`define gateway\` in it says where to listen. The policy is watched: an edit takes effect
for new requests, running ones finish on the version that they entered with, and an edit with errors changes nothing but prints its findings.
SIGHUP and POST /-/reload on the admin listener reload as well.

  signalbox serve policy.route
  signalbox serve policy.route --listen 127.0.0.1:0 --log pretty

SIGTERM drains: /readyz says 503, connections are accepted for 10 s more, running streams get 300 s. SIGINT (Ctrl-C) stops within 2 s.`,
  options: {
    listen: { type: 'string', value: 'HOST:PORT', help: 'in place of `listen` in define gateway' },
    admin: { type: 'string', value: 'HOST:PORT', help: 'in place of `admin` in define gateway' },
    log: { type: 'string', value: 'FORM', help: 'json (default) or pretty: one line for each request' },
    'log-level': { type: 'string', value: 'LEVEL', help: `one of ${LOG_LEVELS.join(', ')}; info by default` },
    open: {
      type: 'boolean',
      help: 'lets anyone call on an address that others can reach, where the policy asks for no API keys',
    },
    strict: { type: 'boolean', help: 'a policy without a default is an error' },
    ...PLUGIN_OPTIONS,
  },
  async run(input, terminal) {
    const policyPath = input.positionals[0] ?? '';
    const pretty = readLogForm(input) === 'pretty';
    const level = pretty ? 'silent' : readLogLevel(input);
    const stream = createLogStream();
    process.once('exit', () => stream.flushSync());
    const logger = createLogger({ level, destination: stream });
    return runGateway(
      {
        ...commonOptions(input, terminal, policyPath),
        open: input.flag('open'),
        logger,
        onDecision: pretty
          ? (record) => stream.write(`${decisionText(record)}\n`)
          : createDecisionLog({ level, destination: stream }),
      },
      terminal,
      pretty ? undefined : logger,
      (gateway) => {
        if (pretty) terminal.out(`${gateway.startFindings}listening on ${gateway.url}, admin on ${gateway.adminUrl}\n`);
        else {
          if (gateway.startFindings !== '') terminal.err(gateway.startFindings);
          logger.info('listening', { url: gateway.url, admin: gateway.adminUrl });
        }
      },
    );
  },
};

function readLogForm(input: CommandInput): string {
  const form = input.text('log') ?? 'json';
  if (form !== 'json' && form !== 'pretty') throw new UsageError(`--log must be json or pretty, got "${form}"`);
  return form;
}

function readLogLevel(input: CommandInput): LogLevel {
  const level = input.text('log-level') ?? 'info';
  if (!(LOG_LEVELS as readonly string[]).includes(level))
    throw new UsageError(`--log-level must be one of ${LOG_LEVELS.join(', ')}, got "${level}"`);
  return level as LogLevel;
}

function readAddress(input: CommandInput, option: string): string | undefined {
  const address = input.text(option);
  try {
    if (address !== undefined) splitListen(address);
  } catch (error) {
    throw new UsageError(`--${option}: ${(error as Error).message}`);
  }
  return address;
}

/** The options that serve and dev share. */
export function commonOptions(input: CommandInput, terminal: Terminal, policyPath: string): GatewayOptions {
  const listen = readAddress(input, 'listen');
  const admin = readAddress(input, 'admin');
  return {
    policyPath,
    cwd: terminal.cwd,
    ...readPluginChoice(input),
    strict: input.flag('strict'),
    adminToken: terminal.env['SIGNALBOX_ADMIN_TOKEN'],
    colour: terminal.colour,
    ...(listen === undefined ? {} : { listen }),
    ...(admin === undefined ? {} : { admin }),
  };
}

/** Starts a gateway, reports its reloads, and runs it until a signal stops it. Returns the exit code. */
export async function runGateway(
  options: GatewayOptions,
  terminal: Terminal,
  logger: Logger | undefined,
  onStart: (gateway: Gateway) => void,
  onStop: () => Promise<void> = () => Promise.resolve(),
): Promise<number> {
  const unbound = boundYoungGeneration();
  let gateway: Gateway;
  try {
    gateway = await startGateway({
      ...options,
      onReload(report) {
        const { ok, changed, policy, generation, keys, keysChanged, held } = report;
        if (logger !== undefined) {
          if (ok) logger.info('policy reloaded', { policy, generation, changed });
          else logger.error('policy refused; the last good one stays in force', { policy, generation });
        }
        if (keysChanged && logger === undefined)
          terminal.out(keys === null ? 'no API keys are asked for\n' : `API keys in force: ${keys}\n`);
        if (!ok) terminal.err(`${report.text}policy ${policy} stays in force: the new text was refused\n`);
        else if (changed) {
          if (report.text !== '') terminal.err(report.text);
          if (logger === undefined) terminal.out(`policy ${policy} (generation ${generation}) is in force\n`);
        } else if (held !== null && logger === undefined)
          terminal.out(`policy ${held} is held back: ${policy} is pinned\n`);
      },
      onPolicyEvent(text) {
        if (logger === undefined) terminal.err(`${text}\n`);
      },
    });
  } catch (error) {
    unbound();
    await onStop();
    if (!(error instanceof PolicyRefused)) throw error;
    terminal.err(error.text);
    return EXIT_FAILED;
  }
  const stopped = runUntilStopped(gateway, terminal);
  onStart(gateway);
  const code = await stopped;
  unbound();
  await onStop();
  return code;
}
