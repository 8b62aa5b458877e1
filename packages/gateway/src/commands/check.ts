import type { Diagnostic, Sources } from '@signalbox/policy';
import {
  applyFixes,
  hasErrors,
  renderAnnotations,
  renderJson,
  renderSarif,
  renderText,
  sortDiagnostics,
} from '@signalbox/policy';
import { isSignalboxError } from '@signalbox/plugin-api';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import { createPolicyLoader } from '../policy/load-policy.ts';
import type { LoadedPolicy } from '../policy/load-policy.ts';
import { VERSION } from '../version.ts';

const FORMATS = ['text', 'json', 'sarif', 'github'];

export const checkCommand: Command = {
  name: 'check',
  summary: 'what a policy gets wrong, with the place and the remedy',
  arguments: 'FILE [FILE …]',
  arity: [1, Infinity],
  help: `
Compiles each policy as the server would and prints every finding at once. Nothing is started and no plugin code runs.

  signalbox check policy.route
  signalbox check --format sarif policies/*.route > findings.sarif
  signalbox check --fix policy.route           make the fixes that are safe, then report what is left

Exit code 0: no error. 1: errors (with --deny-warnings also warnings). 2: wrong usage.
Each finding has a code; signalbox explain-code E0203 tells more about it.`,
  options: {
    format: {
      type: 'string',
      value: 'FORMAT',
      help: `${FORMATS.join(', ')} (annotations of GitHub Actions); text by default`,
    },
    'deny-warnings': { type: 'boolean', help: 'exit 1 on warnings too' },
    strict: { type: 'boolean', help: 'a policy without a default is an error' },
    fix: { type: 'boolean', help: 'make the fixes that are safe to make by machine' },
    'allow-plugin': {
      type: 'string',
      multiple: true,
      value: 'NAME',
      help: 'a plugin package that may be used beyond the dependencies of package.json',
    },
  },
  run(input, terminal) {
    const format = input.text('format') ?? 'text';
    if (!FORMATS.includes(format))
      throw new UsageError(`--format must be one of ${FORMATS.join(', ')}, got "${format}"`);
    const loader = createPolicyLoader({
      cwd: terminal.cwd,
      allowPlugins: input.texts('allow-plugin'),
      strict: input.flag('strict'),
    });
    const diagnostics: Diagnostic[] = [];
    const sources = new Map<string, string>();
    const notices: string[] = [];
    const unreadable: string[] = [];
    let fixed = 0;
    for (const path of input.positionals) {
      let loaded: LoadedPolicy;
      try {
        loaded = loader.load(path);
      } catch (error) {
        if (!isSignalboxError(error)) throw error;
        unreadable.push(error.message);
        continue;
      }
      if (input.flag('fix')) {
        const made = writeFixes(terminal.cwd, loaded.diagnostics);
        if (made > 0) {
          fixed += made;
          loaded = loader.load(path);
        }
      }
      for (const finding of loaded.diagnostics) diagnostics.push(finding);
      for (const notice of loaded.notices) notices.push(notice);
      for (const [file, text] of loaded.sources) sources.set(file, text);
    }
    if (fixed > 0) terminal.err(`made ${fixed} ${fixed === 1 ? 'fix' : 'fixes'}\n`);
    report(format, sortDiagnostics(diagnostics), sources, input.positionals.length - unreadable.length, terminal);
    for (const message of unreadable) terminal.err(`signalbox check: ${message}\n`);
    for (const notice of notices) terminal.err(`note: ${notice}\n`);
    const warned = diagnostics.some(({ severity }) => severity === 'warning');
    const failed = unreadable.length > 0 || hasErrors(diagnostics) || (warned && input.flag('deny-warnings'));
    return Promise.resolve(failed ? EXIT_FAILED : EXIT_OK);
  },
};

function report(
  format: string,
  diagnostics: readonly Diagnostic[],
  sources: Sources,
  files: number,
  terminal: Parameters<Command['run']>[1],
): void {
  if (format === 'json') return terminal.out(`${renderJson(diagnostics, sources).trimEnd()}\n`);
  if (format === 'sarif')
    return terminal.out(`${renderSarif(diagnostics, sources, { toolVersion: VERSION }).trimEnd()}\n`);
  if (format === 'github') return terminal.out(renderAnnotations(diagnostics, sources));
  if (diagnostics.length > 0) return terminal.err(renderText(diagnostics, sources, { color: terminal.colour }));
  if (files === 0) return;
  return terminal.out(`${files === 1 ? 'the policy is' : `${files} policies are`} in order\n`);
}

function writeFixes(cwd: string, diagnostics: readonly Diagnostic[]): number {
  let made = 0;
  for (const file of new Set(diagnostics.map(({ span }) => span.file))) {
    const path = resolve(cwd, file);
    const { text, applied } = applyFixes(readFileSync(path, 'utf8'), file, diagnostics);
    if (applied.length > 0) writeFileSync(path, text);
    made += applied.length;
  }
  return made;
}
