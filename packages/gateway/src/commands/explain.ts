import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { createCore, explanationText } from '@signalbox/core';
import type { Explanation } from '@signalbox/core';
import { silentLogger, SignalboxError } from '@signalbox/plugin-api';
import type { Command, Terminal } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK } from '../cli/command.ts';
import { readExplainRequest } from '../explain/explain-request.ts';
import { BUILTIN_PLUGINS } from '../plugins/builtin-plugins.ts';
import { importPlugin } from '../plugins/plugin-packages.ts';
import { createPolicyLoader, findingsText } from '../policy/load-policy.ts';
import { secretResolver } from '../secrets.ts';
import { systemClock, systemScheduler } from '../system-time.ts';

export const explainCommand: Command = {
  name: 'explain',
  summary: 'where a request would go under a policy, and why',
  arguments: 'FILE REQUEST.json',
  arity: [2, 2],
  help: `
Decides one request, given as JSON, on an idle fleet: each rule with the comparison that decided it, each endpoint with what removed it or how it scored.
Nothing is sent. REQUEST.json is an OpenAI request body, or { "path", "headers", "tenant", "body" } around one; - reads standard input.

  echo '{"model":"auto","messages":[{"role":"user","content":"Is Paris in France?"}]}' | signalbox explain policy.route -

A running gateway explains on its live fleet: POST the same JSON to /-/explain on the admin listener.`,
  options: {
    json: { type: 'boolean', help: 'the explanation as JSON' },
    'allow-plugin': {
      type: 'string',
      multiple: true,
      value: 'NAME',
      help: 'a plugin package that may load beyond the dependencies of package.json',
    },
  },
  async run(input, terminal) {
    const [policyPath = '', requestPath = ''] = input.positionals;
    const loaded = createPolicyLoader({ cwd: terminal.cwd, allowPlugins: input.texts('allow-plugin') }).load(
      policyPath,
    );
    if (loaded.program === undefined) {
      terminal.err(findingsText(loaded, terminal.colour));
      return EXIT_FAILED;
    }
    const request = readExplainRequest(readJson(requestPath, terminal), systemClock.now());
    const plugins = await Promise.all([...loaded.packages.values()].map(importPlugin));
    const core = createCore({
      clock: systemClock,
      scheduler: systemScheduler,
      logger: silentLogger,
      resolveSecret: (ref) => secretResolver(terminal.cwd, terminal.env)(ref) ?? 'unset',
      environment: (name) => terminal.env[name],
    });
    let explanation: Explanation;
    try {
      core.activate(core.prepare(loaded.program, [...BUILTIN_PLUGINS, ...plugins]));
      explanation = core.explain(request);
    } finally {
      core.close();
    }
    terminal.out(
      input.flag('json')
        ? `${JSON.stringify(explanation, null, 2)}\n`
        : explanationText(explanation, { colour: terminal.colour }),
    );
    return EXIT_OK;
  },
};

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
