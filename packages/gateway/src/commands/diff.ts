import { isSignalboxError } from '@signalbox/plugin-api';
import type { PolicyProgram } from '@signalbox/policy';
import { DEFAULT_BUDGET, diffPolicies, hasErrors, renderDiff, renderText } from '@signalbox/policy';
import type { Command, Terminal } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import { createPolicyLoader } from '../policy/load-policy.ts';
import { ALLOW_PLUGIN } from '../plugins/plugin-options.ts';

export const diffCommand: Command = {
  name: 'diff',
  summary: 'which requests a change of a policy moves, and where to',
  arguments: 'OLD NEW',
  arity: [2, 2],
  help: `
Compares two policies by what they mean: which requests another rule takes than before, as conditions with a request for an example; what
changes in how rules handle their requests; and which definitions differ. Layout, comments, \`let\`s and rewritten conditions that hold for
the same requests are no change. Where a condition cannot be decided, the move is "not proved", with the reason. Nothing is started.

  signalbox diff policy.route new.route
  git show HEAD:policy.route > old.route && signalbox diff old.route policy.route
  signalbox diff --json old.route new.route

Exit code 0: both compile and are compared, whether they differ or not. 1: one of them has errors; with --exit-code also where they differ.
2: wrong usage.`,
  options: {
    json: { type: 'boolean', help: 'the whole difference as JSON' },
    'exit-code': { type: 'boolean', help: 'exit 1 where the policies differ' },
    budget: {
      type: 'string',
      value: 'STEPS',
      help: `steps for each pair of rules, ${DEFAULT_BUDGET} by default; past them a move is "not proved"`,
    },
    ...ALLOW_PLUGIN,
  },
  run(input, terminal) {
    const budget = Number(input.text('budget') ?? DEFAULT_BUDGET);
    if (!Number.isSafeInteger(budget) || budget < 1)
      throw new UsageError(`--budget takes a whole number from 1, got "${input.text('budget') ?? ''}"`);
    const [old, now] = input.positionals.map((path) => compiled(path, input.texts('allow-plugin'), terminal));
    if (old === undefined || now === undefined) return Promise.resolve(EXIT_FAILED);
    const diff = diffPolicies(old, now, { budget });
    terminal.out(input.flag('json') ? `${JSON.stringify({ version: 1, ...diff }, null, 2)}\n` : renderDiff(diff));
    return Promise.resolve(input.flag('exit-code') && !diff.isSame ? EXIT_FAILED : EXIT_OK);
  },
};

/** The program of a file; undefined where it has errors, which are printed. */
function compiled(path: string, allowPlugins: readonly string[], terminal: Terminal): PolicyProgram | undefined {
  try {
    const loaded = createPolicyLoader({ cwd: terminal.cwd, allowPlugins }).load(path);
    const errors = loaded.diagnostics.filter(({ severity }) => severity === 'error');
    if (hasErrors(errors)) terminal.err(renderText(errors, loaded.sources, { color: terminal.colour }));
    return loaded.program;
  } catch (error) {
    if (!isSignalboxError(error)) throw error;
    terminal.err(`signalbox diff: ${error.message}\n`);
    return undefined;
  }
}
