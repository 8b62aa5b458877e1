import type { Analysis, Diagnostic, Sources } from '@signalbox/policy';
import {
  applyFixes,
  DEFAULT_BUDGET,
  hasErrors,
  renderAnnotations,
  renderSarif,
  renderText,
  sortDiagnostics,
  toJsonReport,
  withAnalysis,
} from '@signalbox/policy';
import { isSignalboxError } from '@signalbox/plugin-api';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from '../cli/command.ts';
import { EXIT_FAILED, EXIT_OK, UsageError } from '../cli/command.ts';
import { createPolicyLoader } from '../policy/load-policy.ts';
import type { LoadedPolicy } from '../policy/load-policy.ts';
import { VERSION } from '../version.ts';
import { ALLOW_PLUGIN } from '../plugins/plugin-options.ts';

const FORMATS = ['text', 'json', 'sarif', 'github'];

export const checkCommand: Command = {
  name: 'check',
  summary: 'what a policy gets wrong, with the place and the remedy',
  arguments: 'FILE [FILE …]',
  arity: [1, Infinity],
  help: `
Compiles each policy as the server would and prints every finding at once. Nothing is started and no plugin code runs.
Then decides which rules no request can reach, which conditions never or always hold, whether every request meets a rule, and whether each
\`ensure\` holds, with a request for an example; where that cannot be decided, it is "not proved".

  signalbox check policy.route
  signalbox check --format sarif policies/*.route > findings.sarif
  signalbox check --fix policy.route           make the fixes that are safe, then report what is left
  signalbox check --verdicts policy.route      also say of each rule and ensure what was proved, with a request that reaches it

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
    overlap: { type: 'boolean', help: 'report rules of which some request meets two' },
    verdicts: { type: 'boolean', help: 'what was proved of each rule and ensure (with text and json)' },
    budget: {
      type: 'string',
      value: 'STEPS',
      help: `steps for each question of the analysis, ${DEFAULT_BUDGET} by default; 0 leaves the analysis out`,
    },
    ...ALLOW_PLUGIN,
  },
  run(input, terminal) {
    const format = input.text('format') ?? 'text';
    if (!FORMATS.includes(format))
      throw new UsageError(`--format must be one of ${FORMATS.join(', ')}, got "${format}"`);
    const budget = wholeNumber(input.text('budget') ?? String(DEFAULT_BUDGET), '--budget');
    const loader = createPolicyLoader({
      cwd: terminal.cwd,
      allowPlugins: input.texts('allow-plugin'),
      strict: input.flag('strict'),
    });
    const diagnostics: Diagnostic[] = [];
    const sources = new Map<string, string>();
    const notices: string[] = [];
    const unreadable: string[] = [];
    const analyses: AnalysedFile[] = [];
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
      const analysed: LoadedPolicy & { readonly analysis?: Analysis } =
        budget === 0 ? loaded : withAnalysis(loaded, { budget, overlap: input.flag('overlap') });
      for (const finding of analysed.diagnostics) diagnostics.push(finding);
      if (analysed.analysis !== undefined) analyses.push({ path, analysis: analysed.analysis });
      for (const notice of loaded.notices) notices.push(notice);
      for (const [file, text] of loaded.sources) sources.set(file, text);
    }
    if (fixed > 0) terminal.err(`made ${fixed} ${fixed === 1 ? 'fix' : 'fixes'}\n`);
    report(
      {
        format,
        diagnostics: sortDiagnostics(diagnostics),
        sources,
        files: input.positionals.length - unreadable.length,
      },
      input.flag('verdicts') ? analyses : [],
      terminal,
    );
    for (const message of unreadable) terminal.err(`signalbox check: ${message}\n`);
    for (const notice of notices) terminal.err(`note: ${notice}\n`);
    const warned = diagnostics.some(({ severity }) => severity === 'warning');
    const failed = unreadable.length > 0 || hasErrors(diagnostics) || (warned && input.flag('deny-warnings'));
    return Promise.resolve(failed ? EXIT_FAILED : EXIT_OK);
  },
};

interface AnalysedFile {
  readonly path: string;
  readonly analysis: Analysis;
}

interface Findings {
  readonly format: string;
  readonly diagnostics: readonly Diagnostic[];
  readonly sources: Sources;
  /** How many policies were read. */
  readonly files: number;
}

function report(
  { format, diagnostics, sources, files }: Findings,
  analyses: readonly AnalysedFile[],
  terminal: Parameters<Command['run']>[1],
): void {
  if (format === 'json') {
    const verdicts = analyses.length === 0 ? {} : { verdicts: analyses.flatMap(verdictsOf) };
    const whole = { ...toJsonReport(diagnostics, sources), ...verdicts };
    return terminal.out(`${JSON.stringify(whole, null, 2)}\n`);
  }
  if (format === 'sarif')
    return terminal.out(`${renderSarif(diagnostics, sources, { toolVersion: VERSION }).trimEnd()}\n`);
  if (format === 'github') return terminal.out(renderAnnotations(diagnostics, sources));
  for (const analysed of analyses) terminal.out(verdictsText(analysed));
  if (diagnostics.length > 0) return terminal.err(renderText(diagnostics, sources, { color: terminal.colour }));
  if (files === 0) return;
  return terminal.out(`${files === 1 ? 'the policy is' : `${files} policies are`} in order\n`);
}

/** What was proved, for other programs. */
function verdictsOf({ path, analysis }: AnalysedFile): readonly object[] {
  return [
    ...analysis.rules.map(({ label, phase, verdict, reason, witness }) => ({
      kind: phase,
      label,
      verdict,
      reason,
      witness,
    })),
    ...analysis.ensures.map(({ label, verdict, reason, witness }) => ({
      kind: 'ensure',
      label,
      verdict,
      reason,
      witness,
    })),
  ].map((verdict) => ({ file: path, ...verdict }));
}

function verdictsText({ path, analysis }: AnalysedFile): string {
  const rows = [
    ...analysis.rules.map((rule) => ({ ...rule, of: rule.phase === 'admission' ? 'admission' : 'route' })),
    ...analysis.ensures.map((ensure) => ({ ...ensure, of: 'ensure' })),
  ].map(({ of, label, verdict, reason, witness }) => {
    const told = [reason ?? '', witness === undefined ? '' : witness.text].filter((part) => part !== '').join(': ');
    return [`  ${of} ${JSON.stringify(label)}`, verdict.replace('_', ' '), told] as const;
  });
  const width = (column: 0 | 1): number => Math.max(0, ...rows.map((row) => row[column].length)) + 2;
  const lines = rows.map(([rule, verdict, told]) =>
    `${rule.padEnd(width(0))}${verdict.padEnd(width(1))}${told}`.trimEnd(),
  );
  return `${path}\n${lines.join('\n')}\n`;
}

function wholeNumber(text: string, option: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new UsageError(`${option} takes a whole number, got "${text}"`);
  return value;
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
