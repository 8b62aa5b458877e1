import { diagnosticCodes, explainCode, isDiagnosticCode, suggest } from '@signalbox/policy';
import type { Command } from '../cli/command.ts';
import { EXIT_OK, UsageError } from '../cli/command.ts';

export const explainCodeCommand: Command = {
  name: 'explain-code',
  summary: 'what a diagnostic code means, with a bad and a good example',
  arguments: '[CODE]',
  arity: [0, 1],
  help: 'Without a code, lists all of them.\n\n  signalbox explain-code E0203',
  options: {},
  run(input, terminal) {
    const [code] = input.positionals;
    if (code === undefined) {
      for (const [name, { severity, title }] of Object.entries(diagnosticCodes))
        terminal.out(`${name}  ${severity.padEnd(7)}  ${title}\n`);
      return Promise.resolve(EXIT_OK);
    }
    const wanted = code.toUpperCase();
    if (!isDiagnosticCode(wanted)) {
      const near = suggest(wanted, Object.keys(diagnosticCodes));
      throw new UsageError(
        `there is no code "${code}"${near === undefined ? '.' : `; did you mean ${near}?`} Without a code, all are listed.`,
      );
    }
    terminal.out(explainCode(wanted));
    return Promise.resolve(EXIT_OK);
  },
};
