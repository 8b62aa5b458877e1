import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isSignalboxError } from '@signalbox/plugin-api';
import { formatPolicy, hasErrors, renderText } from '@signalbox/policy';
import type { Command } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK } from '../cli/command.ts';
import { readPolicyText } from '../policy/policy-files.ts';

export const fmtCommand: Command = {
  name: 'fmt',
  summary: 'lay out policies in their one canonical form',
  arguments: 'FILE [FILE …]   (- for standard input)',
  arity: [1, Infinity],
  help: `
Rewrites each file in the canonical layout; there is nothing to configure. Comments stay, statements that do not parse stay as they are, and
formatting twice changes nothing.

  signalbox fmt policies/*.route
  signalbox fmt --check policies/*.route       change nothing; exit 1 and name the files that would change
  signalbox fmt - < policy.route               from standard input to standard output`,
  options: { check: { type: 'boolean', help: 'change nothing; exit 1 if a file is not in the canonical layout' } },
  run(input, terminal) {
    let failed = false;
    for (const path of input.positionals) {
      let text: string;
      try {
        text = path === '-' ? readFileSync(0, 'utf8') : readPolicyText(resolve(terminal.cwd, path));
      } catch (error) {
        if (!isSignalboxError(error)) throw error;
        terminal.err(`signalbox fmt: ${error.message}\n`);
        failed = true;
        continue;
      }
      const result = formatPolicy(text, { file: path === '-' ? 'standard input' : path });
      if (hasErrors(result.diagnostics)) {
        terminal.err(
          renderText(result.diagnostics, new Map([[path === '-' ? 'standard input' : path, text]]), {
            color: terminal.colour,
          }),
        );
        failed = true;
      }
      if (input.flag('check')) {
        if (result.text !== text) {
          terminal.out(`${path} would change\n`);
          failed = true;
        }
      } else if (path === '-') {
        terminal.out(result.text);
      } else if (result.text !== text) {
        writeFileSync(resolve(terminal.cwd, path), result.text);
        terminal.out(`${path} formatted\n`);
      }
    }
    return Promise.resolve(failed ? EXIT_FAILED : EXIT_OK);
  },
};
