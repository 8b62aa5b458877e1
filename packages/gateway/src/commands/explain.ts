import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createCore, createReplayer, explainRecord, explanationText } from '@signalbox/core';
import type { Explanation } from '@signalbox/core';
import { silentLogger, SignalboxError } from '@signalbox/plugin-api';
import type { Command, CommandInput, Terminal } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import { readExplainRequest } from '../explain/explain-request.ts';
import { findRecord } from '../explain/find-record.ts';
import type { PolicyWithPlugins } from '../policy/load-with-plugins.ts';
import { loadWithPlugins } from '../policy/load-with-plugins.ts';
import { secretResolver } from '../secrets.ts';
import { systemClock, systemScheduler } from '../system-time.ts';
import { ADMIN_OPTIONS, adminClient } from './admin-client.ts';
import { PLUGIN_OPTIONS, readPluginChoice } from '../plugins/plugin-options.ts';

export const explainCommand: Command = {
  name: 'explain',
  summary: 'where a request would go under a policy, or went, and why',
  arguments:
    'FILE REQUEST.json | --admin URL REQUEST.json | --request ID --admin URL | --request ID --audit FILE [POLICY]',
  arity: [0, 2],
  help: `
Decides one request, given as JSON, on an idle fleet: each rule with the comparison that decided it, each endpoint with what removed it or how it scored.
Nothing is sent. REQUEST.json is an OpenAI request body, or { "path", "headers", "tenant", "body" } around one; - reads standard input.

  echo '{"model":"auto","messages":[{"role":"user","content":"Is Paris in France?"}]}' | signalbox explain policy.route -

With --admin, a running gateway decides it on its live fleet, still without sending it. With --request, a decision that was made is explained: from the gateway's memory, or from audit files, whose rules are shown where the policy that made it is given as well.

  signalbox explain --admin http://127.0.0.1:9901 request.json
  signalbox explain --admin http://127.0.0.1:9901 --request 7c0e0e1a-5d4b-4d0f-9d53-4c1c1c3b8e1f
  signalbox explain policy.route --audit audit.ndjson --request 7c0e0e1a-5d4b-4d0f-9d53-4c1c1c3b8e1f`,
  options: {
    request: { type: 'string', value: 'ID', help: 'explain the decision of the request with this x-request-id' },
    audit: {
      type: 'string',
      multiple: true,
      value: 'FILE',
      help: 'an audit file that has it; may be repeated, .gz too',
    },
    ...ADMIN_OPTIONS,
    admin: {
      type: 'string',
      value: 'URL',
      help: 'ask the gateway with this admin listener, e.g. http://127.0.0.1:9901',
    },
    json: { type: 'boolean', help: 'the explanation as JSON' },
    ...PLUGIN_OPTIONS,
  },
  async run(input, terminal) {
    const explained = await explainedBy(input, terminal);
    if (explained === undefined) return EXIT_FAILED;
    const { explanation, text, note } = explained;
    if (note !== undefined) terminal.err(`${note}\n`);
    terminal.out(input.flag('json') ? `${JSON.stringify(explanation, null, 2)}\n` : text);
    return EXIT_OK;
  },
};

interface Explained {
  readonly explanation: unknown;
  readonly text: string;
  readonly note?: string;
}

/** By one of the four ways; undefined where a policy has errors, which then stand on standard error. */
async function explainedBy(input: CommandInput, terminal: Terminal): Promise<Explained | undefined> {
  const requestId = input.text('request');
  const audit = input.texts('audit');
  const isLive = input.text('admin') !== undefined;
  if (requestId === '') throw new UsageError('--request needs an id');
  if (audit.length > 0 && isLive) throw new UsageError('--audit and --admin are two places to look; give one');
  if (audit.length > 0 && requestId === undefined) throw new UsageError('--audit needs --request ID: which request');
  if (requestId !== undefined && audit.length === 0 && !isLive)
    throw new UsageError('--request needs --audit FILE or --admin URL: where to look');
  const expected = requestId === undefined ? (isLive ? 1 : 2) : isLive ? 0 : undefined;
  const given = input.positionals.length;
  if (expected === undefined ? given > 1 : given !== expected)
    throw new UsageError(`expected ${explainCommand.arguments}`);

  const [first = '', second = ''] = input.positionals;
  if (isLive) return await askGateway(input, terminal, requestId, first);
  if (requestId === undefined) {
    const policy = await loadWithPlugins(first, readPluginChoice(input), terminal);
    return policy === undefined
      ? undefined
      : rendered(explainIdle(policy, readJson(second, terminal), terminal), terminal);
  }
  return await explainAudited(requestId, audit, first, input, terminal);
}

async function askGateway(
  input: CommandInput,
  terminal: Terminal,
  requestId: string | undefined,
  requestPath: string,
): Promise<Explained> {
  const client = adminClient(input, terminal);
  const report = (await (requestId === undefined
    ? client.call('POST', '/-/explain', { body: readJson(requestPath, terminal) })
    : client.call('GET', `/-/explain?request=${encodeURIComponent(requestId)}`))) as Partial<ExplainAnswer> | null;
  const explanation = report?.explanation;
  if (explanation === undefined)
    throw new SignalboxError(
      'the admin listener answers otherwise than this command expects; are both of one version?',
      {
        code: 'admin_refused',
        source: 'gateway',
      },
    );
  return rendered(explanation, terminal);
}

interface ExplainAnswer {
  readonly explanation: Explanation;
}

async function explainAudited(
  requestId: string,
  files: readonly string[],
  policyPath: string,
  input: CommandInput,
  terminal: Terminal,
): Promise<Explained | undefined> {
  const policy = policyPath === '' ? undefined : await loadWithPlugins(policyPath, readPluginChoice(input), terminal);
  if (policyPath !== '' && policy === undefined) return undefined;
  const { record, others } = await findRecord(requestId, files, { cwd: terminal.cwd, stdin: process.stdin });
  const note =
    others === 0
      ? {}
      : { note: `${others + 1} requests have the id ${JSON.stringify(requestId)}; this is the last of them` };
  if (policy === undefined) return { ...rendered(explainRecord(record), terminal), ...note };
  const replayer = createReplayer({ ...policy, environment: (name) => terminal.env[name] });
  try {
    return { ...rendered(replayer.explain(record), terminal), ...note };
  } finally {
    replayer.close();
  }
}

function explainIdle({ program, plugins }: PolicyWithPlugins, given: unknown, terminal: Terminal): Explanation {
  const request = readExplainRequest(given, systemClock.now());
  const core = createCore({
    clock: systemClock,
    scheduler: systemScheduler,
    logger: silentLogger,
    resolveSecret: (ref) => secretResolver(terminal.cwd, terminal.env)(ref) ?? 'unset',
    environment: (name) => terminal.env[name],
  });
  try {
    core.activate(core.prepare(program, plugins));
    return core.explain(request);
  } finally {
    core.close();
  }
}

function rendered(explanation: Explanation, terminal: Terminal): Explained {
  return { explanation, text: explanationText(explanation, { colour: terminal.colour }) };
}

function readJson(path: string, terminal: Terminal): unknown {
  const name = path === '-' ? 'standard input' : path;
  let text: string;
  try {
    text = readFileSync(path === '-' ? 0 : resolve(terminal.cwd, path), 'utf8');
  } catch (cause) {
    throw new SignalboxError(`cannot read ${name}: ${(cause as Error).message}`, {
      code: 'request_unreadable',
      source: 'client',
      cause,
    });
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SignalboxError(`${name} is not JSON: ${(cause as Error).message}`, {
      code: 'request_unreadable',
      source: 'client',
      cause,
    });
  }
}
